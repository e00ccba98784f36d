"""How often a broken promise could have been seen: each line of history says so, and with the right thing wrong it is told."""

from __future__ import annotations

import pytest

from prober.core.chances import CHANCES, chances_of
from prober.core.collector import COUNTED
from prober.core.findings import Kind, Status
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from tests.judging import judge
from tests.notation import history
from tests.unit.core.cases import observe

ACKED = "P1,2,3 A<1,2,3@1 A ack 2,3@1.5 A nack 1@1.6"
PULLED = "P1,2,3 pull a@0.5 pull b@0.6"
CONFIRMED = "P1,2 A<1,2@1 A ack 1,2@1.2 A ackOK 1,2@1.3"
EXACTLY_ONCE = Rules(exactly_once=True)
DEAD = "P1 A<1@1 A nack 1@1.3 dlq m1@2"
HELD = "open B of client B@0 P1 A<1@1 P2@1.5 ok2=m2@1.6"


def counted(line: str, name: str, rules: Rules | None = None) -> int:
    rules = rules or Rules()
    verifier = Verifier(rules)
    observe(verifier, history(line, rules.mode))
    verifier.finish()
    return verifier.counters[name]


def is_told(line: str, rules: Rules | None = None) -> bool:
    rules = rules or Rules()
    verifier = Verifier(rules)
    found = [*observe(verifier, history(line, rules.mode)), *verifier.finish()]
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


ONE_OPEN = "P1,2,3 r1<1@1 r1 ack 1@1.1"
FAILED = "P1,2,3 r1<1@1 r1 nack 1@1.1"


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        (f"{ONE_OPEN} r2<2@2", 0),
        (f"{FAILED} r2<1@2", 1),
        (f"{FAILED} r2<1@2 r2 nack 1@2.1 r3<1@3 r3 ack 1@3.1 r4<2@4", 2),
        ("P1 r1<1@1 r1 nack 1@1.1 r2<1@2", 0),  # nothing waits behind it
        ("P1,2 r1<1@1 r1 ack 1@1.1 r2<1@2 r2 nack 1@2.1 r3<1@3", 0),  # the acknowledgement may have counted
        (f"{FAILED} r2<2@2", 0),
        (f"{FAILED} seek 60@1.2 r2<1@2 r2 ack 1@2.1 r3<2@3", 0),
    ],
)
def test_a_push_that_failed_and_is_repeated_is_a_chance(line: str, failed: int) -> None:
    rules = Rules(mode=Mode.PUSH)
    assert counted(line, "chances_push_failed", rules) == failed


@pytest.mark.parametrize(
    ("line", "chances"),
    [
        (f"{PULLED} a<1@1 a ack 1@1.5", 1),
        (f"{PULLED} a<1@1 a nack 1@1.5", 1),
        (f"{PULLED} a<1,2@1 a ack 1@1.5", 0),  # it is not over yet
        (f"{PULLED} a<1,2@1 a ack 1,2@1.5", 1),
        (f"{PULLED} a<1,2,3@1 a ack 1,2,3@1.5", 0),  # nothing else was there
        (f"{PULLED} a<1@1 a ack 1@60", 0),  # its lease may be over
        ("P1,2 pull a@0.5 a<1@1 a ack 1@1.5", 0),  # nobody else asked
        (f"{PULLED} seek 60@0.9 a<1@1 a ack 1@1.5", 0),
    ],
)
def test_a_batch_that_is_over_before_the_next_is_a_chance_to_see_an_overlap(line: str, chances: int) -> None:
    assert counted(line, "chances_overlap", Rules(mode=Mode.PULL)) == chances


def test_what_is_a_chance_by_pull_is_told_when_it_goes_wrong() -> None:
    wrong = judge(Rules(mode=Mode.PULL), history(f"{PULLED} a<1@1 b<2@1.4 a ack 1@1.5"))
    assert [(one.kind, one.status) for one in wrong] == [(Kind.PULL_OVERLAP, Status.VIOLATION)]


@pytest.mark.parametrize(
    ("line", "chances"),
    [
        (f"{CONFIRMED} end @7", 2),
        (f"{CONFIRMED} end @6", 0),  # nothing that was sent after them can have come
        (f"{CONFIRMED} stop @7", 0),
        (f"{CONFIRMED} A ackOK 1@1.6 end @7", 2),
        (f"{CONFIRMED} close A@1.7 open B of client B@1.8", 2),  # whatever comes there was sent later
        (f"{CONFIRMED} open B of client B@1.8", 0),
        (f"{CONFIRMED} P3@10 ok3=m3@10.1 A<3@11 A ack 3@11.1 A ackOK 3@11.2 stop @12", 2),
        (f"seek 60@0.5 {CONFIRMED} end @70", 0),
    ],
)
def test_a_confirmed_acknowledgement_is_a_chance_when_it_was_listened_for_long_enough(line: str, chances: int) -> None:
    assert counted(line, "chances_confirmed", EXACTLY_ONCE) == chances


