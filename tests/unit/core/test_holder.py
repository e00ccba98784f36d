"""Guarantee 3: while something is outstanding, the key stays at one subscriber. Three answers: certain, perhaps, no."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from prober.core.events import Closed, Delivered, Opened
from prober.core.report import EARLY
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, case, counted, observe, only, say, words
from tests.verification import verify

ONE_ACKED = "P1,2,3 A<1,2@1 A ack 1@1.4"  # 2 is outstanding at A
ALL_ACKED = "P1,2,3 A<1,2@1 A ack 1,2@1.4"
NONE_ACKED = "P1,2,3 A<1,2,3@1"


@pytest.mark.parametrize(
    "one",
    [
        case("something below it is held", f"{ONE_ACKED} B<3@2", "V:AFFINITY_SPLIT@2"),
        case("something below what was refused is held", f"{NONE_ACKED} A nack 3@1.5 B<2@2 A ack 1@9", "V:AFFINITY_SPLIT"),
        case("the lease still runs", f"{ONE_ACKED} B<3@56", "V:AFFINITY_SPLIT"),
        case("the other stream of its client is still open", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A2<2@1.1 close A1@1.5 B<3@8", "V:AFFINITY_SPLIT"),
        case("a lease that was shortened to what it is", f"{ONE_ACKED} A modack 2 60s@1.3 B<3@50", "V:AFFINITY_SPLIT"),
        case("it was redelivered long after its acknowledgement", "P1,2 A<1@1 A ack 1@1.1 A<1@20 B<2@26", "V:AFFINITY_SPLIT"),
        case("and back again", f"{ONE_ACKED} B<3@8 A<3@16", "V:AFFINITY_SPLIT@8 I:AFFINITY_SPLIT@16"),
        case("what was held below a split is still held", "P1,2,3,4 A<1,2@1 A ack 1@1.4 B<3@8 B ack 3@8.1 C<4@30", "V:AFFINITY_SPLIT@8 V:AFFINITY_SPLIT@30"),
        case("a third subscriber", "P1,2,3 A<1@1 A ack 1@1.1 B<2@20 C<3@28", "V:AFFINITY_SPLIT@28"),
    ],
)  # fmt: skip
def test_a_split(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("nothing was released", f"{NONE_ACKED} B<1@2", "I:AFFINITY_SPLIT"),
        case("it begins above what was refused", f"{NONE_ACKED} A nack 1@1.5 B<2@2", "I:AFFINITY_SPLIT"),
        case("one above it was acknowledged", f"{NONE_ACKED} A ack 1,3@1.5 B<2@2", "I:AFFINITY_SPLIT"),
        case("short leases still run", f"{NONE_ACKED} A modack 1 10s@1.3 A modack 2 10s@1.3 A modack 3 10s@1.3 B<1@11", "I:AFFINITY_SPLIT"),
        case("the lowest that is held", f"{ONE_ACKED} B<2@8", "I:AFFINITY_SPLIT"),
        case("below the lowest that is held", f"{ONE_ACKED} B<1@20", "I:AFFINITY_SPLIT"),
        case("the next above it", "P1,2,3 A<1,2,3@1 A ack 1@1.4 B<3@20", "V:AFFINITY_SPLIT"),
        case("all of it, and on", f"{ONE_ACKED} B<2@8 B<3@8.1", "I:AFFINITY_SPLIT@8"),
        case("what was held below is let go, it is known only later", f"{NONE_ACKED} A nack 1,2@1.5 B<3@2", "I:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_at_or_below_what_is_held_the_service_may_have_begun_again(one: Case) -> None:
    one.check()


def test_an_early_redelivery_is_counted_and_says_so() -> None:
    verifier = Verifier(Rules())
    (finding,) = (f for f in observe(verifier, history(f"{NONE_ACKED} B<1@2")) if f.kind == "AFFINITY_SPLIT")
    assert (finding.doubt, verifier.counters["early_redeliveries"]) == (EARLY, 1)
    assert finding.facts["held"] == (1, 2, 3)
    released = Verifier(Rules())
    observe(released, history(f"{NONE_ACKED} A nack 1,2,3@1.5 B<1@2"))
    assert released.counters["early_redeliveries"] == 0


@pytest.mark.parametrize(
    "one",
    [
        case("a refusal", f"{NONE_ACKED} A nack 1@1.5 B<1,2,3@2", "I:AFFINITY_SPLIT"),
        case("a refusal of a later one", f"{NONE_ACKED} A nack 3@1.5 B<1@2", "I:AFFINITY_SPLIT"),
        case("a lease modification to nothing", f"{NONE_ACKED} A modack 1 0s@1.5 B<1,2,3@2", "I:AFFINITY_SPLIT"),
        case("an acknowledgement under way", f"{ALL_ACKED} B<3@1.6", "I:AFFINITY_SPLIT"),
        case("an acknowledgement that may be just applied", f"{ALL_ACKED} B<3@16.4", "I:AFFINITY_SPLIT"),
        case("a refusal under way", "P1,2 A<1@1 A nack 1@1.4 B<1@16.3", "I:AFFINITY_SPLIT"),
        case("a lease that may be over", f"{ONE_ACKED} B<2,3@58", "I:AFFINITY_SPLIT"),
        case("a lease that may be over, and a new message", f"{ONE_ACKED} B<3@58", "V:AFFINITY_SPLIT"),
        case("a lease prolonged, and a new message", f"{ONE_ACKED} A modack 2 120s@1.3 B<3@58", "V:AFFINITY_SPLIT"),
        case("a lease that may not be over", f"{ONE_ACKED} B<3@66", "I:AFFINITY_SPLIT"),
        case("a lease prolonged, which may be unheard", f"{ONE_ACKED} A modack 2 120s@1.3 B<2@100", "I:AFFINITY_SPLIT"),
        case("short leases", "P1,2,3 A<1,2@1 A modack 2 10s@1.2 A modack 1 10s@1.2 B<3@12", "I:AFFINITY_SPLIT"),
        case("the short lease of a later one", f"{NONE_ACKED} A modack 3 10s@1.3 B<1@12", "I:AFFINITY_SPLIT"),
        case("the short lease of one acknowledged since", f"{NONE_ACKED} A modack 3 10s@1.3 A ack 3@1.4 B<1@20", "I:AFFINITY_SPLIT"),
        case("the short lease of one acknowledged before", f"{NONE_ACKED} A ack 3@1.3 A modack 3 10s@1.4 B<1@20", "I:AFFINITY_SPLIT"),
        case("the lease of an acknowledged one", "P1,2 A<1@1 A<2@10 A ack 1@10.1 B<1@58", "I:AFFINITY_SPLIT"),
        case("a closed stream", "P1,2,3 A<1,2@1 close A@1.6 B<1@2"),
        case("a closed stream, long after", "P1,2,3 A<1,2@1 close A@1.6 B<3@8"),
        case("a closed stream, skipping what it held", "P1,2,3,4 A<1,2,3@1 A ack 1@1.4 close A@1.6 B<3@2", "I:AFFINITY_SPLIT"),
        case("what a closed stream had delivered", "open A1 of client A open A2 of client A P1,2,3 A1<1,2,3@1 A1 ack 1,2,3@1.4 close A1@2 A2<1,2,3@20 B<1@27", "I:AFFINITY_SPLIT"),
        case("a rewind had dropped what was held", "P1,2,3 A<1,2,3@1 A<1@1.5 A ack 1@1.6 B<2@20"),
        case("the run of a move had dropped what was held", "P1,2,3 A<1,2,3@1 A nack 1@1.4 B<1@1.5 B ack 1@1.6 C<2@20", "I:AFFINITY_SPLIT"),
        case("an acknowledgement of an earlier delivery is under way", "P1,2 A<1@1 A ack 1@1.1 A<1@2 B<2@8", "I:AFFINITY_SPLIT"),
        case("the same on another stream", "P1,2 A<1@1 A nack 1@1.1 B<1@2 A ack 1@2.1 C<2@18", "I:AFFINITY_SPLIT"),
        case("a foreign message may have rewound the key", "P1,2,3 A<1,2@1 A<9[e9]@1.5 B<1@2"),
        case("what was held left the window", "P1,2,3,4 A<1,2,3@1 B<4@2", "V:AFFINITY_SPLIT", window=1),
        case("a message beyond the window may have been a rewind", "P1,2,3,4,5,6,7 A<1,2,3,4,5,6@1 B<1@9 C<7@17", "I:AFFINITY_SPLIT V:AFFINITY_SPLIT V:REDELIVERY_SKIP", window=2),
        case("what is refused beyond the window", "P1,2,3,4 A<1,2,3@1 A nack 1@1.4 B<3@2", "V:AFFINITY_SPLIT", window=1),
    ],
)  # fmt: skip
def test_a_release_may_explain_the_move(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("all settled", f"{ALL_ACKED} B<3@16.5", "N:AFFINITY_MOVE@16.5"),
        case("every lease provably over", f"{ONE_ACKED} B<2@66.2 B<3@66.3", "N:AFFINITY_MOVE@66.2"),
        case("a prolonged lease over as well", "P1,2 A<1,2@1 A ack 1@1.4 A modack 2 120s@1.3 B<2@126.4", "N:AFFINITY_MOVE@126.4"),
        case("settled, and back again", f"{ALL_ACKED} B<3@20 B ack 3@20.1 A<1@40", "N:AFFINITY_MOVE@20 N:AFFINITY_MOVE@40"),
        case("refused and settled", "P1,2 A<1@1 A nack 1@1.4 B<1@16.5", "N:AFFINITY_MOVE@16.5"),
        case("dead-lettered", "P1,2 A<1@1 dlq m1@1.4 B<2@2", "I:AFFINITY_SPLIT@2"),
        case("two streams of one client", "open A1 of client A open A2 of client A P1,2,3 A1<1,2@1 A2<3@2"),
        case("reconnected", "open A1 of client A P1,2,3 A1<1@1 close A1@1.5 open A2 of client A@1.6 A2<1,2@2"),
        case("the first delivery", "open A of client A open B of client B P1 B<1@1"),
    ],
)  # fmt: skip
def test_nothing_is_outstanding(one: Case) -> None:
    one.check()


CONFIRMED: dict[str, Any] = {"exactly_once": True}


@pytest.mark.parametrize(
    "one",
    [
        case("a confirmed one is redelivered while another is held", "P1,2 A<1@1 A<2@10 A ack 1@10.1 A ackOK 1@10.2 B<1@58", "I:AFFINITY_SPLIT V:EOD_REDELIVERY_AFTER_ACK", **CONFIRMED),
        case("the lease of one below may be", "P1,2,3 A<1@1 A<2@2 A<3@10 A ack 2@10.1 A ackOK 2@10.2 B<1@58", "I:AFFINITY_SPLIT V:EOD_REDELIVERY_WHILE_OUTSTANDING", **CONFIRMED),
        case("what is held is redelivered", f"{NONE_ACKED} A modack 3 10s@1.3 A ack 3@1.4 A ackOK 3@1.5 B<1@20", "I:AFFINITY_SPLIT V:EOD_REDELIVERY_WHILE_OUTSTANDING", **CONFIRMED),
        case("without exactly-once delivery a confirmation means nothing", "P1,2 A<1@1 A<2@10 A ack 1@10.1 A ackOK 1@10.2 B<1@58", "I:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_confirmed_acknowledgements(one: Case) -> None:
    one.check()


RUN_ON_B = "P1,2,3,4 A<1,2@1 A nack 1@1.15 B<1@1.3"


@pytest.mark.parametrize(
    "one",
    [
        case("the tail of the old run", f"{RUN_ON_B} A<3@1.35 B<2,3,4@1.4", "I:AFFINITY_SPLIT"),
        case("a late copy does not move the key", "P1,2,3,4 A<1,2@1 A nack 1@1.15 B<1@20.3 B ack 1@20.32 A<3@20.35 B<2,3@20.4 C<4@28", "I:AFFINITY_SPLIT@20.3 V:AFFINITY_SPLIT@28"),
        case("no copy, since it skips", "P1,2,3,4 A<1,2,3,4@1 A<1@2 A nack 1@8 B<1@30.3 A<4@30.35", "V:REDELIVERY_SKIP@30.35"),
        case("no copy, since it was still held there", "P1,2,3,4 A<1,2,3@1 B<4@2 A<3@2.1", "V:AFFINITY_SPLIT@2"),
        case("a copy of what was acknowledged since", "P1,2 A<1@1 A ack 1@1.1 B<2@1.2 A<1@1.25", "I:AFFINITY_SPLIT@1.2 I:AFFINITY_SPLIT@1.25"),
        case("a copy within Delta", "P1,2,3,4 A<1,2@1 A nack 1@7 B<1@8 B<2@8.1 A<3@13", "I:AFFINITY_SPLIT"),
        case("too late for a copy, within the clock error", "P1,2,3,4 A<1,2@1 A nack 1@7 B<1@28 B<2@28.1 A<3@33.1", "I:AFFINITY_SPLIT", clock_error_s=0.2),
        case("too late for a copy", "P1,2,3,4 A<1,2@1 A nack 1@7 B<1@28 B<2@28.1 A<3@33.1", "I:AFFINITY_SPLIT@28 V:AFFINITY_SPLIT@33.1"),
        case("a copy on the client's other stream", "open A1 of client A open A2 of client A P1,2,3,4 A1<1,2@1 A1 nack 1@1.15 B<1@1.3 A2<3@1.35 B<2@1.4", "I:AFFINITY_SPLIT"),
        case("a copy of nothing that is held", "P1,2,3 A<1,2@1 A ack 1,2@1.1 close A@1.2 B<3@20 B ack 3@20.1 open A of client A@19.9 A<1@40", ""),
        case("late on a stream that had delivered nothing, after another had closed", "P1,2,3 open C of client C A<1,2@1 close A@1.2 B<1@1.3 C<3@1.4"),
        case("late on a stream that had delivered nothing, none had closed", "P1,2,3 open C of client C A<1,2@1 A nack 1@1.2 B<1@20.3 C<2@20.4", "I:AFFINITY_SPLIT@20.3 I:AFFINITY_SPLIT@20.4"),
        case("the same, when what is below was held before", "P1,2,3 open C of client C A<1,2,3@1 A nack 1@1.2 B<1@20.3 C<3@20.4", "I:AFFINITY_SPLIT@20.3 V:AFFINITY_SPLIT@20.4"),
        case("the same, when what is below had not come", "P1,2,3 open C of client C A<1@1 A ack 1@1.2 B<1@20.3 B<2@20.35 C<3@20.4", "V:AFFINITY_SPLIT"),
        case("on a stream that was opened after the move", "P1,2,3 A<1,2@1 A nack 1@1.2 B<1@20.3 open C of client C@20.35 C<2@20.4", "I:AFFINITY_SPLIT@20.3 V:AFFINITY_SPLIT@20.4"),
        case("sent before an acknowledged message was sent again", "P1,2 A<1@1 A ack 1@1.1 A<2@1.5 A nack 2@1.6 A<1@30 C<2@30.3"),
        case("its run began before the holder's can have", "P1,2,3 A<1@1 A ack 1@1.1 B<1@1.2 B ack 1@1.3 A<2@1.4 A<3@1.5", "I:AFFINITY_SPLIT"),
        case("its run may have begun when the holder's did", "P1,2,3 A<1,2@1 A nack 1@5 B<1@5.5 A<3@11", "I:AFFINITY_SPLIT"),
        case("what looked like a late copy may have been a move, and back", "P1,2,3,4 A<1,2@1 A nack 1@8 B<1@8.3 A<3@8.35 B<2@12 A<4@14", "I:AFFINITY_SPLIT V:AFFINITY_SPLIT"),
        case("its run may have begun earlier", "P1,2,3,4 B<1@1 B ack 1@1.1 A<2@30 A ack 2@30.05 B<1@30.1 A<3@36 B<2@36.1", "I:AFFINITY_SPLIT V:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_late_copies(one: Case) -> None:
    one.check()


HALF_OPEN: dict[str, Any] = {"close_detection_max_s": 3.0}


@pytest.mark.parametrize(
    "one",
    [
        case("its stream breaks soon after", f"{ONE_ACKED} B<3@2 close A@5", "I:AFFINITY_SPLIT@2", **HALF_OPEN),
        case("its stream breaks within a longer time", f"{ONE_ACKED} B<3@2 close A@11", "I:AFFINITY_SPLIT@2", close_detection_max_s=10),
        case("its stream breaks later", f"{ONE_ACKED} B<3@2 close A@5.1", "V:AFFINITY_SPLIT@2", **HALF_OPEN),
        case("its stream does not break", f"{ONE_ACKED} B<3@2", "V:AFFINITY_SPLIT@2", **HALF_OPEN),
        case("the new stream breaks soon after", f"{ONE_ACKED} B<3@2 close B@5", "V:AFFINITY_SPLIT", **HALF_OPEN),
        case("one of its two streams breaks", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A2<2@1.1 B<3@2 close A1@3", "V:AFFINITY_SPLIT", **HALF_OPEN),
        case("the one that breaks releases what the other holds", "open A1 of client A open A2 of client A P1,2,3 A1<1,2@1 A1 ack 1@1.2 A2<3@1.3 B<2@2 close A1@3", "I:AFFINITY_SPLIT", **HALF_OPEN),
        case("both break", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A2<2@1.1 B<3@2 close A1@3 close A2@4", "I:AFFINITY_SPLIT", **HALF_OPEN),
        case("it was closed already", "P1,2,3 A<1,2@1 close A@1.5 B<1@2", **HALF_OPEN),
    ],
)  # fmt: skip
def test_streams_that_look_open_and_are_not(one: Case) -> None:
    one.check()


def test_a_split_waits_until_its_streams_have_proven_to_be_alive() -> None:
    verifier = Verifier(Rules(close_detection_max_s=3.0, delivery_delay_max_s=1.0))
    assert observe(verifier, history(f"{ONE_ACKED} B<3@2")) == []
    assert list(verifier.observe(Opened(6.0, "s", "C", "C"))) == []
    assert words(verifier.observe(Closed(6.1, "s", "A")), times=True) == {"V:AFFINITY_SPLIT@2"}


def test_without_a_bound_on_the_delay_nothing_is_provably_held() -> None:
    """At the client's callbacks only what no clock is needed for can be said."""
    assert say(f"{ONE_ACKED} B<3@2", delivery_delay_max_s=inf) == {"I:AFFINITY_SPLIT"}
    assert say("P1,2 A<1,2@1 A ack 1,2@1.4 B<2@4000", delivery_delay_max_s=inf) == {"I:AFFINITY_SPLIT"}


