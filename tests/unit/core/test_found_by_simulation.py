"""Legal histories that the checker once accused, found by the simulated service: one line for each class.

Each line says why the documents allow it; what the checker may say of it is at most indeterminate.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import PULL, PUSH, Definite, legal


@pytest.mark.parametrize(
    "one",
    [
        legal("records of two epochs side by side, by two clocks", "P1[e1]@0 ok1=a1@0.1 P1[e2]@0.3 ok1=b1@0.4 P1[e3]@2 ok1=c1@2.1 pull x@9 pull y@9 x<b1(1)[e2]@10 x<c1(1)[e3]@10 y<a1(1)@10.1", mode=PULL, clock_error_s=0.6),
        legal("one burst, later numbers first", "P1@0 P2@0 P3@0 P4@0 info1@0.1 abandon1@0.1 ok2=m2@0.1 ok3=m3@0.1 ok4=m4@0.1 pull x@9 pull y@9 x<3@10 x<4@10 y<2@10.3 y ack 2@10.4", mode=PULL, clock_error_s=1),
        legal("a second copy before the first, within the clock error", "P1,2 pull x@9 pull y@9 x<2~6@10 x<1~7@10 y<1~5@10.5 y ack 1@10.6", mode=PULL, clock_error_s=1),
        legal("a second copy when the first has expired", "P1@0 ok1=m1@0.1 P2@1 ok2=m2@1.1 pull x@70 x<2~1@71 x<1~2@71", mode=PULL, message_retention_s=60),
        legal("dead-lettered where lost pulls are not on record", "P1,2 pull a@1 pull b@2 pull c@3 pull d@4 pull x@100 x<2@101", mode=PULL, dead_letter_max_attempts=5),
        legal("dead-lettered before it was received, and nothing stuck", "P1@0 ok1=m1@0.1 a<1@1 a ack 1@1.1 P2@2 ok2=m2@2.1 end @900", mode=PUSH, dead_letter_max_attempts=5),
        legal("a lost request waits for its back-off", "P1@0 ok1=m1@0.1 a<1@1 a ack 1@1.1 P2@90 ok2=m2@90.1 b<2@760 b ack 2@761 end @800", mode=PUSH, retry_backoff_max_s=600),
        legal("a lease that is prolonged after its position was forgotten", "P1,2,3 pull a@0.5 a<1,2@1 a ack 2@1.2 a modack 1 400s@2 pull b@3 b<3@390 b ack 3@390.1 end @400", mode=PULL, window=1),
        legal("what was put back comes on a stream that is over by then", "open A of client A open B of client A P1,2 A<2@1 close A@1.01 B<1@1.02 B ack 1,2@1.1 close B@2 P3@3 ok3=m3@3.1 open C of client A@800 C<3@801 C ack 3@801.1 end @900"),
        legal("the first attempt on record is not the first", "P1@0 ok1=m1@0.1 P2'gen1@1 fail2@1.1 P3@2 ok3=m3@2.1 A<1@3 A<x2(2)@3.1 A<3@3.2"),
        legal("a subscription made between the two copies of a message", "P1,2,3 P4@9 ok4=m4@9.1 pull a@7.5 a<1~7@8 a ack 1@8.1 pull b@8.2 b<4~9@40 b ack 4@40.1 pull c@41 end @500", mode=PULL, subscription_predates_first_publish=False),
        legal("a stream from before the record, and its flow control", "P1,2 A<1@0.5 hole @1 A<2@30 A modack 2 600s@31 P3@32 ok3=m3@32.1 A ack 2@500 A<3@501 A ack 3@502 end @600"),
        legal("another key is held on to after an acknowledgement that was lost", "on k2 P1 A<1@1 A ack 1@1.1 A modack 1 600s@2 A modack 1 600s@500 on k P1@3 ok1=m1@3.1 A<1@700 A ack 1@700.1 end @900"),
        legal("what is held has expired", "P1@0 ok1=m1@0.1 P2@30 ok2=m2@30.1 pull a@50 a<1@51 pull b@70 b<2@71", mode=PULL, message_retention_s=60),
    ],
)  # fmt: skip
def test_legal(one: Definite) -> None:
    one.check()
