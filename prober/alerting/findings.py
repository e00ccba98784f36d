"""Alerts about proven findings, by guarantee, and about messages that are older than an objective allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from prober.alerting.options import Options
from prober.alerting.promql import (
    Matcher,
    aggregate,
    binary,
    news,
    outside_maintenance,
    prom_duration,
    prom_number,
    selector,
    series,
)
from prober.alerting.rules import (
    COUNT,
    DURATION,
    FINDINGS_INTERVAL_S,
    INTERVAL_S,
    ON_TARGET,
    AlertBasis,
    AlertingRule,
    Dashboard,
    Owner,
    RecordingRule,
    RuleGroup,
    Severity,
    value_of,
)
from prober.core.findings import Kind, Status
from prober.core.kinds import CAN_FAIL, KINDS, Guarantee, breaking
from prober.evidence.advice import ADVICE
from prober.sinks.metrics import families
from prober.sinks.metrics.family import PREFIX
from prober.sinks.metrics.scopes import SUBSCRIPTION
from prober.slo.indicators import Indicator
from prober.slo.objectives import MINUTE_S, Objective

SEEN_S: Final = 10 * MINUTE_S
"""The age up to which a finding is new, in seconds; afterwards its alert is held, independent of the counter."""
FINDING_LABELS: Final = (*SUBSCRIPTION, "kind", "status")
FOUND: Final = (*SUBSCRIPTION, "kind")

RISING_FOR_S: Final = 5 * MINUTE_S
RISING_MIN: Final = 0.05
"""Seconds of age per second: three a minute. Without acknowledgements it is 1; for a saw tooth about 0."""
OLD_DEFAULT_S: Final = 60.0

ON_SUBSCRIPTION: Final = f"on subscription {{{{ $labels.subscription }}}} of {ON_TARGET}"
VIOLATED: Final[Mapping[Guarantee, tuple[str, Severity, str]]] = MappingProxyType(
    {
        Guarantee.ORDER: ("PubsubOrderViolated", Severity.CRITICAL, "Messages of a key were received out of order."),
        Guarantee.REDELIVERY: (
            "PubsubRedeliveryViolated",
            Severity.CRITICAL,
            "A redelivery skipped messages that should have been redelivered.",
        ),
        Guarantee.INTEGRITY: (
            "PubsubIntegrityViolated",
            Severity.CRITICAL,
            "A message was delivered that was never published, was changed, or should not have been delivered.",
        ),
        Guarantee.ONE_OUTSTANDING: (
            "PubsubOverlapViolated",
            Severity.CRITICAL,
            "A batch or message of a key was sent before an earlier one had been acknowledged.",
        ),
        Guarantee.ONE_HOLDER: (
            "PubsubAffinityViolated",
            Severity.INFO,
            "A key went to another subscriber while messages of it were outstanding.",
        ),
    }
)
"""The alert that fires when a violation of a guarantee is proven.

Fields: the name of the alert and of its runbook, its severity, and its text.
"""
OVERDUE: Final = "PubsubDeliveryOverdue"
"""The alert that fires when a message misses its deadline, for any guarantee."""


def alerts_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of the alerts that findings of a kind can fire."""
    meaning = KINDS[kind]
    violated = (VIOLATED[meaning.guarantee][0],) if Status.VIOLATION in meaning.statuses else ()
    return (*violated, *((OVERDUE,) if meaning.is_wait else ()))


def finding_group(options: Options) -> RuleGroup:
    """Return the rules about proven findings, which are evaluated often."""
    violated = (_violated(options, guarantee) for guarantee in VIOLATED)
    return RuleGroup("pubsub-prober-findings", FINDINGS_INTERVAL_S, (_new_findings(options), *violated, _overdue(options)))


def age_group(objectives: Iterable[Objective]) -> RuleGroup:
    """Return the rule about old messages; the limit is that of an objective."""
    return RuleGroup("pubsub-prober-ages", INTERVAL_S, (_rising(objectives),))


def new_findings(options: Options) -> str:
    """Return the name of the recorded number of new findings."""
    return f"subscription:{PREFIX}_findings:new{prom_duration(_seen_s(options))}"


def _seen_s(options: Options) -> float:
    return min(options.news_s, SEEN_S)


def _new_findings(options: Options) -> RecordingRule:
    selected = series(families.FINDINGS, status=(Status.VIOLATION, Status.LIVENESS))
    return RecordingRule(new_findings(options), news(FINDING_LABELS, selected, _seen_s(options)))


def _found(options: Options, **matchers: Matcher) -> str:
    """Return the expression that is true while a finding keeps its alert firing.

    The finding fires once, also when the prober restarts in between.
    """
    recorded = selector(new_findings(options), FINDING_LABELS, **matchers)
    held_s = options.news_s - _seen_s(options)
    held = f"max_over_time({recorded}[{prom_duration(held_s)}])" if held_s else recorded
    return f"{aggregate(held, FOUND)} > 0"


