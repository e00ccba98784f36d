"""Put the messages of each group back into order, and classify every arrival: in order, early, late or duplicate.

Every message carries a group (any hashable value) and an integer order. Per group, the order expected next (`expected`) is known:

* order == expected: **in order**. It is released at once, and so are the waiting messages that continue the sequence from it.
* order > expected: **early**. It waits, from its own arrival on, for the missing ones before it.
* a message waited for the wait timeout: the resequencer **gives up** the missing ones before it. Every message waiting up to it is
  released, lowest order first. One that jumps over missing orders *overtook* them; one that continues the sequence is in order.
* order < expected: nothing can be released any more without breaking the order, so the message is refused. It is a **duplicate** if
  its order was seen before, **late** if its order had been given up, and **before the start** if it lies below the initial order.
* order > maximum: refused. The message with the maximum order completes the group.
* nothing arrived or was released in a group for the idle timeout, and nothing waits in it: the group's **epoch ends**. The next
  message of that group begins a new epoch, which starts again at the initial order.

So the released orders of one epoch strictly increase, and every message ends in exactly one of the final outcomes of `ArrivalOutcome`.

The behaviour is that of Apache NiFi's EnforceOrder processor, as used in Neil Kolban, "GCP Pub/Sub ordering and Apache NiFi" (2020)
and as coded in EnforceOrder.java. The differences are on purpose:

* No loop-back queue. EnforceOrder hands an early file back to the flow, and sees it and its timeout only when it comes round again.
  Here successors follow at once, and a wait ends *at* its deadline (EnforceOrder polls, and so needs strictly more than the timeout). The
  output does not depend on how often `advance` is called.
* Late and duplicate are distinct: given-up orders are remembered. EnforceOrder sends both to `skipped`.
* A second copy of a waiting message is a duplicate at once. EnforceOrder lets both wait.
* When a wait ends, lower orders that wait too are released before it. EnforceOrder jumps over them, then skips them as late.
* A group is never forgotten while it waits. In EnforceOrder only a moving target is activity: a group that only waits is forgotten,
  after which all of it waits and overtakes. Hence the idle timeout need not exceed the wait timeout here.
* The end of an idle group is an output with an epoch number, never silent forgetting.
* A second message with the maximum order is a duplicate; EnforceOrder passes it on as a success.
* The initial order is 1 unless given (EnforceOrder: 0), because sequence numbers in this project count 1, 2, 3, ...

Memory is bounded, and patience is what gives way, never a message. Above a bound on waiting messages, waits end early. Above the
bound on groups, the group longest without activity ends its epoch early, a waiting one only if all groups wait. Above the bound on
remembered gaps the lowest are forgotten, and arrivals from there are LATE_OR_DUPLICATE. The outputs report all of it.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Generic, TypeAlias, TypeVar

from prober.core.gaps import Gaps

T = TypeVar("T")


class ArrivalOutcome(StrEnum):
    """The outcome of an arrival. All are final."""

    IN_ORDER = "in_order"
    OVERTOOK = "overtook"
    LATE = "late"
    DUPLICATE = "duplicate"
    LATE_OR_DUPLICATE = "late_or_duplicate"
    BEFORE_START = "before_start"
    ABOVE_MAXIMUM = "above_maximum"


class Reason(StrEnum):
    """The cause of the end of a wait or an epoch."""

    TIMEOUT = "timeout"
    CAPACITY = "capacity"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class OrderRange:
    """The first and the last order of a group, both included; no last order by default. Raises ValueError if it is below the first."""

    initial: int = 1
    maximum: int | None = None

    def __post_init__(self) -> None:
        if self.maximum is not None and self.maximum < self.initial:
            raise ValueError("maximum must not be below initial")


@dataclass(frozen=True, slots=True)
class ResequencerLimits:
    """Timeouts in seconds (`inf`: never) and bounds on memory; ValueError is raised for one that is not positive.

    Timeouts: EnforceOrder's 10 and 30 minutes. `bounds` is for groups that bring none; gaps are runs of given-up orders.
    """

    wait_timeout_s: float = 600.0
    idle_timeout_s: float = 1800.0
    bounds: OrderRange = field(default_factory=OrderRange)
    groups: int = 10_000
    waiting_per_group: int = 1_000
    waiting: int = 100_000
    gaps_per_group: int = 100

    def __post_init__(self) -> None:
        if not (self.wait_timeout_s > 0 and self.idle_timeout_s > 0):
            raise ValueError("timeouts must be positive")
        if min(self.groups, self.waiting_per_group, self.waiting, self.gaps_per_group) < 1:
            raise ValueError("bounds on memory must be at least 1")


@dataclass(frozen=True, slots=True)
class _Fact:
    """The common fields of all outputs. Epochs are numbered 1, 2, 3, ... across all groups, so a later epoch of a group is greater."""

    t: float
    group: Hashable
    epoch: int


@dataclass(frozen=True, slots=True)
class EpochBegan(_Fact):
    """An epoch of an unknown or forgotten group started."""

    bounds: OrderRange


@dataclass(frozen=True, slots=True)
class Waiting(_Fact, Generic[T]):
    """The message is early and waits for `expected` and the orders up to its own, until `deadline` at the latest."""

    order: int
    expected: int
    deadline: float
    item: T


@dataclass(frozen=True, slots=True)
class Released(_Fact, Generic[T]):
    """The message was released, `waited_s` seconds after its arrival. `outcome` is IN_ORDER or OVERTOOK."""

    order: int
    outcome: ArrivalOutcome
    waited_s: float
    item: T


@dataclass(frozen=True, slots=True)
class Refused(_Fact, Generic[T]):
    """The message was not released. `outcome` is any but IN_ORDER and OVERTOOK."""

    order: int
    outcome: ArrivalOutcome
    item: T


@dataclass(frozen=True, slots=True)
class GaveUp(_Fact):
    """The orders `first` to `last`, both included, were given up."""

    first: int
    last: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Completed(_Fact):
    """The message with the group's maximum order was released. The group stays known until its epoch ends."""


