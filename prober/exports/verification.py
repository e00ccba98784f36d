"""Verification of the order of keys in an export, as Google documents it for export subscriptions:

* in one file of Cloud Storage the messages of a key are in order;
* over several files they are not: a later message may be in a file whose name has an earlier time. So nothing is compared across files;
* a table of BigQuery is written in order, but its rows have none afterwards. The remaining guarantee is completeness: while a message is
  missing, no later one may be present.

Two facts order two messages: the publisher's number, and the publish time by Pub/Sub's clock. They are compared in the file row by row,
each with the highest before it. Cases that look wrong and are not:

* Pub/Sub delivers at least once. A copy of an earlier message proves nothing, and is counted.
* After a redelivery all later messages of the key are redelivered. So a message below an earlier one is a redelivery whose first delivery
  got lost, as long as the earlier one follows again after it, or may still: nothing later of the key follows in that file.
* A publisher that repeats a publish gives 1, 2, 1, 2, 3, or 2, 1, 2, 3 if only part of the first attempt was stored: the same number
  under several message ids. Such numbers are left out.
* The publisher may have published in another order than it counted. Only the publish time shows that. Without a conclusive publish time the
  user has to guarantee that the numbers follow the order of publishing (`numbers_follow_publishing`).

Messages that were published in several regions, or of which some went to a dead-letter topic, may come in any order; no export shows
that. So both are assumed to be absent, and every violation states that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, pairwise
from math import inf
from typing import Final, TypeAlias

from prober.core.findings import Status
from prober.core.verdict import Verdict, verdict_of
from prober.exports.sources import ExportedMessage

KEPT_PER_KIND_MAX: Final = 1_000
"""Number of kept findings of a kind and status; further ones are only counted."""
ASSUMED: Final = (
    "every file of the export was given, the key was published in one region, and the subscription has no dead-letter topic"
)


class ExportKind(StrEnum):
    """The kinds of findings in an export."""

    ORDER_INVERSION = "ORDER_INVERSION"
    MISSING_NUMBERS = "MISSING_NUMBERS"
    PUBLISHED_OUT_OF_NUMBER_ORDER = "PUBLISHED_OUT_OF_NUMBER_ORDER"


@dataclass(frozen=True, slots=True)
class ExportFinding:
    """A finding on one key. `rows`: the rows that prove it."""

    kind: ExportKind
    status: Status
    subscription: str
    key: str
    explanation: str
    rows: tuple[ExportedMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportAssumptions:
    """The assumptions of a verification.

    clock_error_s               the largest error between publish times.
    numbers_follow_publishing   the publishers of a key publish in the order of their numbers.
    """

    clock_error_s: float = 1.0
    numbers_follow_publishing: bool = False


@dataclass(frozen=True, slots=True)
class ExportVerification:
    """The result for one export.

    `reason`: why it is UNKNOWN. `counts`: all findings, `findings`: the kept ones.
    """

    verdict: Verdict
    reason: str
    findings: tuple[ExportFinding, ...]
    counts: Mapping[tuple[ExportKind, Status], int]
    counters: Mapping[str, int]


Stream: TypeAlias = tuple[str, str]
"""Subscription and key."""


def verify_export(
    messages: Iterable[ExportedMessage], assumptions: ExportAssumptions, *, has_order: bool, cut: bool = False
) -> ExportVerification:
    """Verify all messages of an export; memory grows with each message.

    has_order   rows of a source are in the order in which they were written, as in a file.
    cut         not all messages were read, so without a violation the verdict is UNKNOWN.
    """
    verifier = _Verifier(assumptions, has_order=has_order)
    for message in messages:
        verifier.take(message)
    return verifier.verification(cut=cut)


@dataclass(slots=True)
class _Key:
    """The messages of one key: all, and those of each source, in the order of their rows."""

    sources: dict[str, list[ExportedMessage]] = field(default_factory=lambda: defaultdict(list))

    @property
    def messages(self) -> Iterator[ExportedMessage]:
        return (message for rows in self.sources.values() for message in rows)


class _Verifier:
    def __init__(self, assumptions: ExportAssumptions, *, has_order: bool) -> None:
        self._assumptions, self._has_order = assumptions, has_order
        self._keys: dict[Stream, _Key] = defaultdict(_Key)
        self._counters = Counter[str]()
        self._counts = Counter[tuple[ExportKind, Status]]()
        self._findings: list[ExportFinding] = []

    def take(self, message: ExportedMessage) -> None:
        """Add a message of the export."""
        self._counters["messages"] += 1
        if not message.key:
            self._counters["without_key"] += 1
            return
        self._keys[message.subscription, message.key].sources[message.source].append(message)

    def verification(self, *, cut: bool) -> ExportVerification:
        """Verify all keys and return the result."""
        for stream, key in self._keys.items():
            self._verify(stream, key)
        failed = any(status is Status.VIOLATION for _, status in self._counts)
        reason = "" if failed else self._why_unknown(cut=cut)
        counters = {"keys": len(self._keys), **self._counters}
        verdict = verdict_of(failed=failed, pending=bool(reason))
        return ExportVerification(verdict, reason, tuple(self._findings), dict(self._counts), counters)

    def _why_unknown(self, *, cut: bool) -> str:
        if not self._keys:
            return "no message has an ordering key: was the export written without metadata? choose the field with --key"
        if not self._counters["compared"]:
            return "no two messages of a key can be compared: choose the field with their numbers with --number"
        if cut:
            return "there is more than was read"
        if self._counts[ExportKind.ORDER_INVERSION, Status.INDETERMINATE]:
            return "messages are out of order, and the export alone cannot say whose doing it is"
        if self._counts[ExportKind.MISSING_NUMBERS, Status.INDETERMINATE]:
            return "numbers are missing"
        return ""

    def _verify(self, stream: Stream, key: _Key) -> None:
        copies = Counter(map(_identity, key.messages))
        self._counters["redelivered"] += sum(copies.values()) - len(copies)
        repeated = _repeated(key)
        self._counters["published_more_than_once"] += len(repeated)
        if self._has_order:
            for rows in key.sources.values():
                self._compare(stream, [row for row in rows if row.number not in repeated], copies)
            self._counters["keys_in_several_files"] += len(key.sources) > 1
        self._look_at_numbers(stream, key)

    # --- the order of rows ---------------------------------------------------------------------------------------------------

    def _compare(self, stream: Stream, rows: Sequence[ExportedMessage], copies: Counter[str]) -> None:
        """Compare the rows of one file, each with the highest before it."""
        last = {_identity(message): at for at, message in enumerate(rows)}
        here, following = Counter(map(_identity, rows)), _highest_following(rows)
        seen: set[str] = set()
        highest: ExportedMessage | None = None
        for at, message in enumerate(rows):
            if _identity(message) in seen:
                continue
            seen.add(_identity(message))
            order = None if highest is None else self._order(highest, message)
            self._counters["compared"] += order is not None
            if highest is None or order is None or order > 0:
                highest = message
                continue
            name = _identity(highest)
            if last[name] > at or copies[name] > here[name]:
                self._counters["below_and_repeated"] += 1
            else:
                self._inverted(stream, highest, message, following[at])

    def _order(self, before: ExportedMessage, after: ExportedMessage) -> int | None:
        """Return the order of two messages: above 0 if the second is later, below 0 if it is earlier, None if unknown."""
        by_time = self._by_time(before, after)
        if before.number is not None and after.number is not None:
            return after.number - before.number
        return by_time

    def _by_time(self, before: ExportedMessage, after: ExportedMessage) -> int | None:
        """Return the same by publish times alone; None if they are unknown, or too close."""
        if before.published_s is None or after.published_s is None:
            return None
        apart_s = after.published_s - before.published_s
        return None if abs(apart_s) <= self._assumptions.clock_error_s else 1 if apart_s > 0 else -1

    def _inverted(self, stream: Stream, later: ExportedMessage, earlier: ExportedMessage, following: float) -> None:
        """File an inversion: `earlier` is below `later`, which is not repeated below it.

        `following`: the highest number below both.
        """
        numbered = earlier.number is not None and later.number is not None
        by_time = self._by_time(later, earlier)
        if numbered and by_time == 1:
            self._counters["published_out_of_number_order"] += 1
            self._found(ExportKind.PUBLISHED_OUT_OF_NUMBER_ORDER, Status.INFO, stream, _PUBLISHED, (later, earlier))
            return
        doubt = ""
        if not numbered:
            doubt = "Google documents no order of the publish times of a key, and the messages have no numbers."
        elif by_time is None and not self._assumptions.numbers_follow_publishing:
            doubt = "Publish times cannot tell whether they were published in this order: " + (
                "there are none." if earlier.published_s is None else "they are too close."
            )
        elif later.number is not None and following <= later.number:
            doubt = "Nothing later of the key follows in the file, so that the first may still be written again."
        status = Status.INDETERMINATE if doubt else Status.VIOLATION
        text = f"{later.source} has {_named(later)} in row {later.row} and {_named(earlier)} only in row {earlier.row}."
        tail = doubt or f"In a file the messages of a key must be in order. Assumed: {ASSUMED}."
        self._found(ExportKind.ORDER_INVERSION, status, stream, f"{text} {tail}", (later, earlier))

    # --- numbers -------------------------------------------------------------------------------------------------------------

    def _look_at_numbers(self, stream: Stream, key: _Key) -> None:
        """File missing numbers between the lowest and the highest, and in a table also contradictions of times and numbers."""
        numbered = sorted(_firsts(key), key=lambda pair: pair[0])
        for (number, message), (following, next_message) in pairwise(numbered):
            if not self._has_order:
                self._counters["compared"] += 1
                if self._by_time(message, next_message) == -1:
                    rows = (message, next_message)
                    self._found(ExportKind.PUBLISHED_OUT_OF_NUMBER_ORDER, Status.INFO, stream, _PUBLISHED, rows)
            if missing := following - number - 1:
                self._counters["missing_numbers"] += missing
                first, final = number + 1, following - 1
                which = f"number {first:,} is" if missing == 1 else f"numbers {first:,} to {final:,} are"
                text = f"The {which} missing, though {following:,} is there. {_MISSING[self._has_order]}"
                self._found(ExportKind.MISSING_NUMBERS, Status.INDETERMINATE, stream, text, (message, next_message))

    def _found(self, kind: ExportKind, status: Status, stream: Stream, text: str, rows: tuple[ExportedMessage, ...]) -> None:
        self._counts[kind, status] += 1
        if self._counts[kind, status] <= KEPT_PER_KIND_MAX:
            self._findings.append(ExportFinding(kind, status, *stream, text, rows))


_PUBLISHED: Final = "By their publish times these messages were published in another order than they are numbered."
_MISSING: Final = {
    True: "They may be in a file that was not given, may not have been published, or may be lost.",
    False: "Read the table again: if they are there then, they were written after messages that follow them; else they were not "
    "published, or are lost.",
}


def _identity(message: ExportedMessage) -> str:
    """Return the identity of a message, equal for its copies: its id, or without ids its number; rows with neither are no copies."""
    if message.message_id:
        return message.message_id
    return f"#{message.number}" if message.number is not None else f"{message.source}:{message.row}"


def _repeated(key: _Key) -> frozenset[int]:
    """Return the numbers of several messages: they were published more than once, and any copy may be the first."""
    first: dict[int, str] = {}
    return frozenset(
        message.number
        for message in key.messages
        if message.number is not None and first.setdefault(message.number, _identity(message)) != _identity(message)
    )


def _highest_following(rows: Sequence[ExportedMessage]) -> Sequence[float]:
    """Return for each row the highest number below it."""
    numbers = (-inf if row.number is None else row.number for row in reversed(rows[1:]))
    return [*reversed([*accumulate(numbers, max, initial=-inf)])]


def _firsts(key: _Key) -> Iterable[tuple[int, ExportedMessage]]:
    found: dict[int, ExportedMessage] = {}
    for message in key.messages:
        if message.number is not None:
            found.setdefault(message.number, message)
    return found.items()


def _named(message: ExportedMessage) -> str:
    if message.number is not None:
        return f"message {message.number:,}"
    return f"message {message.message_id}" if message.message_id else "a message"
