"""The report of `ordering-prober observe`, as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prober.cli.findings import finding_lines, finding_row, number_of
from prober.cli.process import ExitCode, code_of
from prober.core.events import Delivered, Published
from prober.core.findings import Fact, Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding, Sort
from prober.core.kinds import is_reported
from prober.core.rules import Rules
from prober.core.unrecorded import SAME_TIME
from prober.core.verdict import Verdict
from prober.evidence.explain import PUBSUB
from prober.monitoring.comparison import OwnSubscriptionSnapshot
from prober.ordering.measurement import OrderReport
from prober.probes.observe import ObservedStream
from prober.runs.result import RunResult
from prober.sinks.top_keys import KeyTraffic
from prober.slo.figures import seconds_as_text
from prober.slo.hot_keys import class_of_load, score_of_load
from prober.traces.verification import RecordVerification

LISTED_MAX: Final = 20
"""Maximum number of findings of a record, and of keys in JSON."""
EXAMPLES_MAX: Final = 3
"""Maximum number of findings of each kind and status in text."""
KEYS_SHOWN: Final = 3

BATCHED: Final = (
    "equal publish times: a service may give the messages of one publish request one publish time; to decide, publish each in a request "
    "of its own (max_messages=1), or record the publisher (--record)"
)
_HOWS: Final = ("in_order", "early", "late", "duplicates", "late_or_duplicate", "before_start", "gave_up", "waiting")
_UNREAD: Final = {
    "ungrouped": "without a group",
    "unnumbered": "without a number",
    "above_maximum": "with a number above the maximum",
    "without_key": "without an ordering key",
    "not_sampled": "on keys that are not sampled",
}
_LEFT_OUT: Final = {
    "early": "publishes that began before the subscription was there",
    "beyond": "publishes beyond what there is room for",
    "unread": "lines that are no events",
}


@dataclass(frozen=True, slots=True)
class StreamObservation:
    """One observation of a stream: its rules, its result, its measurements.

    traffic     the load by key.
    recorded    the proofs from publishers' records; `own`: the late side, the stream or a subscription of the user's. None: not requested.
    service     name of the observed service.
    """

    result: RunResult
    stream: ObservedStream
    traffic: KeyTraffic
    rules: Rules
    recorded: RecordVerification | None = None
    own: OwnSubscriptionSnapshot | None = None
    service: str = PUBSUB

    @property
    def outcome(self) -> tuple[Verdict, str]:
        """The verdict about the stream and its reason, whatever the cause.

        A violation comes first, then undecided findings.
        """
        recorded = Verdict.PASS if self.recorded is None else self.recorded.verdict
        by_publishers = self.result.counts.get((Kind.PUBLISHED_OUT_OF_ORDER, Status.INFO), 0)
        undecided = self.result.counts.get((Kind.DELIVERED_OUT_OF_ORDER, Status.INDETERMINATE), 0)
        if self.result.verdict is Verdict.FAIL:
            return Verdict.FAIL, self.result.reason
        if recorded is Verdict.FAIL:
            return Verdict.FAIL, "see the publishers' record"
        if self.result.verdict is Verdict.UNKNOWN:
            return Verdict.UNKNOWN, self.result.reason
        if by_publishers:
            return (
                Verdict.FAIL,
                f"publishers sent {_pairs(by_publishers)} to {self.service} out of order; {self.service} kept the order of arrival",
            )
        if undecided:
            return Verdict.UNKNOWN, f"{_pairs(undecided)} arrived out of order, and the cause is undecided"
        return recorded, "" if recorded is Verdict.PASS else "see the publishers' record"

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of the outcome."""
        return code_of(self.outcome[0])

    def as_text(self) -> str:
        """Return the verdict, the order of the messages, the findings with their proof, and the keys with the highest load."""
        by_record = () if self.recorded is None else record_as_text(self.recorded, self.result.clock_offset_s)
        return "\n".join(
            [*self._head(), *self._order(), *self._findings(), *by_record, *self._keys(), *self._late(), *self._left_out()]
        )

    def as_json(self) -> str:
        """Return one JSON document with the same and further fields."""
        result, ages = self.result, self.stream.ages
        verdict, reason = self.outcome
        document = {
            "verdict": verdict,
            "reason": reason,
            "service_verdict": result.verdict,
            "topic": result.topic,
            "duration_s": round(result.duration_s, 3),
            "counts": dict(self.stream.counts),
            "order": dict(_sums(self.stream.order())),
            "order_without_ordering": dict(_sums(self.stream.order_without_ordering())),
            "age": {"p50_s": ages.quantile_s(0.5), "p99_s": ages.quantile_s(0.99), "max_s": ages.max_s},
            "findings": [self._finding(made) for made in self._worth_telling()],
            "findings_counted": [{"kind": kind, "status": status, "count": n} for (kind, status), n in result.counts.items()],
            "keys": [self._key(key) for key in self._top(LISTED_MAX)],
            "counters": dict(result.counters),
        }
        if self.recorded is not None:
            document["recorded"] = record_as_json(self.recorded, result.clock_offset_s)
        if self.own is not None:
            document["own_subscription"] = {"name": self.own.status.name, "late": self.own.late, "sentence": self.own.sentence}
        return json.dumps(document, allow_nan=False)

    # --- parts of the text ---------------------------------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        result, received, ages = self.result, self.stream.counts["received"], self.stream.ages
        verdict, reason = self.outcome
        yield f"{result.topic}: {verdict} after {result.duration_s:.1f} s{f'; {reason}' if reason else ''}"
        if received:
            keys = number_of(self.result.counters.get("keys", 0), "ordering key")
            p50_s, p99_s = ages.quantile_s(0.5), ages.quantile_s(0.99)
            age = ""
            if p50_s is not None and p99_s is not None:
                age = f", delivered after their publish time: median {seconds_as_text(p50_s)}, p99 {seconds_as_text(p99_s)}"
            yield f"  {number_of(received, 'message')} on {keys}{age}"
        if self.rules.several_regions:
            yield "  publish_time_error is not set, so publishers may be in several regions: a wrong order is no proven violation"

    def _order(self) -> Iterator[str]:
        for name, report in (("", self.stream.order()), ("without ordering, ", self.stream.order_without_ordering())):
            sums = _sums(report)
            if sums["deliveries"]:
                reported = [f"{sums[how]:,} {how.replace('_', ' ')}" for how in _HOWS if sums[how] or how == "in_order"]
                reordered = sums["reordered"] / max(1, sums["first_deliveries"])
                extent = f", by up to {number_of(sums['extent_max'], 'message')}" if sums["extent_max"] else ""
                yield f"  {name}by number: {', '.join(reported)}; {reordered:.4%} reordered (RFC 4737){extent}"
            if report.not_followed:
                yield f"  {name}not measured, on groups beyond the first {len(report.streams):,}: {report.not_followed:,} messages"

    def _findings(self) -> Iterator[str]:
        by_sort: dict[Sort, list[Finding]] = {}
        for made in self._worth_telling():
            by_sort.setdefault(made.sort, []).append(made.finding)
        for (kind, status), findings in by_sort.items():
            side, count = _side(kind, status), self.result.counts[kind, status]
            for finding in findings[:EXAMPLES_MAX]:
                group = f", group {finding.facts['epoch']}" if finding.facts.get("epoch") else ""
                yield from finding_lines(finding, self.result.clock_offset_s, side, group, service=self.service)
            if count > EXAMPLES_MAX:
                yield f"  and {count - EXAMPLES_MAX:,} more {kind} ({side})"
            if any(finding.doubt == SAME_TIME for finding in findings):
                yield f"  {BATCHED}"

    def _keys(self) -> Iterator[str]:
        for key in self._top(KEYS_SHOWN):
            heat = class_of_load(*self._load(key), self.traffic.keys)
            if heat is not None:
                bytes_per_s, share = self._load(key)
                yield f"  hot key {key}: {heat}, {share:.1%} of the messages, {bytes_per_s:,.0f} bytes a second"

    def _late(self) -> Iterator[str]:
        if self.own is not None:
            yield f"  your subscription {self.own.status.name}: {self.own.sentence}"

    def _left_out(self) -> Iterator[str]:
        counts = self.stream.counts
        left = [f"{counts[name]:,} {what}" for name, what in _UNREAD.items() if counts[name]]
        if left:
            yield f"  not verified: {', '.join(left)}{f'; first: {self.stream.unread}' if self.stream.unread else ''}"
        if forgotten := self.result.counters.get("keys_forgotten", 0):
            yield f"  {number_of(forgotten, 'ordering key')} forgotten because of keys_max: later messages of new keys prove less"
        if unplaced := self.result.counters.get("deliveries_unplaced", 0):
            yield f"  not verified: {unplaced:,} messages on keys with more than {self.rules.window:,} messages, whose place is forgotten"
        if unverified := self.result.counters.get("numbers_unverified", 0):
            yield f"  not verified: {unverified:,} numbers that may have arrived before"

    # --- the text -----------------------------------------------------------------------------------------------------------

    def _worth_telling(self) -> Sequence[RecordedFinding]:
        """Return the findings to print: without those that are only counted; of information, those that publishers caused."""
        decided = [] if self.recorded is None else [set(_proof(made, self.recorded)) for made in self.recorded.findings]
        return [made for made in self.result.findings if is_reported(*made.sort) and not any(_pair(made) <= ids for ids in decided)]

    def _top(self, count: int) -> Sequence[str]:
        return sorted(self.traffic.heaviest(count), key=lambda key: (-score_of_load(*self._load(key)), key))[:count]

    def _load(self, key: str) -> tuple[float, float]:
        """Return the bytes per second of a key, and its share of the messages; both are lower bounds."""
        bytes_per_s = self.traffic.bytes_of(key).low / max(self.result.duration_s, 1.0)
        return bytes_per_s, self.traffic.messages_of(key).low / max(1, self.traffic.messages)

    def _key(self, key: str) -> dict[str, Any]:
        messages, size, load = self.traffic.messages_of(key), self.traffic.bytes_of(key), self._load(key)
        return {
            "key": key,
            "class": class_of_load(*load, self.traffic.keys),
            "messages": messages.high,
            "uncertain": messages.high - messages.low,
            "bytes": size.low,
            "bytes_uncertain": size.high - size.low,
            "share": load[1],
        }

    def _finding(self, made: RecordedFinding) -> dict[str, Any]:
        finding = made.finding
        row = finding_row(finding, self.result.clock_offset_s, service=self.service)
        return row | {"side": _side(finding.kind, finding.status), "facts": dict(finding.facts)}


