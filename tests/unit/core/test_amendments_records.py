"""A record is a message id with a publish time: the service may store one message twice under one id.

What would break an implementation that only stops calling the second copy a redelivery: a run that must include it, a copy whose own
acknowledgement is missing, exactly-once delivery, the end of the history right after it, another subscription.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import LIMIT, PULL, PUSH, Case, Definite, across, case, definitely, legal, wrong

THREE = "P1,2,3,4,5 A<1~1@1 A<2~2@1.1 A<3~3@1.2"
TWICE = f"{THREE} A<2~9@1.3"  # the log is 1, 2, 3, 2 again, 4, 5
STREAMS = "open A1 of client A open A2 of client A"
EOD = {"exactly_once": True}


@pytest.mark.parametrize(
    "one",
    [
        legal("the next message follows the second copy", f"{TWICE} A<4~4@1.4"),
        legal("the second copy follows the first", "P1,2,3 A<1~1@1 A<2~2@1.1 A<2~9@1.2 A<3~3@1.3"),
        legal("three copies", f"{TWICE} A<4~4@1.4 A<2~10@1.5 A<5~5@1.6"),
        legal("a run includes it", f"{TWICE} A<4~4@1.4 A nack 3@1.5 A<3~3@2 A<2~9@2.1 A<4~4@2.2 A<5~5@2.3"),
        legal("a run begins with it", f"{TWICE} A<4~4@1.4 A<2~9@20 A<4~4@20.1 A<5~5@20.2"),
        # a refusal names an id, and the copy that it meant may be either
        legal("the second copy is refused", f"{TWICE} A ack 1,3@1.4 A nack 2@2 A<2~9@3 A<4~4@3.1"),
        legal("the first copy is refused", f"{TWICE} A ack 1,3@1.4 A nack 2@2 A<2~2@3 A<3~3@3.1 A<2~9@3.2 A<4~4@3.3"),
        # nothing behind it had ever been delivered, so it begins no run that would have to reach 3
        legal("nothing comes after it", "P1,2,3 A<1~1@1 A<2~2@1.1 A<3~3@1.2 A ack 1,2,3@1.25 A<2~9@1.4 A ack 2@1.5 end @500"),
        legal("the other copy is acknowledged, the lease of this one ends", "P1,2 A<1~1@1 A<1~9@1.1 A ack 1@1.2 A<1~9@70 A<2~2@70.1"),
        legal("both in one response", "P1,2,3 pull b@0.9 b<1~1@1 b<2~2@1 b<2~9@1 b<3~3@1", mode=PULL),
        legal("in the next response", "P1,2,3 pull b@0.9 b<1~1@1 b<2~2@1 b<3~3@1 b ack 1,2,3@1.1 pull c@20 c<2~9@20.1", mode=PULL),
        legal("the next request", "P1,2 a<1~1@1 a ack 1@1.1 b<2~2@20 b ack 2@20.1 c<1~9@40 c ack 1@40.1 end @500", mode=PUSH),
        legal("push goes on behind the second copy", "P1,2,3 a<1~1@1 a ack 1@1.1 b<2~2@20 b ack 2@20.1 c<1~9@40 c ack 1@40.1 d<3~3@60 d ack 3@60.1 end @500", mode=PUSH),
        # exactly-once guarantees nothing about what was stored twice
        legal("exactly-once, after the confirmed acknowledgement", "P1,2 A<1~1@1 A ack 1@1.1 A ackOK 1@1.5 A<1~9@30 A<2~2@30.1", **EOD),
        legal("exactly-once, while the first copy is outstanding", "P1,2 A<1~1@1 A<1~9@10 A<2~2@10.1", **EOD),
        legal("exactly-once, the acknowledgement meant the other copy", "P1,2 A<1~1@1 A<1~9@1.1 A ack 1@1.2 A ackOK 1@1.3 A<1~9@80 A<2~2@80.1", **EOD),
        legal("the key moves with the second copy alone", "P1,2 A<1~1@1 A<2~2@1.1 A ack 1,2@1.2 B<1~9@30"),
        legal("a copy that was stored later overtakes the first on another stream", f"{STREAMS} P1,2 A1<2~2@1 A1<1~9@1.1 A2<1~1@1.2"),
        legal("the copies of two messages come crosswise", f"{STREAMS} P1,2,3 A1<2~2@1 A2<1~1@1.1 A1<1~9@1.2 A2<2~9@1.3 A1<3~3@1.4"),
        legal("it is stored at the very same place on the clock of another message", "P1,2 A<1~5@1 A<2~5@1.1"),
        legal("a primary that came before a baseline was known is redelivered", "P2@0 info1@0.3 info2@0.3 P1'gen1@0.4 P2'gen1@0.4 ok1'gen1=b1@0.6 ok2'gen1=b2@0.6 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A nack 1@1.5 A<b1(1)@3 A<b2(2)@3.1 A ack 1,2@4", subscription_predates_first_publish=False),
        legal("what came before a baseline was known is redelivered", "open A of client A@5 open B of client A@5 P1@0 P2@0.1 P3@0.2 P4@0.3 A<1~1@6 B<4~4@6.1 A<2~2@6.2 A<3~3@6.3 B<3~5@6.4 A ack 1,2,3@6.5 B ack 3,4@6.6 ok1=m1@7 ok2=m2@7 ok3=m3@7 ok4=m4@7 P5@10 ok5=m5@10.1 A<5@11 A ack 5@11.1 A<4~4@20 A<3~5@20.1 A<5@20.2", subscription_predates_first_publish=False, delivery_delay_max_s=0.6),
    ],
)  # fmt: skip
def test_a_message_stored_twice(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("the same record again", f"{THREE} A<4~4@1.3 A<2~2@2 A<5~5@2.1", "V:REDELIVERY_SKIP"),
        wrong("a run leaves the second copy out", f"{TWICE} A<4~4@1.4 A<2~2@20 A<3~3@20.1 A<4~4@20.2", "V:REDELIVERY_SKIP"),
        wrong("a run leaves out what lies behind the second copy", f"{TWICE} A<4~4@1.4 A<2~9@20 A<5~5@20.1", "V:REDELIVERY_SKIP"),
        wrong("a run goes from the first copy to what follows the second", f"{TWICE} A<4~4@1.4 A<2~2@20 A<4~4@20.1", "V:REDELIVERY_SKIP"),
        wrong("a run takes the copies for each other", f"{TWICE} A<4~4@1.4 A<2~9@20 A<3~3@20.1 A<2~2@20.2 A<4~4@20.3", "V:REDELIVERY_SKIP"),
        wrong("the second copy carries another message", "P1,2,3 A<1~1@1 A<2~2@1.1 A<m2(3)~9@1.2", "V:ID_CONFLICT"),
        wrong("the first copies come in the wrong order", "P1,2 A<2~2@1 A<1~1@1.1 A<2~9@1.2", "V:ORDER_GAP"),
        wrong("a swap on one stream, and the very same record is redelivered", f"{STREAMS} P1,2,3,4 A1<1~1@1 A1<2~2@1.1 A1<4~4@1.8 A1<3~3@1.95 A1<3~3@2.7 stop @15", "V:ORDER_GAP|V:ORDER_INVERSION", delivery_delay_max_s=1),
        wrong("the second copy comes instead of the next", "P1,2,3 A<1~1@1 A<1~9@1.1 A<3~3@1.2", "V:ORDER_GAP"),
        # the acknowledgement was sent before the second copy came, so it meant the first
        wrong("the second copy is never acknowledged and is never redelivered", "P1 A<1~1@1 A ack 1@1.1 A<1~9@20 end @500", "L:UNACKED_STALL"),
        wrong("exactly-once, the record that was confirmed", "P1 A<1~1@1 A ack 1@1.1 A ackOK 1@1.5 A<1~9@30 A<1~1@60", "V:EOD_REDELIVERY_AFTER_ACK", **EOD),
        wrong("exactly-once, the record that is outstanding", "P1 A<1~1@1 A ack 1@1.1 A ackOK 1@1.5 A<1~9@30 A<1~9@40", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", **EOD),
        wrong("the first copy twice in one response", "P1,2,3 pull b@0.9 b<1~1@1 b<2~2@1 b<2~2@1 b<3~3@1", "V:PULL_BATCH_ORDER", mode=PULL),
        wrong("a response that goes back to the first copy", "P1,2,3 pull b@0.9 b<1~1@1 b<2~2@1 b<3~3@1 b<2~9@1 b<2~2@1", "V:PULL_BATCH_ORDER", mode=PULL),
        wrong("the key moves with the second copy while the first messages are held", "P1,2 A<1~1@1 A<2~2@1.1 B<1~9@10", "V:AFFINITY_SPLIT"),
        wrong("push goes on past a refused second copy", "P1,2,3 a<1~1@1 a ack 1@1.1 b<2~2@20 b ack 2@20.1 c<1~9@40 c nack 1@40.1 d<3~3@60", "V:PUSH_ADVANCE_PAST_NACK", mode=PUSH),
        wrong("what came before a baseline was known is redelivered, and then a skip", "open A of client A@5 open B of client A@5 P1@0 P2@0.1 P3@0.2 P4@0.3 A<1~1@6 B<4~4@6.1 A<2~2@6.2 A<3~3@6.3 B<3~5@6.4 A ack 1,2,3@6.5 B ack 3,4@6.6 ok1=m1@7 ok2=m2@7 ok3=m3@7 ok4=m4@7 P5@10 ok5=m5@10.1 A<5@11 A ack 5@11.1 P6@12 ok6=m6@12.1 P7@13 ok7=m7@13.1 A<6,7@14 A<4~4@20 A<3~5@20.1 A<5@20.2 A<7@20.3", "V:REDELIVERY_SKIP", subscription_predates_first_publish=False, delivery_delay_max_s=0.6),
    ],
)  # fmt: skip
def test_what_a_second_copy_does_not_explain(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("a second publish time", "P1 A<1~1@1 A<1~9@1.1", "N:SERVICE_DUP"),
        case("the same publish time", "P1 A<1~1@1 A<1~1@1.1", ""),
        case("no publish times", "P1 A<1@1 A<1@1.1", ""),
        case("once a copy, even if it is redelivered", "P1 A<1~1@1 A<1~9@1.1 A<1~1@20 A<1~9@20.1", "N:SERVICE_DUP@1.1"),
    ],
)
def test_it_is_reported(one: Case) -> None:
    one.check()


COPIES = "P1,2,3,4 A<1~1@1 A<2~2@1.1 A<3~3@1.2 A<2~9@1.3 A<4~4@1.4"


def test_every_subscription_has_both_copies_in_the_same_places() -> None:
    definitely(across(("s", COPIES), ("t", "B<1~1@2 B<2~2@2.1 B<3~3@2.2 B<2~9@2.3 B<4~4@2.4")))


@LIMIT
def test_a_second_copy_in_another_place_is_a_divergence() -> None:
    definitely(across(("s", COPIES), ("t", "B<1~1@2 B<2~2@2.1 B<2~9@2.2 B<3~3@2.3 B<4~4@2.4")), "V:ORDER_DIVERGENCE")