@pytest.mark.parametrize(
    "one",
    [
        case("it dropped all that was held, for another one who then held it", f"{ONE_ACKED} B<3@8 C<2@8.5", "V:AFFINITY_SPLIT@8 I:AFFINITY_SPLIT@8.5"),
        case("it dropped all that was held, for another stream of who had the split", "open B1 of client B open B2 of client B P1,2,3 A<1,2@1 A ack 1@1.4 B1<3@8 B2<2@8.5", "I:AFFINITY_SPLIT@8.5"),
        case("whose stream may have been dead by then", f"{ONE_ACKED} B<3@8 C<2@8.5 close C@9", "I:AFFINITY_SPLIT@8 I:AFFINITY_SPLIT@8.5", close_detection_max_s=3),
        case("to below what was held", "P1,2,3,4 A<1,2,3@1 A ack 1,2@1.4 B<4@8 C<2,3@8.5", "I:AFFINITY_SPLIT@8.5 V:AFFINITY_SPLIT@8"),
        case("it dropped a part of what was held", "P1,2,3 A<1,2@1 B<3@8 C<2@8.5", "V:AFFINITY_SPLIT@8 V:AFFINITY_SPLIT@8.5"),
        case("it was just possibly sent before", f"{ONE_ACKED} B<3@8 C<2@13", "V:AFFINITY_SPLIT@8 I:AFFINITY_SPLIT@13"),
        case("it was sent since", f"{ONE_ACKED} B<3@8 C<2@13.1", "V:AFFINITY_SPLIT@8 I:AFFINITY_SPLIT@13.1"),
        case("it was sent since, while a stream may still break", f"{ONE_ACKED} B<3@8 C<2@13.1", "V:AFFINITY_SPLIT@8 I:AFFINITY_SPLIT@13.1", close_detection_max_s=10),
        case("it came on the same stream", f"{ONE_ACKED} B<3@8 B<2@8.5", "V:AFFINITY_SPLIT@8"),
        case("what came after it is held in doubt", "open A1 of client A open A2 of client A P1,2,3,4 A1<1,2@1 A2<1@2 A1<3@2.1 A2 ack 1@2.2 B<4@18", "V:AFFINITY_SPLIT@18"),
    ],
)  # fmt: skip
def test_a_rewind_elsewhere_may_have_been_sent_before(one: Case) -> None:
    one.check()


