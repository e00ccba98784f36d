"""Publishing to the topic: batches, retries of the client library, unknown outcomes and duplicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from prober.core.events import PublishAbandoned, Published, PublishFailed, PublishInvoked, PublishUnknown
from tests.documented.freedoms import Freedom
from tests.documented.world import World

PUBLISHER = "publisher"
LATE_S = 40.0


@dataclass(frozen=True, slots=True)
class Record:
    """A stored message. Two records may share a message id; `publish_time` then tells them apart."""

    key: str
    epoch: str
    seq: int
    generation: int
    region: str
    size: int
    message_id: str = ""
    stored_t: float = 0.0

    @property
    def publish_time(self) -> int:
        """Return the publish time in nanoseconds."""
        return 1_700_000_000_000_000_000 + round(self.stored_t * 1e9)


class KeyPublisher:
    """The publisher of one key, with one batch in flight, as the client libraries have it for ordering keys."""

    def __init__(self, world: World, key: str, store: Callable[[Record], None], ids: count[int]) -> None:
        self._world = world
        self._key = key
        self._store = store
        self._ids = ids
        self._queue: list[Record] = []
        self._busy = False
        self._paused = False
        self._epoch = 1
        self._seq = 0
        self.done = False
        world.after(world.rng.uniform(0, 2), self._invoke_next)

    def _invoke_next(self) -> None:
        """Invoke the next publish of the schedule, except while the key is paused or has ended."""
        world, settings = self._world, self._world.settings
        if self._paused:
            return world.after(0.5, self._invoke_next)
        if self._seq == settings.messages_per_key:
            if self._busy or self._queue:
                return world.after(1.0, self._invoke_next)
            if self._epoch == settings.epochs:
                self.done = True
                return None
            world.note(Freedom.EPOCHS)
            self._epoch, self._seq = self._epoch + 1, 0
        self._seq += 1
        self._invoke(Record(self._key, f"e{self._epoch}", self._seq, 0, self._region(), world.rng.choice((0, 10, 500))))
        return world.after(world.between(0.001, 2 * settings.publish_gap_s), self._invoke_next)

    def _region(self) -> str:
        """Choose the publishing region: order holds only within one.

        https://cloud.google.com/pubsub/docs/ordering: "the publisher client must publish the messages in the same region".
        """
        if not self._world.settings.several_regions:
            return ""
        self._world.note(Freedom.REGIONS)
        return self._world.rng.choice(("us", "eu"))

    def _invoke(self, draft: Record) -> None:
        world = self._world
        region = draft.region if world.settings.regions_recorded else ""
        intended_t = world.now - world.rng.random() if world.rng.random() < 0.1 else None
        seq, generation = draft.seq, draft.generation
        event = PublishInvoked(world.now, self._key, draft.epoch, seq, generation, intended_t, draft.size, region)
        world.recorder.write(PUBLISHER, event)
        self._queue.append(draft)
        if not self._busy:
            self._busy = True
            world.after(world.rng.uniform(0, 0.02), self._send)

    def _send(self) -> None:
        """Send the next batch; all messages of a batch go to one region."""
        world = self._world
        limit = world.rng.randint(1, 4)
        same_region = [draft for draft in self._queue[:limit] if draft.region == self._queue[0].region]
        batch = self._queue[: len(same_region)] if same_region == self._queue[: len(same_region)] else self._queue[:1]
        del self._queue[: len(batch)]
        if world.take(Freedom.PUBLISH_FAILED, 0.03):
            return world.after(0.05, partial(self._fail, batch, unknown=False))
        if world.take(Freedom.PUBLISH_UNKNOWN, 0.04):
            return self._lose_outcome(batch)
        if not world.settings.attempts_observed and world.take(Freedom.CLIENT_RETRY, 0.05):
            return self._retry(batch)
        return world.after(world.between(0.01, 0.5), partial(self._store_and_confirm, batch))

    def _store_and_confirm(self, batch: Sequence[Record]) -> None:
        stored = [self._put(draft) for draft in batch]
        self._world.after(self._world.between(0.005, 1.0), partial(self._confirm, stored))

    def _confirm(self, stored: Sequence[Record]) -> None:
        world = self._world
        for record in stored:
            event = Published(world.now, self._key, record.epoch, record.seq, record.message_id, record.generation)
            world.recorder.write(PUBLISHER, event)
        self._go_on()

    def _go_on(self) -> None:
        if self._queue:
            self._world.after(self._world.rng.uniform(0, 0.02), self._send)
        else:
            self._busy = False

    def _put(self, draft: Record) -> Record:
        """Store a message under a new id, sometimes twice.

        https://cloud.google.com/pubsub/docs/exactly-once-delivery: duplicates of the service's own publish retries have the same
        message id, and "it's possible to see different publishTime values".
        """
        world = self._world
        record = replace(draft, message_id=f"m{next(self._ids)}", stored_t=world.now)
        self._store(record)
        recorded = world.settings.publish_times_recorded
        freedom = Freedom.SAME_ID_DUPLICATE if recorded else Freedom.SAME_ID_WITHOUT_PUBLISH_TIME
        if world.take(freedom, 0.02):
            world.after(world.between(0.001, LATE_S), partial(self._store_again, record))
        return record

    def _store_again(self, record: Record) -> None:
        self._store(replace(record, stored_t=self._world.now))

    def _retry(self, batch: Sequence[Record]) -> None:
        """Lose the reply to a first attempt, which the client library then repeats under new ids.

        https://cloud.google.com/pubsub/docs/exactly-once-delivery: "duplicates on the publish side" after client retries have
        different message ids. The order is that in which the service receives them (https://cloud.google.com/pubsub/docs/ordering).
        """
        world = self._world
        first: Sequence[Record] = batch
        if len(batch) > 1 and world.take(Freedom.CLIENT_RETRY_PARTIAL, 0.3):
            first = batch[: world.rng.randint(1, len(batch) - 1)]
        retry_s = world.between(0.2, 5.0)
        late = world.take(Freedom.CLIENT_RETRY_LATE, 0.3)
        self._put_later(first, retry_s + world.between(0.1, LATE_S) if late else retry_s / 2)
        world.after(retry_s, partial(self._store_and_confirm, batch))

    def _put_later(self, batch: Sequence[Record], delay_s: float) -> None:
        self._world.after(delay_s, partial(self._put_all, batch))

    def _put_all(self, batch: Sequence[Record]) -> None:
        for draft in batch:
            self._put(draft)

    def _lose_outcome(self, batch: Sequence[Record]) -> None:
        """Report an unknown outcome: the message may be stored at once, late or never.

        https://cloud.google.com/pubsub/docs/publisher: a publish request that ends with a deadline or an error may have succeeded.
        """
        world = self._world
        unknown_s = world.between(0.2, 10.0)
        if world.take(Freedom.PUBLISH_UNKNOWN_STORED, 0.5):
            self._put_later(batch, world.rng.uniform(0.01, unknown_s))
        elif world.take(Freedom.PUBLISH_UNKNOWN_LATE, 0.3):
            self._put_later(batch, unknown_s + world.between(0.1, LATE_S))
        world.after(unknown_s, partial(self._fail, batch, unknown=True))

    def _fail(self, batch: Sequence[Record], *, unknown: bool) -> None:
        """Report the outcome of a batch; the client library cancels all queued messages of the key.

        https://cloud.google.com/pubsub/docs/publisher: after a failure with an ordering key "the client library" fails the queued
        publishes of this key until the application resumes it.
        """
        outcome = PublishUnknown if unknown else PublishFailed
        self._paused = True
        cancelled, self._queue = self._queue, []
        for draft in cancelled:
            self._report(PublishFailed, draft)
        for draft in batch:
            self._report(outcome, draft)
        self._world.after(self._world.rng.uniform(0.01, 2), partial(self._republish, [*batch, *cancelled]))

    def _report(self, outcome: type[PublishUnknown | PublishFailed | PublishAbandoned], draft: Record) -> None:
        event = outcome(self._world.now, self._key, draft.epoch, draft.seq, draft.generation)
        self._world.recorder.write(PUBLISHER, event)

    def _republish(self, drafts: Sequence[Record]) -> None:
        """Publish failed messages as a new generation before any message that was invoked later."""
        self._paused = False
        for draft in drafts:
            if self._world.take(Freedom.PUBLISH_ABANDONED, 0.2):
                self._report(PublishAbandoned, draft)
            else:
                self._invoke(replace(draft, generation=draft.generation + 1))
        self._go_on()