@dataclass(frozen=True, slots=True)
class EpochEnded(_Fact):
    """The group was forgotten. `expected` was its next order; `missing` orders were given up and not received late."""

    reason: Reason
    expected: int
    missing: int


Output: TypeAlias = EpochBegan | Waiting[T] | Released[T] | Refused[T] | GaveUp | Completed | EpochEnded


@dataclass(frozen=True, slots=True)
class _Held(Generic[T]):
    order: int
    arrived: float
    item: T


@dataclass(slots=True, eq=False)
class _Group(Generic[T]):
    """One epoch of one group. `given_up` are the orders below `expected` that were never seen; `missing` is their number."""

    name: Hashable
    epoch: int
    bounds: OrderRange
    expected: int
    active_at: float
    given_up: Gaps[None]
    missing: int = 0
    order_heap: list[int] = field(default_factory=list)
    waiting: dict[int, _Held[T]] = field(default_factory=dict)

    def refusal(self, order: int) -> ArrivalOutcome | None:
        """Return why a message with this order cannot be released, now or later; None if it can."""
        if order < self.bounds.initial:
            return ArrivalOutcome.BEFORE_START
        if self.bounds.maximum is not None and order > self.bounds.maximum:
            return ArrivalOutcome.ABOVE_MAXIMUM
        if order >= self.expected:
            return ArrivalOutcome.DUPLICATE if order in self.waiting else None
        if order < self.given_up.known_from:
            return ArrivalOutcome.LATE_OR_DUPLICATE
        return ArrivalOutcome.LATE if self.given_up.find(order) else ArrivalOutcome.DUPLICATE


