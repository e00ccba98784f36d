"""What a small window does to the verdicts: it may hide, it never invents."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from prober.core.findings import Finding
from prober.core.rules import Rules
from tests.unit.core.cases import Case, across, case, findings, words
from tests.verification import FAILURES


def hides_and_invents_nothing(one: Case) -> None:
    """What is certain must be found, and nothing but what is found by a checker that forgets nothing."""
    certain = {word for word in one.expected.split() if word[0] in "VL"}
    whole = replace(one.rules, window=Rules().window, idle_after_s=inf)
    found, all_found = (definite(findings(one.history, rules)) for rules in (one.rules, whole))
    assert certain <= found <= all_found


def definite(found: list[Finding]) -> set[str]:
    return words(finding for finding in found if finding.status in FAILURES)


SMALL: dict[str, Any] = {"window": 2}
SIX = "P1,2,3,4,5,6 A<1,2,3,4,5,6@1 A ack 1,2,3,4,5,6@1.6"


@pytest.mark.parametrize(
    "one",
    [
        case("a run from beyond the window", f"{SIX} A<1,2,3,4,5,6@9", **SMALL),
        case("a run with a hole beyond the window", f"{SIX} A<1@9 A<3@9.1 A<4,5,6@9.2", **SMALL),
        case("a run that comes back into the window", f"{SIX} A<4@9 A<6@9.1", **SMALL),
        case("a hole inside the window", f"{SIX} A<5@9 A<6@9.1 P7@10 ok7=m7@10.1 P8@10.2 ok8=m8@10.3 A<7@11 A<8@11.1 A<7@12 A<8@12.1", **SMALL),
        case("a new message after one from beyond", f"{SIX} A<1@9 P7@10 ok7=m7@10.1 A<7@11", **SMALL),
        case("a hole that the window could not see", f"{SIX} A<1@9 A<6@9.1 end @100", **SMALL),
        case("the next one is verified again", f"{SIX} A<1@9 A<5@9.1 P7@10 ok7=m7@10.1 A<7@11", "V:REDELIVERY_SKIP", **SMALL),
        case("late, its number far behind", "P1@0 P2@0 P3@0 P4@0 P5@0 ok1=m1@0.1 ok2=m2@0.1 ok3=m3@0.1 ok4=m4@0.1 ok5=m5@0.1 A<2,3,4,5@1 A<1@2", "V:ORDER_GAP V:ORDER_INVERSION", **SMALL),
        case("late and unconfirmed, its number far behind", "P1@0 info1@0.1 P2,3,4,5,6 A<2,3,4,5,6@1 A<x1(1)@2 A<6@3", **SMALL),
        case("a shadow far behind", f"{SIX} A<z1(1)@9 A<6@9.1", **SMALL),
        case("a shadow behind the window's end", f"{SIX} A<z5(5)@9 A<z4(4)@9.1", **SMALL),
        case("another attempt is open", "P1@0 P1'gen1@0.1 ok'gen1=m1@0.2 P2,3,4,5,6 A<1,2,3,4,5,6@1 A<1,2,3,4,5,6@9", **SMALL),
        case("late, republished and not yet confirmed", "P1@0 info1@0.1 P2,3,4,5,6 A<2,3,4,5,6@1 A ack 2,3,4,5,6@1.6 P1'gen1@2 A<m1(1)@2.1 A ack 1@2.15 ok'gen1=m1@2.2 end @500", **SMALL),
        case("late, and never came", "P1@0 info1@0.1 P2,3,4,5,6 A<2,3,4,5,6@1 A ack 2,3,4,5,6@1.6 P1'gen1@2 ok'gen1=m1@2.2 end @500", "L:STUCK", **SMALL),
        case("nothing is pending beyond", "P1,2,3,4 A<1,2,3,4@1 A ack 3,4@1.6 end @500", **SMALL),
        case("a holder of what is beyond holds nothing provably", "P1,2,3,4,5 A<1,2,3@1 A ack 3@1.4 B<4@8", "I:AFFINITY_SPLIT", window=1),
    ],
)  # fmt: skip
def test_a_small_window(one: Case) -> None:
    hides_and_invents_nothing(one)


def test_the_window_of_one_subscription_while_another_waits() -> None:
    """That a publish is still on record, because another subscription waits for it, does not make it new here."""
    assert words(across(("s", f"{SIX} A<1,2,3,4,5,6@9"), ("t", "end @10"), rules=Rules(window=2))) == set()


IDLE: dict[str, Any] = {"idle_after_s": 200}
SETTLED = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4"
LATER = "open T of client A@1000 open U of client A@1001"


@pytest.mark.parametrize(
    "one",
    [
        case("what is redelivered after that begins a run unverified", f"{SETTLED} {LATER} A<1@1002 A<3@1003", **IDLE),
        case("a key that is not idle yet is verified", f"{SETTLED} open T of client A@190 A<1@195 A<3@196", "V:REDELIVERY_SKIP", **IDLE),
        case("a key that holds something keeps it", f"P1,2,3 A<1,2,3@1 A ack 2,3@1.4 A modack 1 2000s@1.5 {LATER} A<1@1002 A<3@1003", "V:REDELIVERY_SKIP", unacked_deadline_s=inf, **IDLE),
        case("new messages are verified as ever", f"{SETTLED} P4@900 ok4=m4@900.1 P5@900.2 ok5=m5@900.3 {LATER} A<5@1002", "V:ORDER_GAP", delivery_deadline_s=2000, idle_after_s=200),
        case("a new message in order", f"{SETTLED} {LATER} P4@1002 ok4=m4@1002.1 A<4@1003", **IDLE),
        case("the key may be anywhere", f"{SETTLED} {LATER} B<3@1002 P4@1003 ok4=m4@1003.1 B<4@1004", **IDLE),
        case("runs are verified again", f"{SETTLED} {LATER} P4@1002 ok4=m4@1002.1 P5@1002.2 ok5=m5@1002.3 P6@1002.4 ok6=m6@1002.5 A<4,5,6@1003 A<4@1004 A<6@1005", "V:REDELIVERY_SKIP", **IDLE),
        case("late, unknown and republished", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.3 A<2@1 A ack 2@1.1 open T of client A@1000 P1'gen1@1001 A<1@1002 A ack 1@1002.1 ok'gen1=m1@1003 end @1500", **IDLE),
        case("an open attempt does not make it new", f"P1@0 P1'gen1@0.1 ok'gen1=m1@0.2 P2,3 A<1,2,3@1 A ack 1,2,3@1.4 {LATER} A<1,2,3@1002", **IDLE),
        case("a hole before it is still a hole", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 open T of client A@1000 A<2@1001", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION L:LOST_OVERTAKEN", **IDLE),
    ],
)  # fmt: skip
def test_an_idle_key_gives_up_its_window(one: Case) -> None:
    hides_and_invents_nothing(one)
