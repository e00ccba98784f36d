"""Alerts about the prober itself, for those who run it. While some of them fire, what is measured about services means little."""

from __future__ import annotations

from prober.alerting import measurement_validity, no_data, self_monitoring
from prober.alerting.options import Options
from prober.alerting.rules import FINDINGS_INTERVAL_S, INTERVAL_S, Group


def groups(options: Options) -> tuple[Group, ...]:
    """One group for each subject. Drills are looked at as often as real findings."""
    return (
        Group("pubsub-prober-no-data", INTERVAL_S, no_data.alerts(options)),
        Group("pubsub-prober-measurement-validity", INTERVAL_S, measurement_validity.alerts()),
        Group("pubsub-prober-self-monitoring", INTERVAL_S, self_monitoring.parts()),
        Group("pubsub-prober-schedules", INTERVAL_S, self_monitoring.regular()),
        Group("pubsub-prober-drills", FINDINGS_INTERVAL_S, self_monitoring.drills()),
    )
