"""Sequence diagrams, as a reader of the terminal gets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prober.core.events import EVENT_TYPES, Delivered, Event, LeaseModified, Opened, Published, PublishInvoked
from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.rules import Mode, Rules
from prober.evidence.diagram.text import EVENTS_MAX, SUBSCRIBERS_MAX, WIDTH, diagram_as_text
from prober.traces.trace import read_trace
from tests.notation import history

VECTORS = Path(__file__).parents[3] / "vectors"


def finding(*witnesses: int, status: Status = Status.VIOLATION, facts: Facts | None = None) -> Finding:
    return Finding(Kind.ORDER_GAP, status, "s", "k", 1.0, witnesses, facts or {})


def drawn(events: Sequence[Event], *witnesses: int, status: Status = Status.VIOLATION, mode: Mode = Mode.STREAMING) -> list[str]:
    return diagram_as_text(list(enumerate(events, 1)), finding(*witnesses, status=status), Rules(mode)).splitlines()


def body(events: Sequence[Event]) -> list[str]:
    """The lines without the title, the numbers, the times and the marks."""
    return [line[24:].partition("   X <--")[0] for line in drawn(events)[1:]]


GAP = """\
    line        time  publisher                 Pub/Sub                   A
       2       0.000    |                         |  opened                 o
       3       0.000    |-- publish 1 ----------->|                         |
       4       0.050    |<- ok 1 = m1 ------------|                         |
       5       0.100    |-- publish 2 ----------->|                         |   <-- witness
       6       0.150    |<- ok 2 = m2 ------------|                         |   <-- witness
       7       0.200    |-- publish 3 ----------->|                         |
       8       0.250    |<- ok 3 = m3 ------------|                         |   <-- witness
       9       1.000    |                         |-- 1 ------------------->|
                        |                         |.. 2 missing ...........>|
      10       1.100    |                         |-- 3 ------------------->|   X <-- wrong
      11       1.200    |                         |-- 2 ------------------->|"""

SPLIT = """\
    line        time  publisher                Pub/Sub                  A                        B
       2       0.000    |                        |  opened                o                        |
       3       0.000    |                        |                        |  opened                o
       4       0.000    |-- publish 1 ---------->|                        |                        |
       5       0.050    |<- ok 1 = m1 -----------|                        |                        |
       6       0.100    |-- publish 2 ---------->|                        |                        |
       7       0.150    |<- ok 2 = m2 -----------|                        |                        |
       8       0.200    |-- publish 3 ---------->|                        |                        |
       9       0.250    |<- ok 3 = m3 -----------|                        |                        |
      10       1.000    |                        |-- 1 ------------------>|                        |   <-- witness
      11       1.100    |                        |-- 2 ------------------>|                        |   <-- witness
      12       1.400    |                        |<- ack 1 ---------------|                        |
      13       2.000    |                        |--------------------------- 3 ------------------>|   X <-- wrong"""


@pytest.mark.parametrize(
    ("name", "witnesses", "facts", "expected"),
    [
        ("t02-gap-then-late", (5, 6, 8, 10), {"missing": (2,)}, GAP),
        ("t32-move-while-2-certainly-outstanding", (10, 11, 13), {}, SPLIT),
    ],
)
def test_a_trace_is_drawn(name: str, witnesses: tuple[int, ...], facts: Facts, expected: str) -> None:
    with read_trace(VECTORS / f"{name}.jsonl") as trace:
        assert diagram_as_text(list(enumerate(trace, 2)), finding(*witnesses, facts=facts), trace.header.rules) == expected


def test_everything_that_can_happen_is_drawn() -> None:
    line = (
        "P1@0 ok1=m1@0.1 P2@0.2 info2@0.3 P2'gen1@0.4 fail2@0.5 abandon2@0.6 A<1@1 A nack 1@1.1 A modack 1 10s@1.2 A ackOK 1@1.3 "
        "A ack 1@1.35 close A@1.4 dlq m1@1.5 seek 60@2 filter 30@3 hole @4 end @5 stop @6"
    )
    events = history(line)
    assert {type(event) for event in events} == set(EVENT_TYPES.values())
    assert body(events) == [
        "|                         |  opened                 o",
        "|-- publish 1 ----------->|                         |",
        "|<- ok 1 = m1 ------------|                         |",
        "|-- publish 2 ----------->|                         |",
        "|<- unknown 2 ------------|                         |",
        "|-- publish 2' ---------->|                         |",
        "|<- failed 2 -------------|                         |",
        "|  2 given up             x                         |",
        "|                         |-- 1 ------------------->|",
        "|                         |<- nack 1 ---------------|",
        "|                         |<- lease 1 of 10 s ------|",
        "|                         |-- ack ok 1 ------------>|",
        "|                         |<- ack 1 ----------------|",
        "|                         |  closed                 x",
        "|  1 dead-lettered        x                         |",
        "======== sought; for 60 s nothing is certain ========",
        "==== filter changed; for 30 s nothing is certain ====",
        "========== the record may have a hole here ==========",
        "=================== the run ended ===================",
        "================ the run was stopped ================",
        "' behind a number: the prober published the message again.",
    ]


def test_what_is_wrong_with_a_delivery_is_said() -> None:
    delivered = Delivered(0.0, "s", "k", "A", "e1", 3, "m3", delivery_attempt=4)
    leaked = replace(delivered, message_id="n3", delivery_attempt=0, matches_filter=False)
    spoiled = replace(delivered, delivery_attempt=0, defect="checksum")
    assert [line[26:] for line in body([delivered, leaked, spoiled])] == [
        "|-- 3 (m3) attempt 4 ---->|",
        "|-- 3 (n3) filtered ----->|",
        "|- 3 (m3) bad checksum ~ >|",
    ]


def test_ids_tell_records_apart_where_numbers_do_not() -> None:
    lines = body(history("A<a1(1)@1 A<b1(1)@1.1 A<a2(2)@1.2 A ack 1@1.3 A<x(8)@1.4 A<x(9)@1.5 A ack 9@1.6"))
    assert [line[28:].strip("-> |") for line in lines[1:]] == [
        "1 (a1)",
        "1 (b1)",
        "2",
        "ack 1 (b1)",
        "8 (x)",
        "9 (x) again",
        "ack x",
    ]


def test_streams_of_one_client_share_a_column() -> None:
    lines = body(history("open A1 of client A open A2 of client A A1<1@1 A2<2@2"))
    assert [line[26:] for line in lines] == [
        "|  A1 opened              o",
        "|  A2 opened              o",
        "|-- 1 on A1 ------------->|",
        "|-- 2 on A2 ------------->|",
    ]


def test_sessions_can_be_shown_without_being_drawn() -> None:
    opened, delivered = history("open A1 of client A A1<1@1")
    assert isinstance(opened, Opened)
    title, *lines = diagram_as_text([(2, delivered)], finding(2), Rules(), opened=[opened]).splitlines()
    assert title.split() == ["line", "time", "publisher", "Pub/Sub", "A"]
    assert len(lines) == 1


def test_several_subscriptions_are_labelled() -> None:
    events = sorted(history("A<1@1", subscription="one") + history("A<1@2", subscription="two"), key=lambda event: event.t)
    title, *_ = drawn(events)
    assert title.split() == ["line", "time", "publisher", "Pub/Sub", "one/A", "two/A"]


@pytest.mark.parametrize(
    ("epochs", "names", "notes"),
    [
        (("e2", "e3"), ("e2", "e3"), []),
        (("e2", "2026-11-27"), ("A", "B"), ["A: epoch e2, B: epoch 2026-11-27"]),
        (("A", "2026-11-27"), ("B", "C"), ["B: epoch A, C: epoch 2026-11-27"]),
    ],
)
def test_several_epochs_keep_their_names_or_get_letters(epochs: tuple[str, str], names: tuple[str, str], notes: list[str]) -> None:
    events: list[Event] = [
        PublishInvoked(0.0, "k", epochs[0], 1),
        PublishInvoked(1.0, "k", epochs[1], 1),
        Published(1.1, "k", epochs[1], 1, "b1"),
    ]
    assert body(events) == [
        f"|-- publish {names[0]}:1 ".ljust(24, "-") + "->|",
        f"|-- publish {names[1]}:1 ".ljust(24, "-") + "->|",
        f"|<- ok {names[1]}:1 = b1 ".ljust(26, "-") + "|",
        *notes,
    ]


def test_many_subscribers_share_a_last_column() -> None:
    events = history(" ".join(f"r{n}<{n}@{n}" for n in range(1, SUBSCRIBERS_MAX + 2)), Mode.PUSH)
    title, *lines = drawn(events, len(events), mode=Mode.PUSH)
    assert title.split() == ["line", "time", "publisher", "Pub/Sub", "r1", "r2", "r5", "2", "more"]
    assert lines[7].endswith("- 4 on r4 -->|")
    assert lines[-1].endswith("- 5 -------->|              |   X <-- wrong"), "what is wrong has its own"


@pytest.mark.parametrize(
    ("status", "mark"),
    [
        (Status.VIOLATION, "X <-- wrong"),
        (Status.LIVENESS, "X <-- not delivered"),
        (Status.INDETERMINATE, "? <-- perhaps"),
        (Status.INFO, "<-- here"),
    ],
)
def test_the_mark_is_as_sure_as_the_finding(status: Status, mark: str) -> None:
    *_, last = drawn(history("P1,2 A<1@1 A<2@2"), 7, status=status)
    assert last.endswith(f"|   {mark}")


def test_a_wait_in_vain_is_marked_at_its_end() -> None:
    events = list(enumerate(history("P1,2 A<1@1 end @500"), 1))
    stuck = replace(finding(5, status=Status.LIVENESS, facts={"seqs": (2,), "count": 3}), kind=Kind.STUCK)
    *_, waited, missing, last = diagram_as_text(events, stuck, Rules()).splitlines()
    assert waited.endswith("... 499 s without it ...")
    assert missing.endswith("|. 2 and 2 more missing .>|")
    assert last.endswith("= the deadline passed ================   X <-- not delivered")


def test_what_settles_it_later_is_marked_as_that() -> None:
    events = list(enumerate(history("P1@0 P2@0.1 A<2@0.2 A<1@0.3 ok1=m1@0.4 ok2=m2@0.5"), 1))
    lines = diagram_as_text(events, finding(4, 5, 6, 7, facts={"seq": 1}), Rules()).splitlines()
    assert [line.rpartition("|")[2].strip() for line in lines[-4:]] == ["<-- witness", "X <-- wrong", "<-- witness", "<-- settles"]


def test_a_long_history_is_shown_around_what_matters() -> None:
    events = history(" ".join(f"A<{n}@{n}" for n in range(1, 10_001)))
    lines = drawn(events, 5_000, 5_001)
    assert len(lines) <= EVENTS_MAX + 1 + 3
    assert [line.strip() for line in lines if "left out" in line] == [
        "...                ... 4,970 events left out ...",
        "...                ... 4,971 events left out ...",
    ]
    marked = {line.split()[0]: line.split("|")[-1].strip() for line in lines if "<--" in line}
    assert marked == {"5000": "<-- witness", "5001": "X <-- wrong"}


def test_more_witnesses_than_lines() -> None:
    events = history(" ".join(f"A<{n}@{n}" for n in range(1, 301)))
    lines = drawn(events, *range(1, 302))
    assert len(lines) <= 2 * EVENTS_MAX
    assert lines[-1].endswith("X <-- wrong")


@pytest.mark.parametrize("subscribers", range(1, SUBSCRIBERS_MAX + 2))
def test_lines_keep_within_the_width(subscribers: int) -> None:
    names = [f"a-rather-long-subscriber-name-{n}" for n in range(subscribers)]
    events: list[Event] = [Opened(0.0, "s", name, name) for name in names]
    events += [PublishInvoked(0.5, "k", f"a-rather-long-name-of-an-epoch-{n}", 1, n % 2) for n in range(4)]
    events += [LeaseModified(123456.789, "s", "k", name, "10212345678901234", 600) for name in names]
    events += history("seek 123456@200000")
    numbered = [(1_234_567 + n, event) for n, event in enumerate(events)]
    lines = diagram_as_text(numbered, finding(1_234_567), Rules()).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)


def test_long_names_of_subscribers_lose_their_middle() -> None:
    names = ["a-long-name-of-a-subscriber-" + end for end in ("first", "second")]
    events: list[Event] = [
        Opened(0.0, "s", "A", names[0]),
        Opened(0.0, "s", "B", names[1]),
        Delivered(1.0, "s", "k", "A", "e", 1, "m"),
    ]
    title, *_ = drawn(events)
    shown = title.split()[-2:]
    assert all(len(name) < len(names[0]) for name in shown)
    assert [name.rpartition("-")[2] for name in shown] == ["first", "second"]


def test_nothing_is_drawn_of_nothing() -> None:
    assert diagram_as_text([], finding(), Rules()) == ""
