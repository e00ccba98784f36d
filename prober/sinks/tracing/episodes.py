"""What became of each message of a run: its events put together to publishes and deliveries, each with a beginning and an end.

A publish begins when it is handed over and ends with its outcome. A delivery begins when it is received and ends with our answer, or
with the end of a lease that we had set; what else ends a lease is not in the record, and such a delivery stays unanswered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final, TypeAlias

from prober.core.events import (
    LONG_AGO,
    Acked,
    Closed,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Opened,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.sinks.metrics.label_values import PublishOutcome

EpisodeIdentity: TypeAlias = tuple[str | int, ...]
OutcomeEvent: TypeAlias = Published | PublishFailed | PublishUnknown | Acked | Nacked


class DeliveryOutcome(StrEnum):
    """How a delivery ended."""

    ACKED = "acked"
    NACKED = "nacked"
    LEASE_ENDED = "lease_ended"
    UNANSWERED = "unanswered"


_OUTCOMES: Final[Mapping[type[Event], PublishOutcome | DeliveryOutcome]] = {
    Published: PublishOutcome.CONFIRMED,
    PublishFailed: PublishOutcome.REJECTED,
    PublishUnknown: PublishOutcome.UNKNOWN,
    Acked: DeliveryOutcome.ACKED,
    Nacked: DeliveryOutcome.NACKED,
}


@dataclass(slots=True)
class Episode:
    """A publish, or one delivery of a message.

    number, end_number   the events that began and ended it; the first event is 1, and 0 says that none ended it.
    message_id           empty for a publish that was not confirmed.
    subscriber           who received it; empty for a publish.
    lease_end_t          when its lease ends, if we have set that.
    """

    began: PublishInvoked | Delivered
    number: int
    outcome: PublishOutcome | DeliveryOutcome
    end_t: float = inf
    end_number: int = 0
    message_id: str = ""
    subscriber: str = ""
    lease_end_t: float = inf


def episodes_of(events: Iterable[Event]) -> list[Episode]:
    """The publishes and deliveries of a history, in the order in which they began. What has no end by then ends with the history."""
    reading = _Reading()
    t = LONG_AGO
    for number, event in enumerate(events, 1):
        t = event.t
        reading.take(number, event)
    reading.finish(t)
    return reading.episodes


def identity(event: PublishInvoked | Delivered | OutcomeEvent | LeaseModified) -> EpisodeIdentity:
    """Which publish or delivery an event is about. A session holds a message once at a time."""
    if isinstance(event, Delivered | Acked | Nacked | LeaseModified):
        return event.subscription, event.session, event.message_id
    return publish_identity(event)


def publish_identity(event: PublishInvoked | Published | PublishFailed | PublishUnknown | Delivered) -> EpisodeIdentity:
    """Which publish an event is about, or which one a delivery came from."""
    return event.epoch, event.key, event.seq, event.generation


class _Reading:
    """The state of `episodes_of`."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []
        self._open: dict[EpisodeIdentity, Episode] = {}
        self._subscribers: dict[EpisodeIdentity, str] = {}
        self._closed_t: dict[EpisodeIdentity, float] = {}

    def take(self, number: int, event: Event) -> None:
        """Reads the next event."""
        if isinstance(event, PublishInvoked):
            self._begin(event, Episode(event, number, PublishOutcome.UNKNOWN))
        elif isinstance(event, Delivered):
            subscriber = self._subscribers.get((event.subscription, event.session), "")
            episode = Episode(event, number, DeliveryOutcome.UNANSWERED, message_id=event.message_id, subscriber=subscriber)
            self._begin(event, episode)
        elif isinstance(event, OutcomeEvent):
            self._end(number, event)
        elif isinstance(event, LeaseModified):
            if held := self._open.get(identity(event)):
                held.lease_end_t = event.t + event.seconds
        elif isinstance(event, Opened):
            self._subscribers[event.subscription, event.session] = event.subscriber
            self._closed_t.pop((event.subscription, event.session), None)
        elif isinstance(event, Closed):
            self._closed_t[event.subscription, event.session] = event.t

    def finish(self, t: float) -> None:
        """The history ended at that time."""
        for episode in self._open.values():
            self._give_up(episode, t)

    def _begin(self, event: PublishInvoked | Delivered, episode: Episode) -> None:
        key = identity(event)
        if before := self._open.get(key):
            self._give_up(before, event.t)
        self._open[key] = episode
        self.episodes.append(episode)

    def _end(self, number: int, event: OutcomeEvent) -> None:
        episode = self._open.pop(identity(event), None)
        if episode is None:
            return  # answered before, or its beginning is not in the record
        episode.end_t, episode.end_number, episode.outcome = event.t, number, _OUTCOMES[type(event)]
        if isinstance(event, Published):
            episode.message_id = event.message_id

    def _give_up(self, episode: Episode, t: float) -> None:
        """Nothing ended it until `t`."""
        episode.end_t = t
        if isinstance(episode.began, Delivered):
            if episode.lease_end_t <= t:
                episode.end_t, episode.outcome = episode.lease_end_t, DeliveryOutcome.LEASE_ENDED
            else:
                episode.end_t = self._closed_t.get((episode.began.subscription, episode.began.session), t)
