"""Unary pull: one response at a time, consecutive inside, and no hole between responses."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from dataclasses import replace

import pytest

from prober.core.events import Opened
from prober.core.findings import Status
from prober.core.rules import Mode, Rules
from tests.notation import history
from tests.unit.core.cases import PULL, Case, case, definitely, findings, only, rules_of
from tests.verification import verify

BATCH = "P1,2,3,4 pull b1@0.9 b1<1,2,3@1"
DONE = f"{BATCH} b1 ack 1,2,3@1.1"
NACKED = f"{BATCH} b1 ack 1,3@1.1 b1 nack 2@1.2"


@pytest.mark.parametrize(
    "one",
    [
        case("a hole", f"{DONE} pull b2@20 b2<1,3@20.1", "V:PULL_BATCH_ORDER", mode=PULL),
        case("a hole among first deliveries", "P1,2,3 pull b1@0.9 b1<1,3@1", "V:ORDER_GAP", mode=PULL),
        case("a step back", f"{DONE} pull b2@20 b2<2,1,2@20.1", "V:PULL_BATCH_ORDER", mode=PULL),
        case("a repetition", f"{DONE} pull b2@20 b2<1,1,2@20.1", "V:PULL_BATCH_ORDER", mode=PULL),
        case("only what was not acknowledged", f"{NACKED} pull b2@30 b2<2,4@30.1", "V:PULL_BATCH_ORDER", mode=PULL),
        case("a hole at a later time in the same response", f"{DONE} pull b2@20 b2<1@20.1 b2<3@20.2", "V:PULL_BATCH_ORDER", mode=PULL),
        case("consecutive", f"{DONE} pull b2@20 b2<1,2,3,4@20.1", mode=PULL),
        case("a dead letter is no hole", f"{BATCH} b1 nack 1,2,3@1.1 dlq m2@2 pull b2@20 b2<1,3@20.1", mode=PULL),
        case("a dead letter is no step back", f"{BATCH} b1 nack 1,2,3@1.1 dlq m2@2 pull b2@20 b2<3,1@20.1", "V:PULL_BATCH_ORDER", mode=PULL),
        case("a possible dead letter", f"{BATCH} b1 nack 1,2,3@1.1 pull b2@20 b2<1,3@20.1", "I:PULL_BATCH_ORDER", mode=PULL, dead_letter_max_attempts=2),
        case("a repetition is no dead letter", f"{BATCH} b1 nack 1,2,3@1.1 pull b2@20 b2<1,1@20.1", "V:PULL_BATCH_ORDER", mode=PULL, dead_letter_max_attempts=2),
        case("after a message beyond the window", f"{DONE} pull b2@20 b2<1,3@20.1", "V:PULL_BATCH_ORDER", mode=PULL, window=1),
        case("past a hole after a seek", f"{DONE} pull b2@20 b2<1@20.1 seek 0@20.2 b2<3@20.3", mode=PULL),
        case("after a seek", f"{DONE} pull b2@20 b2<1@20.1 seek 0@20.2 b2<1@20.3", mode=PULL),
        case("a hole that a lost response does not explain", "P1,2,3 pull a@0.9 a<1,2,3@1 a ack 2@1.2 a nack 1@1.3 a nack 3@1.4 pull x@5 pull b@5 lose x@6 b<1,3@10", "V:PULL_BATCH_ORDER I:PULL_OVERLAP", mode=PULL),
    ],
)  # fmt: skip
def test_inside_a_response(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("the next batch", f"{DONE} pull b2@20 b2<4@20.1", mode=PULL),
        case("the run after a refusal", f"{NACKED} pull b2@30 b2<2,3,4@30.1", mode=PULL),
        case("the run over two responses", f"{NACKED} pull b2@30 b2<2@30.1 b2 ack 2@30.2 pull b3@60 b3<3,4@60.1", mode=PULL),
        case("the run stops short", f"{NACKED} pull b2@30 b2<2@30.1 b2 ack 2@30.2 pull b3@60 b3<4@60.1", "V:REDELIVERY_SKIP", mode=PULL),
        case("a rewind to before the refused one", f"{NACKED} pull b2@30 b2<1,2,3@30.1", mode=PULL),
        case("a skip of what was acknowledged, by pulls that follow each other", "P1,2 pull b1@0.5 b1<1,2@1 close b1@1.01 b1 ack 1,2@1.02 pull b2@2 b2<1@2.1 close b2@2.11 b2 ack 1@2.2 P3@2.5 ok3=m3@2.55 pull b3@3 b3<3@3.1 close b3@3.11", "I:PULL_OVERLAP V:REDELIVERY_SKIP", mode=PULL),
        case("a lost response", "P1,2,3 pull b1@0.9 b1<1@1 b1 ack 1@1.1 pull b2@1.2 pull b3@70 b3<2,3@70.1", mode=PULL),
    ],
)  # fmt: skip
def test_across_responses(one: Case) -> None:
    one.check()


def test_what_comes_by_another_clock_fills_no_hole_inside_a_response() -> None:
    filled = "P1,2,3,4 pull x@9 pull y@9 pull z@9 x<1@10 x<4@10 y<2@10.2 y<3@10.2 y ack 2@10.3 z<3@10.4 z ack 3@10.5 end @30"
    assert only(filled, "PULL_BATCH_ORDER", mode=PULL, clock_error_s=1.0).status is Status.VIOLATION


@pytest.mark.parametrize(
    "one",
    [
        case("while all of a response is outstanding", f"{BATCH} pull b2@1.5 b2<4@1.6", "V:PULL_OVERLAP@1.6", mode=PULL),
        case("while a part of it is", f"{BATCH} b1 ack 1,2@1.1 pull b2@1.5 b2<4@1.6", "V:PULL_OVERLAP", mode=PULL),
        case("the response is over, its messages are not", f"{BATCH} close b1@1.05 pull b2@1.5 b2<4@1.6", "V:PULL_OVERLAP", mode=PULL),
        case("half-open streams are no excuse", f"{BATCH} pull b2@1.5 b2<4@1.6 close b1@2", "V:PULL_OVERLAP", mode=PULL, close_detection_max_s=5),
        case("the pulls were sent together", "P1,2 pull b1@0.9 pull b2@0.9 b1<1@1 b2<2@1.6", "V:PULL_OVERLAP", mode=PULL),
        case("one of it was refused, the pulls were sent together", "P1,2,3,4 pull b1@0.9 pull b2@0.95 b1<1,2,3@1 b1 nack 3@1.1 b2<3,4@1.2 b1 ack 1,2@2 b2 ack 3,4@2 end @20", "V:PULL_OVERLAP", mode=PULL),
        case("after a refusal", f"{BATCH} b1 nack 1,2,3@1.1 pull b2@1.5 b2<1,2,3@1.6", "I:PULL_OVERLAP", mode=PULL),
        case("acknowledgements under way", f"{DONE} pull b2@1.5 b2<4@1.6", "I:PULL_OVERLAP", mode=PULL),
        case("an acknowledgement under way, after one that had settled", "P1,2,3 pull b1@0.9 b1<1@1 b1 ack 1@1.1 pull b2@90 b2<2@90.1 b2 ack 2@90.2 pull b3@91 b3<3@91.1", "I:PULL_OVERLAP@91.1", mode=PULL),
        case("leases perhaps over", f"{BATCH} pull b2@57 b2<1,2,3@58", "I:PULL_OVERLAP", mode=PULL),
        case("leases provably over", f"{BATCH} pull b2@67 b2<1,2,3@68", mode=PULL),
        case("its lease may be over, and another pull may have been answered earlier", f"{BATCH} pull b2@57 b2<1@58 pull b3@1.2 b3<2,3@58.5", "I:PULL_OVERLAP V:PULL_OVERLAP", mode=PULL),
        case("its lease may be over, and another pull was sent later", f"{BATCH} pull b2@57 b2<1@58 pull b3@58.2 b3<2,3@58.5", "I:PULL_OVERLAP V:PULL_OVERLAP", mode=PULL),
    ],
)  # fmt: skip
def test_overlap(one: Case) -> None:
    one.check()


def test_every_response_is_a_subscriber_of_its_own() -> None:
    finding = only(f"{BATCH} pull b2@1.5 b2<4@1.6", "PULL_OVERLAP", mode=Mode.PULL)
    assert (finding.facts["holder"], finding.facts["subscriber"]) == ("b1", "b2")
    line = "open b1 of client c open b2 of client c P1,2 b1<1@1 b2<2@1.6"
    assert [f.kind for f in findings(line, Rules(mode=Mode.PULL))] == ["PULL_OVERLAP"]


def test_moves_between_settled_responses_are_not_worth_noting() -> None:
    assert findings(f"{DONE} pull b2@20 b2<4@20.1", Rules(mode=Mode.PULL)) == []


def test_a_hole_in_a_response_names_what_is_missing_and_its_proof() -> None:
    finding = only(f"{DONE} pull b2@20 b2<1,3@20.1", "PULL_BATCH_ORDER", mode=Mode.PULL)
    assert (
        finding.facts.items()
        >= {
            "seq": 3,
            "epoch": "e1",
            "message_id": "m3",
            "after": 1,
            "skipped": (2,),
            "skipped_count": 1,
            "subscriber": "b2",
        }.items()
    )
    assert finding.witnesses == (11, 17, 18)


def test_nothing_in_a_response_was_sent_before_the_pull_was_sent() -> None:
    """The pull comes after a rewind elsewhere was received: so its message provably followed that rewind."""
    before = f"{DONE} pull b2@20 b2<1@20.1 b2 ack 1@20.2"
    found = findings(f"{before} pull b3@20.15 b3<4@20.3", Rules(mode=Mode.PULL))
    assert [finding.kind for finding in found if finding.status is Status.VIOLATION] == ["REDELIVERY_SKIP"]
    assert findings(f"{before} pull b3@1.2 b3<4@20.3", Rules(mode=Mode.PULL)) == []


HELD_ON = "P1,2,3,4 pull b1@0.9 pull b2@0.95 b1<1,2@1 pull b3@1.05 b2<3,4@1.1 b1 nack 1@1.2 b3<1,2@2"


@pytest.mark.parametrize(
    "one",
    [
        case("a rewind elsewhere, perhaps before the overlap, takes what was held with it", f"{HELD_ON} end @30", "V:PULL_OVERLAP I:PULL_OVERLAP", mode=PULL),
        case("an earlier answer ended nothing of what it took", "P1,2,3 pull b0@0.5 b0<1@0.6 b0 ack 1@0.7 pull b1@20 pull b2@20 b1<1,2@21 pull b3@21.05 b2<3@21.1 b3<1@22", "V:PULL_OVERLAP I:PULL_OVERLAP", mode=PULL),
        case("by a clock that may be behind, which is not enough", HELD_ON, "V:PULL_OVERLAP", mode=PULL, clock_error_s=0.05),
        case("a rewind to below what was held, which holds it then", "P1,2,3,4 pull b0@0.5 b0<1@0.6 b0 ack 1@0.7 pull b1@20 pull b2@20 b1<2@21 pull b3@21.05 b2<3@21.1 b3<1,2@22", "V:PULL_OVERLAP I:PULL_OVERLAP", mode=PULL),
    ],
)  # fmt: skip
def test_what_a_rewind_takes_from_one_another_one_holds(one: Case) -> None:
    one.check()


def test_pulls_that_are_recorded_with_their_answer_may_have_begun_before_others() -> None:
    begun = {"b": 11.8, "c": 9.0}
    line = "P1,2,3,4 pull a@9 a<1@10.3 a ack 1@10.4 pull b@12.2 b<2,3@12.2 b ack 2,3@12.3 pull c@12.6 c<2@12.6 c ack 2@12.7 pull d@18 d<4@19"
    events = history(line, Mode.PULL)
    recorded = [replace(one, invoked_t=begun.get(one.session)) if isinstance(one, Opened) else one for one in events]
    rules = rules_of(mode=Mode.PULL, delivery_delay_max_s=2.0)
    definitely(verify(rules, recorded, {"s": rules, "t": rules}))
