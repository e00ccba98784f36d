"""Legal histories that the checker once accused, found by the simulated service: one line for each class.

Each line says why the documents allow it; what the checker may say of it is at most indeterminate.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from prober.core.events import Closed, Opened
from prober.core.findings import Kind, Status
from prober.core.rules import Rules
from tests.notation import history
from tests.unit.core.cases import PULL, PUSH, Definite, definitely, legal, wrong
from tests.verification import SUBSCRIPTION, verify

TWO = "open A1 of client A open A2 of client A"
THREE = f"{TWO} open A3 of client A P1@0 P2@0 ok1=m1@1.5 ok2=m2@1.5"
BURST = "P1@0 P2@0 P3@0 P4@0 ok1=m1@0.5 ok2=m2@0.5 ok3=m3@0.5 ok4=m4@0.5"
BREAKS, GOES_ON = "open A1 of client A P1,2 A1<1,2@1", "open A2 of client A@4 P4@4.5 ok4=m4@4.6 A2<4@5 P5@5.5 ok5=m5@5.6 A2<5@6"
THIRD, BEGUN = "open A of client A open B of client B open C of client C", "P1@1.5 P2@1.5 ok1=m1@1.6 ok2=m2@1.6"
ABREAST_3 = f"{TWO} P1@0 P2@0 P3@0 P4@0 info3@0.4 abandon3@0.4 ok1=m1@0.5 ok2=m2@0.5 ok4=m4@0.5 A2<z3(3)@1 A1<1@1.2 A1<2@1.3 A1<4@1.4 A1 ack 1,2,4@1.5"
ABREAST = f"{TWO} {BURST} A1<z3(3)@1 A2<1@1.05 A2<2@1.06 A2<3@1.1 A2<4@1.15 A2 ack 1,2,3,4@1.2 A1<1@3 A1<4@3.05"
RACING = "P1@0 ok1=m1@0.3 P1[e2]@0.1 ok1=n1@0.4 A1<m1(1)@1 A2<n1(1)@1.02"
MANY = " ".join(f"P{n}@{n + 3} ok{n}=m{n}@{n + 3}.1 A1<{n}@{n + 4}" for n in range(2, 19))


@pytest.mark.parametrize(
    "one",
    [
        legal("records of two epochs side by side, by two clocks", "P1[e1]@0 ok1=a1@0.1 P1[e2]@0.3 ok1=b1@0.4 P1[e3]@2 ok1=c1@2.1 pull x@9 pull y@9 x<b1(1)[e2]@10 x<c1(1)[e3]@10 y<a1(1)@10.1 y ack 1@10.3", mode=PULL, clock_error_s=0.6),
        legal("one burst, later numbers first", "P1@0 P2@0 P3@0 P4@0 info1@0.1 abandon1@0.1 ok2=m2@0.1 ok3=m3@0.1 ok4=m4@0.1 pull x@9 pull y@9 x<3@10 x<4@10 y<2@10.3 y ack 2@10.4", mode=PULL, clock_error_s=1),
        legal("a second copy before the first, within the clock error", "P1,2 pull x@9 pull y@9 x<2~6@10 x<1~7@10 y<1~5@10.5 y ack 1@10.6", mode=PULL, clock_error_s=1),
        legal("a second copy when the first has expired", "P1@0 ok1=m1@0.1 P2@1 ok2=m2@1.1 pull x@70 x<2~1@71 x<1~2@71", mode=PULL, message_retention_s=60),
        legal("dead-lettered where lost pulls are not on record", "P1,2 pull a@1 pull b@2 pull c@3 pull d@4 pull x@300 x<2@301", mode=PULL, dead_letter_max_attempts=5),
        legal("dead-lettered where pulls are not on record before their answers", "P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 x<2@301 x ack 2@301.1 end @310", mode=PULL, dead_letter_max_attempts=5),
        legal("dead-lettered before it was received, and nothing stuck", "P1@0 ok1=m1@0.1 a<1@1 a ack 1@1.1 P2@2 ok2=m2@2.1 end @900", mode=PUSH, dead_letter_max_attempts=5),
        legal("a lost request waits for its back-off", "P1@0 ok1=m1@0.1 a<1@1 a ack 1@1.1 P2@90 ok2=m2@90.1 b<2@760 b ack 2@761 end @800", mode=PUSH, retry_backoff_max_s=600),
        legal("a lease that is prolonged after its position was forgotten", "P1,2,3 pull a@0.5 a<1,2@1 a ack 2@1.2 a modack 1 400s@2 pull b@3 b<3@390 b ack 3@390.1 end @400", mode=PULL, window=1),
        legal("what was put back comes on a stream that is over by then", "open A of client A open B of client A P1,2 A<2@1 close A@1.01 B<1@1.02 B ack 1,2@1.1 close B@2 P3@3 ok3=m3@3.1 open C of client A@800 C<3@801 C ack 3@801.1 end @900"),
        legal("the first attempt on record is not the first", "P1@0 ok1=m1@0.1 P2'gen1@1 fail2@1.1 P3@2 ok3=m3@2.1 A<1@3 A<x2(2)@3.1 A<3@3.2"),
        legal("a subscription made between the two copies of a message", "P1,2,3 P4@9 ok4=m4@9.1 pull a@7.5 a<1~7@8 a ack 1@8.1 pull b@8.2 b<4~9@40 b ack 4@40.1 pull c@41 end @500", mode=PULL, subscription_predates_first_publish=False),
        legal("another key is held on to after an acknowledgement that was lost", "on k2 P1 A<1@1 A ack 1@1.1 A modack 1 600s@2 A modack 1 600s@500 on k P1@3 ok1=m1@3.1 A<1@700 A ack 1@700.1 end @900"),
        legal("the key begins again below what is pending, again and again", "P1,2 A<1@1 A<2@1.1 A nack 2@1.2 " + " ".join(f"A<1@{t}" for t in range(20, 420, 20)) + " A<2@410 A ack 1,2@411 end @600"),
        legal("a run may be kept back by another key", "on k2 P1 A<1@0.2 A modack 1 400s@0.3 on k P1,2 A<1,2@1 A ack 1,2@1.2 A<1@20 A ack 1@20.1 A<2@390 A ack 2@390.1 end @395"),
        legal("a stream takes over what uses up its flow control", "open A1 of client A limit 1@0 P1 A1<1@1 open A2 of client A limit 1@2 close A1@3 " + " ".join(f"A1 modack 1 60s@{t}" for t in range(4, 404, 50)) + " P2@5 ok2=m2@5.1 A1 ack 1@400 A2<2@411 A2 ack 2@412 end @600"),
        legal("what is held has expired", "P1@0 ok1=m1@0.1 P2@30 ok2=m2@30.1 pull a@50 a<1@51 pull b@70 b<2@71", mode=PULL, message_retention_s=60),
        legal("lost with its stream, and then another key is held", "open A of client A open B of client B P1@1 ok1=m1@1.1 close B@5 on k2 P1@15 ok1=k2m1@15.1 A<1@15.2 A modack 1 300s@16 A ack 1@310 on k A<1@330 A ack 1@331 end @600"),
        legal("another key is held by what has left its window", "on k2 P1,2,3,4,5 A<1@0.5 A<2,3,4,5@0.6 A ack 2,3,4,5@1 A modack 1 300s@2 A ack 1@310 on k P1@1 ok1=m1@1.1 A<1@330 A ack 1@331 end @600", window=1),
        legal("the flow control is used up by what is extended, though acknowledged", "open A of client A limit 2@0 P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 P3@0.4 ok3=m3@0.5 A<1@1 A ack 1@1.1 A<2@1.2 A modack 1 600s@2 A modack 2 600s@2 A modack 1 600s@500 A modack 2 600s@500 A ack 1,2@700 A<3@701 A ack 3@702 end @900"),
        legal("another key was let go, but its lease had to end first", "on k2 P1 pull a@0.5 a<1@1 a ack 1@1.1 on k P1@2 ok1=m1@2.1 on k2 P2@3 ok2=k2m2@3.1 pull b@3.2 b<1,2@61.1 b ack 1@61.2 b modack 2 300s@62 b ack 2@310 on k pull c@4 c<1@330 c ack 1@331 end @600", mode=PULL),
        legal("passed before its refusal was applied, then refused below again and again", "P1,2,3 A<1,2@1 A ack 1@1.2 A nack 2@1.25 A<3@1.3 A ack 3@1.4 " + " ".join(f"A<1@{t} A nack 1@{t}.5" for t in range(100, 1100, 100)) + " A<1,2,3@1150 A ack 1,2,3@1151 end @1200", retry_backoff_max_s=600),
        # who holds a key
        legal("answered to an earlier delivery, by another clock", "P1,2 pull a@0.9 a<1@1 pull b@70 b<1@71 pull c@75 c<2@76 a ack 1@76.5", mode=PULL, clock_error_s=1),
        legal("answered when its response seemed to be over, by another clock", "P1,2,3 pull b@9 b<1@10 pull c@10.4 c<2@10.5 b modack 1 1s@10.55 c ack 2@11 pull d@12 d<3@12.1 b ack 1@12.2", mode=PULL, clock_error_s=2, ack_lag_max_s=0.05, delivery_delay_max_s=0.1),
        legal("a second copy seems to be the first, by another clock", "P1,2 c<2@10 c ack 2@10.1 b<1~6@10.5 a<1~5@10.55 a ack 1@10.6 b ack 1@11.5", mode=PUSH, clock_error_s=1, delivery_delay_max_s=0.05),
        legal("a further record of a lower number, by another clock", "P1@0 P2@0 ok1=m1@0.1 ok2=m2@0.1 a<1@5 a ack 1@5.1 c<2@10 c ack 2@10.1 d<x(1)@9.9 d ack 1@12", mode=PUSH, clock_error_s=1, delivery_delay_max_s=0.05, ack_lag_max_s=0.05),
        legal("nothing tells which stands first", "P1@0 P2@0 info1@0.1 info2@0.1 pull a@0.5 pull b@0.5 a<x(1)@1 b<y(2)@1.1 b ack 2@1.2 pull c@30 c<y(2)@30.1", mode=PULL, clock_error_s=0.3),
        legal("an old pull is answered late", "P1,2 pull a@0.9 a<1,2@1 a ack 1,2@1.1 pull b@18 pull c@18 c<1,2@20 b<2@20.1", mode=PULL),
        legal("the same with a new message", "P1 pull a@0.9 a<1@1 a ack 1@1.1 P2@17 ok2=m2@17.1 pull b@18 pull c@18 c<1,2@20 b<2@20.1", mode=PULL),
        legal("a run from a foreign message drops what is held", "P1,2,3 A<1,2,3@1 A ack 1@1.1 B<9[e9]@20 B<3@20.1"),
        legal("what was acknowledged is left out, with a dead-letter policy", "P1,2 pull a@0.9 a<1,2@1 a ack 1,2@1.1 pull b@70 b<1@71 pull c@80 c<2@81", mode=PULL, dead_letter_max_attempts=5),
        # pushing, a slow copy of what was acknowledged, and a run from below
        legal("what is refused is of another region", "P1/eu@0 ok1=m1@0.05 P2/us@0.1 ok2=m2@0.15 P3/eu@0.2 ok3=m3@0.25 a<1@1 a ack 1@1.1 b<2@3 b nack 2@3.1 c<3@14 c ack 3@14.1 d<1@30 c2<3@34 d ack 1@34.5 stop @90", mode=PUSH),
        legal("a seek may have passed over what is refused", "P1,2,3 a<1@1 a ack 1@1.1 b<2@3 b nack 2@3.1 seek 60@4 e<3@20 e ack 3@21 x<1@200 x ack 1@201 d<1@300 c<3@304 c ack 3@304.1 d ack 1@304.5 stop @490", mode=PUSH),
        legal("the same, with messages since", "P1,2,3 a<1@1 a ack 1@1.1 b<2@3 b nack 2@3.1 seek 60@4 P4@70 ok4=m4@70.1 e<4@71 e ack 4@72 x<3@200 x ack 3@201 d<1@300 c<3@304 c ack 3@304.1 d ack 1@304.5 stop @490", mode=PUSH),
        legal("the first delivery since a seek begins a run", "P1,2,3 a<1@1 a ack 1@1.1 b<2@3 b nack 2@3.1 seek 60@4 e<3@20 e ack 3@21 d<1@300 c<3@304 c ack 3@304.1 d ack 1@304.5 stop @490", mode=PUSH),
        legal("acknowledged before deliveries were recorded", "P1,2,3 x<1@101 x ack 1@101.1 x2<2@110 e<3@180 e ack 3@180.1 d<1@300 c<3@304 c ack 3@304.1 stop @390", mode=PUSH, subscription_predates_first_publish=False),
        legal("a run from a record that stood behind the one that is held, as it seemed", f"{TWO} open B of client B {RACING} {MANY} A2 nack 1@30 B<n1(1)@30.5 B<m1(1)@30.6", delivery_delay_max_s=0.5),
        # exactly-once
        legal("what has left its window is nacked and redelivered, twice", "open A1 of client A open A2 of client A P1,2 A1<1,2@1 A1 nack 1@1.5 A1<1@2 A1 nack 1@2.1 A1<1@2.3 A1 nack 1@2.4 A2<2@2.9 A1<2@3 A1<1@3.3 A2<2@3.4 stop @30", exactly_once=True, window=1, delivery_delay_max_s=1),
        legal("the same, in order of arrival", "open A1 of client A open A2 of client A P1,2 A1<1,2@1 A1 nack 1@1.5 A1<1@2 A1 nack 1@2.1 A1<1@2.3 A1 nack 1@2.4 A2<2@2.9 A1<2@3 stop @30", exactly_once=True, window=1, delivery_delay_max_s=1),
        legal("a foreign message is nacked and redelivered", "open A1 of client A open A2 of client A A2<9[e7]@0.5 P1@0.6 ok1=m1@0.65 A1<1@1 A2 nack 9@1.5 A2<9[e7]@2.5 A1<1@3 stop @30", exactly_once=True, delivery_delay_max_s=1),
        legal("the same, seen later", "open A1 of client A open A2 of client A A2<9[e7]@0.5 P1@0.6 ok1=m1@0.65 A1<1@1 A2 nack 9@1.5 A1<1@3 A2<9[e7]@3.2 stop @30", exactly_once=True, delivery_delay_max_s=1),
        legal("what was lost with a stream stays leased, and the next one goes on behind it", f"{BREAKS} P3@2 ok3=m3@2.1 close A1@3 {GOES_ON} A2<2,3,4,5@62 P6@63 ok6=m6@63.1 A2<6@63.2", exactly_once=True),
        legal("the same long after", f"{BREAKS} P3@2 ok3=m3@2.1 close A1@3 open A2 of client A@4 P4@30 ok4=m4@30.1 A2<4@30.2 A2<2,3,4@62", exactly_once=True),
        legal("the same where nobody knows whether it was stored", f"{BREAKS} P3@2.9 info3@3 abandon3@3 close A1@3 {GOES_ON} B<2,3,4,5@62 P6@63 ok6=m6@63.1 B<6@63.2", exactly_once=True),
        legal("its stream is over when it need not wait any more", f"{TWO} P1,2 A1<2@1 close A1@1.05 A2<1,2@1.1", exactly_once=True),
        legal("a run from below on its own stream, behind it", f"{TWO} P1,2 A1<1,2@1 A1<2@62 A2<2@62.1 A2<1@62.2", exactly_once=True),
        legal("a run from below that came first, on another stream", f"{TWO} P1,2,3 A1<1,2,3@1 A1 nack 3@1.5 A1 nack 1@10 A2<1,2,3@16 A1<3@16.5", exactly_once=True),
        legal("held on a stream that was handed over to one that broke", "open A1 of client A open A3 of client A P1 A1<1@1 open A2 of client A@20 close A2@20.4 A3<1@21 close A1@22.8", exactly_once=True, close_detection_max_s=0.5),
        legal("a run from beyond the window", f"{TWO} P1,2,3 A1<1,2,3@1 A1<3@62 A1<3@62.3 A2<2@62.5", exactly_once=True, window=1),
        legal("one lease was over, then that of one below", "open A1 of client A open A2 of client A P1,2 A1<1,2@1 A1<1,2@62 A2<2@62.2", exactly_once=True),
        legal("a run from a foreign message", "P1,2 A<1,2@1 A<9[e9]@5 A<1,2@5.1", exactly_once=True),
        legal("a run from before the record", "P9@0.5 ok9=m9@0.6 A<3@1 A<1,2,3@2", exactly_once=True),
        legal("confirmed for the copy that came before the record", "A<1~5@1 A ack 1@1.1 P9@4 ok9=m9@4.1 A<1~6@4.5 A ack 1@4.6 A ackOK 1@6 A<1~6@20", exactly_once=True),
        legal("a run from a copy that raced with what is held", f"{THREE} A1<1@3 A3<z1(1)@3.3 A2<2@3.35 A3 nack 1@3.4 A2 ack 2@3.5 A2<1@4.1 A3<z1(1)@4.3", exactly_once=True, delivery_delay_max_s=5),
        legal("a lease was shortened, and none of many extensions arrived", "P1 A<1@1 A modack 1 5s@1.1 " + " ".join(f"A modack 1 60s@{t}" for t in range(2, 12)) + " A<1@12", exactly_once=True),
        legal("a run of records whose order was never certain", f"{TWO} {RACING} {MANY} A2 nack 1@30 A2<n1(1)@30.5 A2<m1(1)@30.6", exactly_once=True, delivery_delay_max_s=0.5),
        # the places of messages in the log
        legal("a second copy follows what another clock was ahead with", "P1,2 pull a@9 pull b@9 a<2@10 b<1~5@10.4 b<1~6@10.4 b ack 1@10.5", mode=PULL, clock_error_s=1),
        legal("a second copy that another clock was ahead with", "P1,2,3,4 pull a@9 pull b@9 pull c@9 a<2~6@10 a ack 2@10.1 b<2~5@10.2 b<3@10.2 b ack 2,3@10.3 c<1@10.4 c ack 1@10.5 pull d@28 d<4@30 d ack 4@30.1 pull e@58 e<2~5@60 e<3@60 e<2~6@60 e<4@60", mode=PULL, clock_error_s=1),
        legal("a second copy of a settled message, with publishes in another region", "P1/b@0 ok1=m1@0.1 P2/b@0.2 ok2=m2@0.3 P3/a@0.4 ok3=m3@0.5 pull w@1 w<1~1@2 w ack 1@2.1 pull x@20 x<1~9@21 x ack 1@21.1 pull y@40 y<2~2@41 y ack 2@41.1 pull z@120 z<1~1@121 z<1~9@121 z<2~2@121", mode=PULL),
        legal("two copies, by two clocks, before and after the beginning of a seek", "P1,2 pull a@3 a<1~1@4 a<2~2@4 a ack 1,2@4.1 pull b@9.5 b<2~9@10 b ack 2@10.1 pull c@9.7 c<1~8@11.2 c ack 1@11.3 seek 3@12 pull d@60 d<1~8@61 d<2~9@61 d ack 1,2@61.1 P3@80 ok3=m3@80.1 pull e@99 e<2~9@100 e<3~80@100", mode=PULL, clock_error_s=1),
        legal("a seek that begins by another clock", "r1<2@2.2 r1 ack 2@2.3 seek 3@2.7 P1@2.7 P2@2.75 ok1=m1@2.9 ok2=m2@2.9 end @900", mode=PUSH, clock_error_s=1),
        legal("two that came while a seek settled, by two clocks", "P1,2 seek 3@9 pull a@9 pull b@9 a<2@10 a ack 2@10.1 b<1@10.4 b ack 1@10.5 pull c@40 c<1,2@41", mode=PULL, clock_error_s=1),
        legal("a second copy of another region in between", "P1/a@0 ok1=m1@0.1 P2/b@0.2 ok2=m2@0.3 pull x@0.9 x<1~1@1 x<2~2@1 x ack 1,2@1.1 pull y@20 y<1~9@20.1 y ack 1@20.2 P3/b@21 ok3=m3@21.1 P4/b@21.2 ok4=m4@21.3 pull v@38 v<3~3@39 v ack 3@39.1 pull z@60 z<3~3@60.1 z<1~9@60.1 z<4~4@60.1", mode=PULL),
        legal("published in one region, confirmed in another", "P1/a@0 info1@0.1 P1'gen1/b@0.2 ok'gen1=m1@0.3 pull a@0.9 a<m1(1)@1 a ack 1@1.1 pull b@19 b<x1(1)@20 b ack 1@20.1 P2/b@30 ok2=m2@30.1 pull c@39 c<2@40 c ack 2@40.1 pull d@59 d<x1(1)@60 d ack 1@60.1 P3/b@61 ok3=m3@61.1 pull e@79 e<3@80", mode=PULL),
        legal("a second copy of another region, which leaves the window", "P1/a@0 ok1=m1@0.1 P2/b@0.2 ok2=m2@0.3 pull x@0.9 x<1~1@1 x<2~2@1 x ack 1,2@1.1 pull y@20 y<1~9@20.1 y ack 1@20.2 P3/b@21 ok3=m3@21.1 P4/b@21.2 ok4=m4@21.3 pull v@38 v<3~3@39 v ack 3@39.1 pull z@60 z<3~3@60.1 z<1~9@60.1 z<4~4@60.1", mode=PULL, window=2),
        legal("acknowledged, by another clock, after a refusal that came too late", "P1,2 a<1@1 b<1@63 a nack 1@80 c<2@90 b ack 1@90.5", mode=PUSH, clock_error_s=1),
        legal("refused, and sent again by another clock, when it had left the window", "P1,2,3 a<1@1 a nack 1@1.1 b<2@3 b ack 2@3.1 c<3@3.2 d<1@3.5 d ack 1@3.6", mode=PUSH, clock_error_s=1, delivery_delay_max_s=0.1, window=2),
        legal("a copy by another clock, and a message that raced in between", "P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 P3@0.4 ok3=m3@0.5 P1[e2]@0.6 ok1=n1@0.7 a<1@5 a ack 1@5.1 b<2@6 b ack 2@6.1 c<n1(1)@7 c ack 1@7.1 d<3@7.5 d ack 3@7.6 e<1@36 e ack 1@36.1 f<3@41 f ack 3@41.1 g<2@41.5 g ack 2@41.6", mode=PUSH, clock_error_s=1, delivery_delay_max_s=0.1),
        legal("a seek that settles by another clock", "P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 P3@0.4 ok3=m3@0.5 seek 3@4 a<1@7.5 b<3@8.5 b ack 3@8.6", mode=PUSH, clock_error_s=3, delivery_delay_max_s=0.1),
        legal("what explains a skip follows a copy that raced", f"{ABREAST} A2<2@3.1 A2<z3(3)@3.12 A2<3@3.15", delivery_delay_max_s=0.3),
        legal("its session goes on from a copy that raced", f"{ABREAST_3} A2<1@20 A1<2@20.5 A1<z3(3)@22 A1<4@22.01"),
        # excerpts
        legal("the first delivery of a new subscription was stored later than a confirmed message", "P2@0 P2[e2]@0.5 ok2=f2@1 r1<x2(2)@40 r1 ack 2@40.1 end @900", mode=PUSH, subscription_predates_first_publish=False),
        legal("the same, by another clock", "A<z6(6)@4.9 A ack 6@5 P2@6 P6@6.2 ok2=m2@6.3 info6@9 abandon6@9 end @900", clock_error_s=5, subscription_predates_first_publish=False),
        legal("a second copy of before the record", "P3/b@0.5 ok3=m3@0.6 pull a@0.9 a<1~5@1 a ack 1@1.1 pull b@20 b<3@20.1 b ack 3@20.2 pull c@38 c<1~6@39 c ack 1@39.1 P4/b@40 ok4=m4@40.1 pull d@57 d<4@58 d ack 4@58.1 pull e@76 e<1~6@77 e ack 1@77.1 P5/b@78 ok5=m5@78.1 pull f@95 f<5@96", mode=PULL),
        legal("a refused message of before the record, then one below", "P9@0.5 ok9=m9@0.6 a<4@1 a nack 4@1.1 b<1@20 b ack 1@20.1 c<2@21", mode=PUSH),
        legal("a deeper run of before the record", "P9@0.5 ok9=m9@0.6 A<5,6@1 A<3,4,5,6@5 A<9@5.5"),
        legal("acknowledged before the record", "P9@0.5 ok9=m9@0.6 A<8@1 A<9@1.1 A ack 9@1.2 end @900"),
        legal("nacked before the record, and the retry policy lets all that follows wait", "open A of client A P9@0.5 ok9=m9@0.6 A<1@300 A ack 1@300.1 A<9@301 A ack 9@301.1 end @400", retry_backoff_max_s=600),
        legal("acknowledged in the hole, and on its way once more", "P1 hole @3 open B of client B@3.1 A<1@4 end @500"),
        legal("an attempt that the record does not show", "info1@0.1 P1@0.2 ok1=b1@0.3 P2@0.4 ok2=m2@0.5 A<b1(1)@1 A<2@1.1 A<a1(1)@20 A<b1(1)@20.1 A<2@20.2 P3@20.3 ok3=m3@20.4 A<3@21"),
        legal("a message that was sent before a seek had settled is not missing behind it", "P1,2 A<1,2@1 B<1,2@1.2 seek 1@1.5 P3@2 ok3=m3@2.1 B<2@2.1 A<2@2.2 P4@2.55 ok4=m4@2.6 P4'gen1@2.62 A<3@2.65 A<4@2.7 P5@3.1 ok5=m5@3.2 A<5@3.3 A<3@8 A<5@8.1 A<4@9 A<3@9.2 P6@9.25 ok6=m6@9.28 A<6@9.3 stop @100", dead_letter_max_attempts=5),
        legal("a copy under a known message id after a hole", "open A1 of client A open A2 of client A P1@0 ok1=m1@0.1 hole @1 P2@30 P3@30 ok2=m2@30.1 ok3=m3@30.2 A1<1@34 A1<3~4@34.5 A1<2~9@34.6 A2<2~3@34.7 stop @100"),
        legal("answered once more after it was delivered again", "P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 pull b1@0.5 b1<1~1@1 b1<1~9@1 b1 ack 1@1.1 pull b2@40 b2<1~9@40 b2<2~2@40 b1 ack 1@45 pull b3@50 b3<2~2@51 stop @200", mode=PULL),
        legal("a copy under a known message id that may have been delivered in a hole", "P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 pull b1@0.5 b1<1~1@1 b1 ack 1@1.1 pull b2@1.2 hole @2 b2<2~9@2 pull b3@100 b3<1~1@101 b3<2~3@101 b3<2~9@101 stop @200", mode=PULL),
    ],
)  # fmt: skip
def test_legal(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("one was delivered beyond what is extended", "open A of client A limit 2@0 P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 P3@0.4 ok3=m3@0.5 P4@0.6 ok4=m4@0.7 A<1@1 A ack 1@1.1 A<2@1.2 A modack 1 60s@2 A modack 2 60s@2 A<3@3 A ack 3@3.1 end @500", "L:STUCK"),
        wrong("its session goes on above a copy that raced", f"{ABREAST_3} A2<1@20 A1<z3(3)@22 A1<4@22.01", "V:REDELIVERY_SKIP"),
        wrong("a stream was over before anything was published", f"{THIRD} close C@1 {BEGUN} A<1@2 B<2@2.1", "V:AFFINITY_SPLIT"),
        wrong("a lost redelivery that was not acknowledged has to be redelivered first", f"{THIRD} {BEGUN} close C@1.9 A<1@2 B<2@2.1", "V:AFFINITY_SPLIT"),
        wrong("records of two epochs side by side, and the first is held", "P1[e1]@0 ok1=a1@0.1 P1[e2]@0.3 ok1=b1@0.4 P1[e3]@2 ok1=c1@2.1 pull x@9 pull y@9 x<b1(1)[e2]@10 x<c1(1)[e3]@10 y<a1(1)@10.1 y ack 1@12 end @60", "V:PULL_OVERLAP|V:PULL_BATCH_ORDER", mode=PULL, clock_error_s=0.6),
        wrong("what explains a skip leaves out something itself", f"{ABREAST} A2<z3(3)@3.12 A2<3@3.15", "V:REDELIVERY_SKIP", delivery_delay_max_s=0.3),
        wrong("no copy begins the run", f"{THREE} A1<1@3 A3<z1(1)@3.3 A2<2@3.35 A3 nack 1@3.4 A2 ack 2@3.5 A2<1@4.1", "V:EOD_REDELIVERY_WHILE_OUTSTANDING", exactly_once=True, delivery_delay_max_s=5),
        wrong("no stream was lost, and then another key is held", "open A of client A open B of client B P1@1 ok1=m1@1.1 on k2 P1@15 ok1=k2m1@15.1 A<1@15.2 A modack 1 300s@16 A ack 1@310 on k A<1@330 A ack 1@331 end @600", "L:STUCK"),
    ],
)  # fmt: skip
def test_wrong_histories_next_to_these(one: Definite) -> None:
    one.check()


def test_streams_that_were_not_seen_to_open_race_from_the_first_delivery_on() -> None:
    whole = history(f"{TWO} P1,2 A1<2@1 A2<1@1.1")
    definitely(verify(Rules(), [event for event in whole if not isinstance(event, Opened)]))


@pytest.mark.parametrize(
    ("lost", "rules"), [(1, Rules()), (4, Rules(dead_letter_max_attempts=5))], ids=["one", "as often as the policy allows"]
)
def test_what_is_missing_may_have_gone_with_streams_that_were_not_seen_to_open(lost: int, rules: Rules) -> None:
    whole = history("open A1 of client A P1,2 A1<2@1.5 A1 ack 2@1.6 end @500")
    closed = [Closed(0.5 + number / 10, SUBSCRIPTION, f"before {number}") for number in range(lost)]
    events = sorted([*closed, *(event for event in whole if not isinstance(event, Opened))], key=lambda event: event.t)
    gaps = [finding.status for finding in verify(rules, events) if finding.kind is Kind.ORDER_GAP]
    assert gaps == [Status.INDETERMINATE]


def test_a_copy_on_a_stream_that_was_not_seen_to_open_may_be_one_of_the_same_client() -> None:
    whole = history("P1,2,3 A<1,2,3@1 A ack 1@1.5 A<1@30 A ack 1@30.05 A<3@30.1 B<2@30.2")
    definitely(verify(Rules(), [event for event in whole if not isinstance(event, Opened)]))


def test_a_second_copy_that_is_redelivered_before_its_first_delivery_is_certain_is_no_primary() -> None:
    line = "open A1 of client A open A2 of client A open A3 of client A P1@0.6 ok1=m1@3.5 A1<1~1@0.7 A1 ack 1@1 P2@9 P3@9 ok2=m2@9.3 ok3=m3@9.3 P4@13 A2<3~3@13.588 A2 ack 3@13.8 A2<3~8@14.022 A1<2~2@14.263 A1 ack 2@14.55 A1<1~9@14.62 A1 ack 1@14.77 P5@18.5 ok4=m4@22.3 A3<1~9@23.464 A3 ack 1@23.6 A1<3~8@23.773 A3<4~4@24.535 A3 ack 4@24.6 A2<5~5@24.875 A2 ack 5@25.1 ok5=m5@25.3"
    definitely(verify(Rules(), history(line), {"s": Rules(), "t": Rules()}))
