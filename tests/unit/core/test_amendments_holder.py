"""One holder: what is below is provably held elsewhere, or nothing is certain. An excuse is verified too, and excuses its own message.

What would break an implementation that only tolerates a restart: the subscriber that was left and goes on; a restart above the lowest
held message; exactly-once, where a rewind that something lower forced is legal and another is not; the copy that explains a skip while
somebody holds what is below it; the acknowledgement of a neighbour.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import PULL, PUSH, Case, Definite, case, legal, wrong

HELD = "P1,2,3,4 A<1,2@1"
BESIDE = "open A of client A open B1 of client B open B2 of client B P1,2"
RACED = "open A1 of client A open A2 of client A P1@0 info1@0.3 abandon1@0.4 P2@0.5 ok2=m2@0.55 P3@0.6 ok3=m3@0.65 P4@5 ok4=m4@5.1 A1<2@1 A1<3@1.1 A2<x1(1)@1.3 A1<4@10 A1 ack 2,3,4@11 A2 ack 1@11"
LOST = "open C of client C P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 A<1@20 A ack 1@20.1 close C@29.5"
ONE_ACKED = f"{HELD} A ack 1@1.4"
EOD = {"exactly_once": True}


@pytest.mark.parametrize(
    "one",
    [
        legal("everything again elsewhere", f"{HELD} B<1,2,3,4@10 B ack 1,2,3,4@10.5 A ack 1,2@11 end @500"),
        legal("from the lowest held", f"{ONE_ACKED} B<2,3@10"),
        legal("from below the lowest held", f"{ONE_ACKED} B<1,2,3@10"),
        legal("elsewhere and back", f"{HELD} B<1,2@10 A<1,2,3@20"),
        legal("elsewhere, and on to a third", f"{HELD} B<1,2,3@10 C<1,2,3,4@20"),
        legal("elsewhere, the copies there are acknowledged by the acknowledgements of the old ones, and then it moves", f"{HELD} B<1,2,3@10 B ack 3@10.5 A ack 1,2@11 C<4@30"),
        legal("the next pull gets the batch again", "P1,2,3 pull b@0.9 b<1,2@1 pull c@9 c<1,2,3@10", mode=PULL),
        legal("the next pull gets the rest of the batch again", "P1,2,3 pull b@0.9 b<1,2@1 b ack 1@1.1 pull c@9 c<2,3@10", mode=PULL),
        legal("an earlier message that is not held", "P1,2,3 pull b@0.9 b<1,2@1 b ack 1@1.1 pull c@29 c<1,2,3@30", mode=PULL),
        legal("a stream that is dead without anybody noticing", f"{HELD} B<3@3 close A@9 B<1,2,3@12", close_detection_max_s=30),
        legal("noticed at the last moment", f"{HELD} B<3@3 close A@32.9", close_detection_max_s=30),
        legal("both streams of the other client are dead", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A2<2@1.1 B<3@5 close A1@9 close A2@20", close_detection_max_s=30),
        legal("what another key holds is none of its business", "on k2 P1,2 A<1,2@0.5 on k P1@0.1 ok1=m1@0.2 B<1@10"),
        case("the record stops before a dead stream would have been noticed", f"{HELD} B<3@3 stop @32.9", "I:AFFINITY_SPLIT", close_detection_max_s=30),
        case("the record stops before a copy that was sent in between would have come", f"{HELD} A nack 1@2 B<1@8 B<3@8.1 stop @12", "I:AFFINITY_SPLIT I:REDELIVERY_SKIP"),
        legal("a lease that may be over of the only one below", "P1,2,3 A<1,2@11 A ack 1@11.4 B<3@68"),
        legal("the lease of what is below was shortened", f"{ONE_ACKED} A modack 2 10s@1.5 B<3@20"),
        legal("acknowledged below, and just not settled", f"{HELD} A ack 1,2@9.9 B<3@10"),
        legal("refused below", f"{HELD} A nack 1,2@1.4 B<3@2 B<1,2,3@3"),
        # 2 went to C and was lost with its stream, 3 went to B; then the service began again at A, where that looks like going on
        legal("a run that seems to go on, and began again", f"{LOST} A<2,3@29.7 B<3@31"),
        # 2, which A had acknowledged before, went to C although A held it, and was lost with its stream; so the key went on behind it
        legal("a run that began elsewhere, on a stream that was lost", f"{LOST} A<2,3@29.7 B<3@36"),
        # the key began again at B, where 1 was lost with B1
        legal("a run that began elsewhere, on a stream beside that was lost", f"{BESIDE} A<1@3.1 B2<2@9.2 A<2@9.3 A ack 1,2@12 B2 ack 2@12 close B1@13 end @500", close_detection_max_s=30),
        # the key began again at B, where 2 was lost with B1, and then at A: that copy of 2 does not explain that 3 came behind 1 to B
        legal("what was skipped was lost beside, not sent to another in between", "open A of client A open B1 of client B open B2 of client B P1,2,3 B2<1,2,3@1 B2<1@26.3 B2<3@26.8 A<1@30.4 A<2,3@31.6 A ack 1,2,3@33 B2 ack 1,2,3@34 close B1@45 end @500", close_detection_max_s=30),
        # 1 was sent to B first, and again to A, where it came first
        legal("a copy that was sent before the one that came first", "open A1 of client A open A2 of client A open B of client B P1@0 ok1=m1@0.1 A1<1@4 B<1@4.6 P2@7.5 ok2=m2@7.6 A2<2@12 A1 ack 1@13 A2 ack 2@13 B ack 1@13 end @500", close_detection_max_s=30),
        legal("what is held was dropped by a run behind another region's", "P1/a@0 ok1=m1@0.1 P2/a@0.2 ok2=m2@0.3 P3/b@0.4 ok3=m3@0.5 P4/b@0.6 ok4=m4@0.7 P5/a@0.8 ok5=m5@0.9 pull w@1 w<1@5 w<2@5 w<3@5 w<4@5 w<5@5 w ack 1,2,3,4,5@5.1 pull x@19 x<1@20 x<3@20 x<2@20 x ack 3@20.1 x nack 1@20.2 pull y@40 y<4@41 y<1@41 y nack 4@41.1 y ack 1@41.2 pull v@49 v<4@50 v<2@50 v ack 4@50.1 v nack 2@50.1 pull u@59 u<5@60", mode=PULL),
    ],
)  # fmt: skip
def test_it_may_be_redelivered_elsewhere(one: Case | Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("what was refused comes elsewhere at once, above what is held", "open A of client A open B of client B P1,2 A<1,2@1 A nack 2@1.5 B<2@3 end @20", "V:AFFINITY_SPLIT"),
        wrong("a stream breaks, long after what is held came", f"{BESIDE} B2<2@3.2 A<1@5.2 A<2@5.3 A ack 1,2@8 B2 ack 2@8 close B1@40 end @500", "V:AFFINITY_SPLIT", close_detection_max_s=30),
        wrong("the record stops when a dead stream would have been noticed", f"{HELD} B<3@3 stop @38.1", "V:AFFINITY_SPLIT", close_detection_max_s=30),
        wrong("the record stops before, and all had come", f"{HELD} B<3@3 end @32.9", "V:AFFINITY_SPLIT", close_detection_max_s=30),
        wrong("a copy that is late and stands before it never comes", f"{RACED} A1<2@40 A1<4@40.2 A1 ack 2,4@44 end @60", "V:REDELIVERY_SKIP"),
        wrong("the next message elsewhere", f"{HELD} B<3@10", "V:AFFINITY_SPLIT"),
        wrong("refused below, but what is between is held", f"{HELD} A nack 1@1.4 B<3@2", "V:AFFINITY_SPLIT"),
        wrong("the upper held one elsewhere", f"{HELD} B<2@10", "V:AFFINITY_SPLIT"),
        wrong("one that was acknowledged just now elsewhere, while one below is held", f"{HELD} A ack 2@1.4 B<2@10", "V:AFFINITY_SPLIT"),
        wrong("one that was refused just now elsewhere, while one below is held", f"{HELD} A nack 2@1.4 B<2@10", "V:AFFINITY_SPLIT"),
        wrong("one that was acknowledged just now in the next pull", "P1,2,3 pull b@0.9 b<1,2@1 b ack 2@1.3 pull c@9 c<2@10", "V:PULL_OVERLAP", mode=PULL),
        wrong("the last acknowledged one elsewhere while one below is held", f"{HELD} A ack 2@1.4 B<2@30", "V:AFFINITY_SPLIT"),
        wrong("the one that was left goes on", f"{HELD} B<1,2,3@10 A<4@20", "V:AFFINITY_SPLIT"),
        wrong("the one that was left goes on with what is held elsewhere", f"{HELD} B<1,2@10 A<2@20 A<3@20.1", "V:AFFINITY_SPLIT"),
        wrong("three subscribers", f"{HELD} B<1,2@10 C<3@20", "V:AFFINITY_SPLIT"),
        wrong("the next response", "P1,2,3 pull b@0.9 b<1,2@1 pull c@9 c<3@10", "V:PULL_OVERLAP", mode=PULL),
        wrong("the upper part of the batch in the next response", "P1,2,3 pull b@0.9 b<1,2@1 pull c@9 c<2,3@10", "V:PULL_OVERLAP", mode=PULL),
        wrong("the response that was left by an early redelivery", "P1,2,3,4 pull b@0.9 b<1,2@1 pull c@9 c<1,2@10 pull d@19 d<3@20", "V:PULL_OVERLAP", mode=PULL),
        wrong("the next request", "P1,2 a<1@1 b<2@10", "V:PUSH_OVERLAP", mode=PUSH),
        wrong("within the delivery delay, and the other client has a second stream", "open A of client A open B1 of client B open B2 of client B P1,2 B1<2@1 A<1@1.1 stop @90", "V:AFFINITY_SPLIT|V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("the same before anything is confirmed", "open A of client A open B1 of client B open B2 of client B P1@0 P2@0 B1<2@1 A<1@1.1 stop @90", "V:AFFINITY_SPLIT"),
        wrong("a stream that was noticed too late to have been dead", f"{HELD} B<3@3 close A@40", "V:AFFINITY_SPLIT", close_detection_max_s=30),
        wrong("only one stream of the other client broke", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A2<2@1.1 B<3@5 close A1@9 A2 ack 2@40 end @50", "V:AFFINITY_SPLIT", close_detection_max_s=30),
        wrong("the other stream broke, not the one that holds", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 B<2@5 close A2@9", "V:AFFINITY_SPLIT", close_detection_max_s=30),
        wrong("the same, of which nothing had been acknowledged", "open C of client C P1,2,3 A<1,2,3@3 A nack 2@5 A<2,3@9 close C@8.8 B<3@20", "V:AFFINITY_SPLIT"),
        wrong("a run that goes on, and nothing was lost", "open C of client C P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 A<1@20 A ack 1@20.1 A<2,3@29.7 B<3@31", "V:AFFINITY_SPLIT"),
        wrong("another region's run drops nothing", "P1/a@0 ok1=m1@0.1 P2/a@0.2 ok2=m2@0.3 P3/b@0.4 ok3=m3@0.5 P4/b@0.6 ok4=m4@0.7 P5/a@0.8 ok5=m5@0.9 pull w@1 w<1@5 w<2@5 w<3@5 w<4@5 w<5@5 w ack 1,2,3,4,5@5.1 pull x@19 x<1@20 x<3@20 x<2@20 x ack 3@20.1 x ack 1@20.2 pull v@49 v<4@50 v ack 4@50.1 pull u@59 u<5@60", "V:PULL_OVERLAP", mode=PULL),
    ],
)  # fmt: skip
def test_it_may_not_go_on_elsewhere(one: Definite) -> None:
    one.check()


# --- exactly-once ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        # what is behind a redelivered message is redelivered, outstanding or not
        legal("a refused lower message takes those behind it along", "P1,2,3 A<1,2,3@1 A nack 1@1.5 A<1,2,3@2", **EOD),
        legal("the refused lower message comes on another stream, a little later", "open A1 of client A open A2 of client A P1,2,3 A1<1,2,3@1 A1 nack 1@2 A1<2,3@4 A2<1@4.2", **EOD),
        legal("a lower lease is over", "P1,2 A<1@1 A<2@50 A<1,2@62", **EOD),
        legal("the lease of a lower acknowledged message is over, its acknowledgement was lost", "P1,2 A<1@1 A ack 1@1.1 A<2@50 A<1,2@62", **EOD),
        legal("its own lease was shortened", "P1 A<1@1 A modack 1 10s@1.5 A<1@17", **EOD),
        legal("a lower lease was shortened", "P1,2 A<1,2@1 A modack 1 10s@1.5 A<1,2@17", **EOD),
        legal("the stream broke", "open A1 of client A P1,2 A1<1,2@1 close A1@2 open A2 of client A@2.1 A2<1,2@3", **EOD),
        legal("the stream is dead without anybody noticing", "P1,2 A<1,2@1 B<1,2@10 close A@20", close_detection_max_s=30, **EOD),
        legal("the acknowledgement may be lost, and the lease over", "P1 A<1@1 A ack 1@1.1 A<1@62", **EOD),
        legal("the subscription was sought", "P1,2 A<1,2@1 A ack 1,2@1.2 A ackOK 1,2@1.3 seek 60@5 A<1,2@10", **EOD),
        legal("the record has a hole", "P1,2 A<1,2@1 hole @5 A<1,2@6", **EOD),
        legal("a rewind that a refusal forced comes in two parts", "P1,2,3 A<1,2,3@1 A nack 1@1.5 A<1,2@2 A nack 1@2.05 A<1,2,3@3", **EOD),
        legal("without exactly-once", "P1,2 A<1@1 A<1,2@12"),
        legal("the response was lost: what is outstanding there nobody knows", "P1 pull b@0.9 lose b@5 pull c@70 c<1@70.1", mode=PULL, **EOD),
    ],
)  # fmt: skip
def test_exactly_once_may_deliver_again(one: Definite) -> None:
    one.check()


WHILE = "V:EOD_REDELIVERY_WHILE_OUTSTANDING"


@pytest.mark.parametrize(
    "one",
    [
        wrong("on the same stream", "P1,2 A<1@1 A<1@12 A<2@12.1", WHILE, **EOD),
        wrong("elsewhere", "P1,2 A<1,2@1 B<1,2@10", WHILE, **EOD),
        wrong("on another stream of the client", "open A1 of client A open A2 of client A P1 A1<1@1 A2<1@10", WHILE, **EOD),
        wrong("elsewhere and back", "P1 A<1@1 B<1@2 A<1@2.2", WHILE, **EOD),
        wrong("to and fro", "P1,2 A<1@1 B<1@2 A<1@2.2 B<1@2.3", WHILE, **EOD),
        wrong("in another response", "P1,2 pull b@0.9 b<1@1 pull c@9 c<1,2@10", WHILE, mode=PULL, **EOD),
        wrong("a higher one was refused", "P1,2,3 A<1,2,3@1 A nack 3@1.5 A<2@10 A<3@10.1", WHILE, **EOD),
        wrong("a higher lease is over", "P1,2 A<1,2@1 A modack 2 10s@1.5 A<1,2@30", WHILE, **EOD),
        wrong("its neighbour was acknowledged", "P1,2 A<1,2@1 A ack 1@1.5 A ackOK 1@1.6 A<2@10", WHILE, **EOD),
        wrong("the one below was acknowledged, confirmed, and is redelivered", "P1,2 A<1,2@1 A ack 1@1.5 A ackOK 1@1.6 A<1,2@30", "V:EOD_REDELIVERY_AFTER_ACK", **EOD),
        wrong("again after a rewind that was legal", "P1,2 A<1,2@1 A nack 1@1.5 A<1,2@2 A<1,2@30", WHILE, **EOD),
        wrong("the lease was prolonged only, and is not over either way", "P1 A<1@1 A modack 1 60s@20 A<1@40", WHILE, **EOD),
        wrong("another key was refused", "on k2 P1 A<1@0.5 A nack 1@0.6 on k P1@0.7 ok1=m1@0.8 A<1@2 A<1@20", WHILE, **EOD),
    ],
)  # fmt: skip
def test_exactly_once_does_not_deliver_what_is_outstanding(one: Definite) -> None:
    one.check()


# --- an excuse is verified too, and excuses its own message -------------------------------------------------------------------------

# 2 was nacked long ago and is redelivered at 40; all acknowledgements are long settled
RUN = "P1,2,3,4 A<1,2,3,4@1 A ack 1,3,4@1.5 A nack 2@1.6"


@pytest.mark.parametrize(
    "one",
    [
        legal("the copy came from a stream that is gone", f"{RUN} B<2@40 B ack 2@40.05 A<4@40.1 B<3@40.2 close B@40.3"),
        legal("the stream with the copy is gone, as turns out later", f"{RUN} B<2@40 B ack 2@40.05 A<4@40.1 B<3@40.2 close B@60", close_detection_max_s=30),
        legal("the copy is on another stream of the client", f"open A of client A open A2 of client A {RUN} A<2@40 A<4@40.1 A2<3@40.2"),
        legal("everything below the copy was acknowledged, and so was the copy", "P1,2,3,4 A<1,2,3,4@1 A ack 1,2,3,4@9 A<2@10 A<4@10.1 B<3@10.2"),
        legal("what is held had been sent on a stream that took it with it", f"{BESIDE} B2<2@3.2 A<1@5.2 A<2@5.3 A ack 1,2@8 B2 ack 2@8 close B1@9 end @500", close_detection_max_s=30),
        case("the same, and it comes sooner", f"{BESIDE} A<1@3.1 B2<2@3.2 A<2@5.3 A ack 1,2@8 B2 ack 2@8 close B1@9 end @500", "I:AFFINITY_SPLIT", close_detection_max_s=30),
        legal("a copy that is late stands before it, but for one that raced", f"{RACED} A1<2@40 A1<4@40.2 A2<3@43 A1 ack 2,4@44 A2 ack 3@44 end @60"),
        legal("the run begins again before the copies of another stream come", "open A1 of client A open A2 of client A P1,2,3,4,5 A1<1,2,3,4@1 A1 ack 2,3,4@2 A1 nack 1@2.1 A1<1@20 A1<3@20.1 A1<5@20.2 A1 nack 1@20.21 A1<1@20.25 A2<2,4@20.4 A1<2,3,4,5@20.6 A1 ack 1,2,3,4,5@22 A2 ack 2,4@22 end @90"),
        legal("an early copy and its own late acknowledgement", "P1,2,3 A<1,2@1 A ack 1@9 B<1,2@10 A ack 2@10.1 A<3@24"),
        legal("the second redelivery and the late acknowledgement of the first delivery", "P1,2 A<1@1 A ack 1@9 A<1@12 A<1@18 B<2@30"),
    ],
)  # fmt: skip
def test_an_excuse_that_a_release_explains(one: Case | Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        # 2 is held at A when 3 is sent to B, and 3 at B when 4 is sent to A
        wrong("the copy was held", f"{RUN} A<2@40 A<4@40.1 B<3@40.2 A ack 2@41 A ack 4@41 B ack 3@41", "V:AFFINITY_SPLIT|V:REDELIVERY_SKIP"),
        wrong("the copy was held, and its stream broke long after", f"{RUN} A<2@40 A<4@40.1 B<3@40.2 close B@100", "V:AFFINITY_SPLIT|V:REDELIVERY_SKIP", close_detection_max_s=30),
        wrong("another message was acknowledged just before", "P1,2,3,4,5 A<1,2,3,4,5@1 A ack 1,3,4@1.5 A nack 2@1.6 A ack 5@39 A<2@40 A<4@40.1 B<3@40.2", "V:AFFINITY_SPLIT|V:REDELIVERY_SKIP"),
        # 5 on A2 was sent before 2, then it explains nothing, or after it, then it is a skip itself
        wrong("a copy on another stream of the client that is as wrong, and either may have come first", "open A1 of client A open A2 of client A P1,2,3,4,5 A1<1,2,3,4@1 A1<2@20 A2<5@20.1 A1<5@20.4 stop @90", "V:REDELIVERY_SKIP"),
        wrong("a copy on another stream of the client that is as wrong", "open A1 of client A open A2 of client A P1,2,3,4,5 A1<1,2,3,4@1 A1<5@1.5 A1<2@10 A2<5@20.1 A1<5@20.4 stop @90", "V:REDELIVERY_SKIP"),
        wrong("first deliveries", "P1,2,3 A<1@1 A<3@1.1 B<2@1.2", "V:AFFINITY_SPLIT|V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("a neighbour was acknowledged just before the move", f"{HELD} A ack 1@9.9 B<3@10", "V:AFFINITY_SPLIT"),
        wrong("a neighbour that is redelivered was acknowledged just before the move", "P1,2,3 A<1@1 A ack 1@1.1 A<1@20 A<2@20.1 A ack 2@25.9 B<3@26", "V:AFFINITY_SPLIT"),
        wrong("the same message on another subscriber, acknowledged long before", "P1,2,3 A<1@1 A ack 1@1.1 B<1@30 B<2@30.1 B ack 2@30.2 A<3@40", "V:AFFINITY_SPLIT"),
        wrong("pull: a neighbour was acknowledged just before", "P1,2,3 pull b@0.9 b<1,2@1 b ack 2@8.9 pull c@9 c<3@10", "V:PULL_OVERLAP", mode=PULL),
        wrong("an acknowledgement under another key", "on k2 P1 A<1@0.5 on k P1@0.1 P2@0.1 ok1=m1@0.2 ok2=m2@0.2 A<1@1 on k2 A ack 1@9.9 on k B<2@10", "V:AFFINITY_SPLIT"),
        wrong("acknowledged only afterwards", f"{HELD} B<3@10 A ack 1,2@10.1 B ack 3@10.2", "V:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_an_excuse_that_nothing_explains(one: Definite) -> None:
    one.check()