def test_a_split_names_the_holder_and_what_is_held() -> None:
    finding = only("P1,2,3,4 A<1,2,3@1 A ack 1@1.4 B<4@2", "AFFINITY_SPLIT")
    assert finding.facts.items() >= {"seq": 4, "epoch": "e1", "subscriber": "B", "holder": "A", "held": (2, 3)}.items()
    assert finding.witnesses == (12, 13, 15)  # A holds 2 and 3; B gets 4
    assert set(finding.assumptions) == {
        "delivery_delay_max_s",
        "clock_error_s",
        "ack_deadline_s",
        "ack_lag_max_s",
        "close_detection_max_s",
    }


def test_a_move_of_an_idle_key_is_noted() -> None:
    finding = only(f"{ALL_ACKED} B<3@20", "AFFINITY_MOVE")
    assert finding.facts.items() >= {"seq": 3, "subscriber": "B", "holder": "A"}.items()
    assert finding.witnesses == (10, 13)
    assert finding.assumptions == {}


@pytest.mark.parametrize(
    ("line", "counted"),
    [(f"{ALL_ACKED} B<3@20", "no"), (f"{ONE_ACKED} B<3@2", "yes"), (f"{ALL_ACKED} B<3@2", "unknown"), (f"{NONE_ACKED} A nack 1@1.5 B<1@20", "unknown")],
)  # fmt: skip
def test_moves_are_counted_by_what_was_outstanding(line: str, counted: str) -> None:
    verifier = Verifier(Rules())
    observe(verifier, history(line))
    verifier.finish()
    assert moves_of(verifier) == {f"affinity_moves_outstanding_{counted}": 1}


