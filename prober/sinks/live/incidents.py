"""Incidents: one for each target and symptom, with its affected probe instances and kinds of findings.

    incidents = after_run(known, EndedRun(result, ended_at, interval_s, exemplars, reached_at))

**End.** An incident closes when its symptom was not observed for three times the longest gap between two sightings, at least `QUIET_MIN_S`
and at most `QUIET_MAX_S`. The interval of an affected probe counts as a gap: an hourly probe needs three hours. Within three average gaps,
a persisting fault would be observed with a probability of 95 % (rule of three). An outage closes earlier: with the first run of an affected
probe instance that reaches the target.

An outage starts at the last success on the target before the first run that could not reach it.

An incident is *raised* when its first run is recorded, if it is an outage or a broken guarantee. From then on a person is expected to
acknowledge it (`slo.acknowledgements`). An incident of usual behaviour only (WARN) is not raised.

Pure: times are arguments, in seconds since 1970. Each run is passed once, in any order.
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
"""Number of gaps after which an incident closes (rule of three)."""
RULE: Final = (
    "An incident closes when it was not seen for three times its longest gap or probe interval, at least 1 h and at most 24 h. "
    "An outage closes with the first run that reaches the target again."
)
"""The rule in words, for pages."""


class Exemplar(NamedTuple):
    """The finding shown for an incident. `events`: number of events in the trace that proves it; None: no proof."""

    finding_id: str
    events: int | None


NO_EXEMPLAR: Final = Exemplar("", None)


class Acknowledgement(NamedTuple):
    """Acknowledgement of an incident by a person. `until`: its end; None: the end of the incident."""

    at: float
    by: str
    note: str
    until: float | None


@dataclass(frozen=True, slots=True)
class EndedRun:
    """An ended run, as input for incidents.

    interval_s  longest time between the starts of two runs of the probe instance; 0: unknown.
    exemplars   a finding of each kind that failed the run, if any is kept.
    reached_at  end of the newest earlier run, of any probe, that reached the target; None: unknown.
    recorded_at time of its storage, before which its incident cannot be acknowledged; 0: not after its end.
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

    first_at    time of the first finding, not the end of its run; for an outage, the last success before it.
    last_at     end of the last run with the symptom.
    closes_at   expected end if no further run shows the symptom.
    affected    findings by kind at each affected probe instance.
    runs, runs_total   runs with the symptom, of all runs with a verdict at the affected probe instances since `first_at`.
    unsent      scheduled publishes that could not be sent.
    closed_at   None: open.
    raised_at   None: not raised, since its findings are of usual behaviour only.
    first_acknowledged_at   the first valid acknowledgement after it was raised, also if it has ended; None: none.
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
        return Counter(dict(sum(self.affected.values(), Counter[Kind]()).most_common()))

    @property
    def findings(self) -> int:
        """Number of findings, including those that are not kept individually."""
        return sum(kinds.total() for kinds in self.affected.values())

    @property
    def status(self) -> Condition:
        """OUTAGE, FAIL, or WARN for violations of usual behaviour only."""
        return (
            Condition.OUTAGE
            if self.symptom is Symptom.OUTAGE
            else of_kinds({kind for one in self.affected.values() for kind in one})
        )

    def is_open(self, now: float) -> bool:
        """Return whether the incident is open: neither closed nor due to close."""
        return self.closed_at is None and now < self.closes_at

    def is_acknowledged(self, now: float) -> bool:
        """Return whether an acknowledgement is valid at that time."""
        return self.acknowledged is not None and (self.acknowledged.until is None or now < self.acknowledged.until)


def earliest(found: Iterable[tuple[Kind, float]]) -> dict[Kind, float]:
    """Return the earliest time of each kind."""
    first: dict[Kind, float] = {}
    for kind, at in found:
        first[kind] = min(at, first.get(kind, at))
    return first


def found_in(result: RunResult) -> dict[Symptom, Counter[Kind]]:
    """Return the symptoms that a run shows, with their findings by kind; an outage has none of its own."""
    found: dict[Symptom, Counter[Kind]] = {Symptom.OUTAGE: Counter()} if result.unreachable else {}
    for (kind, status), count in result.counts.items():
        if status in FAILING and count:
            found.setdefault(symptom_of(kind), Counter())[kind] += count
    return found


def reached(result: RunResult) -> bool:
    """Return whether a run shows that the target can be reached."""
    return not (result.unreachable or result.internal_error)


def after_run(known: Mapping[Symptom, Incident], run: EndedRun) -> dict[Symptom, Incident]:
    """Return the incidents of a target that a run opens or changes. `known`: the newest of each symptom, open or closed."""
    found, changed = found_in(run.result), dict[Symptom, Incident]()
    for symptom, kinds in found.items():
        before = known.get(symptom)
        changed[symptom] = _seen(before if before and _continues(before, run) else _opened(symptom, run), kinds, run)
    for symptom, incident in known.items():
        if symptom not in found and _concerns(incident, run):
            changed[symptom] = _not_seen(incident, run)
    return changed


def _continues(before: Incident, run: EndedRun) -> bool:
    """Return whether a run belongs to an incident. A run that started during an outage does, however late it ended."""
    if before.closed_at is None:
        return run.ended_at < before.closes_at
    return (run.result.started_at if before.symptom is Symptom.OUTAGE else run.ended_at) < before.closed_at


def _concerns(incident: Incident, run: EndedRun) -> bool:
    """Return whether a run without the symptom counts: at an affected probe instance, after the first sighting."""
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
    return next((one for one in (known, *shown) if one.events is not None), known if known.finding_id or not shown else shown[0])
