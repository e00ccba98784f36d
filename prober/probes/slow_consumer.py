"""A slow consumer: it processes the messages of a key one after the other, and any number of keys at once.

It extends the leases of waiting and processed messages: they do not expire while their streams are open. So a slow consumer by itself
causes no redelivery, and does not explain a late message of another key.
"""

from __future__ import annotations

from asyncio import Event
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Final

from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.experiment import Processing, Workload

TAIL: Final = 1.5
"""Exponent of the Pareto distribution of `HEAVY_TAILED`: its mean is three times its minimum."""
LONGEST_S: Final = 15.0
"""Longest processing time of a message of `HEAVY_TAILED`, in seconds: longer than a lease of ten seconds."""
PROCESSING_S: Final = 20.0
"""Longest time that a slow consumer continues after the last publish, in seconds; then it acknowledges all waiting messages."""
EXTENDED_AFTER: Final = 0.5
"""Share of its lease after which a message is extended."""


def processing_times(workload: Workload, slow_key: str, dice: Random) -> Callable[[str], float]:
    """Return a function from a key to the processing time of its next message, in seconds."""
    mean_s = workload.processing_s
    match workload.processing:
        case Processing.SLOW_KEY:
            return lambda key: mean_s if key == slow_key else 0.0
        case Processing.FIXED:
            return lambda _key: mean_s
        case Processing.HEAVY_TAILED:
            return lambda _key: min(LONGEST_S, dice.paretovariate(TAIL) * mean_s * (TAIL - 1.0) / TAIL)


class SlowConsumer:
    """Processes and acknowledges messages; see the module. Belongs to the event loop.

    processed    messages that took time to process and were acknowledged afterwards.
    redelivered  deliveries that were redeliveries.
    oldest_s     largest age of a message at its acknowledgement, in seconds since its intended send time.
    """

    def __init__(self, context: ProbeContext, takes_s: Callable[[str], float]) -> None:
        self.processed, self.redelivered, self.oldest_s = 0, 0, 0.0
        self._context, self._takes_s = context, takes_s
        self._due_t: dict[tuple[str, int], float] = {}
        self._waiting: dict[str, dict[int, Delivery]] = {}
        self._nothing_left = Event()
        self._nothing_left.set()

    @property
    def backlog(self) -> int:
        """Number of messages that were to be sent and are not acknowledged."""
        return len(self._due_t)

    def expect(self, key: str, seqs: Iterable[int], due_t: float) -> None:
        """Expect messages of a key that are to be sent at `due_t`."""
        self._due_t |= {(key, seq): due_t for seq in seqs}
        self._nothing_left.clear()

    def give_up(self, key: str, seqs: Iterable[int]) -> None:
        """Stop waiting for messages that were not confirmed."""
        for seq in seqs:
            self._due_t.pop((key, seq), None)
        self._look()

    def take(self, delivery: Delivery) -> None:
        """Queue a received message behind the others of its key. A redelivery keeps the position of its message."""
        self.redelivered += delivery.again
        waiting = self._waiting.setdefault(delivery.key, {})
        idle = not waiting
        waiting[delivery.seq] = delivery
        if idle:
            self._process(delivery.key)
        self._keep(delivery)

    async def finish(self, limit_s: float) -> int:
        """Wait until all messages are acknowledged, at most `limit_s`; then acknowledge the waiting ones.

        Return the number of the latter.
        """
        await comes_within(limit_s, self._nothing_left)
        left = [delivery for waiting in self._waiting.values() for delivery in waiting.values()]
        self._waiting = {}
        for delivery in left:
            self._acknowledge(delivery)
        return len(left)

    def _process(self, key: str) -> None:
        while waiting := self._waiting.get(key, {}):
            seq = next(iter(waiting))
            if takes_s := self._takes_s(key):
                self._context.later(takes_s, partial(self._processed, key, seq))
                return
            self._acknowledge(waiting.pop(seq))
        self._waiting.pop(key, None)

    def _processed(self, key: str, seq: int) -> None:
        if (delivery := self._waiting.get(key, {}).pop(seq, None)) is not None:
            self.processed += 1
            self._acknowledge(delivery)
            self._process(key)

    def _acknowledge(self, delivery: Delivery) -> None:
        delivery.ack()
        if (due_t := self._due_t.pop((delivery.key, delivery.seq), None)) is not None:
            self.oldest_s = max(self.oldest_s, self._context.now() - due_t)
        self._look()

    def _look(self) -> None:
        if not self._due_t:
            self._nothing_left.set()

    def _keep(self, delivery: Delivery) -> None:
        """Extend the lease of a message repeatedly while it waits."""
        if self._waits(delivery):
            self._context.later(EXTENDED_AFTER * self._context.resources.ack_deadline_s, partial(self._extend, delivery))

    def _extend(self, delivery: Delivery) -> None:
        if self._waits(delivery):
            delivery.extend_lease()
            self._keep(delivery)

    def _waits(self, delivery: Delivery) -> bool:
        return self._waiting.get(delivery.key, {}).get(delivery.seq) is delivery