def moves_of(verifier: Verifier) -> dict[str, int]:
    return {name: count for name, count in verifier.counters.items() if name.startswith("affinity_moves_")}


@pytest.mark.parametrize(("then", "counted"), [("close A@12", "unknown"), ("", "yes")])
def test_a_move_is_counted_when_it_is_decided_what_was_held(then: str, counted: str) -> None:
    verifier = Verifier(Rules())
    observe(verifier, history(f"{ONE_ACKED} B<3@2 {then}"))
    assert moves_of(verifier) == {}
    verifier.finish()
    assert moves_of(verifier) == {f"affinity_moves_outstanding_{counted}": 1}


def test_a_forgotten_stream_may_still_hold() -> None:
    """However many streams of its client come after it."""
    events = history("P1,2,3 old<1,2@1")
    for n in range(70):
        events += [Opened(2.0 + n / 100, "s", f"S{n}", "old"), Delivered(2.0 + n / 100, "s", "k", f"S{n}", "e1", 2, "m2")]
        events += history(f"S{n} ack 2@{2.001 + n / 100}")
    for t, expected in ((20.0, "V:AFFINITY_SPLIT"), (70.0, "N:AFFINITY_MOVE")):
        found = verify(Rules(), [*events, *history(f"B<3@{t}")])
        assert expected in words(found, notes=True)


