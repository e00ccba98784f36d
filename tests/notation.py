"""Histories in one line: `P1,2,3 A<1@1 A<2@1.1 A ack 1@1.4 close A@1.6 B<2@2 end @500`.

The notation of the checker's specification, so that a test of the checker is one line of history and one of expectations.

    P1,2,3           published one after the other, 0.1 s apart, each confirmed after 0.05 s as m1, m2, m3; the first at 0, or 0.1 s
                     after the latest publish event (0.05 s after a confirmation). After a delivery: 1 s before its own first
                     delivery instead.
    P2@0.2           a publish alone: its outcome is written out (or there is none). P2'gen1@0.4 is the prober's own republishing,
                     P1[e2]@5 belongs to epoch e2 (default: e1), P1/eu@5 goes to region eu, P1*500@5 has 500 bytes; in this
                     order: P1'gen1[e2]/eu*500@5.
    ok2=b2@0.3       confirmed as b2; ok'gen1=m2@0.45 means the sequence number published last
    info2@0.3 fail2@0.3 abandon2@0.4
    A<3@1.2          session A receives message 3, id m3; A<a1(1)@1 receives id a1 with sequence number 1. The epoch is that of the
                     publish which was confirmed with this id, else e1; A<9[e7]@1 states another. A<2#4@1 is the service's attempt 4,
                     A<2!checksum@1 has a wrong checksum, A<2!filter@1 should have been kept back by the filter, A<2~7@1 was stored
                     at 7, says the service.
    A<1,2,3@1        one after the other, 0.1 s apart; in a pull response at the same time
    A ack 1@1.4      the copy of 1 that A received last; also nack and ackOK (confirmed); A ack 1,3@1.4 are 0.01 s apart
    A modack 2 10s@1.2
    open A1 of client A        at 0; otherwise a streaming session opens at 0 and is its own subscriber
    open A1 of client A@5      once more, or for the first time, at 5
    open A of client A limit 1@0        flow control: one message may be outstanding; 1/500 also limits to 500 bytes, 0/500 only so
    pull b1@0.9      a pull session opens; deliveries that state the same time follow each other by a microsecond
    close A@1.6   lose b1@70 (a pull that ended without its answer)
    dlq m2@1.9   filter 60@2   hole @3   end @500 (drained)   stop @500 (not drained)
    seek 60@2        settles for 60 s; seek 60/1.5@2 brings back what was published since 1.5
    on k2            what follows is about key k2, where the ids are k2m1, k2m2, ... (A<m1(1)@1 is message m1 under the wrong key);
                     `on` with the key of the line goes back to it
    skew B 0.3       the recorder of session B runs 0.3 s ahead: its events carry times that are so much later; skew P is the publisher's

A push session opens with its delivery. Everything else happens in the order of its times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from prober.core.events import (
    AckConfirmed,
    Acked,
    Closed,
    DeadLettered,
    Delivered,
    Ended,
    Event,
    FilterChanged,
    Interrupted,
    LeaseModified,
    Nacked,
    Opened,
    PublishAbandoned,
    Published,
    PublishEvent,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
    Sought,
)
from prober.core.rules import Mode

PUBLISH_STEP_S = 0.1
PUBLISH_TAKES_S = 0.05
PUBLISHED_BEFORE_DELIVERY_S = 1.0
DELIVERY_STEP_S = 0.1
ANSWER_STEP_S = 0.01
SAME_RESPONSE_S = 1e-6
EPOCH = "e1"
PUBLISHER = "P"


@dataclass(slots=True)
class Reader:
    """What has been read so far of one line about one key; events, open sessions and clocks are those of the whole line."""

    mode: Mode
    subscription: str
    key: str
    text: str
    events: list[Event] = field(default_factory=list)
    opened: set[str] = field(default_factory=set)
    received: dict[tuple[str, int], str] = field(default_factory=dict)
    stated: dict[str, tuple[float, int]] = field(default_factory=dict)
    epochs: dict[int, str] = field(default_factory=dict)
    epoch_of: dict[str, str] = field(default_factory=dict)
    seq: int = 0
    publish_t: float = 0.0
    id_prefix: str = "m"
    skews: dict[str, float] = field(default_factory=dict)

    def open(self, session: str, t: float, subscriber: str = "") -> None:
        self.opened.add(session)
        self.events.append(Opened(t, self.subscription, session, subscriber or session))

    def named(self, seq: int) -> str:
        """The id that a message has unless it is written out."""
        return f"{self.id_prefix}{seq}"

    def message(self, session: str, seq: str) -> str:
        return self.received.get((session, int(seq)), self.named(int(seq)))


Given = Mapping[str, str]


def _publish(reader: Reader, given: Given) -> None:
    for seq in map(int, given["seqs"].split(",")):
        reader.seq = seq
        epoch = reader.epochs[seq] = given["epoch"] or EPOCH
        t = float(given["t"]) if given["t"] else _publish_time(reader, seq)
        generation, size, region = int(given["generation"] or 0), int(given["size"] or 0), given["region"] or ""
        reader.events.append(PublishInvoked(t, reader.key, epoch, seq, generation, size=size, region=region))
        reader.publish_t = t + PUBLISH_STEP_S
        if not given["t"]:
            _confirm(reader, t + PUBLISH_TAKES_S, seq, 0, reader.named(seq))


def _publish_time(reader: Reader, seq: int) -> float:
    if reader.received:
        first = re.search(rf"<{seq}@([\d.]+)", reader.text)
        assert first, f"P{seq} needs a time"
        return float(first[1]) - PUBLISHED_BEFORE_DELIVERY_S
    return reader.publish_t


def _confirm(reader: Reader, t: float, seq: int, generation: int, message_id: str) -> None:
    epoch = reader.epoch_of[message_id] = reader.epochs.get(seq, EPOCH)
    reader.events.append(Published(t, reader.key, epoch, seq, message_id, generation))
    reader.publish_t = max(reader.publish_t, t + PUBLISH_TAKES_S)


def _ok(reader: Reader, given: Given) -> None:
    _confirm(reader, float(given["t"]), int(given["seq"] or reader.seq), int(given["generation"] or 0), given["id"])


def _outcome(reader: Reader, given: Given) -> None:
    outcomes: Mapping[str, type[PublishUnknown | PublishFailed | PublishAbandoned]] = {
        "info": PublishUnknown,
        "fail": PublishFailed,
        "abandon": PublishAbandoned,
    }
    seq = int(given["seq"])
    t, epoch = float(given["t"]), reader.epochs.get(seq, EPOCH)
    reader.events.append(outcomes[given["what"]](t, reader.key, epoch, seq, int(given["generation"] or 0)))
    reader.publish_t = max(reader.publish_t, t + PUBLISH_STEP_S)


def _receive(reader: Reader, given: Given) -> None:
    for number, seq in enumerate(map(int, (given["seq"] or given["plain"]).split(","))):
        step_s = 0.0 if reader.mode is Mode.PULL else number * DELIVERY_STEP_S
        _receive_one(reader, given, seq, round(float(given["t"]) + step_s, 6))


def _receive_one(reader: Reader, given: Given, seq: int, stated: float) -> None:
    session = given["session"]
    earlier, count = reader.stated.get(session, (-1.0, 0))
    count = count + 1 if reader.mode is Mode.PULL and stated == earlier else 0
    reader.stated[session] = (stated, count)
    if reader.mode is Mode.PUSH and session not in reader.opened:
        reader.open(session, stated)
    message_id = reader.received[session, seq] = given["id"] or reader.named(seq)
    epoch = given["epoch"] or reader.epoch_of.get(message_id, EPOCH)
    t = stated + count * SAME_RESPONSE_S
    reader.events.append(
        Delivered(
            t,
            reader.subscription,
            reader.key,
            session,
            epoch,
            seq,
            message_id,
            delivery_attempt=int(given["attempt"] or 0),
            defect=None if given["defect"] == "filter" else given["defect"],
            matches_filter=given["defect"] != "filter",
            publish_time=int(given["stored"]) if given["stored"] else None,
        )
    )


def _answer(reader: Reader, given: Given) -> None:
    answers: Mapping[str, type[Acked | Nacked | AckConfirmed]] = {"ack": Acked, "nack": Nacked, "ackOK": AckConfirmed}
    session = given["session"]
    for number, seq in enumerate(given["seqs"].split(",")):
        t = round(float(given["t"]) + number * ANSWER_STEP_S, 6)
        answer = answers[given["what"]]
        reader.events.append(answer(t, reader.subscription, reader.key, session, reader.message(session, seq)))


def _modify_lease(reader: Reader, given: Given) -> None:
    session = given["session"]
    message_id = reader.message(session, given["seq"])
    t, seconds = float(given["t"]), float(given["seconds"])
    reader.events.append(LeaseModified(t, reader.subscription, reader.key, session, message_id, seconds))


def _open(reader: Reader, given: Given) -> None:
    messages, size = (int(given[name]) if given[name] else None for name in ("messages", "bytes"))
    reader.opened.add(given["session"])
    reader.events.append(
        Opened(
            float(given["t"] or 0),
            reader.subscription,
            given["session"],
            given["client"],
            max_outstanding_messages=messages,
            max_outstanding_bytes=size,
        )
    )


def _skew(reader: Reader, given: Given) -> None:
    reader.skews[given["of"]] = float(given["ahead"])


def _control(reader: Reader, given: Given) -> None:
    t, subscription = float(given["t"]), reader.subscription
    controls: Mapping[str, Callable[[str], Event]] = {
        "close": lambda session: Closed(t, subscription, session),
        "lose": lambda session: Closed(t, subscription, session, lost=True),
        "dlq": lambda message_id: DeadLettered(t, subscription, reader.key, message_id),
        "seek": lambda times: Sought(t, subscription, *map(float, times.split("/"))),
        "filter": lambda settle_s: FilterChanged(t, subscription, float(settle_s)),
        "hole": lambda _: Interrupted(t),
        "end": lambda _: Ended(t, drained=True),
        "stop": lambda _: Ended(t, drained=False),
    }
    reader.events.append(controls[given["what"]](given["of"]))


T = r"(?P<t>\d+(?:\.\d+)?)"
GENERATION = r"(?:'gen(?P<generation>\d+))?"
WORDS: tuple[tuple[re.Pattern[str], Callable[[Reader, Given], None]], ...] = tuple(
    (re.compile(pattern + r"(?:\s+|$)"), read)
    for pattern, read in (
        (
            rf"P(?P<seqs>\d+(?:,\d+)*){GENERATION}(?:\[(?P<epoch>\w+)\])?(?:/(?P<region>\w+))?(?:\*(?P<size>\d+))?(?:@{T})?",
            _publish,
        ),
        (rf"ok(?P<seq>\d*){GENERATION}=(?P<id>\w+)@{T}", _ok),
        (rf"(?P<what>info|fail|abandon)(?P<seq>\d+){GENERATION}@{T}", _outcome),
        (
            r"(?P<session>\w+)<(?:(?P<id>\w+)\((?P<seq>\d+)\)|(?P<plain>\d+(?:,\d+)*))"
            rf"(?:\[(?P<epoch>\w+)\])?(?:#(?P<attempt>\d+))?(?:!(?P<defect>\w+))?(?:~(?P<stored>\d+))?@{T}",
            _receive,
        ),
        (rf"(?P<session>\w+) (?P<what>ack|nack|ackOK) (?P<seqs>\d+(?:,\d+)*)@{T}", _answer),
        (rf"(?P<session>\w+) modack (?P<seq>\d+) (?P<seconds>[\d.]+)s@{T}", _modify_lease),
        (rf"pull (?P<session>\w+)@{T}", lambda reader, given: reader.open(given["session"], float(given["t"]))),
        (
            rf"open (?P<session>\w+) of client (?P<client>\w+)(?: limit (?P<messages>\d+)(?:/(?P<bytes>\d+))?)?(?:@{T})?",
            _open,
        ),
        (r"skew (?P<of>\w+) (?P<ahead>-?[\d.]+)", _skew),
        (rf"(?P<what>close|lose|dlq|seek|filter|hole|end|stop) ?(?P<of>[\w./]*)@{T}", _control),
    )
)


def history(text: str, mode: Mode = Mode.STREAMING, *, subscription: str = "s", key: str = "k") -> list[Event]:
    """The events of a line in this notation, in recorder order. Raises ValueError at a word that it does not know."""
    line = " ".join(text.split())
    reader = Reader(mode, subscription, key, line)
    readers = {key: reader}
    at = 0
    while at < len(line):
        if switch := KEY_FOLLOWS.match(line, at):
            reader = readers.setdefault(switch["key"], _about(switch["key"], reader))
            at = switch.end()
        else:
            at = _read_word(reader, line, at)
    if mode is Mode.STREAMING:
        sessions = {session for one in readers.values() for session, _ in one.received} - reader.opened
        reader.events[:0] = [Opened(0.0, subscription, session, session) for session in sorted(sessions)]
    events = [_as_recorded(event, reader.skews) for event in reader.events]
    return sorted(events, key=lambda event: (event.t, not isinstance(event, Opened)))


KEY_FOLLOWS = re.compile(r"on (?P<key>\w+)(?:\s+|$)")


def _about(key: str, reader: Reader) -> Reader:
    """A reader of the same line for another key: its publishes state their times, or begin at 0."""
    return Reader(reader.mode, reader.subscription, key, "", reader.events, reader.opened, id_prefix=f"{key}m", skews=reader.skews)


def _read_word(reader: Reader, line: str, at: int) -> int:
    """Reads the word that begins there, and says where the next one does."""
    for pattern, read in WORDS:
        if found := pattern.match(line, at):
            read(reader, found.groupdict())
            return found.end()
    raise ValueError(f"not in the notation: {line[at:]!r}")


def _as_recorded(event: Event, skews: Mapping[str, float]) -> Event:
    """The event with the time that its recorder's clock showed."""
    recorder = PUBLISHER if isinstance(event, PublishEvent) else getattr(event, "session", "")
    return replace(event, t=round(event.t + skews[recorder], 6)) if recorder in skews else event
