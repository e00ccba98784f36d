"""What excuses for a time: the longest grace period counts, what is older than the retention may be gone, and afterwards all rules hold.

What would break an implementation that takes the larger of two ends: a grace period without an end (a hole, until streams are new) beside
one with an end; a second subscription; the baseline after it. And one that excuses what lies before the retention: a younger message
that was skipped together with an old one; a message that was late before it expired.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.checker.cases import PULL, PUSH, Definite, across, definitely, legal, rules_of, wrong

DONE = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5"
MORE = "P4@30 ok4=m4@30.05 P5@30.1 ok5=m5@30.15 P6@30.2 ok6=m6@30.25"
LATER = "P4@100 ok4=m4@100.05 P5@100.1 ok5=m5@100.15 P6@100.2 ok6=m6@100.25"


@pytest.mark.parametrize(
    "one",
    [
        legal("a seek, then a hole", f"{DONE} seek 60@10 hole @20 open B of client A@20.5 {MORE} B<4@31 B<6@32"),
        legal("a hole, then a short seek", f"{DONE} hole @10 seek 1@11 {MORE} A<4@31 A<6@32"),
        legal("a long seek, then a short one", f"{DONE} seek 60@10 seek 1@20 {MORE} A<4@31 A<6@32"),
        legal("a filter change, then a short seek", f"{DONE} filter 60@10 seek 1@20 {MORE} A<4@31 A<6@32"),
        legal("a seek, then a short filter change", f"{DONE} seek 60@10 filter 1@20 {MORE} A<4@31 A<6@32"),
        legal("a seek, and the stream is new", f"{DONE} seek 60@10 close A@11 open B of client A@12 {MORE} B<4@31 B<6@32"),
        legal("two holes", f"{DONE} hole @10 hole @11 open B of client A@12 {LATER} B<4@101 B<5,6@102"),
        legal("a seek back", f"{DONE} seek 60@10 A<2,3@12 A ack 2,3@13"),
        legal("a seek back to where nothing is known", f"{DONE} seek 60@10 A<1,2,3@12 A<1@12.5 A<3@12.6"),
        legal("a hole, and everything is in order afterwards", f"{DONE} hole @10 open B of client A@12 {LATER} B<4,5,6@101 B ack 4,5,6@102 end @500"),
        legal("a seek moves the key", "P1,2,3 A<1,2@1 seek 60@5 B<3@6"),
        legal("pull", "P1,2,3,4 pull b@0.9 b<1,2@1 b ack 1,2@1.1 seek 60@10 seek 1@12 pull c@29 c<1@30 pull d@31 d<4@32", mode=PULL),
        legal("push", "P1,2,3 a<1@1 a ack 1@1.1 seek 60@10 seek 1@12 b<3@30 b ack 3@30.1", mode=PUSH),
        legal("exactly-once", f"{DONE} A ackOK 1,2,3@1.6 seek 60@10 seek 1@12 A<1,2,3@30", exactly_once=True),
        legal("a seek and what had expired", "P1,2,3 A<1@1 A ack 1@1.5 seek 5@600 P4@901 ok4=m4@901.05 A<4@902 A ack 4@903 end @1500", message_retention_s=600, delivery_deadline_s=2000),
    ],
)  # fmt: skip
def test_grace_periods_do_not_shorten_each_other(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("both seeks are over", f"{DONE} seek 10@10 seek 30@15 {LATER} A<4@101 A<6@102", "V:ORDER_GAP"),
        wrong("a seek and a hole are over", f"{DONE} seek 60@10 hole @20 open B of client A@20.5 {LATER} B<4@101 B<6@102", "V:ORDER_GAP"),
        wrong("before the seek", "P1,2,3 A<1@1 A<3@1.1 seek 60@10 seek 1@12", "V:ORDER_GAP"),
        wrong("a skip in a run, after both", f"{DONE} seek 10@10 seek 1@12 {LATER} A<4,5,6@101 A<4@120 A<6@120.1", "V:REDELIVERY_SKIP"),
        wrong("a split, after both", f"{DONE} seek 10@10 seek 1@12 {LATER} A<4,5@101 B<6@110", "V:AFFINITY_SPLIT"),
        wrong("exactly-once, after both", f"{DONE} seek 10@10 seek 1@12 {LATER} A<4@101 A ack 4@102 A ackOK 4@103 A<4@130", "V:EOD_REDELIVERY_AFTER_ACK", exactly_once=True),
        wrong("a message that is stuck, after both", f"{DONE} seek 10@10 seek 1@12 P4@100 ok4=m4@100.05 end @500", "L:STUCK"),
    ],
)  # fmt: skip
def test_after_the_last_grace_period_rules_hold(one: Definite) -> None:
    one.check()


def test_a_seek_of_one_subscription_excuses_no_other() -> None:
    lines = ("s", "P1,2,3 A<1@1 A<3@10"), ("t", "B<1,2,3@1 B ack 1,2,3@2 seek 60@5 seek 1@6")
    definitely(across(*lines), "V:ORDER_GAP")


# --- retention -------------------------------------------------------------------------------------------------------------------

RETAINED = {"message_retention_s": 600}
FIRST = "P1,2,3 A<1@1 A ack 1@1.1 close A@1.15 open A2 of client A@900"
FOURTH = "P4@901 ok4=m4@901.05"


@pytest.mark.parametrize(
    "one",
    [
        legal("nobody came", f"{FIRST} {FOURTH} A2<4@902 A2 ack 4@902.1 end @1500", **RETAINED),
        legal("one of them is young enough", f"P1,2 P3@350 ok3=m3@350.05 A<1@1 A ack 1@1.1 close A@1.15 open A2 of client A@900 {FOURTH} A2<3@902 A2<4@902.1 A2 ack 3,4@903 end @1500", **RETAINED),
        legal("all of them", f"P1,2,3 open A of client A@900 {FOURTH} A<4@902 A ack 4@902.1 end @1500", **RETAINED),
        legal("nothing comes after them", f"{FIRST} end @1500", **RETAINED),
        legal("goes on in order", f"{FIRST} {FOURTH} P5@902 ok5=m5@902.05 A2<4@903 A2<5@903.1 A2 ack 4,5@904 end @1500", **RETAINED),
        legal("a run goes over one that expired on the way", "P1@0 ok1=m1@0.1 P2@1 ok2=m2@1.1 P3@590 ok3=m3@590.1 A<1@2 A<2@2.1 A<3@591 A<1@599 A<3@606", **RETAINED, unacked_deadline_s=3000),
        legal("a refused message expires", "P1,2 A<1@1 A nack 1@1.1 end @500", message_retention_s=100),
        legal("a message that was never delivered expires", "P1 open A of client A end @500", message_retention_s=100),
        legal("a run expires", "P1,2 A<1,2@1 A ack 2@1.2 A nack 1@1.3 A<1@2 A ack 1@2.1 end @500", message_retention_s=100),
        legal("pull", f"P1,2,3 pull b@0.9 b<1@1 b ack 1@1.1 close b@1.2 {FOURTH} pull c@902 c<4@902.1 c ack 4@903 close c@904 end @1500", mode=PULL, **RETAINED),
        legal("push was down", f"P1,2 a<1@1 a ack 1@1.1 {FOURTH} b<4@902 b ack 4@903 end @1500", mode=PUSH, delivery_deadline_s=2000, **RETAINED),
        legal("it is sent at the last moment, and comes a little later", "P1@0 ok1=m1@0.1 open A of client A@599 A<1@604 A ack 1@604.1 end @900", **RETAINED),
    ],
)  # fmt: skip
def test_what_is_older_than_the_retention_may_be_gone(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("a younger one is skipped together with an older one", f"P1,2 P3@350 ok3=m3@350.05 A<1@1 A ack 1@1.1 close A@1.15 open A2 of client A@900 {FOURTH} A2<4@902", "V:ORDER_GAP", **RETAINED),
        wrong("skipped before it expired", "P1,2,3 A<1@1 A<3@500 A ack 1,3@501 end @2000", "V:ORDER_GAP", delivery_deadline_s=1000, **RETAINED),
        wrong("late before it expired", "P1 open A of client A end @2000", "L:STUCK", **RETAINED),
        wrong("a refused message is late before it expired", "P1 A<1@1 A nack 1@1.1 end @2000", "L:UNACKED_STALL", **RETAINED),
        wrong("order after it", f"{FIRST} {FOURTH} P5@902 ok5=m5@902.05 P6@902.1 ok6=m6@902.15 A2<4@903 A2<6@903.1", "V:ORDER_GAP", **RETAINED),
        wrong("a run leaves out one that is young enough", "P1@0 ok1=m1@0.1 P2@500 ok2=m2@500.1 P3@500.2 ok3=m3@500.3 A<1@1 A<2@501 A<3@501.1 A<1@550 A<3@550.1", "V:REDELIVERY_SKIP", **RETAINED),
        wrong("a run leaves out a copy, whose publish is forgotten", "P1,2,3 A<1,2,3@1 A<x(2)@1.5 A<y(3)@1.6 A nack 3@2 A<3@3 A<y(3)@3.1", "V:REDELIVERY_SKIP", **RETAINED),
        wrong("without a retention", f"{FIRST} {FOURTH} A2<4@902", "V:ORDER_GAP"),
        wrong("the confirmed one came after the expired ones, but not in order", "P1,2,3 open A of client A@900 P4@900.1 P5@900.1 ok4=m4@900.2 ok5=m5@900.2 A<5@902 A<4@902.1", "V:ORDER_INVERSION|V:ORDER_GAP", **RETAINED),
    ],
)  # fmt: skip
def test_what_is_younger_is_not(one: Definite) -> None:
    one.check()


def test_a_subscription_whose_messages_expired_is_no_divergence() -> None:
    lines = ("s", f"{FIRST} {FOURTH} A2<4@902 A2 ack 4@903"), ("t", "B<1,2,3@1 B ack 1,2,3@2 B<4@902 B ack 4@903")
    definitely(across(*lines, by_subscription={"s": rules_of(**RETAINED), "t": rules_of()}))


def test_copies_of_an_epoch_that_began_later_are_not_too_old() -> None:
    """Their publishes are settled and forgotten by the time they come; they are as old as their epoch at most."""
    lines = ("s", "P1,2,3 A<1,2,3@1 A<x(1)@2 A<y(2)@2.1"), ("t", "B<1,2,3@1 B<y(2)@3")
    definitely(across(*lines, rules=rules_of(**RETAINED)), "V:ORDER_DIVERGENCE")


def test_both_are_compared_again_afterwards() -> None:
    unconfirmed = "P5@903 P6@903 P7@903"
    lines = (
        ("s", f"{FIRST} {FOURTH} A2<4@902 {unconfirmed} A2<5,6,7@904"),
        ("t", "B<1,2,3@1 B ack 1,2,3@2 B<4@902 B<5,7,6@904"),
    )
    definitely(across(*lines, by_subscription={"s": rules_of(**RETAINED), "t": rules_of()}), "V:ORDER_DIVERGENCE")