def _pairs(count: int) -> str:
    return f"{number_of(count, 'pair')} of messages"


def _side(kind: Kind, status: Status) -> str:
    if kind is Kind.PUBLISHED_OUT_OF_ORDER:
        return "the publishers"
    return "undecided" if status is Status.INDETERMINATE else "the service"


def _sums(report: OrderReport) -> Counter[str]:
    sums: Counter[str] = Counter()
    for stream in report.streams:
        for how in (*_HOWS, "deliveries"):
            sums[how] += getattr(stream.arrivals, how)
        sums["reordered"] += stream.reordering.reordered
        sums["first_deliveries"] += stream.reordering.received
        sums["extent_max"] = max(sums["extent_max"], stream.reordering.extent_max)
    return sums


def record_as_text(verification: RecordVerification, offset_s: float | None) -> Iterator[str]:
    """Return the lines about a record."""
    counts = verification.counts
    reported = f"{counts['received']:,} of {counts['confirmed']:,} confirmed publishes came"
    yield f"  by the publishers' record: {verification.verdict}, {reported}{f'; {verification.reason}' if verification.reason else ''}"
    by_messages: dict[frozenset[str], list[RecordedFinding]] = {}
    for made in verification.findings:
        by_messages.setdefault(frozenset(_proof(made, verification)), []).append(made)
    for first, *others in list(by_messages.values())[:LISTED_MAX]:
        yield from finding_lines(first.finding, offset_s)
        also = f"; also {', '.join(dict.fromkeys(made.finding.kind for made in others))}" if others else ""
        yield f"    by message id: {', '.join(_named(first, verification))}{also}"
    if len(by_messages) > LISTED_MAX:
        yield f"  and {len(by_messages) - LISTED_MAX:,} more"
    left = [f"{counts[name]:,} {what}" for name, what in _LEFT_OUT.items() if counts.get(name)]
    if left:
        yield f"  not verified by the record: {', '.join(left)}"


def record_as_json(verification: RecordVerification, offset_s: float | None) -> dict[str, object]:
    """Return the fields about a record."""
    return {
        "verdict": verification.verdict,
        "reason": verification.reason,
        "counts": dict(verification.counts),
        "findings": [
            finding_row(made.finding, offset_s) | {"facts": dict(made.finding.facts), "messages": list(_named(made, verification))}
            for made in verification.findings
        ],
    }


def _pair(made: RecordedFinding) -> set[Fact]:
    """Return the message ids of a pair that arrived out of order."""
    return {made.finding.facts.get(name, "") for name in ("message_id", "after_message_id")}


def _proof(made: RecordedFinding, verification: RecordVerification) -> Mapping[str, int]:
    """Return the messages that prove a finding: message id -> number of the record, 0 without one."""
    proof = [verification.events[number - 1] for number in made.finding.witnesses]
    return {event.message_id: event.seq for event in proof if isinstance(event, Published | Delivered)}


def _named(made: RecordedFinding, verification: RecordVerification) -> Iterator[str]:
    """Return the messages that prove a finding, each with its number in the record and its id: `3 is 1795414482446262`."""
    return (f"{seq or 'one without a record'} is {message_id}" for message_id, seq in _proof(made, verification).items())
