"""A subscriber reads two streams, and one breaks: what was sent there is lost, and what is behind it came on the other one first."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from tests.unit.core.cases import PULL, Case, Definite, case, legal, wrong

NOTICED: dict[str, Any] = {"close_detection_max_s": 30.0}
TWO = "open A1 of client A open A2 of client A"
MANY = " ".join(f"P{n}@{2 + n / 100:g} ok{n}=m{n}@{2.005 + n / 100:g}" for n in range(2, 37))
SEQS = ",".join(str(n) for n in range(2, 37))
ACROSS = f"{TWO} P1 P2@2 ok2=m2@2.1 P3@2.2 ok3=m3@2.3 A1<1@1 A1 ack 1@1.1"


@pytest.mark.parametrize(
    "one",
    [
        legal("it comes at once on the other", f"{ACROSS} close A2@2.5 A1<3@3 A1<2,3@3.5 A1 ack 2,3@4 end @900", **NOTICED),
        legal("it comes when its lease is over", f"{ACROSS} close A2@2.5 A1<3@3 A1<2,3@63 A1 ack 2,3@64 end @900", **NOTICED),
        legal("it was noticed later, when it had come", f"{ACROSS} A1<3@3 A1<2,3@13 A1 ack 2,3@14 close A2@30 end @900", **NOTICED),
        legal("it was noticed later, before it came", f"{ACROSS} A1<3@3 close A2@30 A1<2,3@63 A1 ack 2,3@64 end @900", **NOTICED),
        legal("more came meanwhile", f"{ACROSS} close A2@2.5 A1<3@3 P4@9 ok4=m4@9.1 A1<4@10 A1<2,3,4@63 A1 ack 2,3,4@64 end @900", **NOTICED),
        legal("the recorder of the new stream is ahead", "open A1 of client A P1 A1<1@1 A1 ack 1@1.1 P2@2 ok2=m2@2.1 P3@2.2 ok3=m3@2.3 open A2 of client A@2.4 close A1@2.6 A2<3@3 A2<2,3@3.5 A2 ack 2,3@4 skew A2 0.3 end @900", clock_error_s=1.0, **NOTICED),
        legal("it was confirmed late", f"{TWO} P1 P2@2 P3@2.2 ok3=m3@2.3 A1<1@1 A1 ack 1@1.1 close A2@2.5 A1<3@3 ok2=m2@20 A1<2,3@63 A1 ack 2,3@64 end @900", **NOTICED),
        legal("so many that not all are remembered", f"{TWO} P1 {MANY} A1<1@1 A1 ack 1@1.1 A1<36@3 A1<{SEQS}@13.02 A1 ack {SEQS}@20 end @900 close A2@30", **NOTICED),
        legal("what it took stands behind a redelivered one", f"{TWO} P1,2,3 A1<1@1 close A1@1.5 A2<3@1.6 A2<1,2,3@3 A2 ack 1,2,3@4 end @500"),
        legal("the same, noticed later", f"{TWO} P1,2,3 A1<1@1 A2<3@1.6 A2<1,2,3@3 close A1@10 A2 ack 1,2,3@4 end @500", **NOTICED),
        legal("what it took was given up", f"{TWO} P1 P2@0.2 info2@0.3 abandon2@0.4 P3@0.5 ok3=m3@0.6 P4@0.7 ok4=m4@0.8 A2<1@1 A2 ack 1@1.1 A2<3@1.2 close A1@1.3 A2<x2(2)@2 A2<3,4@2.1 A2 ack 2,3,4@3 end @500"),
        legal("the same, noticed later, given up", f"{TWO} P1 P2@0.2 info2@0.3 abandon2@0.4 P3@0.5 ok3=m3@0.6 P4@0.7 ok4=m4@0.8 A2<1@1 A2 ack 1@1.1 A2<3@1.2 A2<x2(2)@2 A2<3,4@2.1 A2 ack 2,3,4@3 close A1@9 end @500", **NOTICED),
        case("what it took was a client's first try", f"{TWO} P1@0 P2@0 P3@0 A2<a1(1)@0.5 A2<a3(3)@0.6 close A1@0.8 ok1=b1@2 ok2=b2@2 ok3=b3@2 A2<a2(2)@3 A2<a3(3)@3.1 A2<b1(1)@3.2 A2<b2(2)@3.3 A2<b3(3)@3.4 A2 ack 1,2,3@4 stop @50", "I:REDELIVERY_SKIP"),
        legal("it comes behind what overtook it and is redelivered, on a slower stream", f"{TWO} P1,2,3 A1<2@3 close A2@4 open A3 of client A@4.1 A1<2@10 A1 ack 2@10.9 A3<1@11.5 A3<3@11.6 A3 ack 1,3@12 end @500", **NOTICED),
        case("what waited for what it took was not sent behind what came meanwhile", f"{TWO} P1,2,3 A1<1,2,3@1 P4@9 ok4=m4@9.1 P5@9.2 ok5=m5@9.3 A1<1@10 A1<5@10.4 close A2@11.4 open A3 of client A@13.7 A3<1@14.5 A3<2@14.6 A3<3,4,5@16 A3 ack 1,2,3,4,5@17 end @90", "I:ORDER_GAP I:REDELIVERY_SKIP"),
        legal("a later run comes past what overtook it", f"{TWO} P1,2,3,4,5 A1<4@3 close A2@3.2 A1<1,2,3,4,5@10 A1 ack 1,2,3,4,5@11 open A3 of client A@20 A1<1@40 A3<3@41 A3<4@41.1 A3<5@41.5 A1<2@42 A1 ack 1,2@43 A3 ack 3,4,5@43 end @60"),
        legal("all were confirmed when they had come", f"{TWO} P1 P2@0.2 P3@0.3 A1<1@0.9 A2<3@1 close A1@1.2 ok2=m2@7 ok3=m3@7.1 A2<2,3@8 A2 ack 2,3@9 end @60"),
        case("it had come before, and was not acknowledged", f"{TWO} P1,2,3,4 A1<1,2,3@1 A1 nack 1@5 A1<1@6 close A2@6.5 A1<4@8 A1<2,3,4@9 A1 ack 1,2,3,4@10 end @500", "I:REDELIVERY_SKIP"),
        case("the same, noticed later, not acknowledged", f"{TWO} P1,2,3,4 A1<1,2,3@1 A1 nack 1@5 A1<1@6 A1<4@8 A1<2,3,4@9 A1 ack 1,2,3,4@10 close A2@30 end @500", "I:REDELIVERY_SKIP", **NOTICED),
        legal("of two copies of what overtook it the one that was redelivered was waited for first", f"{TWO} P1@0 ok1=m1@0.5 P2@1.1 ok2=m2@1.15 P3@1.2 ok3=m3@1.25 open A6 of client A@2.2 close A2@2.7 A6<2@3.7 A1<2@5.3 A1<1@6.2 A1<3@6.3 P4@7.1 ok4=m4@7.2 A6<4@8.9 A1 ack 1,2,3@9.5 A6 ack 4@9.5 end @200", **NOTICED),
        legal("the stream that it overtook on is over before that shows", "open A2 of client A open A3 of client A P1@8.1 ok1=m1@8.15 P2@8.2 ok2=m2@8.25 A2<2@8.3 A2 ack 2@8.4 close A2@11.7 open A4 of client A@15.5 A4<1@15.6 A4<2@15.7 A4 ack 1,2@16 close A3@17.8 end @200", **NOTICED),
        legal("the stream that it skipped on is over before that shows", "open A1 of client A P1,2,3 A1<1,2,3@1 open A2 of client A@2 A1<1@20.5 A1<3@20.6 close A1@30 open A3 of client A@39 close A2@45 A3<1,2,3@50 A3 ack 1,2,3@51 end @200", **NOTICED),
        legal("its lease was over, and it went into a dead stream again", f"{TWO} P1,2,3,4 A1<1@1 A1<3@5 A1<2@22 A1<4@22.1 close A2@32 open A3 of client A@33 A1<2,3,4@43 A1 ack 1,2,3,4@45 end @200", ack_deadline_s=20, **NOTICED),
        legal("what came first had come before a seek was settled, and need not follow", "P1,2,3 A<1@1 A ack 1@1.1 seek 10@1.5 A<3@2 A ack 3@2.1 A<2@20 A ack 2@20.1 P4@25 ok4=m4@25.1 A<4@26 A ack 4@26.1 end @900", **NOTICED),
        legal("the new stream had begun to deliver", "open A1 of client A P1 A1<1@1 A1 ack 1@1.1 P2@2 ok2=m2@2.1 P3@2.2 ok3=m3@2.3 open A2 of client A@2.4 close A1@2.6 A2<3@3 A2<2,3@3.5 A2 ack 2,3@4 end @900", **NOTICED),
    ],
)  # fmt: skip
def test_what_a_stream_took_with_it_was_sent_in_time(one: Case | Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("what is redelivered is left out, and one breaks long after", f"{TWO} P1,2,3,4 A1<1,2,3@1 A1 nack 1@5 A1<1@6 A1<4@8 A1<2,3,4@9 A1 ack 1,2,3,4@10 close A2@60 end @500", "V:REDELIVERY_SKIP", **NOTICED),
        wrong("what it left out had come before", f"{TWO} P1,2,3,4 A1<1,2,3@1 A1 ack 1,2,3@1.5 A1 nack 1@2 A1<1@3 A1<4@3.1 end @500", "V:REDELIVERY_SKIP"),
        wrong("no stream breaks", f"{ACROSS} A1<3@3 A1<2,3@13 A1 ack 2,3@14 end @900", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        wrong("one breaks long after", f"{ACROSS} A1<3@3 A1<2,3@13 A1 ack 2,3@14 close A2@60 end @900", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        wrong("one breaks long after, and then it comes", f"{ACROSS} A1<3@3 close A2@60 A1<2,3@100 A1 ack 2,3@101 end @900", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        wrong("it broke before the message was published", f"{TWO} P1 A1<1@1 A1 ack 1@1.1 close A2@1.9 P2@2 ok2=m2@2.1 P3@2.2 ok3=m3@2.3 A1<3@3 A1<2,3@3.5 A1 ack 2,3@4 end @900", "V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        wrong("it broke long before what came", f"{ACROSS} close A2@2.5 A1<3@20 A1<2,3@20.5 A1 ack 2,3@21 end @900", "V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        wrong("the stream of another subscriber breaks", "open A of client A open B of client B P1 A<1@1 A ack 1@1.1 P2@2 ok2=m2@2.1 P3@2.2 ok3=m3@2.3 close B@2.5 A<3@3 A<2,3@3.5 A ack 2,3@4 end @900", "V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        wrong("the only stream breaks", "open A1 of client A P1 A1<1@1 A1 ack 1@1.1 P2@2 ok2=m2@2.1 P3@2.2 ok3=m3@2.3 close A1@2.5 open A2 of client A@2.6 A2<3@3 A2<2,3@3.5 A2 ack 2,3@4 end @900", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
    ],
)  # fmt: skip
def test_no_stream_took_it(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("something later comes next", f"{ACROSS} close A2@2.5 A1<3@3 A1<2@3.5 P4@4 ok4=m4@4.1 A1<4@5 A1 ack 2,3,4@6 end @900", "I:ORDER_GAP V:REDELIVERY_SKIP", **NOTICED),
        case("another stream may have taken it as well", f"{ACROSS} open A3 of client A@2.4 close A2@2.5 A1<3@3 A1<2@3.5 P4@4 ok4=m4@4.1 A1<4@5 close A3@6 A1 ack 2,3,4@6 end @900", "I:ORDER_GAP I:REDELIVERY_SKIP", **NOTICED),
        case("what overtook it had been redelivered long before", f"{TWO} P1,2,3 A1<2@3 close A2@4 open A3 of client A@4.1 A1<2@5 A1 ack 2@5.9 A3<1@11.5 A3<3@11.6 A3 ack 1,3@12 end @500", "I:ORDER_GAP V:REDELIVERY_SKIP", **NOTICED),
        case("it comes on another stream", f"{ACROSS} open A3 of client A@2.4 close A2@2.5 A1<3@3 A1<2@3.5 P4@4 ok4=m4@4.1 A3<4@5 A1 ack 2,3@6 A3 ack 4@6 end @900", "I:ORDER_GAP V:REDELIVERY_SKIP", **NOTICED),
        case("it was overtaken as well", f"{ACROSS} P4@2.31 ok4=m4@2.35 close A2@2.5 A1<4@3 A1<2,3,4@3.5 A1 ack 2,3,4@6 end @900", "I:ORDER_GAP", **NOTICED),
        case("what overtook it is redelivered on another stream", f"{ACROSS} open A3 of client A@2.4 close A2@2.5 A1<3@3 A1<2@3.5 P4@4 ok4=m4@4.1 A1<4@5 A3<3@6 A1 ack 2,4@6.1 A3 ack 3@6.2 end @900", "I:ORDER_GAP", **NOTICED),
        case("only what was overtaken is redelivered", f"{ACROSS} close A2@2.5 A1<3@3 A1<2@3.5 A1<2@3.6 P4@4 ok4=m4@4.1 A1<4@5 A1 ack 2,3,4@6 end @900", "I:ORDER_GAP V:REDELIVERY_SKIP", **NOTICED),
        case("what overtook it need not be redelivered", f"{ACROSS} close A2@2.5 A1<3@3 A1<2@3.5 P4@4 ok4=m4@4.1 A1<4@5 A1 ack 2,3,4@6 end @900", "I:ORDER_GAP", redelivery_promised=False, **NOTICED),
        case("the stream that broke had delivered later ones", f"{ACROSS} A1<3@3 on k2 P1@9 ok1=k2m1@9.1 A2<1@10 A2 ack 1@10.1 on k close A2@30 A1<2,3@63 A1 ack 2,3@64 end @900", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        case("its name is used again", f"{ACROSS} close A2@2.5 open A2 of client A@2.6 A2<3@3 A2<2,3@3.5 A2 ack 2,3@4 end @900", "I:REDELIVERY_STALL V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", **NOTICED),
        case("for ever", f"{ACROSS} A1<3@3 A1<2@3.5 A1 ack 2,3@4 P4@9 ok4=m4@9.1 A1<4@10 A1 ack 4@11 end @5000", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", close_detection_max_s=inf),
        case("it was overtaken as well, and what overtook both is slow", f"{ACROSS} P4@2.31 ok4=m4@2.35 close A2@2.5 A1<4@3 A1<2@3.5 A1<3@3.6 A1<4@12 A1 ack 2,3,4@13 end @900", "I:ORDER_GAP", **NOTICED),
        case("a pull has no second stream", "P1,2,3 pull b1@0.9 pull b2@0.95 b1<1@1 b1 ack 1@1.1 b2<3@12", "I:PULL_OVERLAP@12 V:ORDER_GAP@12", mode=PULL, **NOTICED),
    ],
)  # fmt: skip
def test_what_was_overtaken_is_sent_again_and_all_behind_it(one: Case) -> None:
    one.check()
