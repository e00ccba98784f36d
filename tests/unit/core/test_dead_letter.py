"""Dead letters: what has left the subscription may be passed over; with a policy redelivery need not be consistent at all."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from prober.core.excuses import DEAD_LETTER
from tests.unit.core.cases import PULL, PUSH, Case, case, only

POLICY: dict[str, Any] = {"dead_letter_max_attempts": 3}
TWICE = "P1,2,3 A<1,2,3@1 A<1,2@1.3"  # one attempt short of the policy's limit for 2


@pytest.mark.parametrize(
    "one",
    [
        case("it was seen to leave", "P1,2,3 A<1,2,3@1 A nack 2@1.5 dlq m2@1.9 A<1@2 A<3@2.1", **POLICY),
        case("it was seen to leave, without a policy that we know of", "P1,2,3 A<1,2,3@1 A nack 2@1.5 dlq m2@1.9 A<1@2 A<3@2.1"),
        case("another was seen to leave", "P1,2,3,4 A<1,2,3,4@1 dlq m2@1.9 A<1@2 A<4@2.1", "I:REDELIVERY_SKIP", **POLICY),
        case("it may have left", f"{TWICE} A<1@4 A<3@4.1", "I:REDELIVERY_SKIP", **POLICY),
        case("not even after too few attempts", "P1,2,3 A<1,2,3@1 A<1@4 A<3@4.1", "I:REDELIVERY_SKIP", **POLICY),
        case("no policy", f"{TWICE} A<1@4 A<3@4.1", "V:REDELIVERY_SKIP"),
        case("the service has counted more attempts", "P1,2,3 A<1@1 A<2#2@1.1 A<3@1.2 A<1@4 A<3@4.1", "I:REDELIVERY_SKIP", **POLICY),
        case("one of two may have left", "P1,2,3,4 A<1,2,3,4@1 A<1,2@1.5 A<1@4 A<4@4.1", "I:REDELIVERY_SKIP", **POLICY),
        case("too few pulls were lost to dead-letter it", "P1 pull b@0.5 close b@0.6 pull c@0.7 pull d@1 lose d@2 pull f@90 close c@90 pull g@180 close f@180 pull h@270 close g@270 end @280", "L:STUCK", mode=PULL, dead_letter_max_attempts=5),
        case("enough pulls were lost to dead-letter it", "P1 pull b@0.5 lose b@1 pull c@1 lose c@2 pull d@2 lose d@3 pull f@4 end @500", "I:STUCK", mode=PULL, dead_letter_max_attempts=5),
        case("pulls that wait for less than the leases of four attempts", "P1,2 pull a@1 pull b@2 pull c@3 pull d@4 pull x@100 x<2@101 x ack 2@101.1 close a@110 close b@110 close c@110 close d@110 end @130", "V:ORDER_GAP", mode=PULL, dead_letter_max_attempts=5),
        case("an attempt may have gone into a stream that was closed", "open A of client a open B of client b close A@10 P1,2@20 ok1=m1@20.1 ok2=m2@20.1 B<2@21 B ack 2@21.1", "I:ORDER_GAP", dead_letter_max_attempts=2, delivery_delay_max_s=0.5, close_detection_max_s=30.0),
        case("leases of no length end at once, so attempts into it have no limit", "open A of client a open B of client b close A@10 P1,2@20 ok1=m1@20.1 ok2=m2@20.1 B<2@21 B ack 2@21.1", "I:ORDER_GAP", dead_letter_max_attempts=9, ack_deadline_s=0.0, delivery_delay_max_s=0.5, close_detection_max_s=30.0),
        case("nobody knows when the service notices it", "open A of client a open B of client b close A@10 P1,2@50 ok1=m1@50.1 ok2=m2@50.1 B<2@51 B ack 2@51.1", "I:ORDER_GAP", dead_letter_max_attempts=2, delivery_delay_max_s=0.5, close_detection_max_s=inf),
        case("the service knew that the stream was closed", "open A of client a open B of client b close A@10 P1,2@50 ok1=m1@50.1 ok2=m2@50.1 B<2@51 B ack 2@51.1", "V:ORDER_GAP", dead_letter_max_attempts=2, delivery_delay_max_s=0.5, close_detection_max_s=30.0),
        case("it left before it was ever received", "P1,2,3 A<1@1 dlq m2@1.05 A<3@1.1 A ack 1,3@1.2 end @500", **POLICY),
        case("it left before it was received, after the hole was seen", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 dlq m2@2 end @500", "V:ORDER_GAP", **POLICY),
        case("the tail left before it was received", "P1,2 A<1@1 A ack 1@1.1 dlq m2@5 end @500", **POLICY),
        case("push: the refused one left", "P1,2 r1<1@1 r1 nack 1@1.1 dlq m1@5 r2<2@20", mode=PUSH, **POLICY),
        case("nobody holds it any more", "P1,2 A<1@1 dlq m1@1.4 B<2@2", "I:AFFINITY_SPLIT", **POLICY),
        case("another is still held", "P1,2,3 A<1,2@1 dlq m1@1.4 B<3@2", "V:AFFINITY_SPLIT", **POLICY),
        case("one is never redelivered and may have left, one cannot have", "P1,2 A<1@1 A<1@1.1 A<2@1.2 end @500", "I:UNACKED_STALL L:UNACKED_STALL", **POLICY),
        case("it keeps no other key back any more", "on k2 P1 A<1@0.2 A nack 1@0.3 dlq k2m1@0.5 on k P1@1 ok1=m1@1.1 end @150", "L:STUCK", **POLICY),
        case("it is redelivered although it left", "P1,2,3 A<1,2,3@1 dlq m2@1.9 A<2,3@2", **POLICY),
    ],
)  # fmt: skip
def test_dead_letters(one: Case) -> None:
    one.check()


def test_why_a_skip_is_in_doubt() -> None:
    assert only(f"{TWICE} A<1@4 A<3@4.1", "REDELIVERY_SKIP", dead_letter_max_attempts=3).doubt == DEAD_LETTER
