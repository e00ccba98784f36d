"""The checker as a whole: a history of events goes in, findings with their proof come out.

    verifier = Verifier(Rules())
    for event in history:
        for finding in verifier.observe(event):
            ...
    findings = verifier.finish()

It is pure: no clock, no input or output, no threads; time comes from the events alone. So a recorded history can be judged again at
any time, with the same result, in any chunking, and with the events of different keys interleaved or apart.

Publish events go to every subscription of their key, delivery events to one (subscription, key), session and control events to a
whole subscription. What has to be decided because time passes (verdicts on hold, liveness) waits in a queue ordered by time and is
decided before the first event that is later.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any

from prober.core.collector import FILTER_CHANGE, HOLE, SEEK, Counts, FindingsCollector, excuse_cut_off
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
from prober.core.resting import Due, Keys, Operation
from prober.core.returned import Returned
from prober.core.rules import Mode, Rules
from prober.core.subscription import Subscription

_TIMELESS = (Ended, Interrupted)
"""Events that do not say what happened until then: an end that did not drain, a hole in the record."""

_TAKEN_AHEAD = (PublishInvoked, Published, PublishFailed, PublishUnknown, PublishAbandoned, Sought, FilterChanged, Interrupted)
"""What others may have recorded late: it explains what was received before it, by its receiver's clock."""


