"""Sequence diagrams, as a reader gets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prober.core.events import EVENT_TYPES, Delivered, Event, LeaseModified, Opened
from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Mode
from prober.evidence.diagram import LINES_MAX, SUBSCRIBERS_MAX, WIDTH, draw, short
from prober.traces.trace import read_trace
from tests.notation import history

VECTORS = Path(__file__).parents[2] / "vectors"


def finding(*witnesses: int, status: Status = Status.VIOLATION) -> Finding:
    return Finding(Kind.ORDER_GAP, status, "s", "k", 1.0, witnesses)


def drawn(events: Sequence[Event], *witnesses: int) -> list[str]:
    return draw(list(enumerate(events, 1)), finding(*witnesses)).splitlines()


def body(events: Sequence[Event]) -> list[str]:
    """The lines without the title, the numbers and the times."""
    return [line[24:] for line in drawn(events)[1:]]


GAP = """\
    line        time  publisher                 Pub/Sub                   A
       2       0.000    |                         |  opened                 o
       3       0.000    |-- publish 1 ----------->|                         |
       4       0.050    |<- ok 1 = m1 ------------|                         |
       5       0.100    |-- publish 2 ----------->|                         |   <-- witness
       6       0.150    |<- ok 2 = m2 ------------|                         |   <-- witness
       7       0.200    |-- publish 3 ----------->|                         |
       8       0.250    |<- ok 3 = m3 ------------|                         |   <-- witness
       9       1.000    |                         |-- 1 (m1) -------------->|
      10       1.100    |                         |-- 3 (m3) -------------->|   X <-- decides
      11       1.200    |                         |-- 2 (m2) -------------->|"""

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
      10       1.000    |                        |-- 1 (m1) ------------->|                        |   <-- witness
      11       1.100    |                        |-- 2 (m2) ------------->|                        |   <-- witness
      12       1.400    |                        |<- ack m1 --------------|                        |
      13       2.000    |                        |--------------------------- 3 (m3) ------------->|   X <-- decides"""


@pytest.mark.parametrize(
    ("name", "witnesses", "expected"),
    [("t02-gap-then-late", (5, 6, 8, 10), GAP), ("t32-move-while-2-certainly-outstanding", (10, 11, 13), SPLIT)],
)
def test_a_trace_is_drawn(name: str, witnesses: tuple[int, ...], expected: str) -> None:
    with read_trace(VECTORS / f"{name}.jsonl") as trace:
        assert draw(list(enumerate(trace, 2)), finding(*witnesses), numbers="line") == expected


def test_everything_that_can_happen_is_drawn() -> None:
    line = (
        "P1@0 ok1=m1@0.1 P2@0.2 info2@0.3 P2'gen1@0.4 fail2@0.5 abandon2@0.6 A<1@1 A nack 1@1.1 A modack 1 10s@1.2 A ackOK 1@1.3 "
        "close A@1.4 dlq m1@1.5 seek 60@2 filter 30@3 hole @4 end @5 stop @6"
    )
    assert body(history(line)) == [
        "|                         |  opened                 o",
        "|-- publish 1 ----------->|                         |",
        "|<- ok 1 = m1 ------------|                         |",
        "|-- publish 2 ----------->|                         |",
        "|<- unknown 2 ------------|                         |",
        "|-- publish 2 again1 ---->|                         |",
        "|<- failed 2 -------------|                         |",
        "|  2 given up             |                         |",
        "|                         |-- 1 (m1) -------------->|",
        "|                         |<- nack m1 --------------|",
        "|                         |<- lease m1 10s ---------|",
        "|                         |-- ack ok m1 ----------->|",
        "|                         |  closed                 x",
        "|  m1 dead-lettered       x                         |",
        "============== sought: settles for 60 s =============",
        "========== filter changed: settles for 30 s =========",
        "========== the record may have a hole here ==========",
        "=================== ended, drained ==================",
        "================= ended, not drained ================",
    ]


def test_every_kind_of_event_has_a_line() -> None:
    from prober.evidence.diagram import _ROWS

    assert set(_ROWS) == set(EVENT_TYPES.values())


