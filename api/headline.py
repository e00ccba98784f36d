"""First box of the status page: faults with start, severity, and advice."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from api.formatting import name, name_at, why
from api.words import ago, counted, duration, number, since
from prober.alerting.findings import alerts_of
from prober.config.values import EMBEDDED
from prober.core.findings import Kind
from prober.core.kinds import USUAL, Symptom
from prober.core.verdict import Verdict
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import RULE as RULE
from prober.sinks.live.incidents import Incident
from prober.sinks.live.snapshot import InstanceSnapshot, StatusSnapshot
from prober.slo.acknowledgements import PERIOD_S, WITHIN_S, Acknowledgements, Timeliness
from prober.slo.acknowledgements import RULE as ACKNOWLEDGE_RULE
from prober.slo.objectives import AlertState, Urgency

CAUSES_SHOWN_MAX: Final = 3
LINES_SHOWN_MAX: Final = 5
PLACES_SHOWN_MAX: Final = 4
UNREACHABLE: Final = "PubsubTargetUnreachable"
BLIND: Final = "PubsubTargetBlind"
UNVERIFIED: Final = "PubsubProberVerdictsUnknown"
NOT_GUARANTEED: Final = "No guarantee is broken: Google documents the opposite as usual, and does not guarantee it."
"""Text for `USUAL` incidents that are open."""

SPENT: Final = "PubsubErrorBudgetExhausted"
BURNS: Final = "PubsubErrorBudgetBurn"
TROUBLES: Final = {
    "the configuration file was refused": "PubsubProberConfigRefused",
    "has sent no heartbeat": "PubsubProberDown",
    "is stuck": "PubsubProberRunsMissing",
    "history cannot be written": "PubsubProberHistoryFailing",
    "are missing from": "PubsubProberEventsDropped",
    "the reports of the nightly jobs cannot be read": "PubsubProberJobLate",
    "own subscriptions:": "PubsubProberOwnSubscriptionUnreadable",
    "the other probers cannot be asked": "PubsubProberStatusStoreDown",
    "the status store cannot be written": "PubsubProberStatusStoreFailing",
    "the status store cannot be reached": "PubsubProberStatusStoreDown",
    "what the status store has is out of date": "PubsubProberStatusStoreFailing",
}
"""Parts of the texts of the prober's problems, each with its runbook; the first match counts."""


@dataclass(frozen=True, slots=True)
class Line:
    """One fault.

    what       the fault and its target, as the beginning of a sentence; `since`: its start.
    facts      severity and places, in sentences without a full stop.
    runbook    name of the runbook.
    incident_id   its incident; empty: none.
    note       further information, such as an acknowledgement.
    about      values for the placeholders of the runbook.
    """

    condition: Condition
    what: str
    since: float
    facts: tuple[str, ...]
    runbook: str
    incident_id: str = ""
    note: str = ""
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason why probe instances without a line are not PASS: the reason of their newest runs."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Burning:
    """An objective that pages. `times`: its burn rate."""

    objective: str
    target: str
    times: float


@dataclass(frozen=True, slots=True)
class Headline:
    """Summary of the status.

    counts    probe instances by condition; in the first minutes also the progress.
    more      number of further lines; `more_causes`: number of further causes.
    not_the_service   sentences on affected targets that are embedded servers.
    burning   objectives that page, worst first: all runs may pass while too many publishes fail.
    """

    title: str
    counts: str
    lines: tuple[Line, ...]
    more: int
    burning: tuple[Burning, ...]
    causes: tuple[Cause, ...]
    more_causes: int
    not_the_service: tuple[str, ...]


def headline(snapshot: StatusSnapshot) -> Headline:
    """Return the first box: the worst line first, acknowledged ones last."""
    lines, causes, burning = _lines(snapshot), _causes(snapshot), _burning(snapshot)
    return Headline(
        _title(snapshot, lines) + _but(snapshot, burning),
        _counts(snapshot),
        lines[:LINES_SHOWN_MAX],
        max(0, len(lines) - LINES_SHOWN_MAX),
        burning,
        causes[:CAUSES_SHOWN_MAX],
        max(0, len(causes) - CAUSES_SHOWN_MAX),
        not_the_service(snapshot, {line.about.get("target", "") for line in lines}),
    )