class Resequencer(Generic[T]):
    """The resequencer for all groups. Each call passes the time (seconds, any origin); no call raises, none blocks.

    A time before the latest one, or one that is not a number, counts as the latest.
    """

    def __init__(self, limits: ResequencerLimits | None = None) -> None:
        self._limits = limits or ResequencerLimits()
        self._epochs_begun = 0
        self._now = -inf
        self._groups: dict[Hashable, _Group[T]] = {}
        # One timeout for all and a clock that never goes back: in both queues the first entry is due first.
        self._waits: OrderedDict[tuple[Hashable, int], float] = OrderedDict()
        self._idle: OrderedDict[Hashable, float] = OrderedDict()
        self._out: list[Output[T]] = []

    @property
    def waiting(self) -> int:
        """The number of messages that wait now, in all groups."""
        return len(self._waits)

    @property
    def groups(self) -> int:
        """The number of known groups."""
        return len(self._groups)

    def expected(self, group: Hashable) -> int | None:
        """Return the order that the group expects next; None if the group is not known."""
        state = self._groups.get(group)
        return None if state is None else state.expected

    def advance(self, now: float) -> list[Output[T]]:
        """Fire the timers due at or before `now`, each at its own time, in time order (a wait before an equally due idle)."""
        self._pass_time(now)
        return self._take_out()

    def arrive(self, now: float, group: Hashable, order: int, item: T, bounds: OrderRange | None = None) -> list[Output[T]]:
        """Process an arrival, after the timers due by `now`. `bounds` count only if this message starts an epoch of its group."""
        self._pass_time(now)
        state = self._groups.get(group) or self._begin(group, bounds or self._limits.bounds)
        self._place(state, order, item)
        self._touch(state, self._now)
        return self._take_out()

    def finish(self, now: float) -> list[Output[T]]:
        """End the input: fire due timers, then give up all other waits and end all epochs, oldest activity first."""
        self._pass_time(now)
        for state in sorted(self._groups.values(), key=lambda each: each.active_at):
            self._end(state, self._now, Reason.FINISHED)
        return self._take_out()

    def _take_out(self) -> list[Output[T]]:
        taken, self._out = self._out, []
        return taken

    def _wait_due(self) -> float:
        return next(iter(self._waits.values())) + self._limits.wait_timeout_s if self._waits else inf

    def _idle_due(self) -> float:
        return next(iter(self._idle.values())) + self._limits.idle_timeout_s if self._idle else inf

    def _pass_time(self, now: float) -> None:
        if not now >= self._now:  # also true for NaN
            now = self._now
        while (due := min(self._wait_due(), self._idle_due())) <= now and due < inf:
            if self._wait_due() <= due:
                self._cut_longest_wait(due, Reason.TIMEOUT)
            else:
                self._end(self._groups[next(iter(self._idle))], due, Reason.TIMEOUT)
        self._now = now

    def _begin(self, group: Hashable, bounds: OrderRange) -> _Group[T]:
        if len(self._groups) >= self._limits.groups:
            oldest = next(iter(self._idle)) if self._idle else next(iter(self._waits))[0]
            self._end(self._groups[oldest], self._now, Reason.CAPACITY)
        self._epochs_begun += 1
        given_up: Gaps[None] = Gaps(self._limits.gaps_per_group)
        state: _Group[T] = _Group(group, self._epochs_begun, bounds, bounds.initial, self._now, given_up)
        self._groups[group] = state
        self._out.append(EpochBegan(self._now, group, state.epoch, bounds))
        return state

    def _place(self, state: _Group[T], order: int, item: T) -> None:
        refusal = state.refusal(order)
        if refusal is not None:
            if refusal is ArrivalOutcome.LATE:
                state.given_up.fill(order)  # so that the next copy is a duplicate
                state.missing -= 1
            self._out.append(Refused(self._now, state.name, state.epoch, order, refusal, item))
        elif order == state.expected:
            self._release(state, _Held(order, self._now, item), ArrivalOutcome.IN_ORDER, self._now)
            self._follow(state, self._now)
        else:
            self._wait(state, order, item)

    def _wait(self, state: _Group[T], order: int, item: T) -> None:
        heapq.heappush(state.order_heap, order)
        state.waiting[order] = _Held(order, self._now, item)
        self._waits[state.name, order] = self._now
        deadline = self._now + self._limits.wait_timeout_s
        self._out.append(Waiting(self._now, state.name, state.epoch, order, state.expected, deadline, item))
        while len(state.waiting) > self._limits.waiting_per_group:
            self._overtake(state, self._now, Reason.CAPACITY)
        while len(self._waits) > self._limits.waiting:
            self._cut_longest_wait(self._now, Reason.CAPACITY)

    def _cut_longest_wait(self, t: float, reason: Reason) -> None:
        """End the wait of the longest waiting message; lower orders of its group are released before it, or they would become late."""
        group, order = next(iter(self._waits))
        state = self._groups[group]
        while order in state.waiting:
            self._overtake(state, t, reason)
        self._touch(state, t)

    def _overtake(self, state: _Group[T], t: float, reason: Reason) -> None:
        """Give up the orders missing before the lowest waiting message, and release it and its successors."""
        order = state.order_heap[0]
        first, last = state.expected, order - 1
        self._out.append(GaveUp(t, state.name, state.epoch, first, last, reason))
        state.missing += last - first + 1
        state.given_up.add(first, last, None)
        self._release_waiting(state, ArrivalOutcome.OVERTOOK, t)
        self._follow(state, t)

    def _follow(self, state: _Group[T], t: float) -> None:
        while state.order_heap and state.order_heap[0] == state.expected:
            self._release_waiting(state, ArrivalOutcome.IN_ORDER, t)

    def _release_waiting(self, state: _Group[T], outcome: ArrivalOutcome, t: float) -> None:
        held = state.waiting.pop(heapq.heappop(state.order_heap))
        del self._waits[state.name, held.order]
        self._release(state, held, outcome, t)

    def _release(self, state: _Group[T], held: _Held[T], outcome: ArrivalOutcome, t: float) -> None:
        state.expected = held.order + 1
        self._out.append(Released(t, state.name, state.epoch, held.order, outcome, t - held.arrived, held.item))
        if held.order == state.bounds.maximum:
            self._out.append(Completed(t, state.name, state.epoch))

    def _touch(self, state: _Group[T], t: float) -> None:
        """Restart the idle time of a group, which runs only while no message waits."""
        state.active_at = t
        self._idle.pop(state.name, None)
        if not state.waiting:
            self._idle[state.name] = t

    def _end(self, state: _Group[T], t: float, reason: Reason) -> None:
        while state.waiting:
            self._overtake(state, t, reason)
        del self._groups[state.name]
        self._idle.pop(state.name, None)
        self._out.append(EpochEnded(t, state.name, state.epoch, reason, state.expected, state.missing))
