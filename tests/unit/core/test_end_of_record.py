"""What a record that was cut off leaves in doubt (docs/model.md, section 10), one line per case."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from prober.core.findings import Kind
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import PULL, PUSH, all_of, listed, rules_of
from tests.unit.core.test_divergence import across

TWO = "open A of client c open B of client c"
SPLIT = "P1,2,3 A<1,2@1 A ack 1@1.4 B<3@2"
CLOSE = {"close_detection_max_s": 30}
TOGETHER = "pull b1@0.9 b1<1,2@1 pull b2@1.5"


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        (f"{TWO} P1,2 B<2@1 stop @1.1", "I:ORDER_GAP@1", CLOSE),
        (f"{TWO} P1,2 B<2@1 stop @36", "I:ORDER_GAP@1", CLOSE),
        (f"{TWO} P1,2 B<2@1 stop @36.1", "V:ORDER_GAP@1", CLOSE),
        (f"{TWO} P1,2 B<2@1 end @1.1", "V:ORDER_GAP@1", {}),
        (f"{TWO} P1,2 B<2@1", "V:ORDER_GAP@1", {}),
        ("open A of client c P1,2 A<2@1 stop @1.1", "V:ORDER_GAP@1", {}),
        ("open A of client c open B of client c@1.05 P1,2 A<2@1 stop @1.1", "V:ORDER_GAP@1", {}),
        (f"{SPLIT} stop @37", "I:AFFINITY_SPLIT@2", CLOSE),
        (f"{SPLIT} stop @37.1", "V:AFFINITY_SPLIT@2", CLOSE),
        (f"P1,2,3,4 {TOGETHER} b2<3@1.6 stop @1.7", "V:PULL_OVERLAP@1.6", {"mode": PULL}),
        (f"P1,2,3,4 {TOGETHER} pull b3@1.5 b2<3@1.6 stop @1.7", "I:PULL_OVERLAP@1.6", {"mode": PULL}),
        ("P1,2 r1<1@1 r2<2@2 stop @3", "I:PUSH_OVERLAP@2", {"mode": PUSH}),
        ("P1,2 r1<1@1 r2<2@2 stop @8", "V:PUSH_OVERLAP@2", {"mode": PUSH}),
        ("skew P 0.1 P1 A<1@1 A<2@1.1 stop @1.2", "V:PHANTOM@1.1", {}),
    ],
)
def test_what_is_on_hold_at_the_end_is_in_doubt(line: str, expected: str, rules: dict[str, Any]) -> None:
    assert listed(all_of(line, **rules)) == [expected]


def test_subscriptions_are_compared_before_the_rest_is_in_doubt() -> None:
    found, _ = across(("s", "P1@0 P2@0 ok1=m1@0.5 ok2=m2@0.5 A<1,2@1 stop @2"), ("r", "C<2,1@1.5"))
    assert {one.status for one in found if one.subscription == "r"} == {"violation"}


def test_without_a_bound_of_the_delay_one_stream_is_verified_at_once() -> None:
    rules = rules_of(delivery_delay_max_s=inf)
    verifier = Verifier(rules, subscriptions=("s",))
    found = [one.kind for event in history("P1,2,3 A<1,2,1@1 A<3@4 A<1@5") for one in verifier.observe(event)]
    assert found == [Kind.REDELIVERY_SKIP]


@pytest.mark.parametrize("end", ["", "end @500"])
def test_without_a_bound_of_the_delay_several_streams_are_verified_at_the_end(end: str) -> None:
    line = f"open B of client b P1,2,3 A<1,2,1@1 A<3@4 {end}"
    assert "V:REDELIVERY_SKIP@4" in listed(all_of(line, delivery_delay_max_s=inf))


def test_a_split_is_reported_once() -> None:
    line = "P1,2,3 A<1@1 B<2@1.5 B<3@1.6 B<3@1.7 stop @60"
    assert listed(one for one in all_of(line) if one.status == "violation") == ["V:AFFINITY_SPLIT@1.5"]


def test_requests_that_overlap_are_found_when_their_publishes_are_confirmed_later() -> None:
    line = "P1@0 P2@0 r2<2@0.1 ok1=m1@0.15 ok2=m2@0.15 r2 ack 2@0.16 r1<1@0.3 r1 nack 1@0.4 r3<1@2 r3 ack 1@2.1 P3@20"
    assert "violation" in {one.status for one in all_of(line, mode=PUSH)}
