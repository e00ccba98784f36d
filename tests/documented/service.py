"""Legal histories of one topic, simulated from Google's documents alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import TypeAlias

from prober.core.events import Ended, Event, Sought
from prober.core.rules import Mode, Rules
from tests.documented.cuts import cut
from tests.documented.freedoms import SWITCHED_OFF, Freedom
from tests.documented.lanes import Lane
from tests.documented.publisher import KeyPublisher, Record
from tests.documented.pulling import PullService
from tests.documented.pushing import PushService
from tests.documented.settings import OUTAGE_S, SEEK_SETTLE_S, Settings, SubscriptionSettings, draw_settings
from tests.documented.streaming import StreamingService
from tests.documented.world import World

Service: TypeAlias = StreamingService | PullService | PushService

SERVICES: Mapping[Mode, Callable[[World, SubscriptionSettings], Service]] = {
    Mode.STREAMING: StreamingService,
    Mode.PULL: PullService,
    Mode.PUSH: PushService,
}


@dataclass(frozen=True, slots=True)
class History:
    """A legal history: events in recorder order, the rules of each subscription, and the freedoms that were taken."""

    mode: Mode
    seed: int
    settings: Settings
    events: list[Event]
    rules: Mapping[str, Rules]
    used: Counter[Freedom]


def legal_history(mode: Mode, seed: int, switched_off: Collection[Freedom] = tuple(SWITCHED_OFF)) -> History:
    """Generate the history of a seed; the same arguments give the same history."""
    rng = Random(f"{mode}:{seed}")
    return history_of(draw_settings(mode, rng), seed, rng, switched_off)


def history_of(settings: Settings, seed: int, rng: Random, switched_off: Collection[Freedom] = tuple(SWITCHED_OFF)) -> History:
    """Generate a history with these settings."""
    world = World(settings, rng, switched_off)
    topic = Topic(world)
    world.run()
    assert all(lane.quiet for subscription in topic.subscriptions for lane in subscription.service.lanes)
    events = cut(world, _ended(world))
    rules = {subscription.name: settings.rules(subscription) for subscription in settings.subscriptions}
    return History(settings.mode, seed, settings, events, rules, world.used)


def _ended(world: World) -> list[Event]:
    """Return the whole record, which ends some time after its last event."""
    if world.settings.clock_error_s:
        world.note(Freedom.CLOCK_SKEW)
    events = world.recorder.events()
    return [*events, Ended(events[-1].t + round(world.rng.uniform(10.0, 300.0), 3), drained=True)]


class Subscription:
    """A subscription: it sorts the messages of the topic into lanes that the service delivers."""

    def __init__(self, world: World, settings: SubscriptionSettings) -> None:
        self.world = world
        self.settings = settings
        self.service = SERVICES[settings.mode](world, settings)
        self._lanes: dict[tuple[str, str], Lane] = {}

    def append(self, record: Record) -> None:
        """Add a stored message, unless the filter keeps it back.

        https://cloud.google.com/pubsub/docs/subscription-message-filter: the service acknowledges messages that do not match.
        """
        if self.settings.filtered and record.seq % 3 == 0:
            self.world.note(Freedom.FILTER)
            return
        self._lane_of(record).append(record)

    def _lane_of(self, record: Record) -> Lane:
        """Return the lane of a message: messages with an empty key have no order, and regions no common one.

        https://cloud.google.com/pubsub/docs/ordering: order holds for one ordering key and region, and "messages with an empty ordering
        key are not ordered".
        """
        place = (record.key, record.region) if record.key else ("", record.message_id)
        if place not in self._lanes:
            lane = self._lanes[place] = Lane(self.world, self.settings, record.key, self.service)
            self.service.lanes.append(lane)
        return self._lanes[place]


class Topic:
    """The topic with its publishers, its subscriptions and the faults of a history."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.outage_until_t = 0.0
        settings = world.settings
        self.subscriptions = [Subscription(world, subscription) for subscription in settings.subscriptions]
        keys = [f"k{number}" for number in range(1, settings.keys + 1)]
        if settings.unordered and world.take(Freedom.UNORDERED):
            keys.append("")
        ids = count(1)
        self.publishers = [KeyPublisher(world, key, self._store, ids) for key in keys]
        for subscription in self.subscriptions:
            self._plan_faults(subscription)
        world.after(5.0, self._watch_publishers)

    def _store(self, record: Record) -> None:
        """Store a message for every subscription in the same order."""
        for subscription in self.subscriptions:
            subscription.append(record)

    def _plan_faults(self, subscription: Subscription) -> None:
        world = self.world
        world.after(world.rng.uniform(3, 30), partial(self._redeliver_early, subscription))
        world.after(world.rng.uniform(3, 30), partial(self._delay_other_keys, subscription))
        if world.settings.seek:
            world.after(world.rng.uniform(5, 60), partial(self._seek, subscription))
        if subscription.settings.retained:
            world.after(world.rng.uniform(1, 20), partial(self._pause, subscription))

    def _watch_publishers(self) -> None:
        """End the faults some time after the last publish, and the requests after the last delivery."""
        if all(publisher.done for publisher in self.publishers) and self.world.now >= self.outage_until_t:
            self.world.after(self.world.rng.uniform(0, 90), self._drain)
        else:
            self.world.after(5.0, self._watch_publishers)

    def _drain(self) -> None:
        self.world.faults = False
        self._watch_drain(60.0)

    def _watch_drain(self, quiet_s: float) -> None:
        lanes = [lane for subscription in self.subscriptions for lane in subscription.service.lanes]
        quiet_s = quiet_s - 5.0 if all(lane.quiet for lane in lanes) else 60.0
        if quiet_s > 0:
            return self.world.after(5.0, partial(self._watch_drain, quiet_s))
        for subscription in self.subscriptions:
            if isinstance(subscription.service, PullService):
                subscription.service.finished = True
        return None

    def _redeliver_early(self, subscription: Subscription) -> None:
        """Redeliver from a random message on, at a random time.

        https://cloud.google.com/pubsub/docs/subscription-overview: Pub/Sub delivers each message at least once, so any message may be
        redelivered.
        """
        world, lanes = self.world, subscription.service.lanes
        if not world.faults:
            return
        if lanes:
            subscription.service.redeliver_early(world.rng.choice(lanes))
        world.after(world.between(2.0, 60.0), partial(self._redeliver_early, subscription))

    def _delay_other_keys(self, subscription: Subscription) -> None:
        """Delay a key while a message of another key is unacknowledged.

        https://cloud.google.com/pubsub/docs/ordering: "Unacknowledged messages for a given ordering key can potentially delay delivery
        of messages for other ordering keys".
        """
        world, lanes = self.world, subscription.service.lanes
        if not world.faults:
            return
        holders = [lane for lane in lanes if lane.open_copies and not (lane.blocker and lane.blocker.holds)]
        others = [lane for lane in lanes if not any(copy.lane.blocker for copy in lane.open_copies)]
        if holders and others:
            holder, other = world.rng.choice(holders), world.rng.choice(others)
            if holder is not other and world.take(Freedom.OTHER_KEYS_DELAYED):
                other.blocker = next(iter(holder.open_copies))
        world.after(world.between(2.0, 60.0), partial(self._delay_other_keys, subscription))

    def _pause(self, subscription: Subscription) -> None:
        """Stop all consumers for longer than the retention."""
        subscription.service.pause()
        self.outage_until_t = self.world.now + OUTAGE_S
        self.world.after(OUTAGE_S, subscription.service.resume)

    def _seek(self, subscription: Subscription) -> None:
        """Seek to a time or a snapshot; the service applies it to each key at its own time.

        https://cloud.google.com/pubsub/docs/replay-overview: seek is "eventually consistent", and messages from before may be delivered
        for some time.
        """
        world, lanes = self.world, list(subscription.service.lanes)
        kinds = (Freedom.SEEK_BACK, Freedom.SEEK_FORWARD, Freedom.SEEK_SNAPSHOT)
        kind = world.rng.choice(kinds)
        if not world.take(kind):
            return
        since_t = world.now if kind is Freedom.SEEK_FORWARD else world.rng.uniform(0, world.now)
        known_t = None if kind is Freedom.SEEK_SNAPSHOT else since_t
        world.recorder.write("control", Sought(world.now, subscription.settings.name, SEEK_SETTLE_S, known_t))
        for lane in lanes:
            world.after(world.between(0.1, SEEK_SETTLE_S / 2), partial(lane.seek, since_t))
