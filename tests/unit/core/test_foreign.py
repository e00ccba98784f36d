"""Messages of other runs, which are not on record, are held like any others: what is behind them is not late."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import PULL, PUSH, Case, Definite, case, legal

SLOW = {"ack_deadline_s": 600.0}
PATIENT = {"retry_backoff_max_s": 600}
OPEN = "open A of client A"
ALONE = "open A of client A limit 1"
FOREIGN = "pull b@0.5 b<9[e7]@1"
NEXT = "P1@2 ok1=m1@2.1 pull c@3"
FULL = f"{ALONE} on k2 A<9[e7]@1"
FIRST = "P1@2 ok1=m1@2.1"
MANY = ",".join(map(str, range(10, 80)))


@pytest.mark.parametrize(
    "one",
    [
        legal("by a pull", f"{FOREIGN} {NEXT} b ack 9@580 c<1@590 c ack 1@591 end @900", mode=PULL, **SLOW),
        legal("by a pull, and never answered", f"{FOREIGN} {NEXT} c<1@700 c ack 1@701 end @900", mode=PULL, **SLOW),
        legal("by a pull, and another one was answered", f"{FOREIGN} b<8[e7]@1 {NEXT} b ack 8@1.1 c<1@590 c ack 1@591 end @900", mode=PULL, **SLOW),
        legal("one of many", f"{FOREIGN} b<{MANY}[e7]@1 {NEXT} b ack {MANY}@2.2 c<1@700 c ack 1@701 end @900", mode=PULL, **SLOW),
        legal("by a pull, when a seek brings back what was acknowledged", "P1 pull b@0.9 b<1@1 b ack 1@1.1 pull c@5 c<9[e7]@6 seek 5/0@20 pull d@21 d<1@590 d ack 1@591 end @900", mode=PULL, **SLOW),
        legal("by a request", f"a<9[e7]@1 {FIRST} a ack 9@580 b<1@590 b ack 1@591 end @900", mode=PUSH, **SLOW),
        legal("on a stream whose flow control it uses up", f"{ALONE} A<9[e7]@1 {FIRST} A ack 9@580 A<1@590 A ack 1@591 end @900", **SLOW),
        legal("the same, as a message of another key", f"{FULL} on k {FIRST} on k2 A ack 9@580 on k A<1@590 A ack 1@591 end @900", **SLOW),
        legal("on a stream that broke", f"{OPEN} A<9[e7]@1 {FIRST} close A@3 open A2 of client A@4 A2<1@620 A2 ack 1@621 end @900", **SLOW),
        legal("of another key, which may delay this one", f"{OPEN} on k2 A<9[e7]@1 on k {FIRST} on k2 A ack 9@580 on k A<1@590 A ack 1@591 end @900", **SLOW),
        legal("of another key, though all else of that is acknowledged", f"{OPEN} on k2 A<9[e7]@1 P1@1.5 ok1=k2m1@1.6 A<1@2 A ack 1@2.1 on k P1@3 ok1=m1@3.1 on k2 A ack 9@580 on k A<1@590 A ack 1@591 end @900", **SLOW),
        legal("of another key, and refused", f"{OPEN} on k2 A<9[e7]@1 A nack 9@1.1 on k {FIRST} A<1@590 A ack 1@591 end @900", **PATIENT),
    ],
)  # fmt: skip
def test_a_foreign_message_is_held(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("the lease of an acknowledged one is over", f"{FOREIGN} {NEXT} b ack 9@4 end @900", "L:STUCK@726", mode=PULL, **SLOW),
        case("the lease of a nacked one is over", f"{FOREIGN} {NEXT} b nack 9@4 end @900", "L:STUCK@726", mode=PULL, **SLOW),
        case("its lease is over", f"{FOREIGN} {NEXT} end @300", "L:STUCK@186", mode=PULL),
        case("the lease of many acknowledged ones is over", f"{FOREIGN} b<10,11,12[e7]@1 {NEXT} b ack 9,10,11,12@4 end @900", "L:STUCK@726", mode=PULL, **SLOW),
        case("a stream without a limit has room beside it", f"{OPEN} A<9[e7]@1 {FIRST} end @300", "L:STUCK@122.1"),
        case("it gave back the flow control", f"{FULL} A ack 9@4 on k {FIRST} end @300", "L:STUCK@139", **SLOW),
        case("it gave back the flow control by a refusal", f"{FULL} A nack 9@4 on k {FIRST} end @800", "L:STUCK@726", **SLOW),
        case("there was room beside it", f"open A of client A limit 2 A<9[e7]@1 {FIRST} end @300", "L:STUCK@122.1", **SLOW),
        case("of another key, and acknowledged", f"{OPEN} on k2 A<9[e7]@1 A ack 9@4 on k {FIRST} end @300", "L:STUCK@139", **SLOW),
    ],
)  # fmt: skip
def test_a_foreign_message_is_not_held(one: Case) -> None:
    one.check()
