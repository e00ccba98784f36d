"""The part of a run that the status store keeps: its findings with their evidence, bounded by number, time and size.

The evidence is the minimal reproduction of the finding as a trace file (`prober.evidence.minimise`), and the earlier events of its key.
The search for the minimal reproduction runs the checker for some seconds at worst. The writer's thread does it, for at most
`REDUCING_MAX_S` a run: the first finding of each kind and status first, then the second of each, and so on. `verify --explain` shows the
same history. A history that could not be reduced to the minimum is marked as such. Some proof of a finding is cheap, so every finding
gets one, unless that takes longer than `PROVING_MAX_S`; the finding then states so.

The store keeps findings with a proof; it counts the others, in the run and in their incident. If no finding of a kind and status could be
proven, the store keeps the first of them, marked as not proven, with its events or with the reason why there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from prober.clock import monotonic_s
from prober.core.events import Closed, Opened
from prober.core.findings import FAILING, Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.kinds import is_reported
from prober.evidence.evidence import Excerpt, collect
from prober.evidence.explain import explain
from prober.evidence.minimise import Numbered, OfSession, is_proven_by, minimise
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult, finding_id_of
from prober.runs.sink import KeptHistory
from prober.sinks.status.records import Entry, Evidence, FindingRecord, OpenSession, ProberState, RunRecord
from prober.traces.header import TraceHeader
from prober.traces.trace import FIRST_EVENT_LINE, write_trace

KEPT_PER_RUN_MAX: Final = 100
HARMLESS_KEPT_MAX: Final = 5
"""Stored findings of each kind that fails no run.

A run may have hundreds of them, and the proof of one costs as much as that of a violation.
"""
REDUCING_MAX_S: Final = 5.0
"""Time limit for the reduction of a run's findings, if no other run waits; later findings keep an unreduced proof."""
PROVING_MAX_S: Final = 15.0
SHARES_MIN: Final = 10
"""Minimum number of shares of the remaining time: one finding takes at most one share."""
TRACE_EVENTS_MAX: Final = 200
"""Stored events of an unproven finding."""
PROOF_EVENTS_MAX: Final = 1_000
OPENED_MAX: Final = 100

