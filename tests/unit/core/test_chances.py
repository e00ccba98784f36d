"""How often a broken promise could have been seen: each line of history says so, and with the right thing wrong it is told."""

from __future__ import annotations

import pytest

from prober.core.chances import CHANCES, chances_of
from prober.core.collector import COUNTED
from prober.core.findings import Status
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import observe

ACKED = "P1,2,3 A<1,2,3@1 A ack 2,3@1.5 A nack 1@1.6"
HELD = "open B of client B@0 P1 A<1@1 P2@1.5 ok2=m2@1.6"


def counted(line: str, name: str, rules: Rules | None = None) -> int:
    verifier = Verifier(rules or Rules())
    observe(verifier, history(line))
    verifier.finish()
    return verifier.counters[name]


def is_told(line: str) -> bool:
    verifier = Verifier(Rules())
    found = [*observe(verifier, history(line)), *verifier.finish()]
    return any(finding.status is Status.VIOLATION for finding in found)


def test_every_message_behind_another_is_a_chance_to_see_a_wrong_order() -> None:
    assert counted("P1,2,3 A<1,2,3@1", "chances_order") == 2
    assert counted("P1 A<1@1", "chances_order") == 0


@pytest.mark.parametrize(
    ("line", "chances", "of_acked"),
    [
        (f"{ACKED} A<1,2,3@2", 1, 1),
        (f"{ACKED} A<1@2", 0, 0),  # nothing is known of what follows
        (f"{ACKED} A<1@2 A<1,2@3", 1, 0),  # when it began again the first time, it took the acknowledgements back
        ("P1,2,3 A<1,2,3@1 A nack 1@1.6 A<1,2,3@2", 1, 0),
        ("P1,2,3 A<1,2,3@1 A nack 1@1.6 A ack 2,3@1.7 A<1,2,3@2", 1, 0),  # by then they may have been dropped
        ("P1,2,3 A<1,2,3@1 A ack 1,2@1.5 A nack 3@1.6 A<3@2", 0, 0),  # nothing stands behind it
        (f"{ACKED} A<1,2,3@2 A ack 1,3@2.5 A nack 2@2.6 A<2,3@3", 2, 2),
        (f"{ACKED} seek 60@1.7 A<1,2,3@2", 0, 0),
        (f"open B of client B@0 {ACKED} B<1,2,3@2", 0, 0),  # what came to the other may have been sent in between
    ],
)
def test_a_redelivery_that_goes_on_is_a_chance_to_see_a_skip(line: str, chances: int, of_acked: int) -> None:
    assert (counted(line, "chances_redelivery"), counted(line, "chances_redelivery_acked")) == (chances, of_acked)


def test_a_redelivery_with_a_dead_letter_policy_is_none() -> None:
    assert counted(f"{ACKED} A<1,2,3@2", "chances_redelivery", Rules(dead_letter_max_attempts=5)) == 0


@pytest.mark.parametrize(
    ("line", "chances"),
    [
        (f"{HELD} A<2@2", 1),
        ("P1 A<1@1 P2@1.5 ok2=m2@1.6 A<2@2", 0),  # nobody else is there
        (f"{HELD} A ack 1@1.7 A<2@2", 0),  # nothing is held
        ("open B of client B@0 P1,2 A<1,2@1", 0),  # sent together: one decision
        (f"{HELD} A<2@2 close A@3", 0),  # it may have been dead already
        (f"{HELD} A<2@2 close B@200", 1),
        (f"{HELD} B<2@2", 0),
    ],
)
def test_what_comes_to_the_holder_while_another_is_there_is_a_chance_to_see_a_split(line: str, chances: int) -> None:
    assert counted(line, "chances_affinity") == chances


@pytest.mark.parametrize(
    ("kept", "broken"),
    [
        (f"{ACKED} A<1,2,3@2", f"{ACKED} A<1,3@2"),
        (f"{HELD} A<2@2", f"{HELD} B<2@2"),
        ("P1,2 A<1,2@1", "P1,2 A<2,1@1"),
    ],
)
def test_what_is_a_chance_is_told_when_it_goes_wrong(kept: str, broken: str) -> None:
    assert (is_told(kept), is_told(broken)) == (False, True)


def test_chances_long_ago_are_not_taken_back() -> None:
    """They are kept in few counts, however many they are."""
    publishes = " ".join(f"P{n}@{n} ok{n}=m{n}@{n + 0.1} A<{n}@{n + 0.5}" for n in range(2, 400))
    line = f"open B of client B@0 P1@0 ok1=m1@0.1 A<1@0.5 {publishes} close B@399.9"
    rules = Rules(close_detection_max_s=30.0, ack_deadline_s=600.0)
    assert counted(line, "chances_affinity", rules) == pytest.approx(398 - 31, abs=2)


def test_in_words_also_what_there_was_none_of() -> None:
    words = chances_of({"chances_order": 3, "publishes_confirmed": 4})
    assert list(words.values()) == [3, 0, 0, 0, 4]
    assert chances_of({"publishes_confirmed": 4}) == {}, "a run before they were counted"
    assert {name for name in CHANCES if name.startswith("chances_")} == {name for name in COUNTED if name.startswith("chances_")}