class Verifier:
    """Judges a topic: any number of keys on any number of subscriptions.

    rules                   the bounds and settings of a subscription that `rules_by_subscription` does not name.
    subscriptions           subscriptions known from the start: they are owed every message even before they show themselves.

    Event numbers count from 1 in the order of `observe`. Whatever the events, nothing is raised: what makes no sense is not judged.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        subscriptions: Iterable[str] = (),
        rules_by_subscription: Mapping[str, Rules] | None = None,
    ) -> None:
        self._counts = Counts()
        self._rules = rules
        self._rules_by_subscription = dict(rules_by_subscription or {})
        self._observed = self._number = 0
        self._now, self._stopped_t = LONG_AGO, inf
        self._clock_error_s = max(one.clock_error_s for one in (rules, *self._rules_by_subscription.values()))
        self._waiting: deque[tuple[Event, int]] = deque()
        self._queue: list[Due] = []
        self._keys = Keys(self._counts, (rules, *self._rules_by_subscription.values()), self._queue)
        self._groups = self._keys.warm
        self._subscriptions: dict[str, Subscription] = {}
        self._decided: list[Finding] = []
        self._decide: Callable[[Finding], None] = self._file  # one object for all keys
        self._queued = 0
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
        """Takes the next event and returns the findings decided by it, or by the time that passed before it (often none)."""
        self._observed += 1
        if self._clock_error_s:
            self._take_in_any_order(event)
        else:
            self._number = self._observed
            self._take(event)
        if not self._decided:
            return ()
        decided, self._decided = self._decided, []
        return decided

    def _take(self, event: Event) -> None:
        t, queue = event.t, self._queue
        if queue and queue[0][0] < t and type(event) not in _TIMELESS:
            self._pass_time(t)
        if t > self._now:
            self._now = t
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def _take_in_any_order(self, event: Event) -> None:
        """Where clocks differ, a message may be received before its publish or a seek is recorded: so receivers wait for these."""
        self._go_on_until(event.t - self._clock_error_s)
        if isinstance(event, _TAKEN_AHEAD):
            self._number = self._observed
            self._handlers[type(event)](event)
        else:
            self._waiting.append((event, self._observed))

    def _go_on_until(self, t: float) -> None:
        while self._waiting and self._waiting[0][0].t <= t:
            event, self._number = self._waiting.popleft()
            self._take(event)

    def finish(self) -> Sequence[Finding]:
        """Settles what is on hold as if time went on, in doubt where the record stopped before; returns the findings decided so."""
        excuse_cut_off(self._waiting, lambda event: self._checker(event.subscription, event.key).collector)
        self._go_on_until(inf)
        for group in self._groups.values():
            for checker in group.checkers:
                checker.finish(self._stopped_t)
            group.compare(inf)
        self._counts.keys = len(self._keys)
        decided, self._decided = self._decided, []
        return decided

    @property
    def counters(self) -> Counter[str]:
        """What was seen and judged, by name."""
        return self._counts.by_name()

    @property
    def owed(self) -> bool:
        """Whether the service still owes a subscription a delivery; one that never showed itself counts only if none did."""
        seen = any(subscription.seen for subscription in self._subscriptions.values())
        checkers = (checker for group in self._groups.values() for checker in group.checkers)
        return any(checker.owes(self._now) for checker in checkers if checker.subscription.seen or not seen)

    # --- publish events ------------------------------------------------------------------------------------------------------

    def _invoked(self, event: PublishInvoked) -> None:
        self._group(event.key).invoked(event, self._number)
        self._counts.publishes_invoked += 1

    def _published(self, event: Published) -> None:
        self._counts.publishes_confirmed += 1
        group = self._group(event.key)
        found = group.find(event.epoch, event.seq)
        if found is None:
            return
        record, publication = found
        if publication.confirm(hash(event.message_id), event.generation, event.t, self._number):
            group.confirmed(record, publication)
            for checker in group.checkers:
                checker.published(record, publication, event.t)
                if checker.is_due_sooner(event.t):
                    self._enqueue(checker)
        record.settle(publication)

    def _failed(self, event: PublishFailed) -> None:
        self._counts.publishes_rejected += 1
        group = self._group(event.key)
        found = group.find(event.epoch, event.seq)
        if found is None:
            return
        record, publication = found
        publication.close_attempt(unknown=False)
        for checker in group.checkers:
            checker.publish_failed(event.epoch, publication, event.t, self._number)
        record.settle(publication)

    def _unknown(self, event: PublishUnknown) -> None:
        self._counts.publishes_unknown += 1
        found = self._group(event.key).find(event.epoch, event.seq)
        if found is not None:
            record, publication = found
            publication.close_attempt(unknown=True)
            record.settle(publication)

    def _abandoned(self, event: PublishAbandoned) -> None:
        self._counts.publishes_abandoned += 1
        group = self._group(event.key)
        found = group.find(event.epoch, event.seq)
        if found is not None and not found[1].confirmed:
            found[1].abandoned = True
            for checker in group.checkers:
                checker.abandoned(event.epoch, found[1])

    # --- delivery events -----------------------------------------------------------------------------------------------------

    def _delivered(self, event: Delivered) -> None:
        checker = self._checker(event.subscription, event.key)
        checker.delivered(event, self._number)
        if checker.is_due_sooner(event.t):
            self._enqueue(checker)

    def _acked(self, event: Acked) -> None:
        checker = self._checker(event.subscription, event.key)
        checker.acked(event, self._number)
        if checker.due_t == inf:  # it may be settled now, and have a window to give up
            self._watch(checker, event.t)
        self._counts.acks += 1

    def _nacked(self, event: Nacked) -> None:
        checker = self._checker(event.subscription, event.key)
        checker.nacked(event, self._number)
        self._watch(checker, event.t)
        self._counts.nacks += 1

    def _ack_confirmed(self, event: AckConfirmed) -> None:
        self._checker(event.subscription, event.key).ack_confirmed(event, self._number)

    def _lease_modified(self, event: LeaseModified) -> None:
        checker = self._checker(event.subscription, event.key)
        checker.lease_modified(event, self._number)
        self._watch(checker, event.t)

    def _dead_lettered(self, event: DeadLettered) -> None:
        checker = self._checker(event.subscription, event.key)
        checker.dead_lettered(event, self._number)
        self._watch(checker, event.t)
        self._counts.dead_lettered += 1

    # --- session and control events ------------------------------------------------------------------------------------------

    def _opened(self, event: Opened) -> None:
        subscription = self._subscription(event.subscription)
        if subscription.open and subscription.rules.mode is Mode.PULL:
            self._counts.pulls_concurrent += 1
        self._counts.chances_confirmed += subscription.opened(event)

    def _closed(self, event: Closed) -> None:
        self._counts.chances_affinity -= self._subscription(event.subscription).closed(event)
        self._counts.sessions_closed += 1

    def _sought(self, event: Sought | FilterChanged) -> None:
        subscription = self._subscription(event.subscription)
        cause = SEEK if isinstance(event, Sought) else FILTER_CHANGE
        until_t = event.t + event.settle_s + subscription.rules.clock_error_s
        subscription.settle(until_t, cause)
        since_t = getattr(event, "since_t", None)
        back = None if since_t is None else Returned(since_t, event.t, until_t, self._number)
        self._tell_all(lambda group: self._unsettle(group.checkers[subscription.index], until_t, cause, back))
        self._counts.seeks += 1

    def _interrupted(self, event: Interrupted) -> None:
        for subscription in self._subscriptions.values():
            rules = subscription.rules
            subscription.close_all(event.t)
            subscription.settle(event.t + min(rules.delivery_delay_max_s, rules.ack_deadline_s), HOLE)
        settled_t = [subscription.settles_until_t for subscription in self._subscriptions.values()]

        def interrupt(group: KeyGroup) -> None:
            for checker, until_t in zip(group.checkers, settled_t, strict=True):
                checker.interrupted()
                self._unsettle(checker, until_t, HOLE)
            group.interrupt()

        self._tell_all(interrupt)
        self._counts.interruptions += 1

    def _ended(self, event: Ended) -> None:
        self._stopped_t = inf if event.drained else event.t
        if event.drained:
            self._pass_time(event.t)
            self._counts.chances_confirmed += sum(one.confirmations.take(event.t) for one in self._subscriptions.values())

    # --- routing -------------------------------------------------------------------------------------------------------------

    def _subscription(self, name: str) -> Subscription:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            rules = self._rules_by_subscription.get(name, self._rules)
            subscription = self._subscriptions[name] = Subscription(name, len(self._subscriptions), rules)
            for group in self._all_groups():
                self._add_checker(group, subscription)
        return subscription

    def _group(self, key: str) -> KeyGroup:
        group = self._groups.get(key) or self._awaken(key, self._now)
        if group is None:
            group = KeyGroup(key, may_be_known=self._counts.keys_forgotten > 0)
            self._keys.add(group)
            for subscription in self._subscriptions.values():
                self._add_checker(group, subscription)
        return group

    def _checker(self, subscription: str, key: str) -> KeyChecker:
        known = self._subscriptions.get(subscription) or self._subscription(subscription)
        group = self._groups.get(key) or self._group(key)
        return group.checkers[known.index]

    def _add_checker(self, group: KeyGroup, subscription: Subscription) -> None:
        collector = FindingsCollector(subscription.name, group.key, subscription.assumptions, self._decide, self._counts)
        checker = KeyChecker(collector, subscription, group)
        group.checkers += (checker,)
        if subscription.settles_until_t > LONG_AGO:
            self._unsettle(checker, subscription.settles_until_t, subscription.settling)
        if group.epochs:
            self._watch(checker, self._now)
        for record in group.epochs.values():
            for publication in record.open.values():
                publication.waiting += 1

    # --- time ----------------------------------------------------------------------------------------------------------------

    def _watch(self, checker: KeyChecker, t: float) -> None:
        """Queues a key for the earliest moment at which something about it may have to be decided."""
        if checker.is_due_sooner(t):
            self._enqueue(checker)

    def _unsettle(self, checker: KeyChecker, until_t: float, cause: str, back: Returned | None = None) -> None:
        """A control operation on the subscription: the key has to be looked at again when it has settled."""
        checker.unsettle(until_t, cause, back)
        self._enqueue(checker)

    def _enqueue(self, checker: KeyChecker) -> None:
        if checker.due_t < inf:
            self._queued += 1
            heappush(self._queue, (checker.due_t, self._queued, checker.collector.key, checker.subscription.index))

    def _pass_time(self, now: float) -> None:
        """Decides everything that was due before `now`. For a key at rest nothing is; it makes up for time when it comes back."""
        queue = self._queue
        while queue and queue[0][0] < now:
            due_t, _, key, index = heappop(queue)
            group = self._groups.get(key)
            if group is not None and due_t == group.checkers[index].due_t:
                self._wake(group.checkers[index], now)
                self._tidy(group)
            elif group is None and self._keys.is_heavy(key):
                self._awaken(key, now)

    def _wake(self, checker: KeyChecker, now: float) -> None:
        checker.wake(now)
        self._enqueue(checker)

    def _tidy(self, group: KeyGroup) -> None:
        if group.idle:
            self._keys.put_away(group.key)
        self._keys.make_room()

    # --- keys at rest --------------------------------------------------------------------------------------------------------

    def _awaken(self, key: str, now: float) -> KeyGroup | None:
        """A key that was at rest, as if it had been there all the time until `now`; None if there is none of that name."""
        returned = self._keys.take(key)
        if returned is None:
            return None
        group = returned.group
        for t, operation in returned.missed:
            self._catch_up(group, t)
            operation(group)
        self._catch_up(group, now)
        self._keys.add(group)
        return group

    def _catch_up(self, group: KeyGroup, now: float) -> None:
        for checker in group.checkers:
            if checker.due_t < now:
                self._wake(checker, now)

    def _tell_all(self, operation: Operation) -> None:
        """Does something to every key: at once to those that are there, and to those at rest when they come back."""
        for group in self._groups.values():
            operation(group)
        if self._keys.miss(self._now, operation):
            for _ in self._all_groups():
                pass
            self._keys.forget_missed()

    def _all_groups(self) -> Iterator[KeyGroup]:
        """Every key in turn; those at rest come back for it, and go again."""
        yield from list(self._groups.values())
        for key in self._keys.resting():
            group = self._group(key)
            yield group
            self._tidy(group)

    def _file(self, finding: Finding) -> None:
        self._decided.append(finding)
        self._counts.findings[finding.status] += 1
