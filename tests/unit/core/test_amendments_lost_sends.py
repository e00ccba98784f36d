"""What may have been sent and lost is no skip if it was acknowledged before; with a dead-letter policy no skip of a run is certain.

What would break an implementation that looks for `closed` between two deliveries: the other stream whose end is noticed after the
delivery, or before the predecessor that was sent earlier; a lost pull that is noticed late; an acknowledgement that came too late; a
message behind the acknowledged ones; the end of the run with nothing after it.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import PULL, PUSH, Definite, across, definitely, legal, rules_of, wrong

FOUR = "P1,2,3,4,5 A<1,2,3,4@1 A ack 1,3,4@1.4 A nack 2@1.5"  # 2 has to be redelivered, and 3 and 4 behind it
A1, A2 = "open A1 of client A open A2 of client A", "open A2 of client A@2.5"
TWO = f"{A1} P1,2,3,4,5 A1<1,2,3,4@1 A1 ack 1,3,4@1.4 A1 nack 2@1.5"  # the same, with two streams of the client
POLICY = {"dead_letter_max_attempts": 5}
BATCH = "pull b1@0.9 b1<1,2,3@1 b1 ack 1,2,3@1.1 close b1@1.2"  # settled long before the next response
AGAIN = f"{BATCH} pull b2@30 b2<1@30.1 b2 ack 1@30.2 close b2@30.3"  # back to 1: 2 and 3 must be sent again


@pytest.mark.parametrize(
    "one",
    [
        legal("the stream of the run broke", f"{FOUR} A<2@2 A ack 2@2.1 close A@2.2 {A2} A2<5@4"),
        legal("the key goes on at another client", f"{FOUR} A<2@2 A ack 2@2.1 close A@2.2 B<5@4"),
        legal("the other stream of the client broke", f"{TWO} A1<2@2 A1 ack 2@2.1 close A2@3 A1<5@4"),
        # 3 and 4 were sent on A2 and were under way for some seconds; 5 overtook them on A1
        legal("the break of the other stream is noticed after the delivery", f"{TWO} A1<2@2 A1 ack 2@2.1 A1<5@4 close A2@4.5"),
        # 2 itself was under way for some seconds, while 3 and 4 were lost with A2
        legal("the break of the other stream is noticed before the predecessor came", f"{TWO} close A2@1.8 A1<2@2 A1 ack 2@2.1 A1<5@4"),
        legal("a stream opened and broke in between", f"{TWO} A1<2@2 A1 ack 2@2.1 open A3 of client A@2.5 close A3@3 A1<5@4"),
        legal("two breaks", f"{FOUR} A<2@2 A ack 2@2.1 close A@2.2 {A2} close A2@3 open A3 of client A@3.1 A3<5@4"),
        legal("the break came in a second run", f"{FOUR} A<2@2 A<3@2.1 A<4@2.2 A ack 2@2.3 A<2@20 close A@20.2 open A2 of client A@20.5 A2<5@21"),
        legal("the acknowledgement was on its way", f"P1,2,3,4,5 A<1,2,3,4@1 A ack 1@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 close A@2.2 {A2} A ack 3,4@3.8 A2<5@4"),
        legal("nothing was lost but what had been acknowledged", f"P1,2,3,4,5 A<1,2,3,4@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 close A@2.2 {A2} A2<4,5@4"),
        legal("no delivery comes after it", f"P1,2,3,4 A<1,2,3,4@1 A ack 1,3,4@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 close A@2.2 {A2} end @500"),
        legal("a run ends with a lost pull", f"P1,2,3 {AGAIN} pull b3@40 lose b3@45 pull b4@46 close b4@480 end @500", mode=PULL),
        legal("two pulls were lost", f"P1,2,3,4 {AGAIN} pull b3@40 lose b3@45 pull b4@46 lose b4@50 pull b5@80 b5<4@80.1", mode=PULL),
        legal("the lost pull is noticed after the next response", f"P1,2,3,4 {AGAIN} pull b3@40 pull b4@60 b4<4@60.1 lose b3@65", mode=PULL),
        legal("the lost pull was waiting since before the run", f"P1,2,3,4 {BATCH} pull b0@29 pull b2@30 b2<1@30.1 b2 ack 1@30.2 close b2@30.3 lose b0@50 pull b4@60 b4<4@60.1", mode=PULL),
        legal("a lost pull and a dead-letter policy", f"P1,2,3,4 {AGAIN} pull b3@40 lose b3@45 pull b4@60 b4<4@60.1", mode=PULL, **POLICY),
        legal("lost before what another clock was ahead with", "P1@0 P2@0 P3@0 P4@0 ok1=m1@0.1 ok2=m2@0.1 ok3=m3@0.1 ok4=m4@0.1 pull a@9 a<1@10 a<2@10 a<3@10 a ack 1,2,3@10.1 pull b@20 b<1@21 b<2@21 b ack 1,2@21.1 pull l@21.2 lose l@70 pull c@90 c<2@95 c ack 2@95.1 pull d@90 d<4@95.3 d ack 4@95.4 end @150", mode=PULL, clock_error_s=1.0, delivery_delay_max_s=0.3, ack_lag_max_s=1.0),
    ],
)  # fmt: skip
def test_what_was_acknowledged_may_have_been_lost(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("without a break", f"{FOUR} A<2@2 A ack 2@2.1 A<5@4", "V:REDELIVERY_SKIP"),
        wrong("4 was not acknowledged", f"P1,2,3,4,5 A<1,2,3,4@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 close A@2.2 {A2} A2<5@4", "V:REDELIVERY_SKIP"),
        wrong("4 was acknowledged only after it had been left out", f"P1,2,3,4,5 A<1,2,3,4@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 close A@2.2 {A2} A2<5@4 A ack 4@4.5", "V:REDELIVERY_SKIP"),
        wrong("4 had never come", f"P1,2,3,4,5 A<1,2,3@1 A ack 1,2,3@1.4 close A@2.2 {A2} A2<5@4", "V:ORDER_GAP"),
        wrong("the stream of the delivery breaks afterwards", f"{FOUR} A<2@2 A ack 2@2.1 A<5@4 close A@4.5", "V:REDELIVERY_SKIP"),
        wrong("the other stream broke long before", f"{TWO} close A2@3 A1<2@20 A1 ack 2@20.1 A1<5@21", "V:REDELIVERY_SKIP"),
        wrong("the other stream opened only afterwards", f"{A1} P1,2,3,4,5 A1<1,2,3,4@1 A1 ack 1,3,4@1.4 A1 nack 2@1.5 A1<2@2 A1 ack 2@2.1 A1<5@4 open A3 of client A@4.1 close A3@4.2", "V:REDELIVERY_SKIP"),
        wrong("the run stands still without a break", "P1,2,3,4 A<1,2,3,4@1 A ack 1,3,4@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 end @500", "L:REDELIVERY_STALL"),
        wrong("the run stands still, and 4 was not acknowledged", f"P1,2,3,4 A<1,2,3,4@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 close A@2.2 {A2} end @500", "L:REDELIVERY_STALL|L:UNACKED_STALL"),
        wrong("no pull was lost", f"P1,2,3,4 {AGAIN} pull b3@40 close b3@45 pull b4@60 b4<4@60.1", "V:REDELIVERY_SKIP", mode=PULL),
        wrong("the lost pull began afterwards", f"P1,2,3,4 {AGAIN} pull b4@60 b4<4@60.1 pull b3@60.2 lose b3@65", "V:REDELIVERY_SKIP", mode=PULL),
        wrong("the lost pull was over before the run", f"P1,2,3,4 {BATCH} pull b0@2 lose b0@10 pull b2@30 b2<1@30.1 b2 ack 1@30.2 close b2@30.3 pull b4@60 b4<4@60.1", "V:REDELIVERY_SKIP", mode=PULL),
        wrong("the lost pull had never been acknowledged before", "P1,2,3 pull b1@0.9 b1<1@1 b1 ack 1@1.1 close b1@1.2 pull b2@30 lose b2@35 pull b3@100 b3<3@100.1", "V:ORDER_GAP", mode=PULL),
        wrong("a hole inside a response, after a lost pull", f"P1,2,3 {BATCH} pull b2@30 lose b2@35 pull b3@60 b3<1,3@60.1", "V:PULL_BATCH_ORDER", mode=PULL),
        # a request without an answer is a refusal: 2 would have to be next
        wrong("push: a request that was lost", "P1,2,3 a<1@1 a ack 1@1.1 b<2@20 b ack 2@20.1 c<1@40 c ack 1@40.1 open x of client x@50 lose x@55 d<3@60", "V:REDELIVERY_SKIP", mode=PUSH),
        wrong("push: the request before it is closed", "P1,2,3 a<1@1 a ack 1@1.1 b<2@20 b ack 2@20.1 c<1@40 c ack 1@40.1 close c@50 d<3@60", "V:REDELIVERY_SKIP", mode=PUSH),
        wrong("nothing was lost before what another clock was ahead with", "P1@0 P2@0 P3@0 P4@0 ok1=m1@0.1 ok2=m2@0.1 ok3=m3@0.1 ok4=m4@0.1 pull a@9 a<1@10 a<2@10 a<3@10 a ack 1,2,3@10.1 pull b@20 b<1@21 b<2@21 b ack 1,2@21.1 pull l@21.2 close l@70 pull c@90 c<2@95 c ack 2@95.1 pull d@90 d<4@95.3 d ack 4@95.4 end @150", "V:REDELIVERY_SKIP", mode=PULL, clock_error_s=1.0, delivery_delay_max_s=0.3, ack_lag_max_s=1.0),
    ],
)  # fmt: skip
def test_what_no_loss_explains(one: Definite) -> None:
    one.check()


def test_a_stream_of_another_subscription_explains_nothing() -> None:
    definitely(
        across(("s", f"{FOUR} A<2@2 A ack 2@2.1 A<5@4"), ("t", "B<1,2,3,4@1 B ack 1,2,3,4@1.5 close B@3")), "V:REDELIVERY_SKIP"
    )


# --- dead letters: consistent redelivery is not guaranteed with such a policy --------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        legal("acknowledged 3 is not redelivered", "P1,2,3,4 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2,4@2 A ack 2,4@3 end @500", **POLICY),
        legal("the run stands still", "P1,2,3 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1 end @500", **POLICY),
        legal("only what was not acknowledged is redelivered", "P1,2,3,4,5 A<1,2,3,4@1 A ack 1,3@1.4 A nack 2@1.5 A<2,4,5@2 A ack 2,4,5@3 end @500", **POLICY),
        # the same skip, which a response shows as a hole
        legal("the same inside a response", "P1,2,3,4 pull b1@0.9 b1<1,2,3@1 b1 ack 1,3@1.1 b1 nack 2@1.2 pull b2@30 b2<2,4@30.1", mode=PULL, **POLICY),
        legal("the same in the next response", "P1,2,3,4 pull b1@0.9 b1<1,2,3@1 b1 ack 1,3@1.1 b1 nack 2@1.2 pull b2@30 b2<2@30.1 b2 ack 2@30.2 pull b3@60 b3<4@60.1", mode=PULL, **POLICY),
        legal("push goes on past a refused message", "P1,2 a<1@1 a nack 1@1.1 b<2@20 b ack 2@20.1", mode=PUSH, **POLICY),
        legal("it was seen to leave", "P1,2,3 A<1,2,3@1 A nack 2@1.5 dlq m2@1.9 A<1,3@2 A ack 1,3@3 end @500", **POLICY),
    ],
)  # fmt: skip
def test_a_dead_letter_policy_lifts_consistent_redelivery(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("first deliveries are still in order", "P1@0 P2@0 ok1=m1@0.1 ok2=m2@0.1 A<2@1 A<1@1.1", "V:ORDER_INVERSION", **POLICY),
        wrong("one holder at a time", "P1,2,3 A<1,2@1 A ack 1@1.4 B<3@2", "V:AFFINITY_SPLIT", **POLICY),
        wrong("one response at a time", "P1,2,3 pull b1@0.9 b1<1,2@1 pull b2@1.5 b2<3@1.6", "V:PULL_OVERLAP", mode=PULL, **POLICY),
        wrong("what is nacked once is redelivered", "P1 A<1@1 A nack 1@1.5 end @500", "L:UNACKED_STALL", **POLICY),
        wrong("what was never sent cannot have been dead-lettered", "P1,2 A<1@1 A ack 1@1.1 end @500", "L:STUCK", **POLICY),
    ],
)  # fmt: skip
def test_a_dead_letter_policy_lifts_nothing_else(one: Definite) -> None:
    one.check()


def test_a_message_dead_lettered_before_its_receipt_is_no_divergence() -> None:
    lines = ("s", "P1,2,3 A<1@1 A ack 1@1.1 dlq m2@100 A<3@101"), ("t", "B<1,2,3@1 B ack 1,2,3@1.5")
    definitely(across(*lines, rules=rules_of(**POLICY)))


def test_the_later_messages_of_both_are_still_compared() -> None:
    lines = (
        ("s", "P1@0 P2@0 P3@0 P4@0 ok1=m1@0.1 ok2=m2@0.1 A<1@1 A ack 1@1.1 dlq m2@100 A<3,4@101"),
        ("t", "B<1,2@1 B<4,3@1.5"),
    )
    definitely(across(*lines, rules=rules_of(**POLICY)), "V:ORDER_DIVERGENCE")
