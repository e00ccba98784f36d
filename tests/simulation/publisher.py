"""The publisher of a key: bursts, hidden retries, unknown outcomes, zombies, restarts, failover to another region.

Legal by section 3.1. A record is appended between the invocation of its publish and, if its attempt is the one that is confirmed, the
confirmation (L1, L2). One batch of a key is under way at a time, the confirmed attempt appends the whole batch in order, and the next
batch's first attempt is sent only after the outcome of this one (L3). Every other record (a retried, partial or late attempt) is a
shadow and may land at any time. A batch goes to one region; what is published again may go to another one, and then has records in both.

After an unknown outcome the client library's key is paused: what had been handed over behind the batch fails and is provably not
stored. The prober then publishes the unknown ones again with the next generation, in order, or abandons them (section 8.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prober.core.events import PublishAbandoned, Published, PublishFailed, PublishInvoked, PublishUnknown
from tests.simulation.options import TopicOptions
from tests.simulation.topic import Item, Topic
from tests.simulation.world import World

LARGEST_MESSAGE = 200


@dataclass(slots=True)
class Publisher:
    """The one sequential writer of a key."""

    world: World
    topic: Topic
    key: str
    longest_delay_s: float
    epoch_number: int = 1
    bursts_left: int = 0
    next_seq: int = 1
    region: str = ""
    queue: list[Item] = field(default_factory=list)
    busy: bool = False

    @property
    def options(self) -> TopicOptions:
        return self.topic.options

    @property
    def epoch(self) -> str:
        return f"{self.key}.e{self.epoch_number}"

    @property
    def done(self) -> bool:
        return not (self.bursts_left or self.busy or self.queue)

    @property
    def t(self) -> float:
        return self.world.recorders.publisher.t

    def start(self) -> None:
        self.bursts_left = self.options.bursts
        self.region = "a" if self.options.failover else ""
        self._next_burst()

    # --- the prober's side ---

    def _next_burst(self) -> None:
        if not self.bursts_left:
            return
        pause = self.options.pause_s if self.bursts_left == self.options.bursts // 2 else 0.0
        if pause:
            self.world.note("long idle period")
        self.world.after(pause + self.world.between(0.01, 2 * self.options.burst_gap_s), self._burst)

    def _burst(self) -> None:
        options = self.options
        if self.busy and not options.pipelined and not options.epoch_per_burst:
            self.world.after(self.world.between(0.05, 0.5), self._burst)
            return
        self.bursts_left -= 1
        middle = options.restart and self.epoch_number == 1 and self.bursts_left == options.bursts // 2
        if middle or (options.epoch_per_burst and self.next_seq > 1):
            self._restart()
        self._fail_over()
        for _ in range(self.world.random.randint(1, options.burst_max)):
            self._invoke(self.next_seq, 0)
            self.next_seq += 1
        self._flush()
        self._next_burst()

    def _restart(self) -> None:
        """The process dies: what it had under way gets no outcome, though it may still be stored."""
        self.world.note("restart")
        self.epoch_number += 1
        if self.epoch_number in (65, 257):
            self.world.note(f"{self.epoch_number} epochs")
        self.next_seq = 1
        self.queue = []
        self.busy = False

    def _fail_over(self) -> None:
        if self.options.failover and self.world.happens(self.options.failover):
            self.world.note("failover")
            self.region = "b" if self.region == "a" else "a"

    def _invoke(self, seq: int, generation: int) -> None:
        size = self.world.random.randint(1, LARGEST_MESSAGE)
        self.world.record(PublishInvoked(self.t, self.key, self.epoch, seq, generation, size=size, region=self.region))
        self.queue.append(Item(seq, generation, self.region, size))

    # --- the client library's side ---

    def _flush(self) -> None:
        if self.busy or not self.queue:
            return
        self.busy = True
        size = self.world.random.randint(1, len(self.queue))
        region = self.queue[0].region
        while any(item.region != region for item in self.queue[:size]):
            size -= 1
        batch, self.queue = self.queue[:size], self.queue[size:]
        self._attempt(batch, self.options.attempts, self.epoch)

    def _attempt(self, batch: list[Item], left: int, epoch: str) -> None:
        world, options = self.world, self.options
        there, back = world.between(0.001, 0.2), world.between(0.001, 0.2)
        if world.happens(options.slow_reply):
            back += world.between(0, 2 * self.longest_delay_s + 1)
        if world.happens(options.request_loss):
            self._later(world.between(0.1, 2), batch, left, epoch)
        elif world.happens(options.zombie):
            world.note("zombie")
            world.after(world.between(0.1, 40), lambda: self._store(batch, epoch))
            self._later(world.between(0.1, 2), batch, left, epoch)
        elif world.happens(options.partial):
            prefix = batch[: world.random.randint(1, len(batch))]
            world.after(there, lambda: self._store(prefix, epoch))
            self._later(there + back, batch, left, epoch)
        elif world.happens(options.reply_loss):
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
            self.world.record(Published(self.t, self.key, epoch, item.seq, message_id, item.generation))
        self.busy = False
        self._flush()

    def _unknown(self, batch: list[Item], epoch: str) -> None:
        if epoch != self.epoch:
            return
        world = self.world
        world.note("unknown")
        for item in batch:
            world.record(PublishUnknown(self.t, self.key, epoch, item.seq, item.generation))
        cancelled, self.queue = self.queue, []
        for item in cancelled:
            world.record(PublishFailed(self.t, self.key, epoch, item.seq, item.generation))
        self.busy = False
        self._fail_over()
        again = world.random.random() < self.options.republish
        for item in batch + (cancelled if again else []):
            if again:
                self._invoke(item.seq, item.generation + 1)
            else:
                world.record(PublishAbandoned(self.t, self.key, epoch, item.seq, item.generation))
        self._flush()
