"""Order of first delivery where streams race, regions differ, epochs follow each other, or the record begins in the middle.

What would break an implementation that follows the vectors: a run that comes back in the true order after a race was learned in the
other one; two subscriptions compared while a race is open; a stream that opened too late to have been first; a region that changes
inside an epoch or with a republish; a lost tail two epochs back; a confirmation that comes after the contradicting delivery.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf

import pytest

from prober.core.rules import ONE_REGION_PER_KEY, Rules
from tests.unit.core.cases import (
    PULL,
    PUSH,
    Case,
    Definite,
    across,
    case,
    definitely,
    findings,
    legal,
    limit,
    only,
    rules_of,
    wrong,
)

# --- two sessions of one subscriber race ---------------------------------------------------------------------------------------

RACE = "open A1 of client A open A2 of client A P1,2,3,4"
SHADOW = "open A1 of client A open A2 of client A P1@0 ok1=m1@0.05 P2@0.1 info2@0.3 abandon2@0.4 P3@0.5 ok3=m3@0.55"


@pytest.mark.parametrize(
    "one",
    [
        legal("a millisecond", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.101"),
        legal("seconds", f"{RACE} A1<1@1 A2<3@1.1 A1<2@4"),
        legal("several overtake", f"{RACE} A1<1@1 A2<3,4@1.1 A1<2@1.3"),
        legal("several are overtaken", f"{RACE} A2<4@1 A1<1,2,3@1.1"),
        legal("what overtook is acknowledged at once", f"{RACE} A1<1@1 A2<3@1.1 A2 ack 3@1.15 A1<2@1.2 A1 ack 1,2@1.3 A1<4@1.4 A1 ack 4@1.5 end @500"),
        legal("the old stream is read to its end", "open A1 of client A P1,2,3,4 A1<1@1 open A2 of client A@1.2 A2<3@1.5 A1<2@1.6 close A1@1.7 A2<4@1.8"),
        legal("a run in the true order afterwards", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A1<1,2,3,4@20"),
        legal("a run in the true order while the race is open", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A1<1,2,3,4@1.3"),
        legal("goes on behind the one that overtook", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A2<4@1.3"),
        legal("goes on behind the one that was overtaken", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A1<4@1.3"),
        legal("whoever waits for ever", f"{RACE} A1<1@1 A2<3@1.1 A1<2@40", delivery_delay_max_s=inf),
        legal("three streams", f"{RACE} open A3 of client A A3<3@1 A2<2@1.1 A1<1@1.2 A1<4@1.3"),
        legal("copies of a retry race", "open A1 of client A open A2 of client A P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 P3@0.5 ok3=m3@0.55 A1<a1(1)@1 A2<b1(1)@1.1 A1<a2(2)@1.2 A2<b2(2)@1.3 A2<3@1.4"),
        legal("confirmed after the race", "open A1 of client A open A2 of client A P1@0 P2@0 A2<2@0.2 A1<1@0.25 ok1=m1@0.3 ok2=m2@0.3"),
        # nobody knows whether x2 is before 3, and the run says that it is
        legal("a run puts a copy of unknown place where it was sent", f"{SHADOW} A1<1@1 A2<3@1.1 A1<x2(2)@1.2 A1<1@20 A1<x2(2)@20.1 A1<3@20.2"),
        legal("a run puts a copy of unknown place where it came", f"{SHADOW} A1<1@1 A2<3@1.1 A1<x2(2)@1.2 A1<1@20 A1<3@20.1 A1<x2(2)@20.2"),
        legal("the copy on the other stream was sent first", f"{RACE} A1<2@1 A1<1@1.1 A2<1@1.2 A1<2,3@1.3"),
        legal("so it was, and publish times are recorded", f"{RACE} A1<2~2@1 A1<1~1@1.1 A2<1~1@1.2 A1<2~2@1.3"),
        legal("a further record need not wait for lower numbers", "open A1 of client A open A2 of client A P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 A1<a2(2)@1 A1<b1(1)@1.1 A2<b2(2)@1.2"),
        legal("what was republished behind another one overtakes that", "open A1 of client A open A2 of client A P1@0 info1@0.1 P2@0.2 ok2=m2@0.25 P1'gen1@0.3 ok1'gen1=m1@0.35 A1<1@1 A2<2@1.1"),
        legal("what is waited for was given up", f"{SHADOW} A1<1@1 A2<3@1.1 A1<x2(2)@6.2 A1<3@6.3"),
        legal("only the later part of a run is redelivered", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A1<2,3,4@20"),
    ],
)  # fmt: skip
def test_a_send_order_explains_the_race(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("a swap on one stream, confirmed late, when a stream of another client breaks", "open A of client A open B of client B P1@0 P2@0 A<2@0.2 ok1=m1@0.3 ok2=m2@0.3 A ack 2@0.4 A<1@1 A ack 1@1.1 close B@1.8 end @100", "V:ORDER_INVERSION"),
        wrong("a swap on one stream of a client, whose other one only stays open, confirmed late", "open A1 of client A open A2 of client A P1 A2<1@1 A2 ack 1@1.2 P2@100 P3@100.1 A2<3@101 ok3=m3@102 A2<2@130 ok2=m2@131 A2 ack 2,3@132 end @500", "V:ORDER_INVERSION"),
        wrong("a swap of two streams of a client, far apart, confirmed late", "open A1 of client A open A2 of client A P1 A2<1@1 A2 ack 1@1.2 P2@100 P3@100.1 A2<3@101 ok3=m3@102 A1<2@130 ok2=m2@131 A1 ack 2@132 A2 ack 3@132 end @500", "V:ORDER_INVERSION"),
        wrong("the other never comes", f"{RACE} A1<1@1 A2<3@1.1 end @500", "V:ORDER_GAP"),
        wrong("the other never comes, and nobody waits for the end", f"{RACE} A1<1@1 A2<3@1.1 A1 ack 1@20", "V:ORDER_GAP"),
        wrong("it comes too late", f"{RACE} A1<1@1 A2<3@1.1 A1<2@7", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("its stream opened too late", "open A2 of client A P1,2,3 A2<1@1 A2<3@1.1 open A1 of client A@1.15 A1<2@1.2", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("on one stream", f"{RACE} A1<1@1 A1<3@1.1 A1<2@1.2 A2<4@1.3", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("on the stream of what overtook it", f"{RACE} A1<1@1 A2<3@1.1 A2<2@1.2", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("two races that contradict each other", f"{RACE} A1<1@1 A1<3@1.1 A2<4@1.15 A2<2@1.2", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("2 came before 1 on its stream", f"{RACE} A1<3@1 A2<2@1.1 A2<1@1.2", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("beyond the delay, and confirmed later", "open A1 of client A open A2 of client A P1@0 P2@0 P3@0 A1<1@1 A2<3@1.5 A1<2@2 ok1=m1@3 ok2=m2@3 ok3=m3@3", "V:ORDER_INVERSION", delivery_delay_max_s=0.01),
        wrong("on one stream, and a third message races", f"{RACE} A1<3@1 A1<2@1.1 A2<1@1.15", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("on one stream, twice", f"{RACE} A1<1@1 A1<3@1.1 A1<2@1.2 A1<3@1.3 A1<2@1.4", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("a run passes over one that raced with its neighbour", f"{SHADOW} A1<1@1 A2<3@1.1 A1<x2(2)@1.2 P4@9 ok4=m4@9.1 A1<4@10 A1<1@20 A1<4@20.1", "V:REDELIVERY_SKIP"),
        wrong("two different subscribers", "P1,2,3 A<1@1 B<3@1.1 A<2@1.2", "V:ORDER_GAP|V:ORDER_INVERSION|V:AFFINITY_SPLIT"),
        wrong("a run contradicts the true order", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A1<1@20 A1<3@20.1 A1<2@20.2", "V:REDELIVERY_SKIP"),
        limit(wrong("two runs that contradict each other", f"{SHADOW} A1<1@1 A2<3@1.1 A1<x2(2)@1.2 A1<1@20 A1<x2(2)@20.1 A1<3@20.2 A1<1@40 A1<3@40.1 A1<x2(2)@40.2", "V:REDELIVERY_SKIP")),
        wrong("a run leaves one of them out", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A1<1@20 A1<3@20.1", "V:REDELIVERY_SKIP"),
        wrong("two responses are two subscribers", "P1,2,3 pull b@0.9 pull c@0.9 b<1@1 c<3@1.1 b<2@1", "V:PULL_OVERLAP|V:ORDER_GAP", mode=PULL),
        wrong("two requests are two subscribers", "P1,2 b<2@1 a<1@1.1", "V:ORDER_GAP", mode=PUSH),
    ],
)  # fmt: skip
def test_no_send_order_explains_the_race(one: Definite) -> None:
    one.check()


def test_a_race_on_one_subscription_is_no_divergence() -> None:
    definitely(across(("s", f"{RACE} A1<1@1 A2<3@1.1 A1<2@1.2 A1<4@1.3"), ("t", "B<1,2,3,4@1")))
    definitely(across(("s", f"{RACE} A1<1@1 A2<3@4.1 A1<2@4.2 A1<4@4.3"), ("t", "B<1,2,3,4@1")))


def test_races_on_two_subscriptions_are_no_divergence() -> None:
    unconfirmed = "open A1 of client A open A2 of client A P1@0 P2@0 P3@0"
    lines = (
        ("s", f"{unconfirmed} A1<1@1 A2<3@1.1 A1<2@1.2"),
        ("t", "open B1 of client B open B2 of client B B1<1@1 B1<2@1.1 B2<3@1.2"),
    )
    definitely(across(*lines))


def test_a_race_does_not_hide_a_divergence() -> None:
    unconfirmed = "open A1 of client A open A2 of client A P1@0 P2@0 P3@0 P4@0"
    lines = ("s", f"{unconfirmed} A1<1@1 A2<3@1.1 A1<2@1.2 A1<4@20"), ("t", "B<1@1 B<4@1.1 B<2,3@1.2")
    definitely(across(*lines), "V:ORDER_DIVERGENCE")


# --- order holds within a publishing region -------------------------------------------------------------------------------------

FAILOVER = "P1,2/a P3/b@10 ok3=m3@10.05 P4/b@10.1 ok4=m4@10.15"  # one epoch, and the region changes after 2


@pytest.mark.parametrize(
    "one",
    [
        legal("the other region comes first", "P1,2,3/a P1[e2]/b@10 ok1=n1@10.05 A<1@1 A<n1(1)@11 A<2,3@12"),
        legal("inside one epoch", f"{FAILOVER} A<1@1 A<3@11 A<4@11.1 A<2@12"),
        legal("the other region comes first, all of it", f"{FAILOVER} A<3,4@11 A<1,2@12"),
        legal("and back again", f"{FAILOVER} P5/a@20 ok5=m5@20.05 A<1@1 A<2@11 A<5@21 A<3,4@22"),
        legal("the region of a republish counts", "P1/a@0 ok1=m1@0.05 P2/a@0.1 info2@0.3 P2'gen1/b@0.4 ok2'gen1=m2@0.5 A<m2(2)@1 A<1@1.1"),
        legal("a run of the one region goes over the other", f"{FAILOVER} P5/a@20 ok5=m5@20.05 A<1,2@1 A<3,4@11 A<5@21 A<2@30 A<5@30.1 A<3,4@31"),
        legal("a run keeps the order that was learned", f"{FAILOVER} A<1@1 A<3@11 A<4@11.1 A<2@12 A<1@20 A<3,4,2@20.1"),
        legal("the tail of one region is slow", f"{FAILOVER} A<1@1 A<3,4@11 A ack 1,3,4@11.5 A<2@100 A ack 2@101 end @400"),
        legal("unknown is a region of its own", "P1@0 ok1=m1@0.05 P2@0.1 ok2=m2@0.15 P3/b@10 ok3=m3@10.05 A<3@11 A<1,2@12"),
        legal("pull", "P1,2/a P3/b@10 ok3=m3@10.05 pull b@10.9 b<1,3,2@11", mode=PULL),
        legal("a run of another region stands in between, on a new stream", "open A1 of client A P1/b@0 ok1=m1@0.05 P2/b@0.1 ok2=m2@0.15 P3/b@0.2 ok3=m3@0.25 P4/a@0.3 ok4=m4@0.35 P5/a@0.4 ok5=m5@0.45 A1<4,5@9 A1<1@10 close A1@10.1 open A2 of client A@10.2 A2<4@12 A2<2@12.1 A2<5@12.2 A2<3@12.3"),
    ],
)  # fmt: skip
def test_regions_are_not_compared(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("a gap within the first region", "P1,2,3/a P4/b@10 ok4=m4@10.05 A<1@1 A<4@11 A<3@12", "V:ORDER_GAP"),
        wrong("an inversion within the second region", f"{FAILOVER} A<1,2@1 A<4@11 A<3@11.1", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("back in the first region", f"{FAILOVER} P5/a@20 ok5=m5@20.05 A<1@1 A<3,4@11 A<5@21 A<2@22", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("without regions all is one", "P1,2 P3@10 ok3=m3@10.05 A<1@1 A<3@11 A<2@12", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("in the same region across epochs", "P1,2/a P1[e2]/a@10 ok1=n1@10.05 A<1@1 A<n1(1)@11 A<2@12", "V:REALTIME_INVERSION|V:ORDER_GAP"),
        wrong("a lost message of the region that was left", f"{FAILOVER} A<1@1 A<3,4@11 A ack 1,3,4@12 end @500", "L:STUCK|L:LOST_OVERTAKEN"),
        wrong("a run leaves out what is of the same region", f"{FAILOVER} P5/a@20 ok5=m5@20.05 A<1,2@1 A<3,4@11 A<5@21 A<1@30 A<5@30.1", "V:REDELIVERY_SKIP"),
        wrong("behind a record of an unknown region, in one response", "P4/a@0 P5/a@0.01 ok4=m4@0.1 ok5=m5@0.11 P6/b@5 P6'gen1/a@6 pull b1@60 pull b2@60 b2<5@66 b1<z6(6)@66.8 b1<4@66.8", "V:PULL_OVERLAP|V:ORDER_GAP", mode=PULL, delivery_delay_max_s=1),
        wrong("the next of the region goes elsewhere", f"{FAILOVER} A<3@11 B<4@12", "V:AFFINITY_SPLIT"),
        wrong("a run of one region on a new stream leaves something out", "open A1 of client A P1/b@0 ok1=m1@0.05 P2/b@0.1 ok2=m2@0.15 P3/b@0.2 ok3=m3@0.25 P4/a@0.3 ok4=m4@0.35 P5/a@0.4 ok5=m5@0.45 A1<4,5@9 A1<1@10 close A1@10.1 open A2 of client A@10.2 A2<1,2,3@12 A2<1@13 A2<3@13.1", "V:REDELIVERY_SKIP"),
    ],
)  # fmt: skip
def test_within_a_region_order_holds(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("a gap", "P1,2,3 A<1@1 A<3@1.1 A<2@1.2", "I:ORDER_GAP I:ORDER_INVERSION I:REALTIME_INVERSION", one_publish_region=False),
        case("a redelivery that skips a message", "P1,2,3 A<1,2,3@1 A nack 1@2 A<1@3 A<3@3.1", "I:REDELIVERY_SKIP", one_publish_region=False),
        case("two batches by pull", "P1,2 pull b@0.5 b<1@1 pull c@1.1 c<2@1.2", "I:PULL_OVERLAP", mode=PULL, one_publish_region=False),
        case("a lost message", "P1,2 A<1@1 A ack 1@1.1 end @500", "L:STUCK", one_publish_region=False),
    ],
)  # fmt: skip
def test_without_a_known_region_order_is_in_doubt_and_delivery_is_not(one: Case) -> None:
    one.check()


def test_a_region_that_is_not_known_is_among_the_assumptions() -> None:
    (finding, *_) = findings("P1,2,3 A<1@1 A<3@1.1 A<2@1.2", Rules(one_publish_region=False))
    assert finding.doubt == "order holds within one publishing region, and the region of these publishes is not known"
    assert finding.assumptions[ONE_REGION_PER_KEY] == 1.0
    (lost,) = findings("P1,2 A<1@1 A ack 1@1.1 end @500", Rules(one_publish_region=False))
    assert ONE_REGION_PER_KEY not in lost.assumptions


def test_why_a_skip_over_another_region_is_in_doubt() -> None:
    finding = only(f"{FAILOVER} P5/a@20 ok5=m5@20.05 A<1,2@1 A<3,4@11 A<5@21 A<2@30 A<5@30.1 A<3,4@31", "REDELIVERY_SKIP")
    assert finding.facts["skipped"] == (3, 4)


def test_subscriptions_may_see_two_regions_differently() -> None:
    definitely(across(("s", f"{FAILOVER} A<1@1 A<2@2 A<3,4@11"), ("t", "B<1@1 B<3,4@11 B<2@12")))


def test_subscriptions_see_one_region_alike() -> None:
    unconfirmed = "P1/a@0 P2/a@0 P3/b@0"
    definitely(across(("s", f"{unconfirmed} A<1,2,3@1"), ("t", "B<2,1,3@1")), "V:ORDER_DIVERGENCE")


# --- epochs of one region follow each other -------------------------------------------------------------------------------------

OLD = "P1,2,3 A<1,2@1 A ack 1,2@1.5"
NEXT = "P1[e2]@10 ok1=n1@10.05 P2[e2]@11 ok2=n2@11.05"


@pytest.mark.parametrize(
    "one",
    [
        legal("the tail comes first", f"{OLD} A<3@2 {NEXT} A<n1(1)@11.2 A<n2(2)@12"),
        legal("the tail is unknown", f"P1,2 P3@0.3 info3@5 A<1,2@1 A ack 1,2@1.5 {NEXT} A<n1(1)@11.2 A<n2(2)@12"),
        legal("the tail had no outcome when the process died", f"P1,2 P3@0.3 A<1,2@1 A ack 1,2@1.5 {NEXT} A<n1(1)@11.2 A<n2(2)@12"),
        legal("the tail is confirmed while the next is on its way", "P1,2 P3@0.3 A<1,2@1 A ack 1,2@1.5 P1[e2]@10 ok3=m3@10.02 ok1=n1@10.05 A<n1(1)@11.2 A<3@12"),
        legal("two publishers side by side", "P1@0 P1[e2]@0.01 ok1=n1@0.05 P2[e2]@0.06 ok2=n2@0.1 A<n1(1)@1 A<n2(2)@1.1 A<x1(1)@1.2"),
        legal("the tail was published in another region", "P1,2,3/a A<1,2@1 A ack 1,2@1.5 P1[e2]/b@10 ok1=n1@10.05 A<n1(1)@11.2"),
        legal("the subscription was made in between", f"P1,2,3 {NEXT} A<n1(1)@11.2 A<n2(2)@12", subscription_predates_first_publish=False),
        legal("the tail expired", f"{OLD} P1[e2]@900 ok1=n1@900.05 close A@3 open A2 of client A@899 A2<n1(1)@901", message_retention_s=600),
        legal("the tail was dead-lettered", f"{OLD} dlq m3@5 {NEXT} A<n1(1)@11.2 A<n2(2)@12", dead_letter_max_attempts=5),
        legal("the tail was sought past", f"{OLD} seek 5@8 {NEXT} A<n1(1)@11.2 A<n2(2)@12"),
    ],
)  # fmt: skip
def test_the_tail_of_an_epoch_may_be_missing(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("it is lost", f"{OLD} {NEXT} A<n1(1)@11.2", "V:ORDER_GAP"),
        wrong("it comes later", f"{OLD} {NEXT} A<n1(1)@11.2 A<3@12", "V:ORDER_GAP|V:REALTIME_INVERSION"),
        wrong("two epochs back", f"{OLD} P1[e2]@5 info1@6 abandon1@6 P1[e3]@10 ok1=n1@10.05 A<n1(1)@11.2", "V:ORDER_GAP"),
        wrong("an unconfirmed record published later says the same", f"{OLD} P1[e2]@10 A<x1(1)[e2]@11.2", "V:ORDER_GAP"),
        wrong("confirmed before the second of the next epoch", "P1,2 P3@0.3 A<1,2@1 A ack 1,2@1.5 P1[e2]@10 ok3=m3@10.02 ok1=n1@10.05 P2[e2]@11 ok2=n2@11.05 A<n1(1)@11.2 A<n2(2)@12", "V:ORDER_GAP"),
        wrong("a whole epoch is lost", "P1,2 P1[e2]@5 ok1=n1@5.05 P1[e3]@10 ok1=o1@10.05 A<1,2@1 A<o1(1)@11", "V:ORDER_GAP"),
        wrong("and never comes", f"{OLD} {NEXT} A<n1(1)@11.2 A<n2(2)@12 A ack 3@13 end @500", "L:LOST_OVERTAKEN"),
        wrong("pull", "P1,2,3 pull b@0.9 b<1,2@1 b ack 1,2@1.5 P1[e2]@10 ok1=n1@10.05 pull c@11 c<n1(1)@11.2", "V:ORDER_GAP", mode=PULL),
        wrong("push", "P1,2 a<1@1 a ack 1@1.5 P1[e2]@30 ok1=n1@30.05 b<n1(1)@31", "V:ORDER_GAP", mode=PUSH),
    ],
)  # fmt: skip
def test_the_tail_of_an_epoch_is_missed(one: Definite) -> None:
    one.check()


# --- a record that begins in the middle -----------------------------------------------------------------------------------------

EXCERPT = "P5@0 ok5=m5@0.05 P6@0.1 ok6=m6@0.15 P7@0.2 ok7=m7@0.25"


@pytest.mark.parametrize(
    "one",
    [
        legal("what was published before the record began", f"{EXCERPT} A<4@0.01 A<5,6,7@1"),
        legal("several of them", f"{EXCERPT} A<2,3,4@0.5 A<5,6,7@1"),
        legal("they are redelivered", f"{EXCERPT} A<4@0.5 A<5,6@1 A<4,5,6,7@20"),
        legal("they come first before the record of a publish", "A<3@0.5 A<4@0.6 P5@1 ok5=m5@1.05 A<5@2"),
        legal("a late copy of them", f"{EXCERPT} A<4@0.5 A<5,6,7@1 A<z3(3)@1.5"),
        legal("a run that begins with one never seen before", f"{EXCERPT} A<5,6@1 A<3@20 A<4@20.1 A<5,6,7@20.2"),
        legal("answers to deliveries that are not recorded", f"{EXCERPT} A ack 4@0.01 A nack 3@0.02 A<5,6,7@1"),
        legal("a confirmation of a publish that is not recorded", "ok4=m4@0.01 P5@0.02 ok5=m5@0.05 A<4,5@1"),
        legal("a sequence that was failing when the record began", "fail4@0.01 P5@0.02 ok5=m5@0.05 A<5@1"),
        legal("a stream closes whose opening is not recorded", "P5@0 ok5=m5@0.05 A<4@0.5 A<5@1 close B@2"),
        legal("the next epoch is whole", f"{EXCERPT} A<4@0.5 A<5,6,7@1 P1[e2]@5 ok1=n1@5.05 A<n1(1)@6"),
        legal("pull", f"{EXCERPT} pull b@0.3 b<3,4,5,6@1 b ack 3,4,5,6@1.5 pull c@30 c<7@31", mode=PULL),
        legal("push", f"{EXCERPT} a<4@0.5 a ack 4@0.6 b<5@20 b ack 5@20.1 c<6@40 c ack 6@40.1", mode=PUSH),
    ],
)  # fmt: skip
def test_an_excerpt(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("what was never published, above", f"{EXCERPT} A<5,6,7@1 A<q9(9)@2", "V:PHANTOM"),
        wrong("what was published only later", "P5@0 ok5=m5@0.05 A<q6(6)@1 P6@10 ok6=m6@10.05", "V:PHANTOM"),
        wrong("a phantom and what was published before", f"{EXCERPT} A<4@0.01 A<q9(9)@0.5 A<5,6,7@1", "V:PHANTOM"),
        wrong("another epoch begins at 1", f"{EXCERPT} P1[e2]@5 ok1=n1@5.05 A<5,6,7@1 A<n1(1)@6 A<q2(2)[e2]@7", "V:PHANTOM"),
        wrong("the first that is recorded is left out", f"{EXCERPT} A<4@0.5 A<6@1", "V:ORDER_GAP"),
        wrong("order among what is recorded", f"{EXCERPT} A<4@0.5 A<5,7,6@1", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("one that was left out of a run", f"{EXCERPT} A<4,5,6,7@1 A<5@20 A<7@20.1", "V:REDELIVERY_SKIP"),
        wrong("what is redelivered and has another number", f"{EXCERPT} A<4@0.5 A<m4(3)@1", "V:ID_CONFLICT"),
        wrong("a sequence number below the first of an epoch that is whole", "P1,2 A<1@1 A<q0(0)@2", "V:PHANTOM"),
    ],
)  # fmt: skip
def test_an_excerpt_hides_nothing_of_what_it_has(one: Definite) -> None:
    one.check()


# --- content, ids, phantoms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        legal("two keys may have the same numbers", "P1,2 on k2 P1 A<1@0.5 on k A<1,2@1"),
        legal("delivered before it is confirmed, with the id of the confirmation", "P1@0 A<m1(1)@0.2 ok1=m1@0.3"),
        legal("a copy of a retry is confirmed as another", "P1@0 A<a1(1)@0.2 A<b1(1)@0.25 ok1=b1@0.3"),
        legal("a publish and its republish are both confirmed", "P1@0 info1@0.2 P1'gen1@0.3 ok1'gen1=b1@0.4 A<a1(1)@1 A<b1(1)@1.1"),
        legal("messages of another probe", "P1,2 A<1@1 A<f1(1)[other]@1.1 A<2@1.2"),
    ],
)  # fmt: skip
def test_ids_and_numbers_agree(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("under another key", "P1,2 on k2 P1 A<1@0.5 A<m1(1)!ordering_key@1", "V:ID_CONFLICT"),
        wrong("under a key that nobody publishes", "P1,2 A<1@1 on k9 A<m2(2)!ordering_key@1.1", "V:ID_CONFLICT"),
        wrong("under another key only, and never under its own", "P1,2 A<1@1 on k9 A<m2(2)!ordering_key@1.1 A ack 2@1.2 end @500", "V:ID_CONFLICT L:STUCK"),
        wrong("a wrong checksum under another key", "P1,2 A<1@1 on k9 A<x2(2)!checksum@1.1", "V:ID_CONFLICT"),
        wrong("a wrong checksum of a late copy", "P1,2 A<1,2@1 A<z1(1)!checksum@2", "V:ID_CONFLICT"),
        wrong("a wrong checksum on the second delivery only", "P1,2 A<1,2@1 A<1!checksum@20 A<2@20.1", "V:ID_CONFLICT"),
        wrong("ids swapped", "P1,2 A<m1(2)@1 A<m2(1)@1.1", "V:ID_CONFLICT"),
        wrong("ids swapped, confirmed after the delivery", "P1@0 P2@0 A<m1(2)@0.2 A<m2(1)@0.25 ok1=m1@0.3 ok2=m2@0.3", "V:ID_CONFLICT"),
        wrong("the id of the same number in another epoch", "P1 P1[e2]@5 ok1=n1@5.05 A<1@1 A<n1(1)[e1]@6", "V:ID_CONFLICT"),
        wrong("the id of the same number in another epoch, confirmed after the delivery", "P1@0 P1[e2]@0 A<x1(1)@1 ok1=x1@2", "V:ID_CONFLICT"),
        wrong("an id that was confirmed for another, delivered before its own was", "open A of client A P1@0 P2@0 ok1=m1@0.1 A<m1(2)@1 ok2=m2@2", "V:ID_CONFLICT"),
        wrong("the id of an earlier epoch", "P1 P1[e2]@5 ok1=n1@5.05 A<1@1 A<m1(1)[e2]@6", "V:ID_CONFLICT"),
        limit(wrong("one id confirmed for two messages", "P1@0 ok1=m1@0.05 P2@0.1 ok2=m1@0.15 A<m1(1)@1", "V:ID_CONFLICT")),
        wrong("the wrong message carries an id that was confirmed long before", "P1,2,3 A<1@1 A<2@1.1 A<m2(3)@1.2", "V:ID_CONFLICT"),
    ],
)  # fmt: skip
def test_ids_and_numbers_contradict_each_other(one: Definite) -> None:
    one.check()


HUGE = 10**9
GHOSTLY = f"A<ph({HUGE})@1.5 A ack {HUGE}@1.6"


@pytest.mark.parametrize(
    "one",
    [
        wrong("a swap", f"P1@0 ok1=m1@0.1 A<1@1 {GHOSTLY} P2@2 P3@2 ok2=m2@2.1 ok3=m3@2.1 A<3@3 A<2@3.1", "V:PHANTOM V:ORDER_INVERSION", window=8),
        wrong("a gap", f"P1@0 ok1=m1@0.1 A<1@1 {GHOSTLY} P2@2 P3@2 ok2=m2@2.1 ok3=m3@2.1 A<3@3", "V:PHANTOM V:ORDER_GAP", window=8),
        wrong("a skip", f"P1,2,3,4 A<1@1 {GHOSTLY} A<2,3@2 A<2@20 A<4@20.1", "V:PHANTOM V:REDELIVERY_SKIP", window=8),
        wrong("a split", f"P1,2,3,4 A<1@1 {GHOSTLY} A<2@2 B<3@20", "V:PHANTOM V:AFFINITY_SPLIT"),
        wrong("a message that is stuck", f"P1,2 A<1@1 A ack 1@1.1 {GHOSTLY} end @500", "V:PHANTOM L:STUCK"),
        wrong("a refused message", f"P1 A<1@1 A nack 1@1.1 {GHOSTLY} end @500", "V:PHANTOM L:UNACKED_STALL"),
        wrong("a second phantom", f"P1 A<1@1 {GHOSTLY} A<q7(7)@1.7", "V:PHANTOM"),
        wrong("a message that failed", f"P1 A<1@1 {GHOSTLY} P2@2 fail2@2.1 A<g2(2)@3", "V:PHANTOM V:GHOST"),
        wrong("a swap in the next epoch", f"P1@0 ok1=m1@0.1 A<1@1 {GHOSTLY} P1[e2]@2 P2[e2]@2 ok1=n1@2.1 ok2=n2@2.1 A<n2(2)@3 A<n1(1)@3.1", "V:PHANTOM V:ORDER_INVERSION", window=8),
        wrong("the message itself when it is published at last and swapped", "P1@0 ok1=m1@0.1 A<1@1 A<q3(3)@1.1 P2@2 P3@2 ok2=m2@2.1 ok3=m3@2.1 A<3@3 A<2@3.1", "V:PHANTOM V:ORDER_INVERSION"),
    ],
)  # fmt: skip
def test_a_phantom_hides_nothing(one: Definite) -> None:
    one.check()


def test_every_phantom_is_reported() -> None:
    line = "P1 A<1@1 " + " ".join(f"A<q{seq}({seq})@{seq}" for seq in range(7, 27))
    assert sum(finding.kind == "PHANTOM" for finding in findings(line, rules_of(window=8))) == 20
