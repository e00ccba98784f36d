"""How much of what was to be judged was."""

from __future__ import annotations

from dashboards.promql import RANGE, increase, select, share, total
from prober.sinks.metrics import families
from prober.sinks.metrics.labels import Skip


def due(by: str = "") -> str:
    """Runs that the schedule asked for in the time range, without those that maintenance kept from starting."""
    skipped = total(increase(select(families.SCHEDULER_SKIPS, reason=Skip.MAINTENANCE), RANGE), by)
    return f"{total(increase(select(families.PROBE_RUNS_EXPECTED), RANGE), by)} - {skipped}"


def judged_share(by: str = "") -> str:
    """The share of them that ended with PASS or FAIL."""
    judged = total(increase(select(families.PROBE_RUNS, verdict=("pass", "fail")), RANGE), by)
    return share(judged, f"({due(by)})")
