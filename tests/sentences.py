"""Reads the reasons of a finding back, and holds them against the events: whatever a sentence states has to be in the record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from prober.core.events import Acked, Closed, Delivered, Event, Nacked, Published
from prober.core.findings import Finding

MS: Final = 0.002
"""Sentences round to milliseconds."""
T: Final = r"t=(-?[\d.]+) s"
MESSAGE: Final = r"message (\d+)(?: of epoch (\w\S*))?(?: \(id ([^ ),]+)(, publish time \S+)?\))?"
ANSWERS: Final[Mapping[str, type[Acked | Nacked]]] = {"nack": Nacked, "acknowledgement": Acked}


class Record:
    """The events that concern one finding: of its key and its subscription."""

    def __init__(self, events: Sequence[Event], finding: Finding) -> None:
        subscription, key = finding.subscription, finding.key
        self.events = [
            one for one in events if getattr(one, "subscription", subscription) == subscription and getattr(one, "key", key) == key
        ]
        witnesses = [events[number - 1] for number in finding.witnesses]
        seq = finding.facts.get("seq")
        of_it = [one for one in witnesses if isinstance(one, Delivered) and one.subscription == subscription and one.seq == seq]
        self.last = max(of_it, key=lambda one: one.t, default=None)

    def ids(self, seq: str, epoch: str | None, message_id: str | None, stored: str | None) -> set[str]:
        """The message ids that a name may stand for; none of a record that only its publish time tells apart."""
        if stored:
            return set()
        of = (one for one in self.events if isinstance(one, Delivered | Published) and one.seq == int(seq))
        return {one.message_id for one in of if epoch in {None, one.epoch} and message_id in {None, one.message_id}}

    def delivered(self, ids: set[str], t: float) -> list[Delivered]:
        """The deliveries of a message at a time."""
        return [one for one in self.events if isinstance(one, Delivered) and one.message_id in ids and abs(one.t - t) < MS]


def untrue(events: Sequence[Event], finding: Finding) -> Iterator[str]:
    """The reasons of a finding that state something else than the events that it was made from."""
    record = Record(events, finding)
    for reason in finding.reasons:
        found = ((re.search(pattern, reason), is_true) for pattern, is_true in SENTENCES)
        if not reason or not all(is_true(match, record) for match, is_true in found if match):
            yield reason


def _is_unanswered(found: re.Match[str], record: Record) -> bool:
    ids, since_t, until_t = record.ids(*found.groups()[1:5]), float(found[6]), float(found[7])
    sessions = {one.session for one in record.delivered(ids, since_t)}
    answers = [one for one in record.events if isinstance(one, Acked | Nacked) and isinstance(one, ANSWERS[found[1]])]
    of = (one for one in answers if one.message_id in ids and one.session in sessions)
    return bool(sessions or found[5]) and not any(since_t - MS <= one.t < until_t - MS for one in of)


def _is_unacknowledged(found: re.Match[str], record: Record) -> bool:
    ids, since_t, until_t = record.ids(*found.groups()[:4]), float(found[5] or found[6] or "-inf"), float(found[7] or "inf")
    acked = (one.t for one in record.events if isinstance(one, Acked) and one.message_id in ids)
    return not any(since_t <= t < until_t - MS for t in acked)


def _is_delivered(found: re.Match[str], record: Record) -> bool:
    return bool(found[4] or record.delivered(record.ids(*found.groups()[:4]), float(found[5])))


def _is_behind(found: re.Match[str], record: Record) -> bool:
    names = [found.groups()[at : at + 4] for at in (0, 4, 8)]
    return len(set(names)) == len(names) and all(record.ids(*name) or name[3] for name in names)


def _is_not_redelivered(found: re.Match[str], record: Record) -> bool:
    ids, since_t, until_t = record.ids(*found.groups()[:4]), float(found[5]), float(found[6])
    again = (one for one in record.events if isinstance(one, Delivered) and one.message_id in ids)
    return not any(since_t + MS < one.t < until_t - MS for one in again)


def _ended_none(found: re.Match[str], record: Record) -> bool:
    since_t, until_t = float(found[1]), float(found[2])
    ends = (one for one in record.events if isinstance(one, Closed) and record.last and one.session != record.last.session)
    return not any(since_t + MS < one.t < until_t - MS for one in ends)


def _is_forward(found: re.Match[str], record: Record) -> bool:
    del record
    return float(found[1]) <= float(found[2]) + MS


SENTENCES: Final[Sequence[tuple[str, Callable[[re.Match[str], Record], bool]]]] = (
    (rf"between {T} and {T}", _is_forward),
    (rf"no (nack|acknowledgement) of {MESSAGE}, as delivered at {T}, is on record before {T}", _is_unanswered),
    (
        rf"no (?:acknowledgement of|success of a request with) {MESSAGE} is on record(?: between {T} and| since {T})?(?: before)?(?: {T})?",
        _is_unacknowledged,
    ),
    (rf"that of {MESSAGE}, delivered at {T}", _is_delivered),
    (rf"{MESSAGE} was received at {T}, after", _is_delivered),
    (rf"{MESSAGE} is behind {MESSAGE}, which is behind {MESSAGE}", _is_behind),
    (rf"none of {MESSAGE} or an earlier one is on record between {T} and {T}", _is_not_redelivered),
    (rf"no other stream of the subscription ended between {T} and {T}", _ended_none),
)
