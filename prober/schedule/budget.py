"""What all probes of a configuration cost a month on the real service at list price, and whether it allows that much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prober.brokers.base import Vantage
from prober.brokers.endpoint import resolve_endpoint
from prober.config.models import Config, TargetSettings
from prober.errors import ConfigError
from prober.probes.cost import MONTH_S, Bounds, Traffic, billed_bytes, price_usd
from prober.schedule.instances import PlannedSite, is_embedded, sites_of

NOTHING: Final = Bounds(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """What one site sends and receives in a month of 30 days, and what of that is billed, in bytes."""

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


def monthly_cost(site: PlannedSite) -> MonthlyCost:
    """That of a site, if its target were the real service. Points of a cron schedule count as if all were as close as the closest."""
    runs = MONTH_S / site.settings.schedule.shortest_gap.total_seconds()
    traffic = site.experiment.traffic(site.workload)
    each = billed_bytes(traffic, site.settings.sizes, batched=site.vantage is Vantage.WIRE)
    return MonthlyCost(runs, traffic, each.times(runs))


def price_of(sites: Iterable[PlannedSite]) -> Bounds:
    """The price of a month of these, in US dollars."""
    return sum((monthly_cost(site).usd for site in sites), NOTHING)


def billed_sites(config: Config, environ: Mapping[str, str]) -> tuple[PlannedSite, ...]:
    """Those at which Google bills what is sent and received: no server in this process, and no emulator."""
    return tuple(site for target in config.targets if _is_billed(target, environ) for site in sites_of(target))


def check_budget(config: Config, environ: Mapping[str, str]) -> None:
    """Raises ConfigError if all probes together may cost more a month than `budget.usd_per_month` allows."""
    sites, allowed = billed_sites(config, environ), config.budget.usd_per_month
    most = price_of(sites).most
    if most > allowed:
        dearest = max(sites, key=lambda site: monthly_cost(site).usd.most)
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
