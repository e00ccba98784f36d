"""Verification of one recorded history, by itself or with the records of its publishers.

Every event goes through the checker, and the result is a `Verification`.

The publishers' own records (`prober.client`) are joined with the deliveries of their messages, and verified together. A message id connects
a publish with its deliveries: a delivery of a message that a record names gets the writer and the number from that record.
All others remain messages whose publishes are not on record. So a record that starts in the middle, that has holes, or that is one of
several publishers' is a smaller record, never a wrong one: it proves facts about its own publishes.

Entries of a record that prove nothing are left out:

* publishes that started before the subscription existed, or not later by more than the clocks may differ: they need not be delivered;
* publishes on keys that are not observed;
* incomplete lines, or lines without an event: the file may still be written, and a process may have been killed in the middle of a line.

The clocks of publishers and of the observer may differ by `clock_error_s`. The service's publish time lies between the start of a
publish and its confirmation, and before every delivery; if it does not, clocks differ by more, and nothing is verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from operator import attrgetter
from typing import Final, TypeAlias

from prober.core.events import (
    Delivered,
    Ended,
    Event,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.core.findings import FAILING, Kind
from prober.core.guarded_verifier import KEPT_PER_KIND_MAX, GuardedVerifier, RecordedFinding, Sort
from prober.core.rules import Rules
from prober.core.unrecorded import seconds_of
from prober.core.verdict import Verdict, verdict_of
from prober.traces.header import TraceHeader
from prober.traces.trace import TraceError, read_trace

EVENTS_MAX: Final = 2_000_000
"""Limit of joined events of records; events beyond it count as not recorded."""
VERIFIED: Final = frozenset({Kind.ORDER_GAP, Kind.ORDER_INVERSION, Kind.REALTIME_INVERSION, Kind.LOST_OVERTAKEN, Kind.STUCK})
"""The kinds of findings that only a publisher's record proves."""

CLOCKS: Final = "the clocks of a publisher, the service and the observer differ by"
NOTHING: Final = "the record names no message that came"
MISSING: Final = "messages that were confirmed have not come"

Publish: TypeAlias = PublishInvoked | Published | PublishFailed | PublishUnknown