def test_an_acknowledgement_under_way_may_have_let_the_message_go() -> None:
    """The delivery to B may have been sent before A got 2, and been released by A's second acknowledgement."""
    lately = "P1,2 A<1@100 A<1@100.3 A ack 1@100.9 A ack 1@101.2 A<2@101.8 B<1@102.1"
    assert say(lately, delivery_delay_max_s=1.0, ack_deadline_s=4.0, ack_lag_max_s=1.0) == {"I:AFFINITY_SPLIT"}


def test_a_copy_that_explains_a_skip_was_held_when_what_it_explains_was_sent() -> None:
    """Nothing else is held below the copy, so that only the excuse itself is wrong: 2 was at B when 3 was sent to A."""
    found = say("P1,2,3 A<1,2,3@1 A ack 1@1.5 A<1@30 A ack 1@30.05 A<3@30.1 B<2@30.2")
    assert "V:AFFINITY_SPLIT" in found


@pytest.mark.parametrize(
    "line",
    [
        "P1,2 A<1@1 A ack 1@1.1 B<1@20 C<2@20.3",
        "P1,2 A<1@1 A ack 1@1.05 A<2@10 B<1@20 C<2@20.3",
    ],
)
def test_a_delivery_may_have_been_sent_before_a_redelivery_that_came_first(line: str) -> None:
    """2 was sent to C, then the service began again with 1 at B; both were under way."""
    assert "V:AFFINITY_SPLIT" not in say(line)


def test_without_a_bound_on_the_delay_a_move_after_the_end_of_a_stream_is_in_doubt() -> None:
    line = "open B of client B P1,2 A<1@1 close A@2 B<2@30"
    assert counted(line).get("affinity_moves_outstanding_no") == 1
    assert "affinity_moves_outstanding_no" not in counted(line, delivery_delay_max_s=inf)
