"""Clocks of liveness run only while the service could deliver, and then they do run.

What would break an implementation that merely starts its clocks later: pulls that are all short, so that a clock which begins anew with
each never ends; a doubt that was stated once and hides what follows; flow control that is never given back, or is counted per key;
a back-off that outlives the redelivery that it delayed.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import pytest

from tests.unit.core.cases import PULL, PUSH, Case, Definite, across, case, definitely, legal, wrong


def kept(session: str, seq: int, times: Iterable[float], seconds: int = 60) -> str:
    """The lease of a message is prolonged again and again."""
    return " ".join(f"{session} modack {seq} {seconds}s@{t}" for t in times)


def pulls(first: float, last: float, each_s: float, pause_s: float) -> str:
    """Pulls that all end with an empty answer."""
    words, number, t = [], 0, first
    while t + each_s <= last:
        number += 1
        words.append(f"pull w{number}@{t:g} close w{number}@{t + each_s:g}")
        t += each_s + pause_s
    return " ".join(words)


EVERY_50 = range(50, 301, 50)  # held until about 300, when the last of these leases was prolonged
HELD = kept("b", 1, EVERY_50)
ONE = "P1,2 pull b@0.9 b<1@1"
PAIR = "P1,2 pull b@0.9 b<1,2@1"
WAITING = "pull c@2"
ALONE = "open A of client A limit 1"
OPEN = "open A of client A"


@pytest.mark.parametrize(
    "one",
    [
        legal("the batch is held", f"{ONE} {WAITING} {HELD} b ack 1@310 c<2@311", mode=PULL),
        legal("the batch is held by one long lease", f"{ONE} {WAITING} b modack 1 600s@2 b ack 1@590 c<2@600", mode=PULL),
        legal("nothing of it is ever acknowledged", f"{ONE} {WAITING} {HELD} c<1,2@400 end @500", mode=PULL),
        legal("the acknowledgement may not be settled yet", f"{ONE} {WAITING} {kept('b', 1, (50, 100))} b ack 1@110 c<2@240", mode=PULL),
        legal("refused 2 waits for the rest of its batch", f"{PAIR} b nack 2@1.2 {WAITING} {HELD} b ack 1@310 c<2@311 end @600", mode=PULL),
        legal("a run waits for the batch that goes on with it", f"P1,2,3 pull b@0.9 b<1,2,3@1 b ack 1,3@1.1 b nack 2@1.2 pull c@30 c<2@30.1 pull d@31 {kept('c', 2, range(80, 331, 50))} c ack 2@340 d<3@341 d ack 3@342 end @700", mode=PULL),
        legal("a long request", "P1,2 a<1@1 a ack 1@590 b<2@591 b ack 2@592 end @900", mode=PUSH, ack_deadline_s=600),
        legal("a request prolonged by nobody, twice as slow as patience", "P1,2 a<1@1 b<1@300 b ack 1@301 c<2@302 c ack 2@303 end @500", mode=PUSH, ack_deadline_s=200),
    ],
)  # fmt: skip
def test_what_waits_for_the_batch_in_front_is_not_late(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("it was lost on a stream that broke, and later messages go on", "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A1 ack 1@1.02 close A2@1.05 A1<3@1.1 A1 ack 3@1.3 P4@60 ok4=m4@60.1 A1<4@61 A1 ack 4@62 P5@120 ok5=m5@120.1 A1<5@121 A1 ack 5@122 P6@180 ok6=m6@180.1 A1<6@181 A1 ack 6@182 P7@240 ok7=m7@240.1 A1<7@241 A1 ack 7@242 end @250", "L:LOST_OVERTAKEN"),
        wrong("nothing is held any more", f"{ONE} {WAITING} {kept('b', 1, (50, 100))} b ack 1@110 close c@400 end @410", "L:STUCK", mode=PULL),
        wrong("it comes in the end, but late", f"{ONE} {WAITING} {kept('b', 1, (50, 100))} b ack 1@110 c<2@300 c ack 2@301 end @310", "L:STUCK", mode=PULL),
        wrong("the lease is over", f"{ONE} {WAITING} b modack 1 60s@50 close c@400 end @410", "L:UNACKED_STALL|L:STUCK", mode=PULL),
        wrong("refused 2 does not come, and 1 is acknowledged", f"{PAIR} b nack 2@1.2 b ack 1@1.3 {WAITING} close c@400 end @410", "L:UNACKED_STALL", mode=PULL),
        wrong("a run stands still", "P1,2,3 pull b@0.9 b<1,2,3@1 b ack 1,3@1.1 b nack 2@1.2 pull c@30 c<2@30.1 c ack 2@30.2 pull d@31 close d@400 end @410", "L:REDELIVERY_STALL", mode=PULL),
        wrong("push stands still", "P1,2 a<1@1 a ack 1@1.1 end @300", "L:STUCK", mode=PUSH),
    ],
)  # fmt: skip
def test_what_waits_for_nothing_is_late(one: Definite) -> None:
    one.check()


# --- pulls: the clock runs while one waits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        legal("nobody pulls", "P1,2 pull b@0.9 b<1@1 b ack 1@1.1 close b@1.2 pull c@500 c<2@500.1 c ack 2@501 end @900", mode=PULL),
        legal("nobody ever pulls again", "P1,2 pull b@0.9 b<1@1 b ack 1@1.1 close b@1.2 end @900", mode=PULL),
        legal("a refused message, and nobody pulls", "P1 pull b@0.9 b<1@1 b nack 1@1.1 close b@1.2 pull c@500 c<1@500.1 c ack 1@501 end @900", mode=PULL),
        legal("a run, and nobody pulls", "P1,2 pull b@0.9 b<1,2@1 b ack 2@1.1 b nack 1@1.2 close b@1.3 pull c@20 c<1@20.1 c ack 1@20.2 close c@20.3 pull d@500 d<2@500.1 d ack 2@501 end @900", mode=PULL),
        legal("pulls wait for 90 s in all", f"P1 {pulls(1, 900, 9, 91)} end @900", mode=PULL),
        # the lost answer may have carried 1, which was held until its lease was over: the second pull waited only from 165 on
        legal("a pull that was lost may have held it", "P1 pull b@10 lose b@100 pull c@101 close c@200 pull d@300 d<1@300.1 d ack 1@301 end @400", mode=PULL),
        legal("free at last, but nobody pulls", f"{ONE} {HELD} close b@1.1 b ack 1@310 pull c@600 c<2@600.1 c ack 2@601 end @900", mode=PULL),
        legal("two pulls wait side by side for 100 s", "P1 pull x@1 close x@101 pull y@1.5 close y@101.5 end @900", mode=PULL),
    ],
)  # fmt: skip
def test_nobody_pulls(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("one pull waits", "P1 pull b@20 close b@160 end @170", "L:STUCK", mode=PULL),
        wrong("a pull is still waiting", "P1 pull b@20 end @500", "L:STUCK", mode=PULL),
        wrong("many short pulls", f"P1 {pulls(1, 500, 9, 1)} end @500", "L:STUCK", mode=PULL),
        wrong("many short pulls with long pauses", f"P1 {pulls(1, 1000, 9, 20)} end @1000", "L:STUCK", mode=PULL),
        wrong("a refused message, and many short pulls", f"P1 pull b@0.5 b<1@0.6 b nack 1@0.7 close b@0.8 {pulls(1, 500, 9, 1)} end @500", "L:UNACKED_STALL", mode=PULL),
        wrong("a run, and many short pulls", f"P1,2 pull b@0.9 b<1,2@1 b ack 2@1.1 b nack 1@1.2 close b@1.3 pull c@20 c<1@20.1 c ack 1@20.2 close c@20.3 {pulls(21, 500, 9, 1)} end @500", "L:REDELIVERY_STALL", mode=PULL),
        wrong("many pulls side by side", f"P1 pull x@1 pull y@1 close x@70 close y@130 {pulls(131, 300, 9, 1)} end @300", "L:STUCK", mode=PULL),
        wrong("a pull that was lost, and then many that were not", f"P1 pull b@10 lose b@20 {pulls(21, 700, 9, 1)} end @700", "L:STUCK", mode=PULL),
    ],
)  # fmt: skip
def test_somebody_pulls(one: Definite) -> None:
    one.check()


# --- flow control of a stream ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        legal("one message may be outstanding, and one is", f"{ALONE} P1,2 A<1@1 {kept('A', 1, EVERY_50)} A ack 1@310 A<2@311 A ack 2@312 end @700"),
        legal("two may be, and two are", f"open A of client A limit 2 P1,2,3 A<1,2@1 {kept('A', 1, EVERY_50)} {kept('A', 2, EVERY_50)} A ack 1,2@310 A<3@311 A ack 3@312 end @700"),
        legal("the bytes are used up", f"open A of client A limit 0/500 P1*500@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 A<1@1 {kept('A', 1, EVERY_50)} A ack 1@310 A<2@311 A ack 2@312 end @700"),
        # 1 is outstanding at A, so 2 must go to A as well
        legal("another client has room, but the key is not there", f"{ALONE} open B of client B P1,2 A<1@1 {kept('A', 1, EVERY_50)} A ack 1@310 A<2@311 A ack 2@312 end @700"),
        legal("another key uses it up", f"{ALONE} on k2 P1 A<1@1 {kept('A', 1, EVERY_50)} A ack 1@310 on k P1@0.5 ok1=m1@0.6 A<1@311 A ack 1@312 end @700"),
        legal("the last acknowledgement may not be settled yet", f"{ALONE} P1,2 A<1@1 {kept('A', 1, (50, 100))} A ack 1@110 A<2@240 A ack 2@241 end @242"),
        legal("a run waits as well", f"{ALONE} P1,2 A<1@1 A ack 1@1.1 A<2@20 A ack 2@20.1 A<1@40 {kept('A', 1, range(80, 331, 50))} A ack 1@340 A<2@341 A ack 2@342 end @700"),
    ],
)  # fmt: skip
def test_flow_control_is_used_up(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("there was room for two", f"open A of client A limit 2 P1,2 A<1@1 {kept('A', 1, EVERY_50)} A ack 1@310 end @320", "L:STUCK"),
        wrong("0 is no limit", f"open A of client A limit 0/0 P1,2 A<1@1 {kept('A', 1, EVERY_50)} A ack 1@310 end @320", "L:STUCK"),
        wrong("it was given back by a refusal", f"{ALONE} P1 A<1@1 A nack 1@2 end @300", "L:UNACKED_STALL"),
        wrong("it was given back by the end of the lease", f"{ALONE} P1 A<1@1 end @400", "L:UNACKED_STALL"),
        wrong("it was given back by the end of the stream", f"{ALONE} P1,2 A<1@1 {kept('A', 1, (50,), 600)} close A@60 open A2 of client A limit 1@61 end @900", "L:UNACKED_STALL|L:STUCK"),
        wrong("many were given back before", f"{ALONE} P1,2,3,4 A<1@1 A ack 1@1.1 A<2@20 A ack 2@20.1 A<3@40 A ack 3@40.1 end @300", "L:STUCK"),
        wrong("the bytes are not used up", f"open A of client A limit 0/500 P1*100@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 A<1@1 {kept('A', 1, EVERY_50)} A ack 1@310 end @320", "L:STUCK"),
        wrong("nothing is outstanding anywhere", f"{ALONE} open B of client B P1 end @300", "L:STUCK"),
    ],
)  # fmt: skip
def test_flow_control_is_not_used_up(one: Definite) -> None:
    one.check()


# --- another subscriber that comes may have to wait until everything of the key is acknowledged ----------------------------------

COMES = "open B of client B@2"
HELD_BY_A = f"{OPEN} P1,2 A<1@1"
UNTIL_150 = f"{kept('A', 1, (40, 80, 120))} A ack 1@150"
UNTIL_310 = f"{kept('A', 1, EVERY_50)} A ack 1@310"
BY_B = "B<2@311 B ack 2@312 end @700"


@pytest.mark.parametrize(
    "one",
    [
        legal("until then", f"{HELD_BY_A} {COMES} {UNTIL_150} B<2@151 B ack 2@152 end @400"),
        legal("until then, and the deadline", f"{HELD_BY_A} {COMES} {UNTIL_150} B<2@284 B ack 2@285 end @700"),
        legal("it comes when the deadline has nearly passed", f"{HELD_BY_A} open B of client B@120 {UNTIL_310} {BY_B}"),
        legal("it comes while the first message is on its way", f"{OPEN} open B of client B@0.5 P1,2 A<1@1 {UNTIL_310} {BY_B}"),
        legal("it has gone again", f"{HELD_BY_A} {COMES} close B@3 {UNTIL_310} A<2@311 A ack 2@312 end @700"),
        legal("the holder opens a stream after that, and another one", f"{HELD_BY_A} {COMES} open A2 of client A@3 open A3 of client A@4 {UNTIL_310} {BY_B}"),
        legal("it is there on a new stream", f"open B1 of client B {HELD_BY_A} close B1@1.5 {COMES} {UNTIL_310} {BY_B}"),
        legal("one more message goes where the key is", f"{OPEN} P1,2,3 A<1@1 {COMES} A<2@20 {UNTIL_310} {kept('A', 2, EVERY_50)} A ack 2@310.5 B<3@311 B ack 3@312 end @700"),
        legal("what nobody prolongs is held until its lease is over", f"{HELD_BY_A} {COMES} B<1,2@185 B ack 1,2@186 end @400"),
        legal("a run", f"{OPEN} P1,2,3 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@1.8 {COMES} {kept('A', 2, EVERY_50)} A ack 2@310 B<3@311 B ack 3@312 end @700"),
        legal("a refused message", f"{OPEN} P1,2 A<1,2@1 {COMES} A nack 2@3 {UNTIL_310} {BY_B}"),
        legal("by another clock", f"{HELD_BY_A} open B of client B@0.6 skew A 3 {UNTIL_310} {BY_B}", clock_error_s=4),
    ],
)  # fmt: skip
def test_another_subscriber_comes(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("and gets nothing when all is acknowledged", f"{HELD_BY_A} {COMES} {UNTIL_150} end @700", "L:STUCK@304"),
        case("and the lease is over", f"{HELD_BY_A} {COMES} end @700", "L:STUCK@185 L:UNACKED_STALL@186"),
        case("and the rest of a run does not come", f"{OPEN} P1,2,3 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@1.8 {COMES} A ack 2@50 end @700", "L:REDELIVERY_STALL@186.6"),
        case("before the key was held", f"open B of client B {HELD_BY_A} {UNTIL_310} end @700", "L:STUCK@121"),
        case("when the key was held no more", f"{HELD_BY_A} A ack 1@1.5 open B of client B@20 end @700", "L:STUCK@121"),
        case("before it was held for the second time", f"{OPEN} open B of client B@5 P1,2,3 A<1@1 A ack 1@1.5 A<2@30 {kept('A', 2, EVERY_50)} A ack 2@310 end @700", "L:STUCK@150"),
        case("but no other", f"{HELD_BY_A} open A2 of client A@2 open A3 of client A@3 {UNTIL_310} end @700", "L:STUCK@121"),
        case("and the key goes on for long where it was", f"{OPEN} P1,2,3 A<1@1 {COMES} A<2@123 {UNTIL_310} {kept('A', 2, EVERY_50)} A ack 2@310.5 end @700", "L:STUCK@243"),
        case("and nobody can say when all is settled", f"{HELD_BY_A} {COMES} {UNTIL_150} end @700", "L:STUCK@121", delivery_delay_max_s=inf),
    ],
)  # fmt: skip
def test_no_other_subscriber_takes_over(one: Case) -> None:
    one.check()


# --- another key that is held may delay this one --------------------------------------------------------------------------------

OTHER = "on k2 P1 A<1@0.2"


@pytest.mark.parametrize(
    "one",
    [
        legal("another key was held before the message was published", f"{OTHER} {UNTIL_310} on k P1@1 ok1=m1@1.1 A<1@330 A ack 1@331 end @600"),
        legal("until shortly before the deadline", f"{OTHER} {kept('A', 1, (50, 100), 60)} A ack 1@119 on k P1@1 ok1=m1@1.1 A<1@130 A ack 1@131 end @600"),
        # the service may turn to this key only when the other is free, and has its whole time from then on
        legal("until well before the deadline", f"{OTHER} {kept('A', 1, (50,), 60)} A ack 1@100 on k P1@1 ok1=m1@1.1 A<1@200 A ack 1@201 end @600"),
        legal("its first message was on its way", f"on k2 P1@0 ok1=k2m1@0.1 A<1@2 {UNTIL_310} on k P1@1 ok1=m1@1.1 A<1@330 A ack 1@331 end @600"),
        legal("until before the deadline, in pulls, by another clock", "on k2 P1 pull b@0.1 b<1@0.2 b modack 1 60s@50 b modack 1 60s@100 b ack 1@119 on k P1@1 ok1=m1@1.1 pull c@2 c<1@130 c ack 1@131 end @600", mode=PULL, clock_error_s=5),
        legal("what came while a seek settled is held on to", f"on k2 P1@0 ok1=k2m1@0.1 seek 5@0.2 A<1@1 {UNTIL_310} on k P1@6 ok1=m1@6.1 A<1@330 A ack 1@331 end @600"),
        legal("and still is at the end", f"{OTHER} {kept('A', 1, EVERY_50)} on k P1@1 ok1=m1@1.1 stop @320"),
        legal("a refused message as well", f"on k2 P1 A<1@0.2 {UNTIL_310} on k P1@0.1 ok1=m1@0.15 A<1@1 A nack 1@2 A<1@330 A ack 1@331 end @600"),
        legal("in pulls", f"on k2 P1 pull b@0.1 b<1@0.2 {kept('b', 1, EVERY_50)} b ack 1@310 on k P1@1 ok1=m1@1.1 pull c@2 c<1@330 c ack 1@331 end @600", mode=PULL),
        legal("the other message is unacknowledged, prolonged by nobody, and is redelivered again and again", "on k2 P1 " + " ".join(f"A<1@{t}" for t in range(1, 302, 50)) + " A ack 1@310 on k P1@2 ok1=m1@2.1 A<1@320 A ack 1@321 end @600"),
    ],
)  # fmt: skip
def test_another_key_is_held(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("it is held since later, and no more", f"on k2 P1@49 ok1=k2m1@49.1 A<1@49.5 {kept('A', 1, range(100, 301, 50))} A ack 1@310 on k P1@1 ok1=m1@1.1 end @700", "L:STUCK"),
        wrong("it was held until shortly before the deadline, and another key after it", f"on k2 P1,2 A<1@0.2 {kept('A', 1, (50, 100), 60)} A ack 1@119 A<2@140 {kept('A', 2, (150, 200, 250, 300), 60)} on k P1@1 ok1=m1@1.1 stop @320", "L:STUCK"),
        wrong("it was held until well before the deadline, and the whole time after it is over", f"{OTHER} {kept('A', 1, (50,), 60)} A ack 1@100 on k P1@1 ok1=m1@1.1 A<1@240 A ack 1@241 end @600", "L:STUCK"),
        wrong("it was held for a short time only", f"{OTHER} A ack 1@20 on k P1@1 ok1=m1@1.1 end @500", "L:STUCK"),
        # a doubt at 121 s, while the other is held, says nothing about the 190 s after it
        wrong("it was held for longer than the deadline, but not for ever", f"{OTHER} {UNTIL_310} on k P1@1 ok1=m1@1.1 end @700", "L:STUCK"),
        wrong("a refused message does not come either when the other key is free", f"{OTHER} {UNTIL_310} on k P1@0.1 ok1=m1@0.15 A<1@1 A nack 1@2 end @700", "L:UNACKED_STALL"),
        wrong("all of the other is acknowledged and settled", f"{OTHER} A ack 1@0.3 on k P1@30 ok1=m1@30.1 end @200", "L:STUCK"),
    ],
)  # fmt: skip
def test_no_other_key_is_held(one: Definite) -> None:
    one.check()


def test_a_key_held_on_another_subscription_delays_nothing() -> None:
    lines = (
        ("s", "open A of client A on k P1@1 ok1=m1@1.1 end @300"),
        ("t", f"on k2 P1 B<1@0.2 {kept('B', 1, EVERY_50)} on k B<1@2 B ack 1@3"),
    )
    found = [finding for finding in across(*lines) if finding.subscription == "s"]
    definitely(found, "L:STUCK")


# --- retry policy ---------------------------------------------------------------------------------------------------------------

PATIENT = {"retry_backoff_max_s": 600}
REFUSED = "on k2 P1 A<1@0.2 A nack 1@0.3 on k"
LEASED = "on k2 P1 A<1@0.2 on k"
AGAIN = "on k2 A<1@600 A ack 1@601"


@pytest.mark.parametrize(
    "one",
    [
        legal("after a refusal", "P1 A<1@1 A nack 1@1.1 A<1@700 A ack 1@701 end @1000", **PATIENT),
        legal("after a lease", "P1 A<1@1 A<1@760 A ack 1@761 end @1000", **PATIENT),
        legal("those behind it wait as well", "P1,2,3 A<1@1 A nack 1@1.1 A<1,2,3@700 A ack 1,2,3@701 end @1000", **PATIENT),
        legal("published while it waits", "P1 A<1@1 A nack 1@1.1 P2@20 ok2=m2@20.1 A<1,2@700 A ack 1,2@701 end @1000", **PATIENT),
        legal("again and again", "P1,2 A<1@1 A nack 1@1.1 A<1@600 A nack 1@601 A<1@1200 A nack 1@1201 A<1,2@1800 A ack 1,2@1801 end @2000", **PATIENT),
        legal("in a run", "P1,2,3 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A nack 2@2.1 A<2,3@500 A ack 2,3@501 end @1000", **PATIENT),
        legal("pull", "P1,2 pull b@0.9 b<1@1 b nack 1@1.1 pull c@2 c<1,2@700 c ack 1,2@701 end @1000", mode=PULL, **PATIENT),
        legal("push", "P1,2 a<1@1 a nack 1@1.1 b<1@700 b ack 1@701 c<2@702 c ack 2@703 end @1000", mode=PUSH, **PATIENT),
        legal("it may keep back another key meanwhile", f"{REFUSED} P1@1 ok1=m1@1.1 A<1@600 {AGAIN} on k A ack 1@601 end @900", **PATIENT),
        legal("and when a lease is over", f"{LEASED} P1@1 ok1=m1@1.1 A<1@660 on k2 A<1@660 A ack 1@661 on k A ack 1@661 end @900", **PATIENT),
        legal("in pulls", "on k2 P1 pull b@0.1 b<1@0.2 b nack 1@0.3 on k P1@1 ok1=m1@1.1 pull c@2 c<1@600 c ack 1@601 end @900", mode=PULL, **PATIENT),
        legal("another key was refused", "on k2 P1 A<1@0.2 A nack 1@0.3 on k P1@1 ok1=m1@1.1 A<1@1.5 A ack 1@1.6 on k2 A<1@600 A ack 1@601 end @900", **PATIENT),
    ],
)  # fmt: skip
def test_a_retry_policy_may_wait(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("not for ever", "P1 A<1@1 A nack 1@1.1 end @900", "L:UNACKED_STALL", **PATIENT),
        wrong("not for what was never sent", "P1 open A of client A end @300", "L:STUCK", **PATIENT),
        wrong("not when the nacked message was redelivered, even if its acknowledgement was lost", "P1,2 A<1@1 A nack 1@1.1 A<1@20 A ack 1@20.1 end @900", "L:STUCK", **PATIENT),
        wrong("without a policy", "P1 A<1@1 A nack 1@1.1 A<1@700 A ack 1@701", "L:UNACKED_STALL"),
    ],
)  # fmt: skip
def test_a_retry_policy_does_not_wait(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("when that has been redelivered, and was acknowledged", f"{REFUSED} P1@1 ok1=m1@1.1 {AGAIN} end @900", "I:STUCK@121.1 L:STUCK@785.2", **PATIENT),
        case("when that had to be redelivered", f"{REFUSED} P1@1 ok1=m1@1.1 end @1000", "L:STUCK@785.2 L:UNACKED_STALL@785.2", **PATIENT),
        case("when that was acknowledged", "on k2 P1 A<1@0.2 A ack 1@0.3 on k P1@1 ok1=m1@1.1 end @900", "L:STUCK@135.3", **PATIENT),
        case("when that came only later", "on k2 P1@49 ok1=k2m1@49.1 A<1@49.5 A nack 1@50 on k P1@1 ok1=m1@1.1 A<1@600 A ack 1@601 on k2 A<1@600 A ack 1@601 end @900", "I:STUCK@121.1", **PATIENT),
        case("without a policy", f"{REFUSED} P1@1 ok1=m1@1.1 A<1@600 A ack 1@601 {AGAIN} end @900", "L:STUCK@185.2 L:UNACKED_STALL@185.2"),
    ],
)  # fmt: skip
def test_a_retry_policy_keeps_back_nothing_of_another_key(one: Case) -> None:
    one.check()


# --- a nacked message is redelivered although the key moves on ---------------------------------------------------------------------


LONG = {"ack_deadline_s": 600.0, "unacked_deadline_s": 120.0}
AGAIN_AND_AGAIN = " ".join(f"close {'A' * (n + 1)}@{50 * n + 40} open {'A' * (n + 2)} of client A@{50 * n + 45}" for n in range(16))
EVERY_100 = " ".join(f"close {'A' * (n + 1)}@{100 * n + 99} open {'A' * (n + 2)} of client A@{100 * n + 100}" for n in range(12))
EVERY_40 = " ".join(f"close {'A' * (n + 1)}@{40 * n + 39} open {'A' * (n + 2)} of client A@{40 * n + 40}" for n in range(30))
BROKE = "close A@2 open A2 of client A@3"


@pytest.mark.parametrize(
    "one",
    [
        legal("the message", f"{OPEN} P1 {BROKE} A2<1@598 A2 ack 1@599 end @1500", **LONG),
        legal("the message, and it is not long", f"{OPEN} P1 {BROKE} A2<1@610 A2 ack 1@611 end @1500", **LONG),
        legal("the message, on the second stream too", f"{OPEN} P1 {BROKE} close A2@400 open A3 of client A@401 A3<1@999 A3 ack 1@999.5 end @1500", **LONG),
        legal("the rest of a run", f"{OPEN} P1,2,3 A<1,2,3@1 A nack 1@1.5 A<1@1.8 A ack 1@1.9 {BROKE} A2<2,3@598 A2 ack 2,3@599 end @1500", **LONG),
        legal("a refused message", f"{OPEN} P1 A<1@1 A nack 1@1.5 {BROKE} A2<1@598 A2 ack 1@599 end @1500", **LONG),
        legal("what is behind what was held", f"{OPEN} P1,2 A<1@1 {BROKE} A2<1,2@598 A2 ack 1,2@599 end @1500", **LONG),
        legal("it may have been lost with each stream, and leased", f"{OPEN} P1 {EVERY_100} end @1290", ack_deadline_s=90),
        legal("and held back after that", f"{OPEN} P1 {BROKE} A2<1@613 A2 ack 1@614 end @900", ack_deadline_s=10, retry_backoff_max_s=600),
        legal("again and again", "open A of client A P1 close A@99 open A2 of client A@100 close A2@199 open A3 of client A@200 close A3@299 open A4 of client A@300 close A4@399 open A5 of client A@400 close A5@499 open A6 of client A@500 A6<1@546 A6 ack 1@547 end @600", ack_deadline_s=10, retry_backoff_max_s=100, close_detection_max_s=30),
        legal("a stream may have been dead before that was noticed", f"{OPEN} P1 {EVERY_40} end @1230", ack_deadline_s=10, close_detection_max_s=30),
        legal("a message published when the stream had long been open", f"{OPEN} {EVERY_100} P1@1110 ok1=m1@1110.1 end @1225", ack_deadline_s=10),
        legal("what is behind what was held for longer", f"{OPEN} P1,2 A<1@1 A modack 1 600s@1.5 {BROKE} A2<1,2@590 A2 ack 1,2@591 end @1500"),
    ],
)  # fmt: skip
def test_what_went_into_a_broken_stream_is_leased(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("it never comes", f"{OPEN} P1 {BROKE} end @1500", "L:STUCK@632", **LONG),
        case("it was sent when the stream was over", f"{OPEN} {BROKE} P1@4 ok1=m1@4.1 end @1500", "L:STUCK@124.1", **LONG),
        case("the stream is still there", f"{OPEN} P1 end @1500", "L:STUCK@120.05", **LONG),
        case("the lease is not long", f"{OPEN} P1 {BROKE} end @1500", "L:STUCK@123"),
        case("its only stream breaks again and again", f"{OPEN} P1 {EVERY_100} end @1290", "L:STUCK", ack_deadline_s=10),
        case("a refused message, and its only stream breaks again and again", f"{OPEN} P1 A<1@1 A nack 1@1.5 {EVERY_100} end @1290", "L:UNACKED_STALL", ack_deadline_s=10),
        case("streams break again and again", f"open B of client B {OPEN} P1 {AGAIN_AND_AGAIN} end @900", "L:STUCK@180.05"),
    ],
)  # fmt: skip
def test_nothing_is_leased_any_more(one: Case) -> None:
    one.check()


def moving(last: int, refused: int, *, again: dict[int, str] | None = None) -> str:
    """One message every 10 s, each delivered and acknowledged but the refused one; `again` adds words after a message."""
    words = []
    for seq in range(1, last + 1):
        t = 10 * seq
        answer = "nack" if seq == refused else "ack"
        words.append(f"P{seq}@{t} ok{seq}=m{seq}@{t}.05 A<{seq}@{t}.1 A {answer} {seq}@{t}.2")
        words.append((again or {}).get(seq, ""))
    return " ".join(words)


@pytest.mark.parametrize(
    "one",
    [
        legal("it is redelivered in time", moving(30, 2, again={10: "A<2@101 " + " ".join(f"A<{seq}@{99 + seq}" for seq in range(3, 11)) + " A ack 2@109.5"})),
        legal("the policy may wait", moving(40, 2), **PATIENT),
        legal("an acknowledgement of the same message was under way", "P1@0 ok1=m1@0.1 A<1@1 A ack 1@1.1 A<1@2 A nack 1@2.1 " + " ".join(f"P{seq}@{10 * seq} ok{seq}=m{seq}@{10 * seq}.1 A<{seq}@{10 * seq}.2 A ack {seq}@{10 * seq}.3" for seq in range(2, 30))),
        # a refusal may be lost like an acknowledgement, and then the lease runs to its end
        legal("the refusal was lost", moving(30, 2, again={18: "A<2@182 " + " ".join(f"A<{seq}@{182 + seq / 10 - 0.2:g}" for seq in range(3, 19)) + " A ack 2@185"})),
        legal("the message may have expired", moving(40, 2), message_retention_s=100),
        legal("it may have been dead-lettered", "P1@0 ok1=m1@0.1 " + " ".join(f"A<1#{attempt}@{attempt} A nack 1@{attempt}.5" for attempt in range(1, 6)) + " " + " ".join(f"P{seq}@{10 * seq} ok{seq}=m{seq}@{10 * seq}.1 A<{seq}@{10 * seq}.2 A ack {seq}@{10 * seq}.3" for seq in range(2, 30)), dead_letter_max_attempts=5),
        legal("the key is held nearly all the time", "P1 pull b1@0.9 b1<1@1 b1 nack 1@1.1 " + " ".join(f"P{seq}@{10 * seq} ok{seq}=m{seq}@{10 * seq}.1 pull b{seq}@{10 * seq}.2 b{seq}<{seq}@{10 * seq}.3 b{seq} ack {seq}@{10 * seq + 9}.9" for seq in range(2, 40)), mode=PULL),
    ],
)  # fmt: skip
def test_a_refused_message_while_the_key_moves_on(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("it is never redelivered", moving(40, 2), "L:UNACKED_STALL"),
        wrong("it is redelivered, and is nacked again", moving(40, 2, again={5: "A<2@51 A<3@51.1 A<4@51.2 A<5@51.3 A nack 2@51.4"}), "L:UNACKED_STALL"),
        wrong("its lease ends", moving(40, 41).replace("A ack 2@20.2 ", ""), "L:UNACKED_STALL"),
        wrong("the policy has waited", moving(90, 2), "L:UNACKED_STALL", **PATIENT),
        wrong("another key is refused too, later", f"{moving(40, 2)} on k2 P1@300 ok1=k2m1@300.1 A<1@300.2 A nack 1@300.3", "L:UNACKED_STALL"),
    ],
)  # fmt: skip
def test_a_refused_message_that_is_forgotten(one: Definite) -> None:
    one.check()
