"""The memory of an idle key: a few numbers in place of its log, its state and its clocks.

A key rests when all its published messages were delivered and acknowledged, and no event occurred for `Rules.idle_after_s`. The checker
then forgets its deliveries, like those that leave the window. It cannot recognise their redeliveries: they count as unplaced.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.events import LONG_AGO

if TYPE_CHECKING:
    from collections.abc import Callable

    from prober.core.facts import Grace
    from prober.core.group import KeyGroup
    from prober.core.integrity import Confirmation
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane
    from prober.core.unrecorded import NumbersCheck


NO_EXCUSE: Final = (LONG_AGO, "")


class IdleLane(NamedTuple):
    """A region: the number of learned positions, the last invocation among them, and the highest number of each epoch."""

    region: str
    frontier: int
    latest_invoked_t: float
    highest: tuple[tuple[str, int], ...]


class IdleKey(NamedTuple):
    """An idle key on a subscription. `excuse`: until when a control operation is not settled, and its name."""

    lanes: tuple[IdleLane, ...]
    last_t: float
    baseline_t: float
    excuse: tuple[float, str]
    adopts: bool
    confirmations: dict[int, Confirmation] | None
    numbers: NumbersCheck | None

    def excused(self, grace: Grace) -> IdleKey:
        """Return the key after a control operation, or a hole in the record."""
        if self.numbers is not None:
            self.numbers.forget()
        return self._replace(excuse=max(self.excuse, (grace.until_t, grace.cause)), confirmations=None)


def put_away(group: KeyGroup, now: float, idle_s: float) -> bool:
    """Put a key to rest if it has been idle for `idle_s` and has no pending message; return whether it rests."""
    if not all(_is_idle(checker, now, idle_s) for checker in group.checkers):
        return False
    for checker in group.checkers:
        checker.queued_t = inf
        checker.subscription.clocks.forget(checker.liveness.clock.holds)
    group.rest(tuple(_idle(checker) for checker in group.checkers))
    return True


def _is_idle(checker: KeyChecker, now: float, idle_s: float) -> bool:
    if now - checker.last_t <= idle_s or checker.due_t < inf or not checker.liveness.is_idle(now):
        return False
    return all(_is_settled(lane, now) for lane in checker.lanes.values())


def _is_settled(lane: Lane, now: float) -> bool:
    lane.commit(now)
    return not (lane.waiting or lane.window or lane.pending or lane.deferred or lane.now.outstanding())


def _idle(checker: KeyChecker) -> IdleKey:
    collector = checker.collector
    return IdleKey(
        lanes=tuple(lane.idle for lane in checker.lanes.values()),
        last_t=checker.last_t,
        baseline_t=checker.baseline_t,
        excuse=(collector.grace_until_t, collector.grace_cause) if collector.grace_cause else NO_EXCUSE,
        adopts=checker.adopts,
        confirmations=checker.confirmations or None,
        numbers=checker.numbers,
    )


def wake(group: KeyGroup, new: Callable[[int], KeyChecker]) -> None:
    """Wake an idle key; `new` makes a checker for the subscription of an index."""
    idle, group.resting = group.resting, ()
    group.checkers = tuple(_woken(new(index), one) for index, one in enumerate(idle))
    for checker in group.checkers:
        checker.collector.epochs = len(group.epochs)


def _woken(checker: KeyChecker, idle: IdleKey) -> KeyChecker:
    checker.collector.excuse(*idle.excuse)
    checker.last_t = checker.liveness.clock.last_t = idle.last_t
    checker.baseline_t, checker.adopts = idle.baseline_t, idle.adopts
    checker.confirmations = idle.confirmations or {}
    checker.numbers = idle.numbers
    for one in idle.lanes:
        checker.lane(one.region).resume(one)
    return checker
