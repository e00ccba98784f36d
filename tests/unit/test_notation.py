"""The one-line notation says the same as the trace files do."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from prober.core.events import Acked, Closed, Delivered, Ended, Event, FilterChanged, Interrupted, Opened, Published, PublishInvoked
from prober.core.rules import Mode
from prober.traces.trace import read_trace
from tests.notation import history

VECTORS = Path(__file__).parents[1] / "vectors"

CLOSE_S = 1e-3  # the files set the confirmations of one reply a little apart

# The table of the checker's specification: the number of the trace, its mode, its events;
# T05 and T25 with the time of P3, which the table leaves open.
TABLE = """
T01 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2
T02 streaming: P1,2,3 A<1@1 A<3@1.1 A<2@1.2
T02b streaming: P1@0 P2@0 P3@0 ok1=m1@0.3 ok2=m2@0.3 ok3=m3@0.3 A<1@1 A<3@1.1 A<2@1.2
T03 streaming: P1,2,3 A<1@1 A<3@1.1 end @500
T04 streaming: P1,2,3 A<1@1 A<2@1.1 end @500
T05 streaming: P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 P3@0.5 ok3=m3@0.55 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<3@1.4
T05b streaming: P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3
T06 streaming: P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 A<a1(1)@1 A<b1(1)@1.1 A<b2(2)@1.2
T07 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A<z1(1)@1.3 A<z2(2)@1.4
T08 streaming: P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 A<a1(1)@1 A<a2(2)@1.1 A<b2(2)@1.2 A<b1(1)@1.3
T09 streaming: P1 P2@0.2 info2@0.3 abandon2@0.4 P3 A<1@1 A<3@1.1
T10 streaming: P1 P2@0.2 info2@0.3 abandon2@0.4 P3 A<1@1 A<x2(2)@1.1 A<3@1.2
T11 streaming: P1 P2@0.2 info2@0.3 abandon2@0.4 P3 A<1@1 A<3@1.1 A<x2(2)@1.2
T12 streaming: P1 P2@0.2 info2@0.3 P2'gen1@0.4 ok'gen1=m2@0.45 P3 A<1@1 A<x2(2)@1.1 A<2@1.2 A<3@1.3
T13 streaming: P1@0 P2@0 A<1@0.2 A<2@0.21 ok1=m1@0.3 ok2=m2@0.3
T14 streaming: P1@0 P2@0 A<2@0.2 A<1@0.21 ok1=m1@0.3 ok2=m2@0.3
T15 streaming: P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 A<a2(2)@1 A<b1(1)@1.1 A<b2(2)@1.2
T16 streaming: P1 A<1@1 A<q7(7)@1.1
T17 streaming: P1 P2@0.2 fail2@0.21 A<1@1 A<g2(2)@1.1
T18 streaming: P1,2 A<1@1 A<m1(2)@1.1
T19 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A nack 2@1.5 A<2@2 A<3@2.1 end @500
T20 streaming: P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1
T21 streaming: P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A<4@1.3 A nack 2@1.5 A<2@2 A<4@2.1 A<3@2.2
T22 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A ack 2@2.1 end @500
T23 streaming: P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A<1@1.3 A<2@1.4 A<1@1.5 A<2@1.6 A<3@1.7 A<4@1.8 end @500
T24 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 A ack 2@1.41 A ack 3@1.42 A<1@9 A<2@9.1 A<3@9.2 end @500
T25 streaming: P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 P3@0.5 ok3=m3@0.55 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<3@1.4 A<a2(2)@3 A<3@3.1
T26 streaming: P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A nack 2@1.25 A<4@1.4 A<2@1.5 A<3@1.6 A<4@1.7 end @500
T27 streaming: P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 close A@1.6 B<2@2 B<3@2.1 B<4@2.2 end @500
T28 streaming: P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 close A@1.6 B<3@2 B<4@2.1 end @500
T29 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 A ack 2@1.41 A ack 3@1.42 B<2@60 B ack 2@60.1 P4 A<4@81
T30 streaming: P1,2,3,4 A<1@1 A<2@1.1 A nack 1@1.15 B<1@1.3 A<3@1.35 B<2@1.4 B<3@1.5 B<4@1.6 end @500
T31 streaming: P1,2 A<1@1 A<2@1.1 A ack 1@1.4 A ack 2@1.41 P3 B<3@31
T32 streaming: P1,2,3 A<1@1 A<2@1.1 A ack 1@1.4 B<3@2
T33 streaming: P1,2,3 A<1@1 A<2@1.1 A ack 1@1.4 A ack 2@1.41 B<3@1.6
T34 streaming: P1,2,3 A<1@1 A<2@1.1 A ack 1@1.4 B<2@58 B<3@58.1
T35 streaming: P1,2,3 A<1@1 A<2@1.1 A ack 1@1.4 B<2@80 B<3@80.1
T36 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A nack 1@1.5 B<1@2 B<2@2.1 B<3@2.2
T37 streaming: open A1 of client A open A2 of client A P1,2,3 A1<1@1 A1<2@1.1 A2<3@2
T38 streaming: P1,2,3 A<1@1 A<2@1.1 A modack 2 10s@1.2 A modack 1 10s@1.2 B<3@12
T39 pull: P1,2,3,4 pull b1@0.9 b1<1@1 b1<2@1 b1 ack 1@1.1 b1 ack 2@1.11 pull b2@20 b2<3@20.1 b2<4@20.1
T40 pull: P1,2,3 pull b1@0.9 b1<1@1 b1<2@1 b1<3@1 b1 ack 1@1.1 b1 ack 2@1.11 b1 ack 3@1.12 pull b2@20 b2<1@20.1 b2<3@20.1
T41 pull: P1,2,3,4 pull b1@0.9 b1<1@1 b1<2@1 pull b2@1.5 b2<3@1.6 b2<4@1.6
T42 pull: P1,2,3 pull b1@0.9 b1<1@1 b1<2@1 b1 ack 1@1.1 pull b2@1.5 b2<3@1.6
T43 pull: P1,2,3 pull b1@0.9 b1<1@1 b1<2@1 b1<3@1 b1 ack 1@1.1 b1 ack 3@1.11 b1 nack 2@1.2 pull b2@30 b2<2@30.1 b2<3@30.1
T44 pull: P1,2,3,4 pull b1@0.9 b1<1@1 b1<2@1 b1<3@1 b1 ack 1@1.1 b1 ack 3@1.11 b1 nack 2@1.2 pull b2@30 b2<2@30.1 b2<4@30.1
T45 pull: P1,2,3,4 pull b1@0.9 b1<1@1 b1<2@1 b1<3@1 b1 ack 1@1.1 b1 ack 3@1.11 b1 nack 2@1.2 pull b2@30 b2<2@30.1 b2 ack \
    2@30.2 pull b3@60 b3<4@60.1
