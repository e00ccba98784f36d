"""What has to happen at all: accepted messages arrive, runs are finished, unacknowledged messages come back. Deadlines are 120 s."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf

import pytest

from prober.core.excuses import DEAD_LETTER
from prober.core.rules import ONE_RECORD_PER_ID, Rules
from prober.core.runs import LOST
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import PULL, PUSH, Case, case, findings, observe, only, pending, say, words

FIRST_DONE = "P1,2,3 A<1@1 A ack 1@1.1"


@pytest.mark.parametrize(
    "one",
    [
        case("nothing ever comes", "open A of client A P1 end @500", "L:STUCK@120.05"),
        case("just now", f"{FIRST_DONE} end @121.1", "L:STUCK@121"),
        case("another deadline", f"{FIRST_DONE} end @121.1", delivery_deadline_s=200),
        case("one of two is still there", f"{FIRST_DONE} open B of client B close A@2 end @500", "L:STUCK@121"),
        case("not confirmed", "P1 A<1@1 A ack 1@1.1 P2@0.5 end @500"),
        case("republished, confirmed and never delivered", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.25 A<2@1 A ack 2@1.1 P1'gen1@2 ok1'gen1=m1@2.1 end @500", "L:STUCK"),
        case("the same, and it comes", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.25 A<2@1 A ack 2@1.1 P1'gen1@2 ok1'gen1=m1@2.1 A<1@3 A ack 1@3.1 end @500"),
        case("the same, and later ones come", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.25 A<2@1 A ack 2@1.1 P1'gen1@2 ok1'gen1=m1@2.1 P3@3 ok3=m3@3.1 A<3@4 A ack 3@4.1 end @500", "V:ORDER_GAP L:LOST_OVERTAKEN"),
        case("a later event shows it as well", f"{FIRST_DONE} open B of client B@300", "L:STUCK@121"),
        case("settling comes first", f"{FIRST_DONE} P4@1.2 ok4=m4@600 seek 600@2 end @500"),
        case("pull: nobody asks any more", "pull b1@1 close b1@2 P1@3 ok1=m1@3.1 end @500", mode=PULL),
        case("pull: while one waits", "pull b1@1 P1@3 ok1=m1@3.1 end @500", "L:STUCK@123.1", mode=PULL),
        case("pull: the times in which one waited are added up", "pull b1@1 P1@3 ok1=m1@3.1 close b1@2 pull b2@2.5 close b2@33.1 pull b3@100 close b3@163.1 pull b4@200 end @500", "L:STUCK@226.9", mode=PULL),
        case("push: once anything came", "P1,2 r1<1@1 r1 ack 1@1.1 close r1@1.2 end @500", "L:STUCK@186", mode=PUSH),
    ],
)  # fmt: skip
def test_stuck(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("it comes late", "P1@0 P2@0 ok1=m1@0.3 ok2=m2@0.3 A<2@1 A<1@100 A ack 1,2@101 end @500", "V:ORDER_GAP V:ORDER_INVERSION"),
        case("not yet", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 end @121", "V:ORDER_GAP"),
        case("nobody was there until just now", "P1,2,3 P1[e7]@130 P2[e7]@251 P3[e7]@372 P4[e7]@493 A<1@1 A<3@1.1 A ack 1,3@1.15 close A@1.2 open B of client B@490 B<2@502 B<3@502.1", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION"),
        case("given up, it is not missed", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.3 A<2@1 A ack 2@1.1 abandon1@2 end @500"),
    ],
)  # fmt: skip
def test_lost(one: Case) -> None:
    one.check()


STALLED = "P1,2,3 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1"


@pytest.mark.parametrize(
    "one",
    [
        case("it is finished", f"{STALLED} A<3@2.2 end @500"),
        case("it is finished late", f"{STALLED} A<3@100 end @500"),
        case("it is finished by a new message", "P1,2,3 A<1,2@1 A ack 1,2@1.4 A<1@2 A<2@2.1 A<3@2.2 A ack 3@2.3 end @500"),
        case("restarted, stops short of the first target", "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 A<1@2 A<2@2.1 A<1@2.2 A<2@2.3 end @500", "L:REDELIVERY_STALL"),
        case("its last had left before", "P1,2,3 A<1,2,3@1 A ack 1@1.4 A nack 2@1.5 dlq m3@1.6 A<2@2 A ack 2@2.1 end @500"),
        case("something else has left for the dead letters", f"{STALLED} dlq m1@3 end @500", "L:REDELIVERY_STALL"),
        case("its last may have left for the dead letters", f"{STALLED} end @500", "I:REDELIVERY_STALL", dead_letter_max_attempts=2),
        case("its stream broke, the rest was acknowledged", f"{STALLED} close A@3 open A of client A@4 end @500", "I:REDELIVERY_STALL"),
        case("its stream broke, the rest was not acknowledged", "P1,2,3 A<1,2,3@1 A ack 1@1.4 A<2@2 A ack 2@2.1 close A@3 open A of client A@4 end @500", "L:REDELIVERY_STALL L:UNACKED_STALL"),
        case("pull: that the response is over is no excuse", "P1,2,3 pull b1@0.9 b1<1,2,3@1 b1 ack 1,2,3@1.1 pull b2@20 b2<2@20.1 b2 ack 2@20.2 close b2@20.3 pull b3@20.4 end @500", "L:REDELIVERY_STALL", mode=PULL),
        case("the end of the run had come elsewhere", "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 B<2,3@21 B ack 2,3@21.2 A<1@21.3 A ack 1@21.4 end @500", "I:AFFINITY_SPLIT"),
        case("the end of the run had come elsewhere before it began", "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 B<2,3@21 B ack 2,3@21.2 A<1@30 A ack 1@30.1 end @500", "I:AFFINITY_SPLIT L:REDELIVERY_STALL"),
        case("nobody is there", f"{STALLED} close A@3 end @500"),
        case("after a seek nothing is pending", f"{STALLED} seek 1@3 end @500"),
    ],
)  # fmt: skip
def test_a_run_stalls(one: Case) -> None:
    one.check()


UNACKED = "P1,2 A<1,2@1 A ack 2@1.2"


@pytest.mark.parametrize(
    "one",
    [
        case("its lease is not over long enough", f"{UNACKED} end @181"),
        case("refused by a lease modification", f"{UNACKED} A modack 1 0s@1.5 end @500", "L:UNACKED_STALL@186"),
        case("nacked, and redelivered", f"{UNACKED} A nack 1@1.5 A<1,2@2 A ack 1,2@2.2 end @500"),
        case("acknowledged while it was on hold", "open A of client A open B of client A P1,2,3,4,5 A<2@1 A<3@1.2 A<5@10 A<3@20 A ack 3@20.1 A<3@40 A ack 2,5@41 end @500", "V:ORDER_GAP L:LOST_OVERTAKEN L:REDELIVERY_STALL"),
        case("nacked, redelivered and left alone", f"{UNACKED} A nack 1@1.5 A<1,2@2 A ack 2@2.2 end @500", "L:UNACKED_STALL@187"),
        case("acknowledged once, it is never pending again", "P1 A<1@1 A ack 1@1.1 A<1@5 end @500"),
        case("the key moves on, not long enough", f"{UNACKED} P3@100 ok3=m3@100.1 A<3@150 A ack 3@150.1 end @195", "L:UNACKED_STALL"),
        case("the key moves on without it", f"{UNACKED} P3@100 ok3=m3@100.1 A<3@150 A ack 3@150.1 P4@200 ok4=m4@200.1 A<4@250 A ack 4@250.1 end @500", "L:UNACKED_STALL@186"),
        case("its lease was prolonged", f"{UNACKED} A modack 1 100s@1.5 end @221"),
        case("a shorter lease proves nothing", f"{UNACKED} A modack 1 10s@1.5 end @181"),
        case("too early for a dead letter", f"{UNACKED} end @500", "L:UNACKED_STALL", dead_letter_max_attempts=5),
        case("beyond the window", "P1,2,3 A<1,2,3@1 A ack 2,3@1.2 end @500", "L:UNACKED_STALL", window=2),
        case("not verified", f"{UNACKED} end @500", unacked_deadline_s=inf),
    ],
)  # fmt: skip
def test_unacknowledged_messages_are_redelivered(one: Case) -> None:
    one.check()


def test_a_stall_is_reported_once_per_stall() -> None:
    verifier = Verifier(Rules())
    ticks = " ".join(f"open T{t} of client A@{t}" for t in range(100, 1000, 50))
    found = observe(verifier, history(f"{STALLED} {ticks}"))
    assert words(found, times=True) == {"L:REDELIVERY_STALL@122"}
    assert len(found) == 1


def test_stuck_and_lost_are_reported_once() -> None:
    ticks = " ".join(f"open T{t} of client A@{t}" for t in range(100, 1000, 50))
    found = findings(f"P1,2,3,4 A<1@1 A<3@1.1 A ack 1,3@1.2 {ticks}", Rules())
    assert sorted(f.kind for f in found) == ["LOST_OVERTAKEN", "ORDER_GAP", "STUCK"]


def test_what_is_stuck_and_its_proof() -> None:
    finding = only(f"{FIRST_DONE} end @500", "STUCK")
    assert finding.facts.items() >= {"seqs": (2, 3), "count": 2, "epoch": "e1", "since_t": 1.0, "seconds": 120.0}.items()
    assert finding.witnesses == (4, 5, 8)  # 2 invoked and confirmed, the last delivery
    assert finding.assumptions == {"delivery_deadline_s": 120.0}


def test_what_is_lost_and_its_proof() -> None:
    finding = only("P1,2,3 A<1@1 A<3@1.1 end @500", "LOST_OVERTAKEN", unacked_deadline_s=inf)
    assert (
        finding.facts.items()
        >= {
            "seq": 2,
            "epoch": "e1",
            "by": 3,
            "by_epoch": "e1",
            "since_t": 1.1,
        }.items()
    )
    assert finding.witnesses == (4, 5, 9)


def test_what_a_stalled_run_has_pending_and_its_proof() -> None:
    finding = only(f"{STALLED} end @500", "REDELIVERY_STALL")
    assert finding.facts.items() >= {"target": 3, "epoch": "e1", "since_t": 2.0, "seconds": 120.0}.items()
    assert finding.witnesses == (10, 14)
    assert (finding.doubt, finding.assumptions) == ("", {"stall_deadline_s": 120.0, ONE_RECORD_PER_ID: 1.0})


def test_what_is_overdue_and_its_proof() -> None:
    finding = only("P1,2,3 A<1,2,3@1 A ack 2@1.3 A nack 1,3@2 end @500", "UNACKED_STALL")
    assert finding.facts.items() >= {"seqs": (1, 3), "count": 2, "epoch": "e1", "since_t": 66.0, "seconds": 120.0}.items()
    assert finding.witnesses == (8, 10)
    assert finding.assumptions == {"ack_deadline_s": 60.0, "unacked_deadline_s": 120.0}


def test_why_a_stall_is_in_doubt() -> None:
    broke = only(f"{STALLED} close A@3 open A of client A@4 end @500", "REDELIVERY_STALL")
    removed = only(f"{STALLED} end @500", "REDELIVERY_STALL", dead_letter_max_attempts=2)
    assert (broke.doubt, removed.doubt) == (LOST, DEAD_LETTER)


def test_deadlines_of_no_length_come_to_an_end() -> None:
    """Another key is held, so that the clock begins anew again and again at the same moment."""
    assert "L:STUCK" in say("P1 A<1@1 on k2 P1@2 ok1=k2m1@2.1 end @50", delivery_deadline_s=0)


REFUSED = "P1 a<1@1 a nack 1@1.1"
"""By push, where a message may be dead-lettered at any time, and unseen."""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{REFUSED} end @600", True),
        (f"{REFUSED} end @7200", True),
        (f"{REFUSED} dlq m1@5000 end @7200", False),
        (f"{REFUSED} b<1@5000 b ack 1@5000.1 end @7200", False),
        (f"{REFUSED} b<1@5000 b nack 1@5000.1 end @9000", True),
        (f"{REFUSED} seek 5@5000 end @7200", False),
        (f"{REFUSED} a ack 1@5000 end @7200", False),
    ],
)  # fmt: skip
def test_what_may_have_been_dead_lettered_is_pending_until_it_is_known(line: str, expected: bool) -> None:
    """However long nothing happens: that the key is idle says nothing about it."""
    assert pending(line, mode=PUSH, dead_letter_max_attempts=5) is expected


def test_so_is_what_may_have_been_lost_with_streams() -> None:
    lost = " ".join(f"open A{t} of client A@{t} close A{t}@{t}.5" for t in range(2, 6))
    assert pending(f"P1 A<1@1 A nack 1@1.1 {lost} end @7200", dead_letter_max_attempts=5)


@pytest.mark.parametrize(("end_t", "expected"), [(5000, True), (5000.1, False)])
def test_it_is_pending_until_it_is_older_than_the_retention(end_t: float, expected: bool) -> None:
    assert (
        pending(f"{REFUSED} pull b@2000 end @{end_t}", mode=PUSH, dead_letter_max_attempts=5, message_retention_s=5000) is expected
    )


def test_what_has_left_its_window_is_pending_as_long_as_its_delivery_is_remembered() -> None:
    beyond = " ".join(f"P{seq}@{seq} ok{seq}=m{seq}@{seq}.1 r{seq}<{seq}@{seq}.5 r{seq} ack {seq}@{seq}.6" for seq in range(2, 5))
    assert pending(f"P1@0 ok1=m1@0.1 a<1@1 a nack 1@1.1 {beyond} end @7200", mode=PUSH, dead_letter_max_attempts=5, window=2)
