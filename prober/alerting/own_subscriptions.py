"""Alerts about the user's own subscriptions, by what Cloud Monitoring shows of them.

Points are minutes old, come once a minute, and are sometimes missing. So an alert holds its last known state over a gap of five minutes.
After that the state is unknown, and what stays unknown has an alert of its own.
"""

from __future__ import annotations

from typing import Final

from prober.alerting.promql import (
    binary,
    group_by,
    max_by,
    on,
    outside_maintenance,
    percent,
    prom_duration,
    prom_number,
    series,
)
from prober.alerting.rules import (
    DURATION,
    INTERVAL_S,
    SHARE,
    AlertBasis,
    AlertingRule,
    Dashboard,
    Owner,
    RuleGroup,
    Severity,
    Summary,
)
from prober.monitoring.comparison import POINT_AGE_MAX_S, SAMPLE_S, Late
from prober.sinks.metrics import families
from prober.sinks.metrics.families import OWN
from prober.sinks.metrics.family import Family
from prober.slo.objectives import MINUTE_S

GAP_S: Final = 5 * MINUTE_S
LATE_FOR_S: Final = 10 * MINUTE_S
BOTH_LATE_FOR_S: Final = 5 * MINUTE_S
UNREADABLE_FOR_S: Final = 30 * MINUTE_S
EXPIRED_WINDOW_S: Final = 30 * MINUTE_S
EXPIRED_FOR_S: Final = 10 * MINUTE_S
EXPIRED_SHARE_MAX: Final = 0.05
EXPIRED_PER_MINUTE_MIN: Final = 1.0
KNOWN: Final = tuple(one for one in Late if one is not Late.UNKNOWN)
NAMED: Final = "{{ $labels.own_subscription }}"
BESIDE: Final = "{{ $labels.target }} ({{ $labels.environment }}, {{ $labels.region }})"


def own_group() -> RuleGroup:
    """The rules about own subscriptions; nothing fires without any in the configuration."""
    return RuleGroup("pubsub-prober-own-subscriptions", INTERVAL_S, (_both_late(), _late(), _expired(), _unreadable()))


def _both_late() -> AlertingRule:
    return _alert(
        "PubsubServiceDelaysOwnSubscription",
        _both(),
        Severity.CRITICAL,
        Owner.SERVICE,
        Summary("The service delays an own subscription and the prober alike."),
        f"For {prom_duration(BOTH_LATE_FOR_S)} {NAMED} has been late, and so have the prober's own messages on {BESIDE}. The service is "
        "the likely cause.",
        BOTH_LATE_FOR_S,
    )


def _both() -> str:
    """Subscriptions that were last known to be late together with the prober."""
    late, known = (max_by(OWN, outside_maintenance(series(families.OWN_LATE, who=who))) for who in (Late.BOTH, KNOWN))
    return f"last_over_time(({late} and {known} == 1)[{prom_duration(GAP_S)}:{prom_duration(SAMPLE_S)}]) == 1"


def _late() -> AlertingRule:
    """Also where nothing is known of the prober: a backlog must not stay silent because nobody can say whose fault it is."""
    age = f"last_over_time(({_known(families.OWN_OLDEST_UNACKED_AGE)})[{prom_duration(GAP_S)}:{prom_duration(SAMPLE_S)}])"
    late = binary(f"and {on(OWN)}", f"{age} >= {max_by(OWN, series(families.OWN_LATE_AFTER))}", _fresh())
    return _alert(
        "PubsubOwnSubscriptionLate",
        binary(f"unless {on(OWN)}", late, f"({_both()})"),
        Severity.WARNING,
        Owner.SUBSCRIBER,
        Summary("An own subscription is late, and the service is not known to be.", DURATION),
        f"The oldest unacknowledged message of {NAMED} is {{{{ $value | humanizeDuration }}}} old, and was late for "
        f"{prom_duration(LATE_FOR_S)}. The prober's own messages on {BESIDE} are in time, or nothing is known of them.",
        LATE_FOR_S,
    )


def _fresh() -> str:
    """Subscriptions with a point that still says something."""
    return f"(time() - {max_by(OWN, series(families.OWN_POINT_AT))} <= {prom_number(POINT_AGE_MAX_S)})"


def _known(family: Family) -> str:
    """The values that are known, outside maintenance: NaN is in no comparison."""
    return f"{max_by(OWN, outside_maintenance(series(family)))} >= 0"


def _expired() -> AlertingRule:
    """Cloud Monitoring has no point of acknowledgements where there are none: these count as 0 beside known expired deadlines."""
    expired, acked = _per_minute(families.OWN_EXPIRED), _per_minute(families.OWN_ACKED)
    share = f"{expired} / ({expired} + ({acked} or {expired} * 0)) > {prom_number(EXPIRED_SHARE_MAX)}"
    window = prom_duration(EXPIRED_WINDOW_S)
    return _alert(
        "PubsubOwnDeadlinesExpired",
        binary("and", share, f"{expired} >= {prom_number(EXPIRED_PER_MINUTE_MIN)}"),
        Severity.WARNING,
        Owner.SUBSCRIBER,
        Summary("Many acknowledgement deadlines of an own subscription expire.", SHARE),
        f"{{{{ $value | humanizePercentage }}}} of the deliveries of {NAMED} within the last {window} ended with an expired "
        f"acknowledgement deadline, more than {percent(EXPIRED_SHARE_MAX)}. With ordering each one "
        "redelivers all later messages of its key.",
        EXPIRED_FOR_S,
    )


def _per_minute(family: Family) -> str:
    return f"avg_over_time(({_known(family)})[{prom_duration(EXPIRED_WINDOW_S)}:{prom_duration(SAMPLE_S)}])"


def _unreadable() -> AlertingRule:
    """Also where there has never been a point, whose time is NaN then and in no comparison."""
    return _alert(
        "PubsubProberOwnSubscriptionUnreadable",
        binary(f"unless {on(OWN)}", group_by(OWN, series(families.OWN_POINT_AT)), _fresh()),
        Severity.WARNING,
        Owner.PROBER,
        Summary("Cloud Monitoring shows nothing new of an own subscription."),
        f"For {prom_duration(UNREADABLE_FOR_S)} the prober has had no point of {NAMED} that is younger than "
        f"{prom_duration(POINT_AGE_MAX_S)}. Whether it is late is unknown, and its other alerts cannot fire.",
        UNREADABLE_FOR_S,
    )


def _alert(
    name: str, expression: str, severity: Severity, owner: Owner, summary: Summary, description: str, for_s: float
) -> AlertingRule:
    labels = {} if owner is Owner.PROBER else {"evidence": str(AlertBasis.MEASUREMENT)}
    return AlertingRule(name, expression, severity, owner, summary, description, Dashboard.KEYS, OWN, for_s, labels)
