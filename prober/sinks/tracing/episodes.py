"""Reconstruction of publishes and deliveries from the events of a run, each with a start and an end.

A publish starts when the probe hands it to the client and ends with its outcome. A delivery starts with its receipt and ends with the
probe's answer, or with the end of a lease that the probe has set. Other ends of leases are not recorded, and a delivery with such an end
remains unanswered.
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
    """Outcome of a delivery."""

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

    number, end_number   events that start and end it, counted from 1; `end_number` 0: no event ends it.
    message_id           empty for a publish that was not confirmed.
    subscriber           receiver of a delivery; empty for a publish.
    lease_end_t          end of its lease, if the probe has set it.
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
    """Return the publishes and deliveries of a history, in the order of their starts. Unfinished ones end with the history."""
    reading = _Reading()
    t = LONG_AGO
    for number, event in enumerate(events, 1):
        t = event.t
        reading.take(number, event)
    reading.finish(t)
    return reading.episodes


def identity(event: PublishInvoked | Delivered | OutcomeEvent | LeaseModified) -> EpisodeIdentity:
    """Return the identity of the publish or delivery that an event is about. A session holds a message only once at a time."""
    if isinstance(event, Delivered | Acked | Nacked | LeaseModified):
        return event.subscription, event.session, event.message_id
    return publish_identity(event)


def publish_identity(event: PublishInvoked | Published | PublishFailed | PublishUnknown | Delivered) -> EpisodeIdentity:
    """Return the identity of the publish that an event is about, or that a delivery came from."""
    return event.epoch, event.key, event.seq, event.generation


class _Reading:
    """State of `episodes_of`."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []
        self._open: dict[EpisodeIdentity, Episode] = {}
        self._subscribers: dict[EpisodeIdentity, str] = {}
        self._closed_t: dict[EpisodeIdentity, float] = {}

    def take(self, number: int, event: Event) -> None:
        """Process the next event."""
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
        """End all open episodes at the end of the history."""
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
            return  # answered before, or its start is not recorded
        episode.end_t, episode.end_number, episode.outcome = event.t, number, _OUTCOMES[type(event)]
        if isinstance(event, Published):
            episode.message_id = event.message_id

    def _give_up(self, episode: Episode, t: float) -> None:
        """End an episode without an outcome event, at `t` at the latest."""
        episode.end_t = t
        if isinstance(episode.began, Delivered):
            if episode.lease_end_t <= t:
                episode.end_t, episode.outcome = episode.lease_end_t, DeliveryOutcome.LEASE_ENDED
            else:
                episode.end_t = self._closed_t.get((episode.began.subscription, episode.began.session), t)
