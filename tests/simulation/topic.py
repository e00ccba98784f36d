"""The topic and its publisher: bursts, hidden retries, unknown outcomes, zombies, a restart.

Legal by section 3.1. A record is appended between the invocation of its publish and, if its attempt is the one that is confirmed, the
confirmation (L1, L2). One batch of a key is under way at a time, the confirmed attempt appends the whole batch in order, and the next
batch's first attempt is sent only after the outcome of this one (L3); L4 follows because appends happen in real time. Every other
record (a retried, partial or late attempt) is a shadow and may land at any time.

After an unknown outcome the client library's key is paused: what had been handed over behind the batch fails and is certainly not
stored. The prober then publishes the unknown ones again with the next generation, in order, or abandons them (section 8.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from prober.core.events import PublishAbandoned, Published, PublishFailed, PublishInvoked, PublishUnknown
from tests.simulation.options import Fault
from tests.simulation.world import World


@dataclass(slots=True)
class Record:
    """A message as stored. `attempts` counts its deliveries, `attempt_seen` is the highest count that a client was shown."""

    key: str
    epoch: str
    seq: int
    generation: int
    message_id: str
    attempts: int = 0
    attempt_seen: int = 0
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """A message in the publisher's hands."""

    seq: int
    generation: int


@dataclass(slots=True)
class Topic:
    """Appends records to the subscription's log of their key."""

    world: World
    append: Callable[[Record], None]

    def accept(self, key: str, epoch: str, items: list[Item], confirmed: bool) -> list[str]:
        """Store a batch, tell its ids. The two bugs of the write path are here."""
        records = [Record(key, epoch, item.seq, item.generation, f"{epoch}-{item.seq}-{self.world.number()}") for item in items]
        ids = [record.message_id for record in records]
        if confirmed and len(records) > 1 and self.world.broken(Fault.BATCH_SWAP, 0.4):
            place = self.world.random.randrange(len(records) - 1)
            records[place], records[place + 1] = records[place + 1], records[place]
            self.world.fire(f"{records[place + 1].message_id} after {records[place].message_id}")
        if confirmed and self.world.broken(Fault.LOST_WRITE, 0.15):
            lost = records.pop(self.world.random.randrange(len(records)))
            self.world.fire(f"{lost.message_id} lost")
        for record in records:
            self.append(record)
        return ids


@dataclass(slots=True)
class Publisher:
    """The one sequential writer of a key."""

    world: World
    topic: Topic
    key: str
    epoch_number: int = 1
    bursts_left: int = 0
    next_seq: int = 1
    queue: list[Item] = field(default_factory=list)
    busy: bool = False

    @property
    def epoch(self) -> str:
        return f"{self.key}.e{self.epoch_number}"

    def start(self) -> None:
        self.bursts_left = self.world.options.bursts
        self._next_burst()

    @property
    def done(self) -> bool:
        return not (self.bursts_left or self.busy or self.queue)

    # --- the prober's side ---

    def _next_burst(self) -> None:
        if not self.bursts_left:
            return
        options = self.world.options
        self.world.after(self.world.between(0.01, 2 * options.burst_gap_s), self._burst)

    def _burst(self) -> None:
        options = self.world.options
        if self.busy and not options.pipelined:
            self.world.after(self.world.between(0.05, 0.5), self._burst)
            return
        self.bursts_left -= 1
        if options.restart and self.epoch_number == 1 and self.bursts_left == options.bursts // 2:
            self._restart()
        for _ in range(self.world.random.randint(1, options.burst_max)):
            self._invoke(Item(self.next_seq, 0))
            self.next_seq += 1
        self._flush()
        self._next_burst()

    def _restart(self) -> None:
        """The process dies: what it had under way gets no outcome, though it may still be stored."""
        self.world.note("restart")
        self.epoch_number += 1
        self.next_seq = 1
        self.queue = []
        self.busy = False

    def _invoke(self, item: Item) -> None:
        self.world.record(PublishInvoked(self.world.now, self.key, self.epoch, item.seq, item.generation))
        self.queue.append(item)

    # --- the client library's side ---

    def _flush(self) -> None:
        if self.busy or not self.queue:
            return
        self.busy = True
        size = self.world.random.randint(1, len(self.queue))
        batch, self.queue = self.queue[:size], self.queue[size:]
        self._attempt(batch, self.world.options.attempts, self.epoch)

    def _attempt(self, batch: list[Item], left: int, epoch: str) -> None:
        world, options = self.world, self.world.options
        there, back = world.between(0.001, 0.2), world.between(0.001, 0.2)
        if world.chance(options.slow_reply):
            back += world.between(0, 2 * options.delay_max_s + 1)
        if world.chance(options.request_loss):
            self._later(world.between(0.1, 2), batch, left, epoch)
        elif world.chance(options.zombie):
            world.note("zombie")
            world.after(world.between(0.1, 40), lambda: self._store(batch, epoch))
            self._later(world.between(0.1, 2), batch, left, epoch)
        elif world.chance(options.partial):
            prefix = batch[: world.random.randint(1, len(batch))]
            world.after(there, lambda: self._store(prefix, epoch))
            self._later(there + back, batch, left, epoch)
        elif world.chance(options.reply_loss):
            world.after(there, lambda: self._store(batch, epoch))
            self._later(there + world.between(0.1, 2), batch, left, epoch)
        else:
            world.after(there, lambda: self._accept(batch, back, epoch))

    def _store(self, batch: list[Item], epoch: str) -> None:
        """An attempt that will not be confirmed is stored: its records are shadows."""
        self.world.note("shadows")
        self.topic.accept(self.key, epoch, batch, confirmed=False)

    def _later(self, delay: float, batch: list[Item], left: int, epoch: str) -> None:
        if left > 1:
            self.world.after(delay, lambda: self._retry(batch, left - 1, epoch))
        else:
            self.world.after(delay, lambda: self._unknown(batch, epoch))

    def _retry(self, batch: list[Item], left: int, epoch: str) -> None:
        if epoch == self.epoch:
            self._attempt(batch, left, epoch)

    def _accept(self, batch: list[Item], back: float, epoch: str) -> None:
        ids = self.topic.accept(self.key, epoch, batch, confirmed=epoch == self.epoch)
        self.world.after(back, lambda: self._confirm(batch, ids, epoch))

    def _confirm(self, batch: list[Item], ids: list[str], epoch: str) -> None:
        if epoch != self.epoch:
            return
        for item, message_id in zip(batch, ids, strict=True):
            self.world.record(Published(self.world.now, self.key, epoch, item.seq, message_id, item.generation))
        self.busy = False
        self._flush()

    def _unknown(self, batch: list[Item], epoch: str) -> None:
        if epoch != self.epoch:
            return
        world = self.world
        world.note("unknown")
        for item in batch:
            world.record(PublishUnknown(world.now, self.key, epoch, item.seq, item.generation))
        cancelled, self.queue = self.queue, []
        for item in cancelled:
            world.record(PublishFailed(world.now, self.key, epoch, item.seq, item.generation))
        self.busy = False
        again = world.random.random() < world.options.republish
        for item in batch + (cancelled if again else []):
            if again:
                self._invoke(Item(item.seq, item.generation + 1))
            else:
                world.record(PublishAbandoned(world.now, self.key, epoch, item.seq, item.generation))
        self._flush()
