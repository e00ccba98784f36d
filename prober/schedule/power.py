"""How rare a fault may be that the schedule of a target still finds, for each objective that a promise stands behind.

By the chances that its probes plan (`prober.core.chances`), over all that run there at the wire, as often as they are due. Through a client
library there are fewer, or none: what it shows may be delayed without bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from prober.brokers.base import Vantage
from prober.config.models import Config, TargetSettings
from prober.probes.power import share_found
from prober.schedule.instances import sites_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S

MONTH_S: Final = 30 * DAY_S
PERIODS_S: Final = (HOUR_S, DAY_S, MONTH_S)

CHANCES_OF: Final[Mapping[Indicator, str]] = MappingProxyType(
    {
        Indicator.ORDER: "chances_order",
        Indicator.REDELIVERY: "chances_redelivery",
        Indicator.AFFINITY: "chances_affinity",
        Indicator.COMPLETENESS: "publishes_confirmed",
    }
)
"""The chances to see broken what an indicator counts; others measure, and need none."""


class Detectable(NamedTuple):
    """The smallest share of wrong cases, independent of each other, that is found within a period with 95 %."""

    within_s: float
    share: float


def hourly_chances(target: TargetSettings) -> Counter[str]:
    """How many chances of each kind the schedule of a target plans for an hour, by counter."""
    hourly = Counter[str]()
    for site in (site for site in sites_of(target) if site.vantage is Vantage.WIRE):
        runs = HOUR_S / site.settings.schedule.longest_gap.total_seconds()
        for counter, chances in site.experiment.chances(site.workload).items():
            hourly[counter] += round(chances * runs)
    return hourly


def detectable(hourly: float) -> tuple[Detectable, ...]:
    """What so many chances an hour find within each of the periods; nothing if there are none."""
    return tuple(Detectable(period_s, share_found(hourly * period_s / HOUR_S)) for period_s in PERIODS_S if hourly)


def detectable_on(config: Config) -> Mapping[tuple[str, Indicator], tuple[Detectable, ...]]:
    """What is found, by the name of the target and what an objective counts. Both are left out where there are no chances."""
    found: dict[tuple[str, Indicator], tuple[Detectable, ...]] = {}
    for target in config.targets:
        hourly = hourly_chances(target)
        found |= {(target.name, about): detectable(hourly[counter]) for about, counter in CHANCES_OF.items() if hourly[counter]}
    return found