def not_the_service(snapshot: StatusSnapshot, targets: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each of these targets that is an embedded server, with its configured faults."""
    embedded = {at.target for one in snapshot.probe_instances if (at := one.probe_instance).endpoint.startswith(f"{EMBEDDED} (")}
    faults = sorted({fault for prober in snapshot.probers if prober.configuration for fault in prober.configuration.faults})
    injected = f" It injects faults, as configured: {', '.join(faults)}." if faults else ""
    return tuple(
        f"{target} is the prober's embedded server, not Google Cloud Pub/Sub.{injected}"
        for target in sorted(embedded & set(targets))
    )


def runbook_of(incident: Incident) -> str:
    """Return the runbook of an incident: that of the alert for its most frequent kind that breaks a guarantee."""
    kind = _kind(incident)
    return UNREACHABLE if kind is None else alerts_of(kind)[0]


def _kind(incident: Incident) -> Kind | None:
    """Return the most frequent kind, those that break a guarantee first; None for an outage."""
    return next(iter(sorted(incident.kinds, key=USUAL.__contains__)), None)


def about(incident: Incident) -> Mapping[str, str]:
    """Return the values for the placeholders of the incident's runbook."""
    kind = _kind(incident)
    if kind is None:
        return {"target": incident.target}
    probe = next(instance.probe for instance, kinds in incident.affected.items() if kind in kinds)
    proof = {"id": incident.exemplar.finding_id} if len(incident.kinds) == 1 else {}  # else it may be of another kind
    return {"target": incident.target, "probe": probe, "kind": kind, **proof}


def silences(incident: Incident) -> tuple[str, str]:
    """Return the commands that silence alerts in Alertmanager for an hour: all of an incident, and the error budgets of its target."""
    alerts = dict.fromkeys(alert for kind in incident.kinds for alert in alerts_of(kind)) or {UNREACHABLE: None}
    kinds = [f"kind=~{'|'.join(sorted(incident.kinds))}"] if incident.kinds else []
    target = f"target={incident.target}"
    return (
        _silence(incident, f"alertname=~{'|'.join(alerts)}", target, *kinds),
        _silence(incident, f"alertname=~{BURNS}|{SPENT}", target),
    )


def _silence(incident: Incident, *matchers: str) -> str:
    comment = shlex.quote(f"incident {incident.incident_id}")
    command = "amtool --alertmanager.url=http://ALERTMANAGER:9093 silence add --duration=1h"
    return f"{command} --comment={comment} \\\n  {' '.join(map(shlex.quote, matchers))}"


def runbook_of_trouble(trouble: str) -> str:
    """Return the runbook for a problem of the prober, by its text; empty: none."""
    return next((runbook for words, runbook in TROUBLES.items() if words in trouble), "")


def title_of(incident: Incident) -> str:
    """Return the incident in a few words."""
    if incident.symptom is Symptom.OUTAGE:
        return f"{incident.target} cannot be reached"
    return f"{incident.symptom.sentence} on {incident.target}"


def much(incident: Incident) -> str:
    """Return the severity of an incident."""
    if incident.symptom is Symptom.OUTAGE:
        unsent = f"{counted(incident.unsent, 'publish', 'publishes')} not sent, " if incident.unsent else ""
        return f"{unsent}{counted(incident.runs, 'run')} could not reach it"
    findings = (
        f"{counted(incident.findings, 'finding')} in {number(incident.runs)} of {counted(incident.runs_total, 'verified run')}"
    )
    return f"{findings} of {counted(len(incident.affected), 'probe')}"


def places(incident: Incident) -> str:
    """Return the affected probe instances by name."""
    named = [name_at(instance) for instance in sorted(incident.affected)]
    more = len(named) - PLACES_SHOWN_MAX
    return ", ".join(named[:PLACES_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def closing(incident: Incident, now: float) -> str:
    """Return the closing time of an incident, past or expected."""
    if incident.closed_at is not None:
        return f"closed {since(incident.closed_at, now)}"
    if incident.symptom is Symptom.OUTAGE:
        return "closes with the first run of an affected probe that reaches the target"
    return f"closes by {since(incident.closes_at, now)} if not seen again"


def first_acknowledgement(incident: Incident) -> str:
    """Return the time from raising an incident to its acknowledgement."""
    raised_at, first_at = incident.raised_at, incident.first_acknowledged_at
    if raised_at is None or first_at is None:
        return "no"
    return f"{duration(max(0.0, first_at - raised_at))} after it was raised"


def in_time_as_text(found: Acknowledgements) -> str:
    """Return the number of incidents acknowledged in time, in a few sentences."""
    counts, period, within = found.counts, duration(PERIOD_S), duration(WITHIN_S)
    said = f"No incident of the last {period} shows whether incidents are acknowledged within {within}"
    if found.decided:
        said = f"{number(found.in_time)} of {counted(found.decided, 'incident')} of the last {period} acknowledged within {within}"
    if found.median_s is not None:
        said += f", half of them within {duration(found.median_s)}"
    others = {
        "pending": counts[Timeliness.PENDING],
        "ended before": counts[Timeliness.ENDED],
        "older, not read": found.left_out,
    }
    return f"{said}. " + "".join(f"{number(count)} {words}. " for words, count in others.items() if count) + ACKNOWLEDGE_RULE


def _counts(snapshot: StatusSnapshot) -> str:
    conditions = Counter(instance.status for instance in snapshot.probe_instances)
    counts = [f"{number(conditions[one])} {one}" for one in Condition if conditions[one]]
    if conditions[Condition.STARTING] and snapshot.status is not Condition.STARTING:
        counts.append(_progress(snapshot))
    return ", ".join(counts) or "no probe is configured"


def _progress(snapshot: StatusSnapshot) -> str:
    known = sum(instance.status is not Condition.STARTING for instance in snapshot.probe_instances)
    return f"{number(known)} of {counted(len(snapshot.probe_instances), 'probe')} have a verdict"


def _title(snapshot: StatusSnapshot, lines: Sequence[Line]) -> str:
    worst = [line for line in lines if line.condition is snapshot.status]
    if worst:
        what = worst[0].what if len(worst) == 1 else f"{number(len(worst))} faults"
        return f"{what} since {since(min(line.since for line in worst), snapshot.at)}"
    if not snapshot.probe_instances:
        return "Nothing is probed"
    affected = Counter(instance.status for instance in snapshot.probe_instances)[snapshot.status]
    probes = counted(affected, "probe")
    return {
        Condition.FAIL: f"{probes} found a broken guarantee",
        Condition.WARN: f"{probes} saw unusual behaviour",
        Condition.UNKNOWN: f"{probes} without a verdict",
        Condition.STARTING: _progress(snapshot),
        Condition.PASS: "All probes pass",
    }.get(snapshot.status, "The target cannot be reached")


def _but(snapshot: StatusSnapshot, burning: Sequence[Burning]) -> str:
    """Return the part of a title that limits the statement that there are no problems."""
    if snapshot.verdict is not Verdict.PASS or not burning:
        return ""
    first = burning[0].objective
    return (
        f", but {first} burns its error budget"
        if len(burning) == 1
        else f", but {len(burning)} objectives burn their error budgets"
    )


def _burning(snapshot: StatusSnapshot) -> tuple[Burning, ...]:
    found = []
    for slo in snapshot.slos:
        fires = [burn for burn in slo.burn if burn.state is AlertState.FIRING and burn.severity is Urgency.PAGE]
        if fires:
            found.append(Burning(slo.objective.name, slo.target, max(burn.burn_rate or 0.0 for burn in fires)))
    return tuple(sorted(found, key=lambda one: -one.times))


def _lines(snapshot: StatusSnapshot) -> tuple[Line, ...]:
    """Return outages, incidents and blind targets: acknowledged ones last, otherwise the worst first, then the oldest first."""
    now, order = snapshot.at, list(Condition)
    incidents = snapshot.counted_incidents
    lines = [_line(one, snapshot) for one in incidents]
    lines += [_blind(target, instances) for target, instances in snapshot.blind.items()]
    known = {one.incident_id for one in incidents if one.is_acknowledged(now)}
    return tuple(sorted(lines, key=lambda line: (line.incident_id in known, order.index(line.condition), line.since)))


def _line(incident: Incident, snapshot: StatusSnapshot) -> Line:
    now, said = snapshot.at, incident.acknowledged
    note = NOT_GUARANTEED if incident.status is Condition.WARN else ""
    if said is not None and incident.is_acknowledged(now):
        note = f"Acknowledged by {said.by}" + (f": {said.note}" if said.note else "")
    if incident.symptom is Symptom.OUTAGE:
        instances = [
            instance
            for instance in snapshot.probe_instances
            if instance.probe_instance.target == incident.target and instance.is_counted
        ]
        out = [instance for instance in instances if instance.status is Condition.OUTAGE]
        where = f"{number(len(out))} of {counted(len(instances), 'probe')} affected"
    else:
        where = f"{places(incident)}, last seen {ago(incident.last_at, now)}"
    facts = (much(incident), where, closing(incident, now))
    return Line(
        incident.status,
        title_of(incident),
        incident.first_at,
        facts,
        runbook_of(incident),
        incident.incident_id,
        note,
        about(incident),
    )


def _blind(target: str, instances: Sequence[InstanceSnapshot]) -> Line:
    reasons = Counter(instance.history[-1].reason for instance in instances)
    ((reason, _),) = reasons.most_common(1)
    facts = (f"{counted(len(instances), 'probe')} without a verdict", reason)
    began = min((instance.since for instance in instances if instance.since is not None), default=0.0)
    return Line(Condition.BLIND, f"{target} answers, and no run can be verified", began, facts, BLIND, about={"target": target})


def _causes(snapshot: StatusSnapshot) -> tuple[Cause, ...]:
    shown = {instance for one in snapshot.counted_incidents for instance in one.affected}
    blind, by_reason = snapshot.blind, dict[str, list[str]]()
    for instance in snapshot.probe_instances:
        is_unexplained = instance.status is Condition.UNKNOWN and instance.probe_instance.target not in blind
        if is_unexplained or (instance.status.verdict is Verdict.FAIL and instance.probe_instance.key not in shown):
            by_reason.setdefault(why(instance), []).append(name(instance.probe_instance))
    return tuple(Cause(", ".join(places), reason) for reason, places in by_reason.items())