_PUBLISHES: Final = (PublishInvoked, Published, PublishFailed, PublishUnknown)
_AT: Final = attrgetter("t")


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying one file.

    findings    the kept findings; `counts` is the number of findings of each kind and status.
    counters    the counters of the checker.
    events      the number of events read.
    malformed   where and why reading stopped, as one line; empty if the file was read to its end.
    crash       the same for a fault of the checker itself.
    """

    path: str
    verdict: Verdict
    findings: tuple[RecordedFinding, ...] = ()
    counts: Mapping[Sort, int] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    malformed: str = ""
    crash: str = ""

    @property
    def omitted(self) -> Mapping[Sort, int]:
        """The number of findings of each kind and status that were counted and not kept."""
        return {sort: count - KEPT_PER_KIND_MAX for sort, count in self.counts.items() if count > KEPT_PER_KIND_MAX}


def verify_trace(path: str, header: TraceHeader, events: Iterable[Event]) -> Verification:
    """Verify a history under its header's rules. Never raises for any contents of a file.

    A malformed line ends verification: proven findings remain, everything else is unknown. A fault of the checker makes the verdict
    unknown, whatever was found before. Memory is bounded by the checker and the kept findings.
    """
    verifier, count, malformed = GuardedVerifier({header.subscription: header.rules}), 0, ""
    try:
        for count, event in enumerate(events, 1):
            verifier.observe(event, count)
        verifier.finish(count)
    except TraceError as wrong:
        malformed = str(wrong)
    except Exception as fault:  # the reader of the file has failed
        verifier.fail(fault, count)
    crash = f"{path}: {verifier.stopped_because} with the file" if verifier.fault is not None else ""
    found = verifier.findings
    return Verification(
        path,
        verifier.verdict(incomplete=bool(malformed)),
        tuple(found.kept),
        found.counts,
        dict(verifier.counters),
        count,
        malformed,
        crash,
    )


@dataclass(slots=True)
class PublisherRecords:
    """The records of publishers: `events` in the order of the time since 1970.

    counts      the counted `publishes`, and the excluded entries: `unread` lines, `early` publishes, those `beyond` the memory for records.
    """

    events: list[Publish] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def read_records(paths: Iterable[str], topic: str, since_s: float, until_s: float, keep: Callable[[str], str]) -> PublisherRecords:
    """Return the publishes of several files that started after `since_s`, as recorded until `until_s`, both in seconds since 1970.

    `keep`: maps an ordering key to its recorded name; empty if it is not observed. Raises TraceError for a file that cannot be read, or
    that is about another topic.
    """
    records = PublisherRecords()
    for path in paths:
        _read(path, topic, since_s, until_s, keep, records)
    records.events.sort(key=_AT)  # a stable order: events of one writer never change places
    return records


def _read(path: str, topic: str, since_s: float, until_s: float, keep: Callable[[str], str], records: PublisherRecords) -> None:
    begun: set[tuple[str, str, int]] = set()
    for event in _events(path, topic, records.counts):
        key = keep(event.key) if event.t <= until_s else ""
        publish = (event.key, event.epoch, event.seq)
        if not key or (publish not in begun and not isinstance(event, PublishInvoked)):
            continue
        if isinstance(event, PublishInvoked):
            if event.t <= since_s:
                records.counts["early"] += 1
                continue
            if len(records.events) >= EVENTS_MAX:
                records.counts["beyond"] += 1
                continue
            begun.add(publish)
            records.counts["publishes"] += 1
        records.events.append(replace(event, key=key))


def _events(path: str, topic: str, counts: Counter[str]) -> Iterator[Publish]:
    """Yield the publish events of one file; count the lines that are not events."""
    with read_trace(path) as reader:
        if reader.header.name != topic:
            raise TraceError(path, 1, f"a record of {reader.header.name or 'no topic'}, and {topic} is observed")
        for event in reader.readable(lambda: counts.update(unread=1)):
            if isinstance(event, _PUBLISHES):
                yield event


@dataclass(frozen=True, slots=True)
class RecordVerification:
    """The result of verifying deliveries with the records of their publishers.

    verdict     UNKNOWN also if a confirmed message had not been received by the end.
    reason      why nothing, or not everything, was verified; empty if everything was.
    counts      those of the records, `confirmed` publishes and of these `received`.
    events      the joined history, on the observer's clock, and `rules` those it was verified under.
    """

    verdict: Verdict
    reason: str
    counts: Mapping[str, int]
    rules: Rules
    findings: tuple[RecordedFinding, ...] = ()
    events: Sequence[Event] = ()


def verify_with(
    records: PublisherRecords, received: Iterable[Event], subscription: str, rules: Rules, offset_s: float
) -> RecordVerification:
    """Verify the deliveries of one subscription with the records of its publishers.

    `received`: the recorded events of the subscription, from its start on; `offset_s`: added to its clock to get seconds since 1970.
    `rules.clock_error_s`: how far the clocks of publishers and of the observer may differ.
    """
    named = {(event.key, event.message_id): event for event in records.events if isinstance(event, Published)}
    mine = [event for event in received if getattr(event, "subscription", subscription) == subscription]
    came = {(event.key, event.message_id): event for event in mine if isinstance(event, Delivered)}
    counts = {**records.counts, "confirmed": len(named), "received": len(named.keys() & came.keys())}
    if differ_s := _clocks_differ_s(records, came, offset_s, rules.clock_error_s):
        return RecordVerification(Verdict.UNKNOWN, f"{CLOCKS} {differ_s:.1f} s", counts, rules)
    publishes = (replace(event, t=event.t - offset_s) for event in records.events)
    joined: list[Event] = list(merge(publishes, (_named(event, named) for event in mine), key=_AT))
    if joined:  # the last deliveries are verified after the clock error; the history continues
        joined.append(Ended(joined[-1].t + rules.clock_error_s, drained=False))
    verifier = GuardedVerifier({subscription: rules})
    for number, event in enumerate(joined, 1):
        verifier.observe(event, number)
    found = tuple(made for made in verifier.findings.kept if made.finding.kind in VERIFIED)
    reason = verifier.stopped_because or ("" if counts["received"] else NOTHING) or (MISSING if verifier.pending else "")
    verdict = verdict_of(failed=any(made.finding.status in FAILING for made in found), pending=bool(reason))
    return RecordVerification(verdict, reason, counts, rules, found, joined)


def _named(event: Event, named: Mapping[tuple[str, str], Published]) -> Event:
    """Return a delivery with the writer and the number from a record; without any if no record contains it."""
    if not isinstance(event, Delivered):
        return event
    known = named.get((event.key, event.message_id))
    return replace(event, epoch="", seq=0) if known is None else replace(event, epoch=known.epoch, seq=known.seq)


def _clocks_differ_s(
    records: PublisherRecords, came: Mapping[tuple[str, str], Delivered], offset_s: float, allowed_s: float
) -> float:
    """Return the provable difference of the clocks in seconds, 0 if up to `allowed_s`."""
    begun: dict[tuple[str, str, int], float] = {}
    most_s = 0.0
    for event in records.events:
        writer = (event.key, event.epoch, event.seq)
        if isinstance(event, PublishInvoked):
            begun[writer] = event.t
        elif isinstance(event, Published):
            delivered = came.get((event.key, event.message_id))
            if delivered is None or not isinstance(delivered.publish_time, int):
                continue
            stored_s = seconds_of(delivered.publish_time)
            received_s = delivered.t + offset_s
            most_s = max(most_s, begun.get(writer, stored_s) - stored_s, stored_s - event.t, stored_s - received_s)
    return most_s if most_s > allowed_s else 0.0
