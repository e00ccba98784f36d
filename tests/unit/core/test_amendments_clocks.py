"""A definite verdict survives every shift of the recorders within the clock error, and one recorder's own order needs no clock.

What would break an implementation that adds the error to the comparisons of the order rules only: an acknowledgement, a refusal or a
break that is recorded after what it allowed; a lease that ends on another clock; a delivery that is recorded before its publish; and one
that adds it everywhere no longer sees a swap on one stream.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import PULL, PUSH, Case, Definite, across, case, definitely, legal, wrong

SKEWED = {"clock_error_s": 1.0}
PROMPT = {"delivery_delay_max_s": 0.05}  # so that only the clocks can explain a late message
TWO = "open A1 of client A open A2 of client A P1,2,3,4"
RUN = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 D<1,2@20 D ack 2@20.2"
LATER = "P1@0 ok1=m1@0.1 P2@33 ok2=m2@33.1"


@pytest.mark.parametrize(
    "one",
    [
        # order
        legal("two subscribers, the clock of the second behind", "P1,2 A<1@1.5 A ack 1@1.55 B<2@2 skew B -0.8", **SKEWED),
        legal("the same, with prompt deliveries", "P1,2 A<1@1.5 A ack 1@1.55 B<2@2 skew B -0.8", **SKEWED, **PROMPT, ack_lag_max_s=0.05),
        legal("two streams of a client", f"{TWO} A1<1@1 A2<2@1.1 A1<3@1.2 A2<4@1.3 skew A2 0.8", **SKEWED, **PROMPT),
        legal("a run over two streams of a client", f"{TWO} A1<1@1 A2<2@1.1 A1<3@1.2 A1<1@20 A2<2@20.1 A1<3@20.2 A2<4@20.3 skew A2 0.8", **SKEWED, **PROMPT),
        legal("pull", "P1,2,3 pull b@10 b<1,2@10.5 b ack 1,2@10.6 pull c@26 c<3@26.2 skew c -0.8", mode=PULL, **SKEWED),
        legal("two publishers", "P1@0 ok1=m1@0.3 P1[e2]@0.8 ok1=n1@0.9 A<n1(1)@2 A<m1(1)@2.1", **SKEWED),
        legal("a record of what was confirmed in another region, by a clock ahead", "P1/a@0 ok1=a1@0.1 P2/a@0.2 ok2=a2@0.3 P1[e2]/a@3 info1@3.1 P1'gen1[e2]/b@3.2 ok'gen1=b1@3.3 P2[e2]/a@3.4 ok2=b2@3.5 P3[e2]/a@3.6 ok3=b3@3.7 pull w@7 w<a1(1)@8 w ack 1@8.1 pull x@9 pull y@9 x<s1(1)[e2]@10 x<b2(2)[e2]@10 y<a2(2)@10.2 y ack 2@10.3 end @40", mode=PULL, **SKEWED),
        legal("two epochs of which no baseline is known", "P1@0 ok1=m1@0.1 a<1@1 a ack 1@1.1 P1[e2]@10 ok1=n1@10.1 P1[e3]@20 ok1=o1@20.1 c<o1(1)[e3]@30 c ack 1@30.1 b<n1(1)[e2]@30.5 b ack 1@30.6", mode=PUSH, subscription_predates_first_publish=False, **SKEWED),
        # pull responses
        legal("a response of second copies, by a clock ahead", "P1,2,3,4 pull x@9 pull y@9 pull z@9 x<1~5@10 x<4~6@10 y<2~2@10.2 y<3~3@10.2 y<4~4@10.2 y ack 2,3,4@10.3 z<1~1@10.4 z ack 1@10.5 end @30", mode=PULL, **SKEWED),
        legal("a response of a message and a second copy of one before it", "P1,2 pull x@9 pull y@9 pull z@9 x<2~5@10 x<1~6@10 x nack 1@10.1 z<1~6@10.2 z ack 1@10.3 y<1~4@10.4 y<2~5@10.4 y ack 1,2@10.5 end @30", mode=PULL, **SKEWED),
        legal("what waited came long before what did not", "P1@0 P2@0 P3@0 ok1=m1@0.1 ok2=m2@0.1 ok3=m3@0.1 P1[e2]@10 ok1=n1@10.1 P2[e2]@10.2 ok2=n2@10.3 P3[e2]@10.4 ok3=n3@10.5 pull w@49 w<1@50 w ack 1@50.1 pull a@62 pull b@62 pull c@62 b<n2(2)[e2]@63.9 b ack 2@63.95 c<n1(1)[e2]@64.5 c ack 1@64.6 a<x3(3)@65 a<n3(3)[e2]@65 a ack 3@65.1 end @80", mode=PULL, message_retention_s=60, **SKEWED),
        legal("what was sent last has no certain place", "P1@0 P2@0.1 P3@0.2 ok1=m1@0.3 ok2=m2@0.3 ok3=m3@0.3 pull a@9 pull b@9 pull c@9 pull d@9 pull g@9 pull e@9 a<1@10 a ack 1@10.1 d<x2(2)@10.2 d ack 2@10.25 g<y3(3)@10.3 b<2@10.5 b ack 2@10.55 g nack 3@10.6 c<3@10.7 c<x2(2)@10.7 c ack 3@10.8 c nack 2@10.8 e<y3(3)@11.5 e ack 3@11.6 P4@13 ok4=m4@13.1 pull f@40 f<4@41 f ack 4@41.1 end @60", mode=PULL, delivery_delay_max_s=0.1, ack_lag_max_s=0.05, **SKEWED),
        # integrity
        legal("delivered before it was published", "P1@1 ok1=m1@1.05 A<1@1.1 skew P 0.8", **SKEWED),
        legal("all of them, of two epochs", "P1@1 ok1=m1@1.05 P2@1.1 ok2=m2@1.15 P1[e2]@1.2 ok1=n1@1.25 A<1@1.1 A<2@1.2 A<n1(1)@1.3 skew P 0.8", **SKEWED),
        legal("delivered long before it was confirmed", "P1@1 ok1=m1@1.05 A<1@1.1 skew P 0.95 end @200", **SKEWED, unacked_deadline_s=500),
        # holds
        legal("an acknowledgement recorded after the move that it allowed", "P1,2,3 A<1,2@11 A ack 1,2@11.5 B<3@11.7 skew A 0.8", **SKEWED),
        legal("a refusal recorded after the move that it allowed", "P1,2,3 A<1,2@11 A nack 1@11.5 B<1,2,3@11.7 skew A 0.8", **SKEWED),
        legal("the end of a stream recorded after the move that it allowed", "P1,2,3 A<1,2@11 close A@11.5 B<1,2,3@11.7 skew A 0.8", **SKEWED),
        legal("a stream that ended above, recorded late", "P1,2,3 A<1,2@11 A ack 1@11.3 close A@11.5 B<3@11.7 skew A 0.8", **SKEWED),
        legal("a shorter lease recorded after the move that it allowed", "P1,2,3 A<1,2@11 A ack 1@11.1 A modack 2 0s@11.5 B<3@11.7 skew A 0.8", **SKEWED),
        legal("a lease that may be over by the other clock", "P1,2,3 A<1,2@11 A ack 1@11.4 B<3@65.5", **SKEWED),
        # D keeps 1 of its run for long; 3 goes to B as soon as it is acknowledged; then everything begins again at A
        legal("what is held came after it, by the other clock", f"{RUN} D ack 1@39.75 B<3@39.8 A<1@39.9 A<2@39.95 A ack 1,2@44 skew D 0.25 skew B 0.9", **SKEWED),
        legal("sent before the key moved, by the other clock", f"{LATER} B<1@1 B ack 1@1.1 A<1@34.5 A<2@34.6 B<2@40 A ack 1,2@44", **SKEWED),
        legal("a pull answered after the batch before was acknowledged", "P1,2,3 pull b@10 b<1,2@10.9 b ack 1,2@11.5 pull c@11.55 c<3@11.7 skew b 0.8", mode=PULL, **SKEWED),
        legal("a request after the answer to the one before", "P1,2 a<1@11 a ack 1@11.5 b<2@11.6 b ack 2@11.7 skew a 0.8", mode=PUSH, **SKEWED),
        legal("a request after the refusal of the one before", "P1,2 a<1@11 a nack 1@11.5 b<1@11.6 b ack 1@11.7 skew a 0.8", mode=PUSH, **SKEWED),
        legal("answered, by the other clock, when it had left the window", "P1,2,3 a<1@11 b<2@12.4 b ack 2@12.6 c<3@12.8 a ack 1@13", mode=PUSH, window=2, ack_lag_max_s=0.5, **SKEWED),
        # exactly-once
        legal("confirmed after it was sent again, by the other clock", "P1,2 A<1@10 A ack 1@10.5 B<1@20.2 B<2@20.3 A ackOK 1@20.0 skew B 0.8", exactly_once=True, **SKEWED, **PROMPT, ack_deadline_s=10),
        legal("delivered before a hole, which has the publish by a clock that is ahead", "P1 A<1@1 A<2@3 hole @6 A ack 2@7", **SKEWED),
        legal("delivered in a hole, and published behind it by a clock that is ahead", "open A of client A hole @3 P1@3.5 ok1=m1@3.6 P2@3.7 ok2=m2@3.8 A<2@4", **SKEWED),
        legal("outstanding by the other clock", "P1,2 A<1@10 A nack 1@10.5 B<1@10.6 B<2@10.7 skew A 0.8", exactly_once=True, **SKEWED),
    ],
)  # fmt: skip
def test_another_clock_explains_it(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("a gap on one stream", "P1,2,3 A<1@1 A<3@1.1 A<2@1.2", "V:ORDER_GAP|V:ORDER_INVERSION", **SKEWED),
        wrong("a gap on one stream at once, however wrong the clocks", "P1,2,3 A<1@1 A<3@1.1 A<2@1.2", "V:ORDER_GAP|V:ORDER_INVERSION", clock_error_s=100.0),
        wrong("a skip on one stream", "P1,2,3,4 A<1,2,3@1 A<2@20 A<4@20.1", "V:REDELIVERY_SKIP", clock_error_s=100.0),
        wrong("a hole inside a response", "P1,2,3 pull b@0.9 b<1,3@1", "V:PULL_BATCH_ORDER|V:ORDER_GAP", mode=PULL, clock_error_s=100.0),
        wrong("a record of what was confirmed in another region, long before", "P1/a@0 ok1=a1@0.1 P2/a@0.2 ok2=a2@0.3 P1[e2]/a@3 info1@3.1 P1'gen1[e2]/b@3.2 ok'gen1=b1@3.3 P2[e2]/a@3.4 ok2=b2@3.5 P3[e2]/a@3.6 ok3=b3@3.7 pull w@7 w<a1(1)@8 w ack 1@8.1 pull x@9 pull y@9 x<s1(1)[e2]@10 x<b2(2)[e2]@10 y<a2(2)@20 y ack 2@20.1 end @40", "V:REALTIME_INVERSION|V:ORDER_GAP", mode=PULL, **SKEWED),
        wrong("a response in the wrong order, and a copy on another", "P1,2 pull x@9 pull z@9 x<2~5@10 x<1~4@10 x nack 1@10.1 z<1~4@10.2 z ack 1@10.3 end @30", "V:PULL_BATCH_ORDER", mode=PULL, **SKEWED),
        wrong("what waited came after all", "P1@0 P2@0 P3@0 ok1=m1@0.1 ok2=m2@0.1 ok3=m3@0.1 P1[e2]@10 ok1=n1@10.1 P2[e2]@10.2 ok2=n2@10.3 P3[e2]@10.4 ok3=n3@10.5 pull w@49 w<1@50 w ack 1@50.1 pull a@62 pull b@62 pull c@62 a<x3(3)@65 a<n3(3)[e2]@65 a ack 3@65.1 b<n2(2)[e2]@66.5 b ack 2@66.6 c<n1(1)[e2]@66.4 c ack 1@66.45 end @80", "V:ORDER_INVERSION|V:REALTIME_INVERSION|V:ORDER_GAP|V:PULL_OVERLAP", mode=PULL, message_retention_s=60, **SKEWED),
        wrong("two epochs of which no baseline is known, long after", "P1@0 ok1=m1@0.1 a<1@1 a ack 1@1.1 P1[e2]@10 ok1=n1@10.1 P1[e3]@20 ok1=o1@20.1 c<o1(1)[e3]@30 c ack 1@30.1 b<n1(1)[e2]@40 b ack 1@40.1", "V:REALTIME_INVERSION|V:ORDER_GAP", mode=PUSH, subscription_predates_first_publish=False, **SKEWED),
        wrong("what was sent last has a certain place", "P1@0 P2@0.1 P3@0.2 ok1=m1@0.3 ok2=m2@0.3 ok3=m3@0.3 pull a@9 pull b@9 pull c@9 pull d@9 pull g@9 pull e@9 a<1@10 a ack 1@10.1 d<x2(2)@10.2 d ack 2@10.25 g<y3(3)@10.3 b<2@10.5 b ack 2@10.55 g nack 3@10.6 c<3@10.7 c<x2(2)@10.7 c ack 3@10.8 c nack 2@10.8 e<y3(3)@11.5 e ack 3@11.6  pull h@20 h<2@30 h ack 2@30.1 P4@33 ok4=m4@33.1 pull f@40 f<4@60 f ack 4@60.1 end @80", "V:REDELIVERY_SKIP", mode=PULL, delivery_delay_max_s=0.1, ack_lag_max_s=0.05, **SKEWED),
        wrong("ids that are swapped", "P1,2 A<m1(2)@1 A<m2(1)@1.1", "V:ID_CONFLICT", clock_error_s=100.0),
        wrong("delivered long before it was published", "P1@0 ok1=m1@0.1 P2@20 ok2=m2@20.1 A<1@1 A<2@10", "V:PHANTOM", **SKEWED),
        wrong("never published", "P1 A<1@1 A<q7(7)@2", "V:PHANTOM", **SKEWED),
        wrong("never published, long before a hole", "P1 A<1@1 A<q7(7)@2 A ack 1@4 hole @6", "V:PHANTOM", **SKEWED),
        wrong("published long after a hole", "hole @3 open A of client A@3.1 P1@4.5 ok1=m1@4.6 P2@4.7 ok2=m2@4.8 A<2@7 end @20", "V:ORDER_GAP", **SKEWED),
        wrong("a swap of two subscribers that no clock explains", "P1,2 B<2@1 A<1@20", "V:ORDER_GAP|V:ORDER_INVERSION", **SKEWED),
        wrong("two publishers, one long after the other", "P1@0 ok1=m1@0.3 P1[e2]@10 ok1=n1@10.1 A<n1(1)@12 A<m1(1)@12.1", "V:REALTIME_INVERSION|V:ORDER_GAP", **SKEWED),
        wrong("held in the middle of its lease", "P1,2,3 A<1,2@1 A ack 1@1.4 B<3@20", "V:AFFINITY_SPLIT", **SKEWED),
        wrong("what is held came long before it", f"{RUN} D ack 1@39.75 A<1@39.9 A<2@39.95 B<3@46.5 A ack 1,2@50", "V:AFFINITY_SPLIT", **SKEWED),
        wrong("sent after the key moved, by any clock", f"{LATER} B<1@1 B ack 1@1.1 A<1@33.5 A<2@33.6 B<2@40 A ack 1,2@44", "V:AFFINITY_SPLIT", **SKEWED),
        wrong("acknowledged long after the move", "P1,2,3 A<1,2@1 B<3@20 A ack 1,2@25", "V:AFFINITY_SPLIT", **SKEWED),
        wrong("the stream broke long after the move", "P1,2,3 A<1,2@1 B<3@20 close A@25", "V:AFFINITY_SPLIT", **SKEWED),
        wrong("pull, held in the middle of its lease", "P1,2,3 pull b@0.9 b<1,2@1 pull c@19 c<3@20", "V:PULL_OVERLAP", mode=PULL, **SKEWED),
        wrong("push, held in the middle of its lease", "P1,2 a<1@1 b<2@20", "V:PUSH_OVERLAP", mode=PUSH, **SKEWED),
        wrong("exactly-once, confirmed long before", "P1 A<1@1 A ack 1@1.1 A ackOK 1@1.2 B<1@30", "V:EOD_REDELIVERY_AFTER_ACK", exactly_once=True, **SKEWED),
        wrong("exactly-once, outstanding for long", "P1,2 A<1@1 B<1@20", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", exactly_once=True, **SKEWED),
        # whichever was first: neither is acknowledged before the other is there
        wrong("both hold something, and neither answers", "P1,2 A<1@10 B<2@10.5 stop @90", "V:AFFINITY_SPLIT|V:ORDER_GAP|V:ORDER_INVERSION", **SKEWED),
        wrong("exactly-once, outstanding on the stream that gets it again", "P1 A<1@10 A<1@10.3 A ack 1@10.6 stop @90", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", exactly_once=True, **SKEWED),
        wrong("without clock error an acknowledgement comes after the move", "P1,2,3 A<1,2@11 A ack 1,2@12.3 B<3@11.7", "V:AFFINITY_SPLIT"),
        wrong("without clock error a delivery comes before its publish", "P1@0 ok1=m1@0.1 P2@1.8 ok2=m2@1.85 A<1@1 A<2@1.1", "V:PHANTOM"),
    ],
)  # fmt: skip
def test_no_clock_explains_it(one: Definite) -> None:
    one.check()


def test_two_recorders_of_two_subscriptions() -> None:
    definitely(across(("s", "P1,2,3 A<1,2,3@1"), ("t", "B<1,2,3@1 skew B 0.9")))


LEASED = "P1@4.5 ok1=m1@4.6 P2@4.7 ok2=m2@4.8 A<1@5 B<2@{}"
CONFIRMED = "P1@0 ok1=m1@0.3 P1[e2]@{} ok1=n1@{} A<n1(1)@8 A ack 1@8.1 end @500"


@pytest.mark.parametrize(
    "one",
    [
        case("another publisher may have been first, by its clock", CONFIRMED.format(0.8, 0.9), "L:STUCK", **SKEWED),
        case("another publisher was later, by any clock", CONFIRMED.format(1.4, 1.5), "L:LOST_OVERTAKEN V:ORDER_GAP", **SKEWED),
        case("a lease that began before the publish, by a clock ahead", LEASED.format(13), "I:AFFINITY_SPLIT", ack_deadline_s=10, delivery_delay_max_s=10, **SKEWED),
        case("a lease that cannot be over", LEASED.format(12), "V:AFFINITY_SPLIT", ack_deadline_s=10, delivery_delay_max_s=10, **SKEWED),
    ],
)  # fmt: skip
def test_it_is_definite_by_any_clock_only(one: Case) -> None:
    one.check()
