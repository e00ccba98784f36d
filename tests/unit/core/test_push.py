"""Push: one request at a time, and after a failed one the same message or an earlier one."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from prober.core.excuses import DEAD_LETTER
from prober.core.rules import ONE_RECORD_PER_ID, Mode, Rules
from tests.unit.core.cases import PUSH, Case, case, findings, only

REFUSED = "P1,2,3 r1<1@1 r1 nack 1@1.1"


@pytest.mark.parametrize(
    "one",
    [
        case("the next message", f"{REFUSED} r2<2@20 r2 ack 2@20.1", "V:PUSH_ADVANCE_PAST_NACK@20", mode=PUSH),
        case("a known one above it", "P1,2 r1<1@1 r1 ack 1@1.1 r2<2@20 r2 ack 2@20.1 r3<1@40 r3 nack 1@40.1 r4<2@60", mode=PUSH),
        case("the same message", f"{REFUSED} r2<1@20 r2 ack 1@20.1 r3<2@40", mode=PUSH),
        case("an earlier one", "P1,2 r1<1@1 r1 ack 1@1.1 r2<2@20 r2 nack 2@20.1 r3<1@40 r3 ack 1@40.1 r4<2@60", mode=PUSH),
        case("only the next request is bound", f"{REFUSED} r2<1@20 r2 ack 1@20.1 r3<2@40 r3 ack 2@40.1 r4<3@60", mode=PUSH),
        case("refused twice, then passed over", f"{REFUSED} r2<1@20 r2 nack 1@20.1 r3<2@40", "V:PUSH_ADVANCE_PAST_NACK@40", mode=PUSH),
        case("an acknowledgement of it may have been applied", "P1,2 r1<1@1 r1 ack 1@1.1 r2<1@20 r2 nack 1@20.1 r3<2@40", mode=PUSH),
        case("the dead-letter policy may have removed it", f"{REFUSED} r2<2@20", mode=PUSH, dead_letter_max_attempts=5),
        case("a late refusal of a request that was repeated", "P1,2 r1<1@1 r2<1@63 r1 nack 1@64 r2 ack 1@64.5 r3<2@90", "I:PUSH_OVERLAP", mode=PUSH),
        case("the refused one is beyond the window", f"{REFUSED} r2<2@20", "V:PUSH_ADVANCE_PAST_NACK", mode=PUSH, window=1),
        case("after a seek", f"{REFUSED} seek 0@2 r2<2@20", mode=PUSH),
        case("streams may have more in flight", "P1,2,3 A<1@1 A nack 1@1.1 A<2@1.2 A<1,2,3@2"),
        case("a refusal of what was acknowledged before it", "P1,2 r1<1@1 r1 ack 1@1.1 r1 nack 1@1.2 r2<2@20", mode=PUSH),
    ],
)  # fmt: skip
def test_after_a_failed_request(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("one at a time", "P1,2,3 r1<1@1 r1 ack 1@1.1 r2<2@20 r2 ack 2@20.1 r3<3@40", mode=PUSH),
        case("while one is open", "P1,2 r1<1@1 r2<2@2 r2 ack 2@2.1 r1 ack 1@5", "V:PUSH_OVERLAP@2", mode=PUSH),
        case("the same message while it is open", "P1,2 r1<1@1 r2<1@2", "I:PUSH_OVERLAP", mode=PUSH),
        case("right after what was nacked and redelivered", "P1,2,3 a<1@1 a nack 1@1.1 b<1@1.3 b ack 1@1.4 c<2@1.5 d<3@1.5 c ack 2@1.6 d ack 3@1.6", "I:PUSH_OVERLAP V:PUSH_OVERLAP", mode=PUSH),
        case("after an acknowledgement that came to nothing, a slow copy", "P1,2 a<1@1 a ack 1@1.1 c<1@5 b<2@5.9 c ack 1@6.5 b ack 2@6.6", "I:PUSH_OVERLAP", mode=PUSH),
        case("a closed connection answers nothing", "P1,2 r1<1@1 close r1@1.1 r2<2@2", "V:PUSH_OVERLAP", mode=PUSH),
        case("right after the answer", "P1,2 r1<1@1 r1 ack 1@1.1 r2<2@1.2", "I:PUSH_OVERLAP", mode=PUSH),
        case("its deadline may have passed", "P1,2 r1<1@1 r2<1@58", "I:PUSH_OVERLAP", mode=PUSH),
        case("the answer comes after its deadline, and the repetition", "P1,2 r1<1@1 r2<1@63 r2 ack 1@63.1 r1 ack 1@70 r3<2@90", "I:PUSH_OVERLAP@63", mode=PUSH),
        case("the answer comes after its deadline, before the repetition", "P1,2 r1<1@1 r1 ack 1@64 r2<1@65 r2 ack 1@65.1 r3<2@90", "I:PUSH_OVERLAP@65", mode=PUSH),
        case("its deadline has provably passed", "P1,2 r1<1@1 r2<1@67 r2 ack 1@67.1 r3<2@90", mode=PUSH),
        case("passed over after its deadline", "P1,2,3 r1<1@1 r1 ack 1@1.1 r2<2@20 r2 ack 2@20.1 r3<1@40 r4<3@110", "V:REDELIVERY_SKIP", mode=PUSH),
    ],
)  # fmt: skip
def test_overlap(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("a copy of an earlier one, answered at once", "P1,2,3 b<1@1 b ack 1@1.1 c<2@1.3 c ack 2@1.4 a<1@4.9 a ack 1@4.95 d<3@5 d ack 3@5.1 stop @90", "I:PUSH_OVERLAP", mode=PUSH),
        case("a copy of an earlier one, refused", "P1,2,3 b<1@1 b ack 1@1.1 c<2@1.3 c ack 2@1.4 a<1@4.9 a nack 1@5 d<3@5.5 d ack 3@5.6 stop @90", "I:PUSH_OVERLAP", mode=PUSH),
        case("what was refused came for the first time, so nothing behind it was under way", "P1,2,3 b<1@1 b nack 1@1.1 c<2@1.3 c ack 2@1.4 d<1@2 d ack 1@2.1 stop @90", "I:PUSH_OVERLAP V:PUSH_ADVANCE_PAST_NACK", mode=PUSH),
        case("a request was lost, and an earlier one of its message answered", "P1,2,3 a<1@1 a ack 1@1.1 b<2@1.2 c<1@20 c ack 1@20.1 b ack 2@25 d<3@30 d ack 3@30.1 stop @90", "I:PUSH_OVERLAP I:REDELIVERY_SKIP", mode=PUSH),
        case("the earlier one had been answered before", "P1,2,3 a<1@1 a ack 1@1.1 b<2@1.2 b ack 2@15 c<1@20 c ack 1@20.1 d<3@30 d ack 3@30.1 stop @90", "I:PUSH_OVERLAP V:REDELIVERY_SKIP", mode=PUSH),
        case("too late for that", "P1,2,3 b<1@1 b ack 1@1.1 c<2@1.3 c ack 2@1.4 a<1@10 a ack 1@10.1 d<3@16.5 d ack 3@16.6 stop @90", "I:PUSH_OVERLAP V:REDELIVERY_SKIP", mode=PUSH),
    ],
)  # fmt: skip
def test_a_request_takes_its_time_on_the_way(one: Case) -> None:
    one.check()


def test_a_seek_ends_what_a_refusal_binds() -> None:
    assert "PUSH_ADVANCE_PAST_NACK" not in {f.kind for f in findings(f"{REFUSED} seek 0@2 r2<2@20", Rules(mode=Mode.PUSH))}


def test_an_advance_names_what_was_refused_and_its_proof() -> None:
    finding = only(f"{REFUSED} r2<2@20", "PUSH_ADVANCE_PAST_NACK", mode=Mode.PUSH)
    assert finding.facts.items() >= {"seq": 2, "epoch": "e1", "nacked": 1}.items()
    assert finding.witnesses == (8, 11)
    assert finding.assumptions == {ONE_RECORD_PER_ID: 1.0}


def test_why_an_advance_is_in_doubt() -> None:
    acked = only("P1,2 r1<1@1 r1 ack 1@1.1 r2<1@20 r2 nack 1@20.1 r3<2@40", "PUSH_ADVANCE_PAST_NACK", mode=Mode.PUSH)
    policy = only(f"{REFUSED} r2<2@20", "PUSH_ADVANCE_PAST_NACK", mode=Mode.PUSH, dead_letter_max_attempts=5)
    assert (acked.doubt, policy.doubt) == ("?", DEAD_LETTER)


def test_moves_between_settled_requests_are_not_worth_noting() -> None:
    assert findings("P1,2 r1<1@1 r1 ack 1@1.1 r2<2@20", Rules(mode=Mode.PUSH)) == []
