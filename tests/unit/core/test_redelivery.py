"""Guarantee 2: a run of redeliveries leaves nothing out; what was sent before what is verified by what can have been."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from typing import Any

import pytest

from prober.core.events import Acked, Closed, Delivered, Event, Opened
from prober.core.rules import ONE_RECORD_PER_ID, Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, Definite, case, findings, observe, only, words, wrong
from tests.verification import FAILURES, verify

RETRIED = "P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 P3@0.5 ok3=m3@0.55 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<3@1.4"
ACKED = "P1,2,3,4,5 A<1,2,3@1 A ack 1,2,3@1.4"


@pytest.mark.parametrize(
    "one",
    [
        case("an acknowledged message is left out", "P1,2,3,4 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A<4@2.1", "V:REDELIVERY_SKIP@2.1"),
        case("an unacknowledged message is left out", "P1,2,3,4 A<1,2,3,4@1 A<1@2 A<3@2.1", "V:REDELIVERY_SKIP"),
        case("the next new message comes instead of the run", "P1,2,3,4 A<1,2,3@1 A<1@2 A<4@2.1", "V:REDELIVERY_SKIP"),
        case("a run out of order", "P1,2,3,4 A<1,2,3,4@1 A<2@2 A<4@2.1 A<3@2.2", "V:REDELIVERY_SKIP@2.1"),
        case("a skip after a restart inside a run", "P1,2,3,4 A<1,2,3,4@1 A<1,2,3@2 A<1@2.3 A<4@2.4", "V:REDELIVERY_SKIP@2.4"),
        case("two skips", "P1,2,3,4,5 A<1,2,3,4,5@1 A<1@2 A<3@2.1 A<5@2.2", "V:REDELIVERY_SKIP@2.1 V:REDELIVERY_SKIP@2.2"),
        case("the records of a retry belong to the run", f"{RETRIED} A<a2(2)@3 A<3@3.1", "V:REDELIVERY_SKIP"),
        case("the whole run of a retry", f"{RETRIED} A<a2(2)@3 A<b1(1)@3.1 A<b2(2)@3.2 A<3@3.3"),
    ],
)  # fmt: skip
def test_skip(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("restarts inside a run", "P1,2,3,4 A<1,2,3@1 A<1,2@1.3 A<1,2,3,4@1.5"),
        case("one message again and again", "P1,2,3 A<1,2,3@1 A<2@2 A<2@2.1 A<2@2.2 A<3@2.3"),
        case("a rewind to an acknowledged message", "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 A<1,2,3@9"),
        case("in flight after a refusal", "P1,2,3,4 A<1,2,3@1 A nack 2@1.25 A<4@1.4 A<2,3,4@1.5"),
        case("a run that ends in a new message", "P1,2,3,4 A<1,2,3@1 A<1,2,3,4@2"),
        case("the run goes on at the same client's other stream", "open A1 of client A open A2 of client A P1,2,3 A1<1,2,3@1 A1<1@2 A2<2@2.05 A2<3@2.1"),
        case("the run goes on after its stream closed", f"{ACKED} A<1@2 A ack 1@2.1 close A@3 B<2@30 B<3@30.1 B<4@30.2"),
        case("a stream that closed is still what came before", "P1,2,3 A<1,2@1 A ack 1,2@1.3 close A@1.5 B<3@20"),
    ],
)  # fmt: skip
def test_no_skip(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("its own last is provably followed by another's rewind", f"{ACKED} B<1@20 B ack 1@20.1 A<4@40", "V:REDELIVERY_SKIP"),
        case("the rewind may be later than its own last", f"{ACKED} B<1@6 B ack 1@6.1 A<4@8", "I:AFFINITY_SPLIT"),
        case("the rewind is Delta later than its own last", "P1,2,3,4 A<1,2,3@1 A ack 1,2,3@1.4 B<1@6.2 B ack 1@6.3 A<4@11.3", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT"),
        case("the other's last provably came before", f"{ACKED} B<4@20 B ack 4@20.1 B<1@20.5 B ack 1@20.6 A<5@40", "V:REDELIVERY_SKIP"),
        case("the other's earlier one may have come last", f"{ACKED} B<4@20 B ack 4@20.1 B<1@20.5 B ack 1@20.6 A<5@22", "I:AFFINITY_SPLIT"),
        case("only two seconds of delay: then it cannot", f"{ACKED} B<4@20 B ack 4@20.1 B<1@20.5 B ack 1@20.6 A<5@22.6", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT", delivery_delay_max_s=2),
        case("unless clocks differ", f"{ACKED} B<4@20 B ack 4@20.1 B<1@20.5 B ack 1@20.6 A<5@22.6", "I:AFFINITY_SPLIT", delivery_delay_max_s=2, clock_error_s=1),
        case("a third session's last provably came before", f"{ACKED} B<4@20 B ack 4@20.1 C<1@40 C ack 1@40.1 A<5@60", "V:REDELIVERY_SKIP"),
        case("nothing was sent before the stream opened", f"{ACKED} B<4@20 B ack 4@20.1 B<1@20.5 B ack 1@20.6 open C of client C@20.7 C<5@22", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT"),
        case("nothing was sent before it was published", "P1,2,3,4 A<1,2,3@1 A ack 1,2,3@1.4 B<4@20 B ack 4@20.1 B<1@20.5 B ack 1@20.6 P5@20.7 ok5=m5@20.8 A<5@22", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_possible_predecessors(one: Case) -> None:
    one.check()


LEFT_OUT = f"{ACKED} B<1@20 B ack 1@20.1 A<4@26"
LOSSES: dict[str, Any] = {"close_detection_max_s": 10.0}


@pytest.mark.parametrize(
    "one",
    [
        case("its stream broke before", f"{ACKED} B<1@20 B ack 1@20.1 close B@22 A<4@26", "I:REDELIVERY_SKIP I:AFFINITY_SPLIT", **LOSSES),
        case("its stream broke soon after", f"{LEFT_OUT} close B@30", "I:REDELIVERY_SKIP I:AFFINITY_SPLIT", **LOSSES),
        case("its stream broke later, and may have been dead", f"{LEFT_OUT} close B@33", "I:REDELIVERY_SKIP I:AFFINITY_SPLIT", **LOSSES),
        case("its stream broke much later", f"{LEFT_OUT} close B@41.1", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT", **LOSSES),
        case("no stream broke", f"{LEFT_OUT} end @60", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT", **LOSSES),
        case("not all of it was acknowledged", "P1,2,3,4,5 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 B<1@20 B ack 1@20.1 close B@22 A<4@26", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT", **LOSSES),
    ],
)  # fmt: skip
def test_what_was_acknowledged_may_have_been_sent_again_and_lost(one: Case) -> None:
    one.check()


SKIPPED = "P1,2,3,4 A<1,2,3,4@1 A<2@2 A<4@2.2"
BROKEN = "P1,2,3 A<1,2,3@1 close A@1.5 open A2 of client A@2"


@pytest.mark.parametrize(
    "one",
    [
        wrong("a copy of what is missing", f"{SKIPPED} B<3@2.3", "V:AFFINITY_SPLIT"),
        case("a copy of a later one", f"{SKIPPED} B<4@2.3", "V:AFFINITY_SPLIT V:REDELIVERY_SKIP"),
        case("a copy of an earlier one", f"{SKIPPED} B<2@2.3", "V:REDELIVERY_SKIP V:AFFINITY_SPLIT"),
        case("a copy on the same stream", f"open B of client B {SKIPPED} A<3@2.3", "V:REDELIVERY_SKIP"),
        wrong("a copy just within Delta", f"{SKIPPED} B<3@7.2", "V:AFFINITY_SPLIT"),
        case("a copy beyond Delta", f"{SKIPPED} B<3@7.3", "V:REDELIVERY_SKIP V:AFFINITY_SPLIT"),
        case("a copy on a stream opened later", f"open C of client C {SKIPPED} open B of client B@2.25 B<3@2.3", "V:REDELIVERY_SKIP V:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_a_copy_that_arrives_later_may_explain_a_skip(one: Case | Definite) -> None:
    one.check()


def test_with_one_open_stream_nothing_explains_a_skip() -> None:
    for line in (SKIPPED, f"open B of client B close B@0.5 {SKIPPED}"):
        assert words(findings(line, Rules()), times=True) == {"V:REDELIVERY_SKIP@2.2"}


def test_with_two_open_streams_a_skip_is_decided_when_no_copy_can_come_any_more() -> None:
    verifier = Verifier(Rules())
    assert observe(verifier, history(f"open B of client B {SKIPPED}")) == []
    assert list(verifier.observe(Opened(37.2, "s", "C", "C"))) == []
    assert words(verifier.observe(Opened(37.3, "s", "D", "D")), times=True) == {"V:REDELIVERY_SKIP@2.2"}


def test_a_skip_on_hold_at_the_end_is_a_violation() -> None:
    verifier = Verifier(Rules())
    assert observe(verifier, history(f"open B of client B {SKIPPED}")) == []
    assert words(verifier.finish()) == {"V:REDELIVERY_SKIP"}


def test_where_an_unknown_stream_may_deliver_nothing_is_decided_at_once() -> None:
    """A stream that was never seen to open may have company that was not seen either."""
    verifier = Verifier(Rules())
    unopened = [event for event in history(SKIPPED) if not isinstance(event, Opened)]
    assert observe(verifier, unopened) == []
    assert words(verifier.finish()) == {"V:REDELIVERY_SKIP"}


def test_a_skip_names_what_was_left_out_and_its_proof() -> None:
    finding = only("P1,2,3,4 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A<4@2.1", "REDELIVERY_SKIP")
    assert (
        finding.facts.items()
        >= {
            "seq": 4,
            "epoch": "e1",
            "message_id": "m4",
            "after": 2,
            "skipped": (3,),
            "skipped_count": 1,
            "subscriber": "A",
        }.items()
    )
    assert finding.witnesses == (12, 16, 17)  # 3 first delivered, 2 again, then 4
    assert finding.assumptions == {"delivery_delay_max_s": 5.0, "clock_error_s": 0.0, ONE_RECORD_PER_ID: 1.0}


def test_the_highest_of_many_recent_deliveries_counts() -> None:
    """More than are kept apart: merging must keep the highest, so that a later one on another stream is no skip."""
    published = ",".join(map(str, range(1, 22)))
    first, again = ",".join(map(str, range(1, 21))), ",".join(map(str, range(1, 19)))
    line = f"P{published} B<{first}@2.1 B<{again}@4.1 A<21@5.95"
    assert "REDELIVERY_SKIP" not in {finding.kind for finding in findings(line, Rules())}


UNACKED = 30  # so that what is left out after it cannot all have been sent again and lost


def one_message_each(streams: int) -> list[Event]:
    """Streams of one client, each open for less than a second, one after the other from 21 s on."""
    events = history("P" + ",".join(map(str, range(1, streams + 3))))
    for n in range(1, streams + 1):
        events.append(Opened(20.0 + n, "s", f"S{n}", "client"))
        events.append(Delivered(20.5 + n, "s", "k", f"S{n}", "e1", n, f"m{n}"))
        if n != UNACKED:
            events += history(f"S{n} ack {n}@{20.6 + n}")
        events.append(Closed(20.7 + n, "s", f"S{n}"))
    return events


@pytest.mark.parametrize(
    ("opened_t", "rewound_t", "expected"),
    [(83.3, 84.5, set()), (84.1, 84.5, {"V:REDELIVERY_SKIP"}), (83.3, 100.0, {"V:REDELIVERY_SKIP"})],
    ids=["perhaps sent before", "sent on a stream that was opened after", "provably sent after"],
)
def test_streams_that_are_no_longer_remembered_still_came_before(opened_t: float, rewound_t: float, expected: set[str]) -> None:
    """All streams are forgotten at once when the last one opens; what they delivered is still what it follows."""
    rewound: list[Event] = [
        Opened(opened_t, "s", "rewound", "client"),
        Delivered(rewound_t, "s", "k", "rewound", "e1", 5, "m5"),
        Acked(rewound_t + 0.1, "s", "k", "rewound", "m5"),
        Closed(rewound_t + 0.2, "s", "rewound"),
        Opened(160.0, "s", "last", "client"),
        Delivered(160.5, "s", "k", "last", "e1", 64, "m64"),
    ]
    record = sorted([*one_message_each(63), *rewound], key=lambda event: event.t)
    assert words(finding for finding in verify(Rules(), record) if finding.status in FAILURES) == expected


@pytest.mark.parametrize(
    "one",
    [
        case("never acknowledged", f"{BROKEN} A2<1@2.1 A2<3@2.2", "V:REDELIVERY_SKIP"),
        case("acknowledged", "P1,2,3 A<1,2,3@1 A ack 2,3@1.3 close A@1.5 open A2 of client A@2 A2<1@2.1 A2<3@2.2", "V:REDELIVERY_SKIP"),
    ],
)  # fmt: skip
def test_a_skip_on_a_stream_that_was_opened_when_the_other_had_broken(one: Case) -> None:
    """What the broken stream brought came before all that the new one brings: nothing of it can have been sent in between."""
    one.check()