def _violated(options: Options, guarantee: Guarantee) -> AlertingRule:
    name, severity, summary = VIOLATED[guarantee]
    kinds = breaking(guarantee, {Status.VIOLATION})
    return _proven(
        name,
        _found(options, kind=kinds, status=Status.VIOLATION),
        severity,
        summary,
        f"{{{{ $labels.kind }}}} {ON_SUBSCRIPTION}: proven by events of the last {prom_duration(options.news_s)}, which no "
        "legal behaviour explains. The finding contains a minimal reproduction.",
        Status.VIOLATION,
    )


def _overdue(options: Options) -> AlertingRule:
    return _proven(
        OVERDUE,
        _found(options, status=Status.LIVENESS),
        Severity.CRITICAL,
        "A message was not delivered by its deadline.",
        f"{{{{ $labels.kind }}}} {ON_SUBSCRIPTION}: a deadline passed within the last {prom_duration(options.news_s)} although the target "
        "answered. Messages are late or lost.",
        Status.LIVENESS,
    )


def _proven(name: str, expression: str, severity: Severity, summary: str, description: str, status: Status) -> AlertingRule:
    return AlertingRule(
        name,
        expression,
        severity,
        Owner.SERVICE,
        summary,
        description,
        Dashboard.ORDERING,
        FOUND,
        labels={"evidence": str(AlertBasis.PROOF), "status": str(status)},
        page=f"findings?target={value_of('target')}&kind={value_of('kind')}&status={status}",
        value=f"findings: {COUNT}",
    )


def _rising(objectives: Iterable[Objective]) -> AlertingRule:
    limit_s = old_s(objectives)
    age = series(families.OLDEST_UNACKED_AGE)
    slope = outside_maintenance(f"deriv({age}[{prom_duration(RISING_FOR_S)}])")
    rising = f"{aggregate(slope, SUBSCRIPTION, 'max')} > {prom_number(RISING_MIN)}"
    return AlertingRule(
        "PubsubOldestUnackedAgeRising",
        binary("and", f"{aggregate(outside_maintenance(age), SUBSCRIPTION, 'max')} > {prom_number(limit_s)}", rising),
        Severity.WARNING,
        Owner.SERVICE,
        "The oldest unacknowledged message is old and grows older.",
        f"The oldest message {ON_SUBSCRIPTION} without an acknowledgement is {{{{ $value | humanizeDuration }}}} old, more than "
        f"{prom_number(limit_s)} s, and has been growing older for {prom_duration(RISING_FOR_S)}.",
        Dashboard.KEYS,
        SUBSCRIPTION,
        RISING_FOR_S,
        {"evidence": str(AlertBasis.MEASUREMENT)},
        value=DURATION,
    )


def old_s(objectives: Iterable[Objective]) -> float:
    """Return the age in seconds from which a message is old: the strictest objective about ages."""
    limits = [one.threshold_s for one in objectives if one.indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE and one.threshold_s]
    return min(limits, default=OLD_DEFAULT_S)


def late_kinds() -> dict[Severity, tuple[Kind, ...]]:
    """Return the kinds that violate a guarantee, by severity of the nightly job's alert about late findings.

    Late findings are up to a day old, so none of these alerts is a page. Kinds against usual behaviour, which Google documents, are
    information.
    """
    info = tuple(
        kind for kind in CAN_FAIL if KINDS[kind].guarantee in VIOLATED and VIOLATED[KINDS[kind].guarantee][1] is Severity.INFO
    )
    return {Severity.WARNING: tuple(kind for kind in CAN_FAIL if kind not in info), Severity.INFO: info}


# --- the tables of docs/findings.md, made from what is known of each kind of finding. `make generate` writes the page ---------


BEGINNING: Final = "<!-- what follows is made by `make generate`; do not change it by hand -->\n"
END: Final = "<!-- end of what is made -->\n"


def with_tables(page: str) -> str:
    """Return the page with updated tables. Raises ValueError if the marks of their place are missing."""
    before, _, rest = page.partition(BEGINNING)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError("the page does not say where the tables belong")
    return before + BEGINNING + "".join(f"\n{line}\n" for line in _sections()) + "\n" + END + after


def _sections() -> Iterator[str]:
    for guarantee in Guarantee:
        kinds = [kind for kind, meaning in KINDS.items() if meaning.guarantee is guarantee]
        rows = ["| kind | event | first check | alert |", "|---|---|---|---|", *map(_row, kinds)]
        yield f"## {guarantee.capitalize()}: {guarantee.sentence}"
        yield "\n".join(rows)


def _row(kind: Kind) -> str:
    meaning = KINDS[kind]
    info = "info: " if meaning.statuses[0] is Status.INFO else ""
    alerts = ", ".join(f"[{name}](runbooks/{name}.md)" for name in alerts_of(kind))
    return f"| `{kind}` | {info}{meaning.happened} | {ADVICE[kind]} | {alerts} |"