T46 pull: P1,2,3 pull b1@0.9 b1<1@1 b1 ack 1@1.1 pull b3@70 b3<2@70.1 b3<3@70.1
T47 push: P1,2,3 r1<1@1 r1 ack 1@1.1 r2<2@20 r2 ack 2@20.1 r3<3@40 r3 ack 3@40.1
T48 push: P1,2 r1<1@1 r2<2@2 r2 ack 2@2.1 r1 ack 1@5
T49 push: P1,2 r1<1@1 r1 nack 1@1.1 r2<1@20 r2 ack 1@20.1 r3<2@40 r3 ack 2@40.1
T50 push: P1,2 r1<1@1 r1 nack 1@1.1 r2<2@20 r2 ack 2@20.1
T51 push: P1,2 r1<1@1 r2<1@63 r2 ack 1@63.1 r1 ack 1@70
T52 push: P1,2 r1<1@1 r1 ack 1@1.1 r2<2@1.2 r2 ack 2@1.3
T53 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A nack 2@1.5 dlq m2@1.9 A<1@2 A<3@2.1
T54 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A<1@1.3 A<2@1.4 A<3@1.5 A<1@1.6 A<2@1.7 A<3@1.8 A<1@1.9 A<2@2 A<3@2.1 A<1@4 A<3@4.1
T55 streaming: P1,2,3 A<1@1 A<2@1.1 A<3@1.2 A<1@1.3 A<2@1.4 A<3@1.5 A<1@1.6 A<2@1.7 A<3@1.8 A<1@1.9 A<2@2 A<3@2.1 A<1@4 A<3@4.1
T56 streaming: P1,2,3,4,5 A<1@1 A<2@1.1 A<3@1.2 seek 60.0@2 A<2@10 A<5@10.1
T57 streaming: P1,2 A<1@1 A<2@1.1 A ack 1@1.3 A ack 2@1.31 A ackOK 1@1.5 A<1@30 A<2@30.1
T58 streaming: P1,2 A<1@1 A<2@1.1 A ack 1@1.3 A ack 2@1.31 A ackOK 1@1.5 A<1@2 A<2@2.1
T59 streaming: P1,2 A<1@1 P1[e2]@5 ok1=e2m1@5.1 A<2@6 A<e2m1(1)@6.1
T60 streaming: P1,2 A<1@1 P1[e2]@5 ok1=e2m1@5.1 A<e2m1(1)@6.1 A<2@6.2
"""

ROWS = [re.fullmatch(r"(T\w+) (\w+): (.+)", line) for line in TABLE.strip().splitlines()]


def comparable(event: Event) -> tuple[Any, ...]:
    values = asdict(event)
    return (
        type(event),
        {name: pytest.approx(value, abs=CLOSE_S) if isinstance(value, float) else value for name, value in values.items()},
    )


def vector(name: str) -> list[Event]:
    (path,) = VECTORS.glob(f"{name.lower()}-*.jsonl")
    with read_trace(path) as trace:
        return list(trace)


@pytest.mark.parametrize(("name", "mode", "line"), [row.groups() for row in ROWS if row])
def test_the_notation_gives_the_events_of_the_trace_file(name: str, mode: str, line: str) -> None:
    assert [(type(event), asdict(event)) for event in history(line, Mode(mode))] == [comparable(event) for event in vector(name)]


def test_every_trace_file_of_the_table_is_compared() -> None:
    assert len(ROWS) == len({row[1] for row in ROWS if row}) == 62


def test_words_beyond_the_table() -> None:
    assert history("filter 60@2 hole @3 stop @4") == [FilterChanged(2.0, "s", 60.0), Interrupted(3.0), Ended(4.0, drained=False)]


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the notation: 'what is this'"):
        history("P1 A<1@1 what is this")


def test_shorthands() -> None:
    assert history("A<1,2@1") == history("A<1@1 A<2@1.1")
    assert history("pull b@0 b<1,2@1", Mode.PULL) == history("pull b@0 b<1@1 b<2@1", Mode.PULL)
    assert history("A<1,2@1 A ack 1,2@2") == history("A<1@1 A<2@1.1 A ack 1@2 A ack 2@2.01")


def test_what_a_delivery_may_carry() -> None:
    _, plain, attempt, epoch, wrong, leak = history("A<1@1 A<1#4@2 A<x(1)[e7]@3 A<1!checksum@4 A<1!filter@5")
    assert plain == Delivered(1.0, "s", "k", "A", "e1", 1, "m1")
    assert attempt == replace(plain, t=2.0, delivery_attempt=4)
    assert epoch == replace(plain, t=3.0, epoch="e7", message_id="x")
    assert wrong == replace(plain, t=4.0, defect="checksum")
    assert leak == replace(plain, t=5.0, matches_filter=False)


def test_a_session_may_open_again() -> None:
    assert history("open A of client B@5") == [Opened(5.0, "s", "A", "B")]


def test_a_publish_may_state_its_region_and_its_size() -> None:
    plain = PublishInvoked(5.0, "k", "e1", 1)
    assert history("P1/eu@5") == [replace(plain, region="eu")]
    assert history("P1*500@5") == [replace(plain, size=500)]
    assert history("P1'gen1[e2]/eu*500@5") == [replace(plain, generation=1, epoch="e2", region="eu", size=500)]
    assert [event.region for event in history("P1,2/eu") if isinstance(event, PublishInvoked)] == ["eu", "eu"]


def test_a_delivery_may_state_when_the_service_stored_it() -> None:
    assert history("A<1~7@1")[1] == Delivered(1.0, "s", "k", "A", "e1", 1, "m1", publish_time=7)


def test_a_stream_may_have_flow_control() -> None:
    plain = Opened(5.0, "s", "A1", "A")
    assert history("open A1 of client A limit 2@5") == [replace(plain, max_outstanding_messages=2)]
    assert history("open A1 of client A limit 0/500@5") == [replace(plain, max_outstanding_messages=0, max_outstanding_bytes=500)]


def test_a_pull_may_end_without_its_answer() -> None:
    assert history("pull b@1 lose b@70", Mode.PULL) == [Opened(1.0, "s", "b", "b"), Closed(70.0, "s", "b", lost=True)]


def test_another_key_has_its_own_messages() -> None:
    events = history("P1 on k2 P1 A<1@1 A ack 1@1.5 on k A<1@2 on k2 A<m1(1)@3")
    assert [event for event in events if isinstance(event, Published)] == [
        Published(0.05, "k", "e1", 1, "m1"),
        Published(0.05, "k2", "e1", 1, "k2m1"),
    ]
    assert events[5:] == [
        Delivered(1.0, "s", "k2", "A", "e1", 1, "k2m1"),
        Acked(1.5, "s", "k2", "A", "k2m1"),
        Delivered(2.0, "s", "k", "A", "e1", 1, "m1"),
        Delivered(3.0, "s", "k2", "A", "e1", 1, "m1"),
    ]
    assert events[0] == Opened(0.0, "s", "A", "A")


def test_another_key_states_the_times_of_its_later_publishes() -> None:
    with pytest.raises(AssertionError, match="P2 needs a time"):
        history("on k2 P1 A<1@1 P2 A<2@2")


def test_a_recorder_may_have_a_clock_of_its_own() -> None:
    assert [event.t for event in history("P1 A<1@1 B<1@2 skew B 0.3 skew P -0.02")] == pytest.approx(
        [-0.02, 0.0, 0.03, 0.3, 1.0, 2.3]
    )