_ORDER: Final = (Status.VIOLATION, Status.LIVENESS, Status.INDETERMINATE, Status.INFO)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended at a probe instance, with the record of its events; None: the record is gone."""

    probe_instance: ProbeInstance
    result: RunResult
    ended_at: float
    clock_offset_s: float
    recorded: KeptHistory | None


@dataclass(frozen=True, slots=True)
class ProberIdentity:
    """The prober that writes."""

    instance: str
    version: str
    started_at: float


@dataclass(frozen=True, slots=True)
class EvidencePair:
    """Evidence of a finding: the minimal reproduction, and all events of its key."""

    evidence: Evidence
    on_key: Evidence


def entry_of(
    ended: EndedRun,
    prober: ProberIdentity,
    clock: Callable[[], float] = monotonic_s,
    stopping: Callable[[], bool] = lambda: False,
    waiting: int = 0,
) -> Entry:
    """Return the entry of a run for the store.

    Takes up to about `PROVING_MAX_S`, usually much less, and ends early once the process is `stopping`. Raises nothing. While other runs
    are `waiting` for their entries, the time limit of the reduction is divided among all of them.
    """
    candidates = _candidates(ended.result.findings)
    evidence = _evidence(ended, candidates, clock, stopping, REDUCING_MAX_S / (1 + waiting))
    records = tuple(_record(ended, prober, number, made, evidence[number]) for number, made in _kept(candidates, evidence))
    listed = sum(count for sort, count in ended.result.counts.items() if is_reported(*sort))
    run = RunRecord.of(
        ended.result,
        ended.probe_instance.environment,
        ended.probe_instance.region,
        ended.ended_at,
        _state(ended, prober),
        max(0, listed - len(records)),
    )
    return Entry(run, records, ended.probe_instance.interval_s)


def _state(ended: EndedRun, prober: ProberIdentity) -> ProberState:
    recorded = ended.recorded
    observed = (0, None, "") if recorded is None else (recorded.count, recorded.verified, recorded.unverified_because)
    return ProberState(prober.instance, prober.version, prober.started_at, ended.clock_offset_s, *observed)


def _candidates(findings: Sequence[RecordedFinding]) -> list[tuple[int, RecordedFinding]]:
    """Return the findings that may be kept, numbered by their place in the run, the most serious first."""
    harmless, listed = Counter[Kind](), []
    for number, made in enumerate(findings, 1):
        kind, status = made.sort
        harmless[kind] += status not in FAILING
        if status in FAILING or (is_reported(kind, status) and harmless[kind] <= HARMLESS_KEPT_MAX):
            listed.append((number, made))
    return sorted(listed, key=lambda item: _ORDER.index(item[1].finding.status))[:KEPT_PER_RUN_MAX]


def _kept(
    candidates: Sequence[tuple[int, RecordedFinding]], evidence: Mapping[int, EvidencePair | str]
) -> list[tuple[int, RecordedFinding]]:
    """Return the findings with a proof, and the first of each kind and status without any."""
    proven = {number for number, shown in evidence.items() if not isinstance(shown, str) and shown.evidence.proven}
    seen = {made.sort for number, made in candidates if number in proven}
    kept = []
    for number, made in candidates:
        if number in proven or made.sort not in seen:
            seen.add(made.sort)
            kept.append((number, made))
    return kept


def _record(
    ended: EndedRun, prober: ProberIdentity, number: int, made: RecordedFinding, shown: EvidencePair | str
) -> FindingRecord:
    result = ended.result
    record = FindingRecord.of(
        made.finding,
        result.probe_instance,
        finding_id=finding_id_of(result.run_id, number),
        run_id=result.run_id,
        instance=prober.instance,
        found_at=result.found_at(made.finding, ended.ended_at),
        after=made.after,
        explanation=explain(made.finding, ended.clock_offset_s),
    )
    if isinstance(shown, str):
        record.unproven_because = shown
    else:
        record.evidence, record.on_key = shown.evidence, shown.on_key
    return record


def _evidence(
    ended: EndedRun,
    kept: Iterable[tuple[int, RecordedFinding]],
    clock: Callable[[], float],
    stopping: Callable[[], bool],
    reducing_s: float,
) -> dict[int, EvidencePair | str]:
    """Return the evidence of findings by their numbers, or the reason why there is none."""
    recorded, found = ended.recorded, dict[int, EvidencePair | str]()
    in_turn = _in_turn(kept)
    if recorded is None or not in_turn:
        return {number: "the events of its run were not kept" for number, _ in in_turn}
    began = clock()
    excerpts = collect(lambda: recorded.events, [made for _, made in in_turn])
    for left, (number, _), excerpt in zip(range(len(in_turn), 0, -1), in_turn, excerpts, strict=True):
        now = clock()
        if stopping():
            found[number] = "the prober stopped before it was proven"
        elif now >= began + PROVING_MAX_S:
            found[number] = f"proving the findings of its run took longer than {PROVING_MAX_S:g} s"
        else:
            share_s = (began + reducing_s - now) / min(left, SHARES_MIN)
            found[number] = _shown(ended.result, recorded, excerpt, _late(now + share_s, clock, stopping))
    return found


def _late(share_ends_t: float, clock: Callable[[], float], stopping: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: stopping() or clock() >= share_ends_t


def _in_turn(kept: Iterable[tuple[int, RecordedFinding]]) -> list[tuple[int, RecordedFinding]]:
    """Order findings: the first of each kind and status, then the second of each. Findings of one kind usually share a cause."""
    seen, turns = Counter[object](), []
    for number, made in kept:
        turns.append((seen[made.sort], number, made))
        seen[made.sort] += 1
    return [(number, made) for _, number, made in sorted(turns, key=lambda each: each[0])]


def _shown(result: RunResult, recorded: KeptHistory, excerpt: Excerpt, late: Callable[[], bool]) -> EvidencePair | str:
    finding = excerpt.made.finding
    rules = recorded.rules.get(finding.subscription) or next(iter(recorded.rules.values()))
    header = TraceHeader(
        finding.subscription, finding.key, rules, f"{finding.kind} in run {result.run_id}", extra={"run_id": result.run_id}
    )
    try:
        return EvidencePair(_reduced(header, excerpt, late), _on_key(header, excerpt))
    except Exception as fault:  # a mistake of ours, or a key that no file can hold: the finding stands without it
        return f"no trace could be made of it: {fault!r}"


def _reduced(header: TraceHeader, excerpt: Excerpt, late: Callable[[], bool]) -> Evidence:
    finding = excerpt.made.finding
    for events in excerpt.candidates():
        minimal = minimise(events, finding, header.rules, subscriptions=(finding.subscription,), late=late)
        if minimal is not None and len(minimal.events) <= PROOF_EVENTS_MAX:
            return _written(header, minimal.events, minimal.finding, excerpt, len(events), complete=minimal.complete)
    events = excerpt.events()
    return _written(header, _around(events, finding), finding, excerpt, len(events), complete=None)


def _on_key(header: TraceHeader, excerpt: Excerpt) -> Evidence:
    finding, on_key = excerpt.made.finding, excerpt.on_key()
    is_proven = is_proven_by(on_key.events, finding, header.rules, subscriptions=(finding.subscription,))
    among = len(on_key.events) + on_key.left_out
    return _written(header, on_key.events, finding, excerpt, among, complete=False if is_proven else None)


def _written(
    header: TraceHeader, events: Sequence[Numbered], finding: Finding, excerpt: Excerpt, among: int, *, complete: bool | None
) -> Evidence:
    """Return the evidence as records; `complete` None: these events do not prove the finding again."""
    stream = BytesIO()
    write_trace(stream, header, (event for _, event in events))
    lines = {number: line for line, (number, _) in enumerate(events, FIRST_EVENT_LINE)}
    return Evidence(
        trace=stream.getvalue().decode(),
        proven=complete is not None,
        complete=bool(complete),
        among=among,
        witnesses=tuple(lines[number] for number in finding.witnesses if number in lines),
        opened=_opened(events, excerpt.opened()),
    )


def _opened(events: Sequence[Numbered], opened: Sequence[Opened]) -> tuple[OpenSession, ...]:
    """Return the openings of sessions that occur in these events and were opened before them."""
    inside = {(event.subscription, event.session) for _, event in events if isinstance(event, Opened)}
    occurring = {(event.subscription, event.session) for _, event in events if isinstance(event, OfSession | Closed)}
    begun = {(event.subscription, event.session): event.subscriber for event in opened}
    return tuple(OpenSession(*session, begun[session]) for session in sorted((occurring - inside) & begun.keys())[:OPENED_MAX])


def _around(events: Sequence[Numbered], finding: Finding) -> Sequence[Numbered]:
    """Return the witnesses and the events closest to them, within the bound."""
    witnesses = finding.witnesses or tuple(number for number, _ in events[-1:])
    by_distance = sorted(events, key=lambda item: (min(abs(item[0] - witness) for witness in witnesses), item[0]))
    return sorted(by_distance[:TRACE_EVENTS_MAX], key=lambda item: item[0])
