"""Which acknowledgements may still be under way: each for its own message, for as long as one may take to be applied."""

from __future__ import annotations

import pytest

from prober.core import splits
from prober.core.events import LONG_AGO
from prober.core.positions import ACKED, NO_STAMP, REFUSED, LearnedLog
from prober.core.rules import Rules
from prober.core.splits import Acknowledgements


def acknowledged(*acks: tuple[int, float], clock_error_s: float = 0.0) -> Acknowledgements:
    """Ten positions of which some were acknowledged, each at its time; an acknowledgement takes 10 s at most."""
    log = LearnedLog(100)
    for n in range(1, 11):
        log.learn(n, NO_STAMP, 0, n, n, 0.0)
    acks_of_key = Acknowledgements(log, Rules(clock_error_s=clock_error_s))
    for position, t in acks:
        log.mark(position, ACKED)
        acks_of_key.sent(position, t)
    return acks_of_key


def test_one_that_is_under_way_may_end_a_later_hold() -> None:
    acks = acknowledged((3, 100.0))
    assert [acks.may_end(3, sent_t) for sent_t in (90.0, 105.0, 110.0, 110.1)] == [True, True, True, False]


def test_it_ends_a_hold_of_its_own_message_only() -> None:
    acks = acknowledged((3, 100.0), (4, 101.0))
    assert not acks.may_end(5, 100.0)
    assert not acks.may_end(3, 110.5)
    assert acks.may_end(4, 110.5)


def test_the_latest_counts() -> None:
    acks = acknowledged((3, 100.0), (4, 100.0), (3, 120.0))
    assert acks.may_end(3, 130.0)
    assert not acks.may_end(4, 115.0)


def test_clocks_may_differ() -> None:
    acks = acknowledged((3, 100.0), clock_error_s=1.0)
    assert [acks.may_end(3, sent_t) for sent_t in (111.0, 111.1)] == [True, False]


def test_nothing_was_acknowledged() -> None:
    assert not acknowledged().may_end(3, LONG_AGO)


def test_of_too_many_the_oldest_are_taken_together_towards_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "ANSWERS_KEPT", 3)
    acks = acknowledged(*((n, 100.0 + n) for n in range(1, 6)))
    assert len(acks._latest or ()) == 3
    assert acks.may_end(1, 112.0)  # as late as the latest that was forgotten
    assert not acks.may_end(1, 112.1)
    assert not acks.may_end(7, 112.0)  # that one was not acknowledged at all


def test_a_refusal_may_be_under_way_as_well() -> None:
    acks = acknowledged()
    acks._log.mark(3, REFUSED)
    acks.sent(3, 100.0)
    assert [acks.may_end(3, sent_t) for sent_t in (110.0, 110.1)] == [True, False]


def test_at_rest_the_latest_of_all_is_remembered() -> None:
    acks = acknowledged((1, 100.0), (2, 105.0))
    acks.rest()
    assert acks._latest is None
    assert (acks.may_end(1, 115.0), acks.may_end(1, 115.1)) == (True, False)
