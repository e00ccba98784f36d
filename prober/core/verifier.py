"""The checker as a whole: input is a history of events, output are findings with their proof."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any, Final

from prober.core import answers, integrity, opportunities
from prober.core.collector import FindingsCollector, excuse_cut_off
from prober.core.coverage import Coverage
from prober.core.events import (
    LONG_AGO,
    AckConfirmed,
    Acked,
    Closed,
    DeadLettered,
    Delivered,
    Ended,
    Event,
    FilterChanged,
    Interrupted,
    LeaseModified,
    Nacked,
    Opened,
    PublishAbandoned,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
    Sought,
)
from prober.core.findings import Finding
from prober.core.group import KeyGroup
from prober.core.key import KeyChecker
from prober.core.rules import Rules
from prober.core.sought import Seek
from prober.core.subscription import FILTER_CHANGE, SEEK, Subscription

SWEEPS: Final = 4
"""Number of searches for idle keys within the time after which a key is idle."""
SEND_COST: Final = 2
_TIMELESS = (Ended, Interrupted)
_TAKEN_AHEAD = (PublishInvoked, Published, PublishFailed, PublishUnknown, PublishAbandoned, Sought, FilterChanged, Interrupted)
"""Event types that other processes may have recorded late: they explain earlier deliveries, by the clock of their receiver."""


class Verifier:
    """The verifier of a topic: any number of keys on any number of subscriptions. Event numbers count from 1 in the order of `observe`."""

    def __init__(
        self,
        rules: Rules,
        *,
        subscriptions: Iterable[str] = (),
        rules_by_subscription: Mapping[str, Rules] | None = None,
    ) -> None:
        self._counts = Coverage()
        self._rules = rules
        self._rules_by_subscription = dict(rules_by_subscription or {})
        self._observed = self._number = self._queued = 0
        self._now = self._recorded_t = LONG_AGO
        self._stopped_t = inf
        self._clock_error_s = max(one.clock_error_s for one in (rules, *self._rules_by_subscription.values()))
        self._waiting: deque[tuple[Event, int]] = deque()
        self._queue: list[tuple[float, int, KeyChecker]] = []
        self._groups: dict[str, KeyGroup] = {}
        self._resting: dict[str, KeyGroup] = {}
        self._sweep_t = self._rest_t = self._look_t = LONG_AGO
        self._keys_max = min((one.keys_max for one in (rules, *self._rules_by_subscription.values()) if one.keys_max), default=0)
        self._idle_s = min(one.idle_after_s for one in (rules, *self._rules_by_subscription.values()))
        self._subscriptions: dict[str, Subscription] = {}
        self._decided: list[Finding] = []
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            PublishInvoked: self._invoked,
            Published: self._published,
            PublishFailed: self._failed,
            PublishUnknown: self._unknown,
            PublishAbandoned: self._abandoned,
            Opened: self._opened,
            Closed: self._closed,
            Delivered: self._delivered,
            Acked: self._acked,
            Nacked: self._nacked,
            AckConfirmed: self._ack_confirmed,
            LeaseModified: self._lease_modified,
            DeadLettered: self._dead_lettered,
            Sought: self._sought,
            FilterChanged: self._sought,
            Interrupted: self._interrupted,
            Ended: self._ended,
        }
        for name in subscriptions:
            self._subscription(name)

    def observe(self, event: Event) -> Sequence[Finding]:
        """Verify the next event and return the findings decided by it, or by the time that passed before it (often none)."""
        self._observed += 1
        if self._clock_error_s:
            self._take_in_any_order(event)
        else:
            self._number = self._observed
            if event.t > self._look_t:
                self._look(event)
            if event.t > self._now:
                self._now = event.t
            self._handlers[type(event)](event)
        if not self._decided:
            return ()
        decided, self._decided = self._decided, []
        return decided

    def _look(self, event: Event) -> None:
        """Decide everything that is due before an event, and search for idle keys when it is time."""
        if type(event) not in _TIMELESS:
            self._pass_time(event.t)
        self._now = max(self._now, event.t)
        if self._now > self._sweep_t:
            self._sweep(self._idle_s)
        self._look_t = min(self._queue[0][0], self._sweep_t) if self._queue else self._sweep_t

    def _take_in_any_order(self, event: Event) -> None:
        """Process publishes and control events at once, others later by the clock error: with different clocks, causes may be late."""
        begins_t = self._recorded_t if isinstance(event, Interrupted) else event.t  # a hole begins behind the event before it
        self._go_on_until(begins_t - self._clock_error_s)
        self._recorded_t = event.t
        if isinstance(event, _TAKEN_AHEAD):
            self._number = self._observed
            self._handlers[type(event)](event)
        else:
            self._waiting.append((event, self._observed))

    def _go_on_until(self, t: float) -> None:
        while self._waiting and self._waiting[0][0].t <= t:
            event, self._number = self._waiting.popleft()
            self._look(event)
            self._handlers[type(event)](event)

    def finish(self) -> Sequence[Finding]:
        """Decide the deliveries on hold, in doubt after the end of the record, and return the findings."""
        excuse_cut_off(self._waiting, lambda event: self._checker(event.subscription, event.key).collector)
        self._go_on_until(inf)
        for subscription in self._subscriptions.values():
            subscription.over = True
        for group in self._groups.values():
            if self._stopped_t < inf:
                for checker in group.checkers:
                    checker.stop(self._stopped_t)
                for checker in group.checkers:
                    checker.cut_off()
            for checker in group.checkers:
                checker.wake(inf)
        self._counts.keys = len(self._groups) + len(self._resting)
        decided, self._decided = self._decided, []
        return decided

    @property
    def counters(self) -> Counter[str]:
        """The counters by name."""
        return self._counts.by_name()

    @property
    def work(self) -> int:
        """The cost of verification so far, in events: a send examined in a search for an order costs about as much as two."""
        return self._observed + SEND_COST * self._counts.sends

    @property
    def pending(self) -> bool:
        """Whether a delivery to a subscription is pending; a subscription without a session counts only if none has one."""
        seen = any(subscription.first_seen_t < inf for subscription in self._subscriptions.values())
        checkers = (checker for group in self._groups.values() for checker in group.checkers)
        return any(
            checker.liveness.has_pending(self._now) for checker in checkers if checker.subscription.first_seen_t < inf or not seen
        )

    # --- publish events ------------------------------------------------------------------------------------------------------

    def _invoked(self, event: PublishInvoked) -> None:
        self._counts.publishes_invoked += 1
        group = self._groups.get(event.key) or self._group(event.key)
        group.invoke(event.epoch, event.seq, event.generation, event.t, self._number, event.region, event.size)

    def _published(self, event: Published) -> None:
        self._counts.publishes_confirmed += 1
        group = self._groups.get(event.key) or self._group(event.key)
        publication = group.ended(event.epoch, event.seq)
        if publication is None or not publication.confirm(event.message_id, event.generation, event.t, self._number):
            return
        for checker in group.checkers:
            checker.confirmed(publication, event.t)
            if checker.due_t < checker.queued_t:
                self._watch(checker)
        if publication.received:
            publication.epoch.settle(publication, group.everybody)

    def _failed(self, event: PublishFailed) -> None:
        self._counts.publishes_rejected += 1
        group = self._group(event.key)
        publication = group.ended(event.epoch, event.seq)
        if publication is not None:
            publication.end(event.generation, failed=True)
            for checker in group.checkers:
                integrity.verify_failure(checker, publication, event.t, self._number)

    def _unknown(self, event: PublishUnknown) -> None:
        self._counts.publishes_unknown += 1
        publication = self._group(event.key).ended(event.epoch, event.seq)
        if publication is not None:
            publication.end(event.generation, failed=False)

    def _abandoned(self, event: PublishAbandoned) -> None:
        self._counts.publishes_abandoned += 1
        publication = self._group(event.key).ended(event.epoch, event.seq)
        if publication is not None and publication.token is None:
            publication.abandoned = True

    # --- delivery events -----------------------------------------------------------------------------------------------------

    def _delivered(self, event: Delivered) -> None:
        known = self._subscriptions.get(event.subscription) or self._subscription(event.subscription)
        checker = (self._groups.get(event.key) or self._group(event.key)).checkers[known.index]
        checker.delivered(event, self._number)
        if checker.due_t < checker.queued_t:
            self._watch(checker)

    def _acked(self, event: Acked) -> None:
        self._counts.acks += 1
        known = self._subscriptions.get(event.subscription) or self._subscription(event.subscription)
        answers.acked((self._groups.get(event.key) or self._group(event.key)).checkers[known.index], event)

    def _nacked(self, event: Nacked) -> None:
        self._counts.nacks += 1
        answers.nacked(self._checker(event.subscription, event.key), event)

    def _ack_confirmed(self, event: AckConfirmed) -> None:
        answers.ack_confirmed(self._checker(event.subscription, event.key), event, self._number)

    def _lease_modified(self, event: LeaseModified) -> None:
        answers.lease_modified(self._checker(event.subscription, event.key), event)

    def _dead_lettered(self, event: DeadLettered) -> None:
        self._counts.dead_lettered += 1
        answers.dead_lettered(self._checker(event.subscription, event.key), event)

    # --- session and control events ------------------------------------------------------------------------------------------

    def _opened(self, event: Opened) -> None:
        subscription = self._subscription(event.subscription)
        opportunities.opened(self._counts, subscription)
        subscription.opened(event)

    def _closed(self, event: Closed) -> None:
        self._counts.sessions_closed += 1
        subscription = self._subscription(event.subscription)
        opportunities.closed(self._counts, subscription, event.t)
        subscription.closed(event)

    def _sought(self, event: Sought | FilterChanged) -> None:
        self._counts.seeks += 1
        subscription = self._subscription(event.subscription)
        cause = SEEK if isinstance(event, Sought) else FILTER_CHANGE
        until_t = event.t + event.settle_s + subscription.rules.clock_error_s
        since_t = getattr(event, "since_t", None)
        grace = subscription.settle(event.t, until_t, cause, inf if since_t is None else since_t)
        for group in self._resting.values():
            group.control(subscription.index, grace)
        for group in self._groups.values():
            checker = group.checkers[subscription.index]
            checker.control(grace)
            if grace.since_t < inf:
                checker.sought(Seek(grace.since_t, event.t, until_t, self._number))
            self._watch(checker)

    def _interrupted(self, event: Interrupted) -> None:
        self._counts.interruptions += 1
        graces = [subscription.interrupted(event.t) for subscription in self._subscriptions.values()]
        for group in self._resting.values():
            group.interrupt()
            for index, grace in enumerate(graces):
                group.control(index, grace)
        for group in self._groups.values():
            group.interrupt()
            for checker, grace in zip(group.checkers, graces, strict=True):
                checker.control(grace)
                self._watch(checker)

    def _ended(self, event: Ended) -> None:
        self._stopped_t = inf if event.drained else event.t
        if event.drained:
            self._pass_time(event.t)
            for subscription in self._subscriptions.values():
                subscription.over = True
                self._counts.opportunities_confirmed += subscription.opportunities.certain(subscription.rules, event.t)
            for group in self._groups.values():
                for checker in group.checkers:
                    checker.end(event.t)

    # --- routing and time ----------------------------------------------------------------------------------------------------

    def _subscription(self, name: str) -> Subscription:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            rules = self._rules_by_subscription.get(name, self._rules)
            for key in list(self._resting):
                self._group(key)
            subscription = self._subscriptions[name] = Subscription(name, len(self._subscriptions), rules)
            for group in self._groups.values():
                self._add_checker(group, subscription)
        return subscription

    def _group(self, key: str) -> KeyGroup:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._woken(key) if key in self._resting else self._new_group(key)
        return group

    def _woken(self, key: str) -> KeyGroup:
        group, subscriptions = self._resting.pop(key), list(self._subscriptions.values())
        group.wake(lambda index: self._new_checker(group, subscriptions[index]))
        return group

    def _new_group(self, key: str) -> KeyGroup:
        self._make_room()
        group = KeyGroup(key, may_be_known=self._counts.keys_forgotten > 0)
        for subscription in self._subscriptions.values():
            self._add_checker(group, subscription)
        return group

    def _make_room(self) -> None:
        """Forget the key that has rested longest if there are too many keys; now and then search for keys that can rest."""
        if not self._keys_max or len(self._groups) + len(self._resting) < self._keys_max:
            return
        if not self._resting and self._now > self._rest_t:
            self._rest_t = self._now + self._idle_s / SWEEPS
            self._sweep(0.0)
        if self._resting:
            del self._resting[next(iter(self._resting))]
            self._counts.keys_forgotten += 1

    def _sweep(self, idle_s: float) -> None:
        """Put keys to rest that have been idle for `idle_s`."""
        self._sweep_t = self._now + self._idle_s / SWEEPS
        idle = [key for key, group in self._groups.items() if group.rest(self._now, idle_s)]
        for key in idle:
            self._resting[key] = self._groups.pop(key)

    def _checker(self, subscription: str, key: str) -> KeyChecker:
        known = self._subscriptions.get(subscription) or self._subscription(subscription)
        return (self._groups.get(key) or self._group(key)).checkers[known.index]

    def _add_checker(self, group: KeyGroup, subscription: Subscription) -> None:
        checker = self._new_checker(group, subscription)
        group.add(checker)
        self._watch(checker)  # earlier publishes are pending

    def _new_checker(self, group: KeyGroup, subscription: Subscription) -> KeyChecker:
        collector = FindingsCollector(subscription.name, group.key, subscription.rules, self._file, self._counts)
        for grace in subscription.graces:  # it holds for keys that appear in it as well
            collector.excuse(grace.until_t, grace.cause)
        return KeyChecker(collector, subscription, group, self._counts)

    def _watch(self, checker: KeyChecker) -> None:
        due_t = checker.due_t
        if due_t < checker.queued_t:
            checker.queued_t = due_t
            self._queued += 1
            heappush(self._queue, (due_t, self._queued, checker))
            if due_t < self._look_t:
                self._look_t = due_t

    def _pass_time(self, now: float) -> None:
        """Decide everything that was due before `now`."""
        queue = self._queue
        while queue and queue[0][0] < now:
            due_t, _, checker = heappop(queue)
            if due_t == checker.queued_t:
                checker.queued_t = inf
                if checker.due_t < now:
                    checker.wake(now)
                if checker.due_t > due_t:  # else it waits for the next event of its key, or for the end
                    self._watch(checker)

    def _file(self, finding: Finding) -> None:
        self._decided.append(finding)
        self._counts.findings[finding.status] += 1
