"""Exactly-once delivery: a confirmed acknowledgement is final."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from typing import Any

import pytest

from prober.core.integrity import RACING
from tests.unit.core.cases import PULL, Case, case, only

EOD: dict[str, Any] = {"exactly_once": True}
CONFIRMED = "P1,2 A<1,2@1 A ack 1,2@1.3 A ackOK 1@1.5"


@pytest.mark.parametrize(
    "one",
    [
        case("delivered again", f"{CONFIRMED} A<1,2@30", "V:EOD_REDELIVERY_AFTER_ACK@30", **EOD),
        case("explained by a later delivery of its own stream", "open A1 of client A open A2 of client A P1,2,3,4 A1<1,2,3,4@1 A1 nack 1,2,4@2 A1<2@3.2 A2<2@3.3 A1<4@3.32 A2<1@3.4 stop @100", "V:REDELIVERY_SKIP", exactly_once=True),
        case("each time", f"{CONFIRMED} A<1,2@30 A ack 1,2@30.2 A<1,2@60", "V:EOD_REDELIVERY_AFTER_ACK@30 V:EOD_REDELIVERY_AFTER_ACK@60", **EOD),
        case("on another stream", f"{CONFIRMED} B<1,2@30", "V:EOD_REDELIVERY_AFTER_ACK", **EOD),
        case("perhaps sent before the confirmation", f"{CONFIRMED} A<1,2@6.5", "I:EOD_REDELIVERY_AFTER_ACK", **EOD),
        case("perhaps sent before the confirmation, and then once more", "P1 A<1@1 A ack 1@1.3 A ackOK 1@1.5 A<1@6.4 A ack 1@6.5 A<1@30", "I:EOD_REDELIVERY_AFTER_ACK V:EOD_REDELIVERY_AFTER_ACK", **EOD),
        case("confirmed while it was on hold", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A1<3@2 A1 nack 1@2.1 A1<1@3 A1 ack 1@3.1 A1 ackOK 1@3.3 A1<2,3@3.4 A1 ack 2,3@3.6 close A2@4 A1<1@30", "I:ORDER_GAP I:EOD_REDELIVERY_AFTER_ACK", close_detection_max_s=30, **EOD),
        case("provably sent after the confirmation", f"{CONFIRMED} A<1,2@6.6", "V:EOD_REDELIVERY_AFTER_ACK", **EOD),
        case("within the clock error", f"{CONFIRMED} A<1,2@7", "I:EOD_REDELIVERY_AFTER_ACK", clock_error_s=1, **EOD),
        case("on a stream that opened after the confirmation", f"{CONFIRMED} close A@1.6 open B of client A@1.7 B<1,2@2", "V:EOD_REDELIVERY_AFTER_ACK", **EOD),
        case("the first confirmation counts", f"{CONFIRMED} A ackOK 1@20 A<1,2@22", "V:EOD_REDELIVERY_AFTER_ACK", **EOD),
        case("pull: asked for after the confirmation", "P1 pull b1@0.9 b1<1@1 b1 ack 1@1.1 b1 ackOK 1@1.2 pull b2@20 b2<1@20.1", "V:EOD_REDELIVERY_AFTER_ACK", mode=PULL, **EOD),
        case("not confirmed", "P1,2 A<1,2@1 A ack 1,2@1.3 A<1,2@30", **EOD),
        case("another one is confirmed", f"{CONFIRMED} A<2@30", **EOD),
        case("without exactly-once delivery", f"{CONFIRMED} A<1,2@30"),
        case("beyond the window", "P1,2,3 A<1@1 A ack 1@1.3 A ackOK 1@1.5 A<2,3@2 A<1@30 A<2,3@30.1", "V:EOD_REDELIVERY_AFTER_ACK", window=1, **EOD),
        case("a seek back unconfirms", f"{CONFIRMED} seek 10@3 A<1,2@30", **EOD),
        case("a confirmation while it settles may be of before", "P1,2 A<1,2@1 A ack 1,2@1.3 seek 10@2 A ackOK 1@3 A<1,2@30", **EOD),
        case("a confirmation while it settles, of a key that appeared meanwhile", "seek 10@2 P1@3 ok1=m1@3.1 A<1@4 A ack 1@4.1 A ackOK 1@4.5 A<1@30", **EOD),
        case("a confirmation when it has settled", "P1,2 A<1,2@1 A ack 1,2@1.3 seek 10@2 A<1@13 A<2@13.1 A ack 1@14 A ackOK 1@15 A<1,2@30", "V:EOD_REDELIVERY_AFTER_ACK@30", **EOD),
    ],
)  # fmt: skip
def test_redelivery_after_confirmation(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("on its own stream", "P1 A<1@1 A<1@20", "V:EOD_REDELIVERY_WHILE_OUTSTANDING@20", **EOD),
        case("to another subscriber", "P1 A<1@1 B<1@20", "I:AFFINITY_SPLIT V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        case("each time", "P1 A<1@1 A<1@20 A<1@40", "V:EOD_REDELIVERY_WHILE_OUTSTANDING@20 V:EOD_REDELIVERY_WHILE_OUTSTANDING@40", **EOD),
        case("what comes behind it is dropped with it", "P1,2 A<1,2@1 A<1,2@20", "V:EOD_REDELIVERY_WHILE_OUTSTANDING@20", **EOD),
        case("another was refused, this one was above it", "P1,2 A<1,2@1 A nack 1@1.5 A<1,2@20", **EOD),
        case("another was refused, this one was below it", "P1,2 A<1,2@1 A nack 2@1.5 A<1,2@20", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        case("it was refused", "P1 A<1@1 A nack 1@1.5 A<1@2", **EOD),
        case("it was acknowledged, which may have been lost", "P1 A<1@1 A ack 1@1.5 A<1@20", **EOD),
        case("its lease may be over", "P1 A<1@1 A<1@56", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        case("its lease was shortened", "P1 A<1@1 A modack 1 10s@1.5 A<1@12", **EOD),
        case("its lease was prolonged, which may be unheard", "P1 A<1@1 A modack 1 100s@1.5 A<1@60", **EOD),
        case("a race decides nothing: a rewind seen beside it may have been to below it", "open A1 of client A open A2 of client A P1@0 info1@0.1 P1'gen1@0.2 ok'gen1=m1@0.3 P2@0.4 ok2=m2@0.5 A1<m1(1)@1 A1 ack 1@1.1 A1<c(1)@1.2 A2<2@1.3 A2 nack 2@1.5 A2<2@2 A1<c(1)@2.1 A1 ack 1@2.2 A2 ack 2@2.2", **EOD),
        case("its stream broke", "P1 A<1@1 close A@2 B<1@3", **EOD),
        case("a run that follows cannot have begun before", "P1,2,3 A<1,2,3@1 A<3@2 A nack 1@2.5 B<1,2,3@3", "I:AFFINITY_SPLIT V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        case("a run that follows may have begun before, and then its holder is passed over", "P1,2,3 A<1,2,3@1 A nack 1@1.5 A<3@2 B<1,2,3@3", "I:AFFINITY_SPLIT V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        case("its stream broke soon after", "P1 A<1@1 B<1@3 close A@20", "I:AFFINITY_SPLIT", close_detection_max_s=30, **EOD),
        case("an earlier acknowledgement may be under way, and only the latest acknowledgement id is valid", "P1 A<1@1 A ack 1@1.1 A<1@3 A<1@12", "V:EOD_REDELIVERY_WHILE_OUTSTANDING@12", **EOD),
        case("an acknowledgement of an earlier delivery ends no later hold", "open A1 of client A open A2 of client A@21.5 P1 A1<1@1 A1 ack 1@10 A2<1@22 A1<1@24", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        case("pull: in the next response", "P1 pull b1@0.9 b1<1@1 pull b2@19 b2<1@20", "I:PULL_OVERLAP V:EOD_REDELIVERY_WHILE_OUTSTANDING", mode=PULL, **EOD),
        case("after a seek", "P1 A<1@1 seek 5@2 A<1@20", **EOD),
        case("while a seek settles", "P1 A<1@1 seek 50@2 A<1@20 A<1@30", "I:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        case("without exactly-once delivery", "P1 A<1@1 A<1@20"),
        case("the first of the run may have been dead-lettered", "P1,2,3 A<1,2@1 A nack 1@1.5 A<2@3", dead_letter_max_attempts=5, **EOD),
        case("nothing is dead-lettered", "P1,2,3 A<1,2@1 A nack 1@1.5 A<2@3", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
    ],
)  # fmt: skip
def test_redelivery_while_outstanding(one: Case) -> None:
    one.check()


TWO = "open A1 of client A open A2 of client A"
BESIDE: dict[str, Any] = {"exactly_once": True, "close_detection_max_s": 30.0}


@pytest.mark.parametrize(
    "one",
    [
        case("what was lost comes on a third stream", f"{TWO} P1,2,3 close A2@2.4 open A4 of client A@2.8 A1<3@3.3 A4<2@3.5 A4<3@5.6 A4 ack 3@5.7 close A1@6.7 open A5 of client A@7 A5<1@8.844 A4<2@8.844 A4<3@9 A5 ack 1@10 A4 ack 2,3@10 end @200", "I:ORDER_GAP", **BESIDE),
        case("what was lost and came is redelivered", f"{TWO} P1,2 A1<2@1.7 close A2@5 A1<1@5.5 A1<2@20 open A3 of client A@21 A3<1@66 A1<2@67 A3 ack 1@68 A1 ack 2@69 end @200", "I:ORDER_GAP", **BESIDE),
        case("what was lost comes, on a slower stream, behind what it brings along", f"{TWO} P1,2 A1<2@3.3 close A2@5 open A3 of client A@21.8 A3<2@24.2 A1<1@24.3 A1 ack 1@25 A3 ack 2@26 end @200", "I:ORDER_GAP", **BESIDE),
        case("what was lost comes while what overtook it is waited for", f"{TWO} open A3 of client A@2.5 P1@0 ok1=m1@0.5 P2@7.9 ok2=m2@8 A3<2@12.5 close A1@14.2 A2<1@16.7 A3<2@19.8 A2 ack 1@20 A3 ack 2@21 end @200", **BESIDE),
        case("what was refused below is lost", f"{TWO} P1,2 A1<1@1 A1<2@1.1 A1 nack 1@2 A1<2@9.8 close A2@18.9 A1<1,2@20 A1 ack 1,2@21 end @200", **BESIDE),
        case("what was lost below is lost again", f"{TWO} P1,2 A1<2@1.7 close A2@5 open A3 of client A@6 A1<2@9 close A3@12 A1<1,2@20 A1 ack 1,2@21 stop @90", "I:ORDER_GAP", **BESIDE),
        case("what was lost below came and was confirmed since", f"{TWO} P1@0 ok1=m1@0.05 A2<1@1.2 A2 ack 1@2.6 P2@2.61 ok2=m2@2.66 open A3 of client A@2.654 P3@2.78 ok3=m3@2.8 P4@3.14 A2 ackOK 1@3.2 ok4=m4@3.6 A2<3@4.5 A3<4@7.8 A2<2@10.3 A2 ack 2@10.7 A2 ackOK 2@12.7 A2<4@13.6 A2 ack 4@13.8 A3<3@14.6 A3 ack 3@15 close A1@19.1 end @160", "I:ORDER_GAP", **BESIDE),
        case("a run on one stream that another had come further than", f"{TWO} P1,2,3 A1<1@1 A1 ack 1@1.1 A1 ackOK 1@1.2 A2<2@1.3 A2 nack 2@1.5 A1<2@2 A1<3@2.1 A2<3@2.2 A1 ack 2,3@3 end @200", **BESIDE),
        case("what comes first on a slow stream was sent before a run", f"{TWO} P1@0 ok1=m1@0.05 A1<1@2.8 P2@3.5 ok2=m2@3.6 P3@4.4 ok3=m3@4.5 A1 nack 1@5 A1<1@6.5 A2<2@7.2 A1<2@7.5 A1<3@7.6 A2<3@8.9 A1 ack 1,2,3@10 end @200", **BESIDE),
        case("what comes on a slow stream was sent before a run, and what follows it there too", f"{TWO} P1@0 ok1=m1@0.05 A1<1@2.8 P2@3.5 ok2=m2@3.6 P3@4.4 ok3=m3@4.5 A1 nack 1@5 A1<1@6.5 A1<2@6.6 A1<3@6.7 A2<2@7.2 A2<3@7.3 A1 ack 1,2,3@10 end @200", **BESIDE),
        # nothing below can have been released
        case("there is nothing below", f"{TWO} P1 A1<1@1 A1<1@20 A1 ack 1@21 close A2@25 end @200", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **BESIDE),
        case("what is below was confirmed long before", f"{TWO} P1,2 A1<1@1 A1 ack 1@1.2 A1 ackOK 1@1.5 A1<2@10 A1<2@20 A1 ack 2@21 close A2@25 end @200", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **BESIDE),
        case("all below was confirmed long before, and is forgotten as held", "open A1 of client A P1,2,3,4,5 A1<1,2,3,4@1 A1 ack 1,2,3,4@1.5 A1 ackOK 1,2,3,4@1.6 A1<5@10 open A2 of client A@11 A1<5@20 A1 ack 5@21 close A2@25 end @200", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **BESIDE),
        case("all but one below was confirmed long before", "open A1 of client A P1,2,3,4,5 A1<1,2,3,4@1 A1 ack 1,2,3,4@1.5 A1 ackOK 1,2,4@1.6 A1<5@10 open A2 of client A@11 A1<5@20 A1 ack 5@21 close A2@25 end @200", **BESIDE),
        case("what is below is held on the very stream", f"{TWO} P1,2 A1<1@1 A1<2@10 A1<2@20 A1 ack 1,2@21 close A2@25 end @200", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **BESIDE),
        case("no stream breaks", f"{TWO} P1,2 A1<1@1 A1<2@1.1 A1 nack 1@2 A1<2@9.8 A1<1,2@20 A1 ack 1,2@21 end @200", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **BESIDE),
    ],
)  # fmt: skip
def test_what_is_below_may_have_been_sent_again_on_a_stream_that_broke(one: Case) -> None:
    one.check()


def test_what_was_outstanding_and_its_proof() -> None:
    finding = only("P1 A<1@1 B<1@20", "EOD_REDELIVERY_WHILE_OUTSTANDING", exactly_once=True)
    assert finding.facts.items() >= {"seq": 1, "epoch": "e1", "message_id": "m1", "subscriber": "B", "holder": "A"}.items()
    assert finding.witnesses == (5, 6)


def test_it_names_the_message_and_its_proof() -> None:
    finding = only(f"{CONFIRMED} A<1,2@30", "EOD_REDELIVERY_AFTER_ACK", exactly_once=True)
    assert finding.facts.items() >= {"seq": 1, "message_id": "m1", "confirmed_t": 1.5}.items()
    assert finding.witnesses == (6, 10, 11)  # delivered, confirmed, delivered again
    assert only(f"{CONFIRMED} A<1,2@6.5", "EOD_REDELIVERY_AFTER_ACK", exactly_once=True).doubt == RACING