def test_what_is_wrong_with_a_delivery_is_said() -> None:
    delivered = Delivered(0.0, "s", "k", "A", "e1", 3, "m3", delivery_attempt=4)
    leaked = replace(delivered, delivery_attempt=0, matches_filter=False)
    spoiled = replace(delivered, delivery_attempt=0, defect="checksum")
    assert [line[26:] for line in body([delivered, leaked, spoiled])] == [
        "|-- 3 (m3) attempt 4 ---->|",
        "|-- 3 (m3) FILTERED ----->|",
        "|-- 3 (m3) BAD checksum ->|",
    ]


def test_streams_of_one_client_share_a_column() -> None:
    lines = body(history("open A1 of client A open A2 of client A A1<1@1 A2<2@2"))
    assert [line[26:] for line in lines] == [
        "|  A1: opened             o",
        "|  A2: opened             o",
        "|-- A1: 1 (m1) ---------->|",
        "|-- A2: 2 (m2) ---------->|",
    ]


def test_sessions_can_be_told_without_being_drawn() -> None:
    opened, delivered = history("open A1 of client A A1<1@1")
    assert isinstance(opened, Opened)
    title, *lines = draw([(2, delivered)], finding(2), opened=[opened]).splitlines()
    assert title.split() == ["event", "time", "publisher", "Pub/Sub", "A"]
    assert len(lines) == 1


def test_several_subscriptions_are_labelled() -> None:
    events = sorted(history("A<1@1", subscription="one") + history("A<1@2", subscription="two"), key=lambda event: event.t)
    title, *_ = drawn(events)
    assert title.split() == ["event", "time", "publisher", "Pub/Sub", "one/A", "two/A"]


def test_several_epochs_are_named() -> None:
    lines = body(history("P1 P1[e2]@5 ok1=e2m1@5.1"))
    assert lines == [
        "|-- publish e1:1 -------->|",
        "|<- ok e1:1 = m1 ---------|",
        "|-- publish e2:1 -------->|",
        "|<- ok e2:1 = e2m1 -------|",
    ]


def test_many_subscribers_share_a_last_column() -> None:
    events = history(" ".join(f"r{n}<{n}@{n}" for n in range(1, SUBSCRIBERS_MAX + 2)), Mode.PUSH)
    title, *lines = drawn(events)
    assert title.split() == ["event", "time", "publisher", "Pub/Sub", "r1", "r2", "r3", "(others)"]
    assert lines[-1].endswith("- r5: 5 (m5) >|")


def test_a_long_message_id_is_shown_by_its_end() -> None:
    assert short("m1") == "m1"
    assert short("10212345678901234") == "..78901234"


def test_the_end_of_a_wait_decides_a_liveness_finding() -> None:
    events = list(enumerate(history("P1,2 A<1@1 end @500"), 1))
    *_, last = draw(events, finding(5, status=Status.LIVENESS)).splitlines()
    assert last.endswith("= ended, drained ==================   X <-- decides")


def test_a_long_history_is_shown_around_what_matters() -> None:
    events = history(" ".join(f"A<{n}@{n}" for n in range(1, 10_001)))
    lines = drawn(events, 5_000, 5_001)
    assert len(lines) <= LINES_MAX + 1 + 3
    assert [line.strip() for line in lines if "left out" in line] == [
        "...                ... 4,970 events left out ...",
        "...                ... 4,971 events left out ...",
    ]
    marked = {line.split()[0]: line.split("|")[-1].strip() for line in lines if "<--" in line}
    assert marked == {"5000": "<-- witness", "5001": "X <-- decides"}


def test_more_witnesses_than_lines() -> None:
    events = history(" ".join(f"A<{n}@{n}" for n in range(1, 301)))
    lines = drawn(events, *range(1, 302))
    assert len(lines) <= 2 * LINES_MAX
    assert lines[-1].endswith("X <-- decides")


def test_lines_keep_within_the_width() -> None:
    names = [f"a-rather-long-subscriber-name-{n}" for n in range(SUBSCRIBERS_MAX)]
    events: list[Event] = [Opened(0.0, "s", name, name) for name in names]
    events += [LeaseModified(123456.789, "s", "k", name, "10212345678901234", 600) for name in names]
    lines = draw([(1_234_567 + n, event) for n, event in enumerate(events)], finding(1_234_567)).splitlines()
    assert max(map(len, lines)) <= WIDTH


def test_nothing_is_drawn_of_nothing() -> None:
    assert draw([], finding()) == ""
