"""The alert about Google's client library: behaviour on an ordering key that its documentation rules out, seen at the library vantage."""

from __future__ import annotations

from typing import Final

from prober.alerting.promql import news, prom_duration, series
from prober.alerting.rules import COUNT, INTERVAL_S, AlertBasis, AlertingRule, Dashboard, Owner, RuleGroup, Severity, Summary
from prober.sinks.metrics import families
from prober.slo.objectives import HOUR_S

SEEN_S: Final = HOUR_S
LABELS: Final = families.LIBRARY_ANOMALIES.labels


def library_group() -> RuleGroup:
    """The rule about the client library; nothing fires without probes at the library vantage."""
    return RuleGroup("pubsub-prober-client-library", INTERVAL_S, (_anomaly(),))


def _anomaly() -> AlertingRule:
    """A ticket: what it breaks for subscribers has alerts of its own. The service is not at fault, so it burns no budget."""
    return AlertingRule(
        "PubsubClientLibraryAnomaly",
        f"{news(LABELS, series(families.LIBRARY_ANOMALIES), SEEN_S)} > 0",
        Severity.WARNING,
        Owner.SERVICE,
        Summary("The client library breaks the documented behaviour of an ordering key.", COUNT),
        "{{ $labels.kind }}: {{ $value }} times within the last "
        f"{prom_duration(SEEN_S)} on subscription {{{{ $labels.subscription }}}} of {{{{ $labels.target }}}} "
        "({{ $labels.environment }}, {{ $labels.region }}). Suspect the version of the client library, not the service.",
        Dashboard.ORDERING,
        LABELS,
        labels={"evidence": str(AlertBasis.MEASUREMENT)},
    )
