"""Forecast of a schedule: its cost, and the rarest fault that it still finds.

The cost is that of a month on the real service at list price, and whether the configuration allows that much.

The rarest fault is computed for each objective with a guarantee behind it, from the opportunities that the probes plan
(`prober.core.opportunity_counters`), over all that run on a target at the wire, as often as they are due. Through a client library there
are fewer, or none: what it shows may be delayed without bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from prober.brokers.base import Vantage
from prober.brokers.endpoint import resolve_endpoint
from prober.config.models import Config, TargetSettings
from prober.errors import ConfigError
from prober.probes.cost import MONTH_S, Bounds, Traffic, billed_bytes, price_usd
from prober.probes.power import share_found
from prober.schedule.instances import PlannedInstance, instances_of, is_embedded
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S

NOTHING: Final = Bounds(0.0, 0.0)
PERIODS_S: Final = (HOUR_S, DAY_S, MONTH_S)
OPPORTUNITIES_OF: Final[Mapping[Indicator, str]] = MappingProxyType(
    {
        Indicator.ORDER: "opportunities_order",
        Indicator.REDELIVERY: "opportunities_redelivery",
        Indicator.AFFINITY: "opportunities_affinity",
        Indicator.COMPLETENESS: "publishes_confirmed",
    }
)
"""The opportunities to see broken what an indicator counts; others measure, and need none."""


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """What one probe instance sends and receives in a month of 30 days, and what of that is billed, in bytes."""

    runs: float
    traffic: Traffic
    billed: Bounds

    @property
    def messages(self) -> float:
        """Published and received."""
        return self.runs * (self.traffic.published + self.traffic.delivered)

    @property
    def usd(self) -> Bounds:
        """Its price, in US dollars."""
        return price_usd(self.billed)


def monthly_cost(instance: PlannedInstance) -> MonthlyCost:
    """That of a probe instance, if its target were the real service. A cron schedule counts as its shortest interval."""
    runs = MONTH_S / instance.settings.schedule.shortest_gap.total_seconds()
    traffic = instance.experiment.traffic(instance.workload)
    each = billed_bytes(traffic, instance.settings.sizes, batched=instance.vantage is Vantage.WIRE)
    return MonthlyCost(runs, traffic, each.times(runs))


def price_of(instances: Iterable[PlannedInstance]) -> Bounds:
    """The price of a month of these, in US dollars."""
    return sum((monthly_cost(instance).usd for instance in instances), NOTHING)


def billed_instances(config: Config, environ: Mapping[str, str]) -> tuple[PlannedInstance, ...]:
    """Those at which Google bills what is sent and received: no server in this process, and no emulator."""
    return tuple(instance for target in config.targets if _is_billed(target, environ) for instance in instances_of(target))


def check_budget(config: Config, environ: Mapping[str, str]) -> None:
    """Raises ConfigError if all probes together may cost more a month than `budget.usd_per_month` allows."""
    instances, allowed = billed_instances(config, environ), config.budget.usd_per_month
    most = price_of(instances).most
    if most > allowed:
        dearest = max(instances, key=lambda instance: monthly_cost(instance).usd.most)
        raise ConfigError(
            f"all probes together may cost {price_as_text(most)} a month at list price, and budget.usd_per_month allows "
            f"{price_as_text(allowed)}: "
            f"allow more, or probe less often or with fewer messages. {dearest.name} costs most: up to "
            f"{price_as_text(monthly_cost(dearest).usd.most)}"
        )


def price_as_text(amount: float) -> str:
    """An amount as it is read: cents only where they matter."""
    return f"${amount:,.0f}" if amount >= 10 else f"${amount:,.2f}"


def between(bounds: Bounds) -> str:
    """Two amounts as they are read, or one if they look the same."""
    least, most = price_as_text(bounds.least), price_as_text(bounds.most)
    return most if least == most else f"{least} to {most}"


def _is_billed(target: TargetSettings, environ: Mapping[str, str]) -> bool:
    return not is_embedded(target, environ) and resolve_endpoint(target.endpoint, environ).secure


class Detectable(NamedTuple):
    """The smallest share of wrong cases, independent of each other, that is found within a period with 95 %."""

    within_s: float
    share: float


def hourly_opportunities(target: TargetSettings) -> Counter[str]:
    """How many opportunities of each kind the schedule of a target plans for an hour, by counter."""
    hourly = Counter[str]()
    for instance in (instance for instance in instances_of(target) if instance.vantage is Vantage.WIRE):
        runs = HOUR_S / instance.settings.schedule.longest_gap.total_seconds()
        for counter, opportunities in instance.experiment.opportunities(instance.workload).items():
            hourly[counter] += round(opportunities * runs)
    return hourly


def detectable(hourly: float) -> tuple[Detectable, ...]:
    """What so many opportunities an hour find within each of the periods; nothing if there are none."""
    return tuple(Detectable(period_s, share_found(hourly * period_s / HOUR_S)) for period_s in PERIODS_S if hourly)


def detectable_on(config: Config) -> Mapping[tuple[str, Indicator], tuple[Detectable, ...]]:
    """What is found, by the name of the target and what an objective counts. Both are left out where there are no opportunities."""
    found: dict[tuple[str, Indicator], tuple[Detectable, ...]] = {}
    for target in config.targets:
        hourly = hourly_opportunities(target)
        found |= {
            (target.name, about): detectable(hourly[counter]) for about, counter in OPPORTUNITIES_OF.items() if hourly[counter]
        }
    return found
