"""The backlog against a model that remembers every copy of every message for good."""

from __future__ import annotations

from random import Random

import pytest

from prober.core.events import (
    Acked,
    DeadLettered,
    Delivered,
    Event,
    Nacked,
    PublishAbandoned,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.runs.backlog import Backlog, BacklogTracker

SUBSCRIPTION, SESSION, EPOCH = "s", "A", "e"
RUNS, STEPS, KEYS = 300, 60, 3


class Model:
    """A service and its publisher. `stored`: messages by id, with their publish, from storing until they are settled."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.t = 0.0
        self.events: list[Event] = []
        self.in_flight: list[tuple[str, int, int, str]] = []
        self.unknown: dict[tuple[str, int], int] = {}
        self.stored: dict[str, tuple[str, int, int]] = {}
        self.known: set[str] = set()
        self._seqs: dict[str, int] = {}
        self._ids = 0

    def step(self) -> None:
        """Something happens that a healthy service and a publisher may do."""
        self.t += 0.1
        self.random.choice((self._publish, self._answer, self._answer, self._deliver, self._deliver, self._settle, self._give_up))()

    def _publish(self) -> None:
        again = self.unknown and self.random.random() < 0.5
        if again:
            key, seq = self.random.choice(list(self.unknown))
            generation = self.unknown[key, seq] = self.unknown[key, seq] + 1
        else:
            key, generation = f"k{self.random.randrange(KEYS)}", 0
            seq = self._seqs[key] = self._seqs.get(key, 0) + 1
        self.events.append(PublishInvoked(self.t, key, EPOCH, seq, generation))
        message_id = ""
        if self.random.random() < 0.7:
            self._ids += 1
            message_id = f"m{self._ids}"
            self.stored[message_id] = key, seq, generation
        self.in_flight.append((key, seq, generation, message_id))

    def _answer(self) -> None:
        if not self.in_flight:
            return
        key, seq, generation, message_id = self.in_flight.pop(self.random.randrange(len(self.in_flight)))
        if self.random.random() < 0.3:
            self.unknown.setdefault((key, seq), generation)
            self.events.append(PublishUnknown(self.t, key, EPOCH, seq, generation))
        elif message_id:
            self.unknown.pop((key, seq), None)
            self.known.add(message_id)
            self.events.append(Published(self.t, key, EPOCH, seq, message_id, generation))
        else:
            self.events.append(PublishFailed(self.t, key, EPOCH, seq, generation))

    def _deliver(self) -> None:
        if self.stored:
            message_id = self.random.choice(list(self.stored))
            key, seq, generation = self.stored[message_id]
            self.known.add(message_id)
            self.events.append(Delivered(self.t, SUBSCRIPTION, key, SESSION, EPOCH, seq, message_id, generation))

    def _settle(self) -> None:
        delivered = [event.message_id for event in self.events if isinstance(event, Delivered) and event.message_id in self.stored]
        if not delivered:
            return
        message_id = self.random.choice(delivered)
        key = self.stored[message_id][0]
        event = self.random.choice(
            (
                Acked(self.t, SUBSCRIPTION, key, SESSION, message_id),
                Nacked(self.t, SUBSCRIPTION, key, SESSION, message_id),
                DeadLettered(self.t, SUBSCRIPTION, key, message_id),
            )
        )
        self.events.append(event)
        if not isinstance(event, Nacked):
            del self.stored[message_id]

    def _give_up(self) -> None:
        if self.unknown and self.random.random() < 0.3:
            key, seq = self.random.choice(list(self.unknown))
            if not any(each[:2] == (key, seq) for each in self.in_flight):
                self.events.append(PublishAbandoned(self.t, key, EPOCH, seq, self.unknown.pop((key, seq))))

    def drain(self) -> None:
        """Every publish is answered, every stored message delivered and acknowledged."""
        while self.in_flight:
            self._answer()
        for message_id, (key, seq, generation) in sorted(self.stored.items()):
            self.events.append(Delivered(self.t, SUBSCRIPTION, key, SESSION, EPOCH, seq, message_id, generation))
            self.events.append(Acked(self.t, SUBSCRIPTION, key, SESSION, message_id))
        self.stored.clear()


@pytest.mark.parametrize("batch", range(4))
def test_no_message_is_pending_that_is_settled_and_none_is_missed_that_is_confirmed(batch: int) -> None:
    for seed in range(batch * RUNS, (batch + 1) * RUNS):
        model, tracker, taken = Model(seed), BacklogTracker(1e9), 0
        for _ in range(STEPS):
            model.step()
            for event in model.events[taken:]:
                tracker.listen(event)
            taken = len(model.events)
            pending = tracker.backlog(model.t).undelivered
            confirmed = {event.message_id for event in model.events if isinstance(event, Published)}
            assert len(confirmed & model.stored.keys()) <= pending <= len(model.known & model.stored.keys()), seed
        model.drain()
        for event in model.events[taken:]:
            tracker.listen(event)
        assert tracker.backlog(model.t).undelivered == 0, seed
        tracker.end_run(EPOCH, model.t)
        assert tracker.backlog(1e6) == Backlog(), seed
