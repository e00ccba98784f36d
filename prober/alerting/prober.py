"""Alerts about the prober itself, for those who run it. While some of them fire, what is measured about services means little."""

from __future__ import annotations

from prober.alerting import sight, trust, upkeep
from prober.alerting.options import Options
from prober.alerting.rules import FINDINGS_INTERVAL_S, INTERVAL_S, Group


def groups(options: Options) -> tuple[Group, ...]:
    """One group for each subject. Drills are looked at as often as real findings."""
    return (
        Group("pubsub-prober-sight", INTERVAL_S, sight.alerts(options)),
        Group("pubsub-prober-trust", INTERVAL_S, trust.alerts()),
        Group("pubsub-prober-parts", INTERVAL_S, upkeep.parts()),
        Group("pubsub-prober-regular", INTERVAL_S, upkeep.regular()),
        Group("pubsub-prober-drills", FINDINGS_INTERVAL_S, upkeep.drills()),
    )