@pytest.mark.parametrize(
    ("line", "chances"),
    [
        ("P1 A<1@1 P2@1.5 ok2=m2@1.6 A<2@2", 1),
        ("P1 A<1@1 A ack 1@1.2 P2@1.5 ok2=m2@1.6 A<2@2", 0),  # nothing is held
        ("P1,2 A<1,2@1", 0),  # sent together: one decision
        ("P1 A<1@1 P2@1.5 ok2=m2@1.6 A<2@56", 0),  # the lease may be over
    ],
)
def test_what_comes_while_something_is_held_is_a_chance_to_see_that_again(line: str, chances: int) -> None:
    assert counted(line, "chances_outstanding", EXACTLY_ONCE) == chances
    assert counted(line, "chances_outstanding") == 0


@pytest.mark.parametrize(
    ("line", "chances"),
    [
        (f"{DEAD} P2@3 ok2=m2@3.1 A<2@4", 1),
        (DEAD, 0),  # nothing else was there
        ("P1,2 A<1,2@1 A ack 2@1.2 A nack 1@1.3 dlq m1@2", 0),
    ],
)
def test_a_key_that_moves_on_after_a_dead_letter_is_a_chance_to_see_it_stand_still(line: str, chances: int) -> None:
    assert counted(line, "chances_dead_letter", Rules(dead_letter_max_attempts=5)) == chances


@pytest.mark.parametrize(
    ("came", "chances"),
    [("2,3,4", 3), ("1,2,3,4", 3), ("2,4", 1), ("3,4", 1), ("2,3,2,3,4", 4), ("2,3,4,2,3,4", 3)],
)
def test_each_message_that_a_seek_certainly_brings_back_is_a_chance(came: str, chances: int) -> None:
    before = "P1,2,3,4 A<1,2,3,4@1 A ack 1,2,3,4@1.5 close A@19"
    assert counted(f"{before} seek 5/0.05@20 open B of client B@26 B<{came}@27", "chances_seek") == chances
    assert counted(f"{before} seek 5@20 open B of client B@26 B<{came}@27", "chances_seek") == 0


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


@pytest.mark.parametrize(
    ("kept", "broken"),
    [(f"{ONE_OPEN} r2<2@2", "P1,2,3 r1<1@1 r2<2@1.05 r1 ack 1@1.1"), (f"{FAILED} r2<1@2", f"{FAILED} r2<2@2")],
)
def test_so_it_is_by_push(kept: str, broken: str) -> None:
    assert (is_told(kept, Rules(mode=Mode.PUSH)), is_told(broken, Rules(mode=Mode.PUSH))) == (False, True)


@pytest.mark.parametrize(
    ("other", "chances"),
    [
        ("B<1,2,3@2", 3),
        ("B<1@2", 1),
        ("B<1,2@2 B nack 1@2.5 B<1,2@3", 2),  # what comes again was compared
        ("B<2,1,3@2", 1),  # only the first deviation of a pair is told
    ],
)
def test_a_message_that_a_second_subscription_receives_is_a_chance_to_see_another_order(other: str, chances: int) -> None:
    verifier = Verifier(Rules(), subscriptions=["s", "t"])
    observe(verifier, sorted(history("P1,2,3 A<1,2,3@1") + history(other, subscription="t"), key=lambda event: event.t))
    verifier.finish()
    assert verifier.counters["chances_divergence"] == chances


def test_chances_long_ago_are_not_taken_back() -> None:
    """They are kept in few counts, however many they are."""
    publishes = " ".join(f"P{n}@{n} ok{n}=m{n}@{n + 0.1} A<{n}@{n + 0.5}" for n in range(2, 400))
    line = f"open B of client B@0 P1@0 ok1=m1@0.1 A<1@0.5 {publishes} close B@399.9"
    rules = Rules(close_detection_max_s=30.0, ack_deadline_s=600.0)
    assert counted(line, "chances_affinity", rules) == pytest.approx(398 - 31, abs=2)


def test_in_words_also_what_there_was_none_of() -> None:
    words = chances_of({"chances_order": 3, "publishes_confirmed": 4})
    assert list(words.values()) == [3, *[0] * 10, 4]
    assert chances_of({"publishes_confirmed": 4}) == {}, "a run before they were counted"
    assert {name for name in CHANCES if name.startswith("chances_")} == {name for name in COUNTED if name.startswith("chances_")}
