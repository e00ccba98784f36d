"""Incidents: one for each target and symptom, with the affected probe instances and kinds of findings listed inside.

    incidents = after_run(known, EndedRun(result, ended_at, interval_s, exemplars, reached_at))

**End.** An incident closes when it was not seen for three times its longest gap between two sightings, at least `QUIET_MIN_S` and at most
`QUIET_MAX_S`. The interval of a probe that shows it counts as a gap: an hourly probe needs three hours. After three average gaps a fault
that is still there would have been seen with a probability of 95 % (rule of three). An outage closes earlier: with the first run of an
affected probe instance that reaches the target.

An outage begins with the last success on the target before the first run that could not reach it.

An incident is *raised* when the first run with it is recorded, as an outage or with a broken guarantee: from then on a person is expected
to acknowledge it (`slo.acknowledgements`). One of usual behaviour only (WARN) is not raised.

Pure: times are seconds since 1970, and arguments. Runs may come in any order, each once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from prober.core.findings import FAILING, Kind
from prober.core.kinds import Symptom, symptom_of
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey
from prober.runs.result import RunResult
from prober.sinks.live.condition import Condition, of_kinds
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, SliCounts

QUIET_MIN_S: Final = HOUR_S
QUIET_MAX_S: Final = DAY_S
GAPS: Final = 3.0
"""Rule of three."""
RULE: Final = (
    "An incident closes when it was not seen for three times its longest gap or probe interval, at least 1 h and at most 24 h. "
    "An outage closes with the first run that reaches the target again."
)
"""The rule in words, for pages."""


class Exemplar(NamedTuple):
    """The finding shown for an incident. `events`: length of the trace that proves it; None: no proof."""

    finding_id: str
    events: int | None


NO_EXEMPLAR: Final = Exemplar("", None)


class Acknowledgement(NamedTuple):
    """A person knows of the incident. `until`: the acknowledgement ends then; None: with the incident."""

    at: float
    by: str
    note: str
    until: float | None


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run as incidents see it.

    interval_s  longest time between the starts of two runs there; 0: not known.
    exemplars   a finding of each kind that failed the run, if any is kept.
    reached_at  end of the newest earlier run that reached the target, whichever probe made it; None: none is known.
    recorded_at when it was stored: before that its incident cannot be acknowledged. 0: not later than it ended.
    found_at    time of the first finding of each kind that failed the run, if any is kept.
    """

    result: RunResult
    ended_at: float
    interval_s: float = 0.0
    exemplars: Mapping[Kind, Exemplar] = field(default_factory=dict)
    reached_at: float | None = None
    recorded_at: float = 0.0
    found_at: Mapping[Kind, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Incident:
    """One fault of a target.

    first_at    time of the first finding, not the end of its run; of an outage the last success before.
    last_at     end of the last run with it.
    closes_at   expected end, if it is not seen again.
    affected    findings by kind at each probe instance that showed it.
    runs, runs_total   runs with it, of all runs with a verdict at the affected probe instances since.
    unsent      publishes that the schedule wanted and that could not be sent.
    closed_at   None: open.
    raised_at   when it was raised; None: not, as its findings are of usual behaviour only.
    first_acknowledged_at   the first acknowledgement in force since it was raised, also if it has ended; None: none.
    """

    incident_id: str
    target: str
    symptom: Symptom
    first_at: float
    last_at: float
    closes_at: float
    affected: Mapping[InstanceKey, Counter[Kind]]
    runs: int = 0
    runs_total: int = 0
    unsent: int = 0
    exemplar: Exemplar = NO_EXEMPLAR
    closed_at: float | None = None
    acknowledged: Acknowledgement | None = None
    raised_at: float | None = None
    first_acknowledged_at: float | None = None

    @property
    def kinds(self) -> Counter[Kind]:
        """Findings by kind, the most frequent first."""
        total: dict[Kind, int] = {}
        for kinds in self.affected.values():
            for kind, count in kinds.items():
                total[kind] = total.get(kind, 0) + count
        return Counter(dict(sorted(total.items(), key=lambda counted: -counted[1])))

    @property
    def findings(self) -> int:
        """Number of findings, also of those that are not kept one by one."""
        return sum(kinds.total() for kinds in self.affected.values())

    @property
    def status(self) -> Condition:
        """OUTAGE, FAIL, or WARN for usual behaviour."""
        return (
            Condition.OUTAGE
            if self.symptom is Symptom.OUTAGE
            else of_kinds({kind for one in self.affected.values() for kind in one})
        )

    def is_open(self, now: float) -> bool:
        """Whether it is neither closed nor due to be."""
        return self.closed_at is None and now < self.closes_at

    def is_acknowledged(self, now: float) -> bool:
        """Whether a person knows of it at that time."""
        return self.acknowledged is not None and (self.acknowledged.until is None or now < self.acknowledged.until)


def earliest(found: Iterable[tuple[Kind, float]]) -> dict[Kind, float]:
    """The earliest time of each kind."""
    first: dict[Kind, float] = {}
    for kind, at in found:
        first[kind] = min(at, first.get(kind, at))
    return first


def found_in(result: RunResult) -> dict[Symptom, Counter[Kind]]:
    """Symptoms that a run shows, with the findings by kind; none of an outage."""
    found: dict[Symptom, Counter[Kind]] = {Symptom.OUTAGE: Counter()} if result.unreachable else {}
    for (kind, status), count in result.counts.items():
        if status in FAILING and count:
            found.setdefault(symptom_of(kind), Counter())[kind] += count
    return found


def reached(result: RunResult) -> bool:
    """Whether a run shows that the target can be reached."""
    return not (result.unreachable or result.internal_error)


def after_run(known: Mapping[Symptom, Incident], run: EndedRun) -> dict[Symptom, Incident]:
    """Incidents of a target that a run opens or changes, given the newest one of each symptom, open or closed."""
    found, changed = found_in(run.result), dict[Symptom, Incident]()
    for symptom, kinds in found.items():
        before = known.get(symptom)
        changed[symptom] = _seen(before if before and _continues(before, run) else _opened(symptom, run), kinds, run)
    for symptom, incident in known.items():
        if symptom not in found and _concerns(incident, run):
            changed[symptom] = _not_seen(incident, run)
    return changed


def _continues(before: Incident, run: EndedRun) -> bool:
    """Whether a sighting belongs to an incident. A run that began in an outage belongs to it, however late it ended."""
    if before.closed_at is None:
        return run.ended_at < before.closes_at
    return (run.result.started_at if before.symptom is Symptom.OUTAGE else run.ended_at) < before.closed_at


def _concerns(incident: Incident, run: EndedRun) -> bool:
    """Whether the absence of the symptom in a run counts: at an affected probe instance, since it was first seen."""
    return (
        incident.is_open(run.ended_at)
        and run.result.probe_instance in incident.affected
        and run.result.started_at >= incident.first_at
    )


def _opened(symptom: Symptom, run: EndedRun) -> Incident:
    began_at = run.ended_at
    if symptom is Symptom.OUTAGE:
        began_at = run.result.started_at if run.reached_at is None else min(run.reached_at, run.ended_at)
    closes_at = run.ended_at + QUIET_MIN_S
    return Incident(f"{run.result.run_id}-{symptom}", run.result.target, symptom, began_at, run.ended_at, closes_at, {})


def _seen(before: Incident, kinds: Counter[Kind], run: EndedRun) -> Incident:
    instance, unsent = run.result.probe_instance, run.result.checks.get(Indicator.PUBLISH_AVAILABILITY, SliCounts()).bad
    last_at = max(before.last_at, run.ended_at)
    gap_s = max(run.interval_s, last_at - before.last_at)
    quiet_s = max(before.closes_at - before.last_at, min(QUIET_MAX_S, GAPS * gap_s))
    seen = replace(
        before,
        first_at=min(before.first_at, run.ended_at, *(run.found_at[kind] for kind in kinds if kind in run.found_at)),
        last_at=last_at,
        closes_at=last_at + quiet_s,
        affected={**before.affected, instance: before.affected.get(instance, Counter()) + kinds},
        runs=before.runs + 1,
        runs_total=before.runs_total + 1,
        unsent=before.unsent + (unsent if before.symptom is Symptom.OUTAGE else 0),
        exemplar=_better(before.exemplar, [run.exemplars[kind] for kind in kinds if kind in run.exemplars]),
    )
    is_raised_now = not before.runs and seen.status is not Condition.WARN
    return replace(seen, raised_at=max(run.ended_at, run.recorded_at)) if is_raised_now else seen


def _not_seen(before: Incident, run: EndedRun) -> Incident:
    if before.symptom is Symptom.OUTAGE:
        is_over = reached(run.result) and run.ended_at > before.last_at
        return replace(before, closed_at=run.ended_at) if is_over else before
    return replace(before, runs_total=before.runs_total + (run.result.verdict is not Verdict.UNKNOWN))


def _better(known: Exemplar, shown: list[Exemplar]) -> Exemplar:
    """The first one with a proof; else the first one."""
    return next((one for one in (known, *shown) if one.events is not None), known if known.finding_id or not shown else shown[0])
