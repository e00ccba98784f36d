"""How alerts about the prober itself are made, and what they have in common."""

from __future__ import annotations

from typing import Final

from prober.alerting.rules import Alert, Dashboard, Owner, Severity
from prober.sinks.metrics.families import TARGET
from prober.slo.objectives import MINUTE_S

PROBE: Final = (*TARGET, "probe")
WINDOW_S: Final = 15 * MINUTE_S
SILENT_FOR_S: Final = 5 * MINUTE_S
TROUBLE_FOR_S: Final = 10 * MINUTE_S
AT: Final = "Prober {{ $labels.instance }}"


def own_alert(
    name: str,
    expression: str,
    severity: Severity,
    summary: str,
    description: str,
    by: tuple[str, ...] = (),
    for_s: float = 0.0,
    dashboard: Dashboard = Dashboard.PROBER,
) -> Alert:
    """An alert for those who run the prober."""
    return Alert(name, expression, severity, Owner.PROBER, summary, description, dashboard, by, for_s)
