"""Which records certainly stand in the order in which they were learned, where sessions race."""

from __future__ import annotations

import pytest

from prober.core import places as places_module
from prober.core.events import LONG_AGO
from prober.core.places import Places
from prober.core.positions import LearnedLog
from prober.core.racing import First

RACE_S = 5.0


class Key:
    """Records are learned one after the other; nothing but their arrival tells their order, unless they are `proven`."""

    def __init__(self) -> None:
        self.log = LearnedLog(64)
        self.places = Places(self.log)

    def learn(self, session: str, t: float, *, proven: bool = False, published_t: float = LONG_AGO) -> int:
        seq = self.log.frontier + 1
        position = self.log.learn(seq, 0, 0, seq, seq, published_t)
        self.places.learned(First(t, position, "e", seq, proven, 0.0, 0.0, 1.0, RACE_S), session, (), 0.0, LONG_AGO)
        return position


def test_records_of_two_sessions_within_the_race_have_no_certain_order() -> None:
    key = Key()
    one, other = key.learn("A", 1.0), key.learn("B", 2.0)
    assert not key.places.in_order(one, other)


def test_those_of_one_session_and_those_far_apart_do() -> None:
    key = Key()
    one, beside, other, late = key.learn("A", 1.0), key.learn("B", 2.0), key.learn("A", 2.5), key.learn("B", 6.5)
    assert key.places.in_order(one, other)
    assert key.places.in_order(one, late)
    assert not key.places.in_order(one, beside)
    assert not key.places.in_order(other, late)


def test_what_stands_between_and_does_not_race_divides_them() -> None:
    key = Key()
    for t, session in ((1.0, "A"), (2.0, "B"), (20.0, "A"), (40.0, "A"), (41.0, "B")):
        key.learn(session, t)
    assert not key.places.in_order(1, 2)
    assert all(key.places.in_order(one, other) for one in (1, 2) for other in (3, 4, 5))
    assert not key.places.in_order(4, 5)


@pytest.mark.parametrize(("published_t", "certain"), [(1.0, False), (1.5, True)])
def test_what_came_before_another_was_published_stands_before_it(published_t: float, certain: bool) -> None:
    key = Key()
    one, other = key.learn("A", 1.0), key.learn("B", 2.0, published_t=published_t)
    assert key.places.in_order(one, other) is certain


def test_of_what_came_long_ago_nobody_knows_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_module, "CAME_MAX", 1)
    key = Key()
    one, other = key.learn("A", 1.0), key.learn("B", 2.0, published_t=1.5)
    assert not key.places.in_order(one, other)


def test_what_the_publisher_says_is_certain() -> None:
    key = Key()
    one, other = key.learn("A", 1.0, proven=True), key.learn("B", 2.0, proven=True)
    assert key.places.in_order(one, other)


def test_of_what_has_no_place_nothing_is_certain() -> None:
    key = Key()
    one, other = key.learn("A", 1.0), key.learn("A", 20.0)
    key.places.lose(one)
    assert not key.places.in_order(one, other)
    assert not key.places.apart(one, other)


def test_a_copy_that_came_soon_after_elsewhere_may_have_been_sent_first() -> None:
    """So its record may stand before what was learned before it, but not behind what was learned after it."""
    key = Key()
    one, copied, other = key.learn("A", 1.0), key.learn("A", 2.0), key.learn("A", 3.0)
    key.places.came_again(copied, "A", 3.5, RACE_S)
    assert key.places.in_order(one, copied)
    key.places.came_again(copied, "B", 3.5, RACE_S)
    assert not key.places.in_order(one, copied)
    assert key.places.in_order(copied, other)


def test_a_copy_that_came_late_elsewhere_was_sent_later() -> None:
    key = Key()
    one, copied = key.learn("A", 1.0), key.learn("A", 2.0)
    key.places.came_again(copied, "B", 7.5, RACE_S)
    assert key.places.in_order(one, copied)


def test_of_too_many_the_oldest_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_module, "SOONER_MAX", 1)
    key = Key()
    for t in (1.0, 2.0, 3.0):
        key.learn("A", t)
    key.places.advance(1)
    key.places.advance(2)
    assert not key.places.in_order(1, 3)
    assert key.places.in_order(2, 3)


def test_of_two_copies_of_one_message_that_raced_nothing_proves_which_is_the_first() -> None:
    key = Key()
    one, between, other = key.learn("A", 1.0, proven=True), key.learn("A", 2.0, proven=True), key.learn("B", 3.0, proven=True)
    key.places.copied(one, other)
    assert not key.places.in_order(one, other)
    assert not key.places.in_order(between, other)


def test_what_left_the_window_is_long_past() -> None:
    key = Key()
    for t, session in ((1.0, "A"), (2.0, "B"), *((20.0 + number, "A") for number in range(80))):
        key.learn(session, t)
    assert not key.log.holds(2)
    assert key.places.in_order(1, 82)


def test_unless_everything_since_has_raced() -> None:
    key = Key()
    for number in range(80):
        key.learn("AB"[number % 2], 1.0)
    assert not key.places.in_order(1, 80)
    assert key.places.in_order(78, 80)
