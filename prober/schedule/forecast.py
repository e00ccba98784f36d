"""Forecast of a schedule: its cost, and the rarest fault that it still finds.

The cost is the list price of a month on the real service, compared with the budget of the configuration.

The rarest fault is computed for each objective of a guarantee, from the planned opportunities (`prober.core.coverage`) of all
probes that run on a target at the wire, at their scheduled rates. Through a client library there are fewer opportunities, or none, since
its deliveries may be delayed without bound.
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
"""Opportunities for violations of an indicator, by their counter; other indicators are measurements and need none."""


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """Traffic of one probe instance in a month of 30 days, and its billed volume in bytes."""

    runs: float
    traffic: Traffic
    billed: Bounds

    @property
    def messages(self) -> float:
        """Number of messages published and received."""
        return self.runs * (self.traffic.published + self.traffic.delivered)

    @property
    def usd(self) -> Bounds:
        """Price in US dollars."""
        return price_usd(self.billed)


def monthly_cost(instance: PlannedInstance) -> MonthlyCost:
    """Return the cost of a probe instance on the real service. A cron schedule counts as its shortest interval."""
    runs = MONTH_S / instance.settings.schedule.shortest_gap.total_seconds()
    traffic = instance.experiment.traffic(instance.workload)
    each = billed_bytes(traffic, instance.settings.sizes, batched=instance.vantage is Vantage.WIRE)
    return MonthlyCost(runs, traffic, each.times(runs))


def price_of(instances: Iterable[PlannedInstance]) -> Bounds:
    """Return the price of a month of probe instances, in US dollars."""
    return sum((monthly_cost(instance).usd for instance in instances), NOTHING)


def billed_instances(config: Config, environ: Mapping[str, str]) -> tuple[PlannedInstance, ...]:
    """Return the probe instances whose traffic Google bills: no server in this process, and no emulator."""
    return tuple(instance for target in config.targets if _is_billed(target, environ) for instance in instances_of(target))


def check_budget(config: Config, environ: Mapping[str, str]) -> None:
    """Raise ConfigError if all probes together may cost more per month than `budget.usd_per_month`."""
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
    """Return an amount as text, with cents only for small amounts."""
    return f"${amount:,.0f}" if amount >= 10 else f"${amount:,.2f}"


def between(bounds: Bounds) -> str:
    """Return a range of two amounts as text, or one amount if both look the same."""
    least, most = price_as_text(bounds.least), price_as_text(bounds.most)
    return most if least == most else f"{least} to {most}"


def _is_billed(target: TargetSettings, environ: Mapping[str, str]) -> bool:
    return not is_embedded(target, environ) and resolve_endpoint(target.endpoint, environ).secure


class Detectable(NamedTuple):
    """Smallest share of violations, independent of each other, that is found within a period with probability 95 %."""

    within_s: float
    share: float


def hourly_opportunities(target: TargetSettings) -> Counter[str]:
    """Return the opportunities that the schedule of a target plans per hour, by counter."""
    hourly = Counter[str]()
    for instance in (instance for instance in instances_of(target) if instance.vantage is Vantage.WIRE):
        runs = HOUR_S / instance.settings.schedule.longest_gap.total_seconds()
        for counter, opportunities in instance.experiment.opportunities(instance.workload).items():
            hourly[counter] += round(opportunities * runs)
    return hourly


def detectable(hourly: float) -> tuple[Detectable, ...]:
    """Return the smallest share of violations found in each period with `hourly` opportunities; empty without any."""
    return tuple(Detectable(period_s, share_found(hourly * period_s / HOUR_S)) for period_s in PERIODS_S if hourly)


def detectable_on(config: Config) -> Mapping[tuple[str, Indicator], tuple[Detectable, ...]]:
    """Return the detectable shares by name of the target and indicator, without entries that have no opportunities."""
    found: dict[tuple[str, Indicator], tuple[Detectable, ...]] = {}
    for target in config.targets:
        hourly = hourly_opportunities(target)
        found |= {
            (target.name, about): detectable(hourly[counter]) for about, counter in OPPORTUNITIES_OF.items() if hourly[counter]
        }
    return found
