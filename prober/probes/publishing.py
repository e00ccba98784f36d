"""Publishing of a run: numbers the messages, and records every attempt and its outcome.

Sequence numbers are 1, 2, 3, ... per key, never used twice. A message with an unknown outcome is published again under the next generation
until it is confirmed or explicitly abandoned.

A run has one or several publishers, each with a client of its own, like the processes of an application. They share the numbering. A
publisher publishes no new message of a key while another publisher's request for the key is pending, unless both publish the same message
(`publish_by_all`). So the order of publishing is known, and that order is guaranteed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final

from prober.brokers.base import Confirmed, Outcome, Outgoing, Publisher, Rejected
from prober.core.events import Event, PublishAbandoned, Published, PublishEvent, PublishFailed, PublishInvoked, PublishUnknown
from prober.probes.payload import Stamp

GENERATIONS_MAX: Final = 5
"""Largest number of attempts for a message before its unknown outcome is accepted."""
SIZES: Final = (64,)


class Publishing:
    """Publishers of a run; see the module. Belongs to the event loop. Raises no BrokerError: a failure is an outcome.

    In all calls `by` is the number of the publisher, from 0, and `sizes` are sizes of the data in bytes, used in turn.

    answered_in_s   duration of the latest confirmed request, in seconds.
    unknown         attempts so far whose outcome is unknown.
    """

    def __init__(
        self,
        new_publisher: Callable[[], Publisher],
        epoch: str,
        timeout_s: float,
        region: str,
        record: Callable[[Event], object],
        now: Callable[[], float],
        dice: Random,
    ) -> None:
        """Create the first publisher. `timeout_s`: timeout of an answer. `region`: region of publishing, empty if unknown."""
        self.answered_in_s, self.unknown = timeout_s, 0
        self._new_publisher, self._epoch, self._timeout_s, self._region = new_publisher, epoch, timeout_s, region
        self._record, self._now, self._dice = record, now, dice
        self._seqs: dict[str, int] = {}
        self._publishers = [new_publisher()]

    async def close(self) -> None:
        """Close all publishers."""
        await asyncio.gather(*(publisher.close() for publisher in self._publishers))

    @property
    def unexplained_stops(self) -> int:
        """Number of times that client libraries stopped a key without a failed publish of the key."""
        return sum(publisher.unexplained_stops for publisher in self._publishers)

    def next_seqs(self, key: str, count: int) -> Sequence[int]:
        """Reserve and return the next sequence numbers of a key."""
        first = self._seqs.get(key, 0) + 1
        self._seqs[key] = first + count - 1
        return range(first, first + count)

    def go_on(self, published: Iterable[PublishEvent]) -> None:
        """Continue the numbering behind earlier publishes of the same epoch."""
        for event in published:
            self._seqs[event.key] = max(event.seq, self._seqs.get(event.key, 0))

    async def publish(
        self, key: str, count: int, sizes: Sequence[int] = SIZES, intended_t: float | None = None, *, by: int = 0
    ) -> int:
        """Publish the next `count` messages of a key together, until every outcome is settled.

        Return the number of confirmed messages. `intended_t`: send time scheduled by the experiment, in seconds of the recorder's clock.
        """
        return await self.settle(key, self.next_seqs(key, count), sizes, intended_t, by=by)

    async def publish_singly(self, key: str, count: int, sizes: Sequence[int] = SIZES, *, by: int = 0) -> int:
        """Publish the next messages of a key one by one. Return the number of confirmed messages.

        All requests are sent at once if the publisher keeps their order, else one after the other.
        """
        seqs = self.next_seqs(key, count)
        if self._publisher(by).keeps_order:
            return sum(await asyncio.gather(*(self.settle(key, [seq], sizes, by=by) for seq in seqs)))
        return sum([await self.settle(key, [seq], sizes, by=by) for seq in seqs])

    async def publish_by_all(self, key: str, count: int, sizes: Sequence[int] = SIZES, *, publishers: int) -> int:
        """Publish the next messages of a key by several publishers at once. Return the number of confirmed messages.

        Each publisher uses a generation of its own.
        """
        seqs = self.next_seqs(key, count)
        attempts = (self.attempt(key, seqs, sizes, generation=number, by=number) for number in range(publishers))
        outcomes = await asyncio.gather(*attempts)
        for number in range(publishers):
            await self.resume(key, number)
        confirmed = sum(any(isinstance(one, Confirmed) for one in each) for each in zip(*outcomes, strict=True))
        return confirmed + await self.settle(key, unsettled(seqs, outcomes), sizes, generation=publishers)

    async def settle(
        self,
        key: str,
        seqs: Sequence[int],
        sizes: Sequence[int] = SIZES,
        intended_t: float | None = None,
        *,
        generation: int = 0,
        by: int = 0,
    ) -> int:
        """Publish messages from a generation on, until every outcome is settled. Return the number of confirmed messages."""
        confirmed = 0
        for each in range(generation, generation + GENERATIONS_MAX):
            if not seqs:
                return confirmed
            outcomes = await self.attempt(key, seqs, sizes, intended_t, generation=each, by=by)
            answered = sum(isinstance(outcome, Confirmed) for outcome in outcomes)
            if answered < len(outcomes):
                await self.resume(key, by)
            confirmed += answered
            seqs = unsettled(seqs, [outcomes])
        for seq in seqs:
            self._record(PublishAbandoned(self._now(), key, self._epoch, seq, generation + GENERATIONS_MAX - 1))
        return confirmed

    async def attempt(
        self,
        key: str,
        seqs: Sequence[int],
        sizes: Sequence[int] = SIZES,
        intended_t: float | None = None,
        *,
        generation: int = 0,
        by: int = 0,
        timeout_s: float = 0.0,
        beside: Sequence[Outgoing] = (),
    ) -> Sequence[Outcome]:
        """Publish messages once, with unrecorded messages `beside` them. Return the outcomes of all.

        `timeout_s`: timeout of the answer; 0: the default. The caller settles unknown outcomes.
        """
        batch = [self._message(key, seq, generation, sizes[seq % len(sizes)]) for seq in seqs]
        began_t = self._now()
        for seq, message in zip(seqs, batch, strict=True):
            size = len(message.data)
            self._record(PublishInvoked(self._now(), key, self._epoch, seq, generation, intended_t, size, self._region))
        outcomes = await self._publisher(by).publish([*batch, *beside], timeout_s or self._timeout_s)
        for seq, outcome in zip(seqs, outcomes, strict=False):
            self._record(self._event(key, seq, generation, outcome))
        if all(isinstance(outcome, Confirmed) for outcome in outcomes):
            self.answered_in_s = self._now() - began_t
        return outcomes

    async def resume(self, key: str, by: int = 0) -> None:
        """Let a publisher continue with a key after a failed publish."""
        await self._publisher(by).resume(key)

    def _publisher(self, number: int) -> Publisher:
        while len(self._publishers) <= number:
            self._publishers.append(self._new_publisher())
        return self._publishers[number]

    def _message(self, key: str, seq: int, generation: int, size: int) -> Outgoing:
        data = self._dice.randbytes(size)
        return Outgoing(key, data, Stamp(self._epoch, seq, generation).attributes(key, data))

    def _event(self, key: str, seq: int, generation: int, outcome: Outcome) -> Event:
        if isinstance(outcome, Confirmed):
            return Published(self._now(), key, self._epoch, seq, outcome.message_id, generation)
        rejected = isinstance(outcome, Rejected)
        self.unknown += not rejected
        ended = PublishFailed if rejected else PublishUnknown
        return ended(self._now(), key, self._epoch, seq, generation)


def unsettled(seqs: Sequence[int], attempts: Sequence[Sequence[Outcome]]) -> list[int]:
    """Return the messages that no attempt confirmed, and that at least one attempt may have stored."""
    return [
        seq
        for seq, *outcomes in zip(seqs, *attempts, strict=True)
        if not any(isinstance(outcome, Confirmed) for outcome in outcomes)
        and not all(isinstance(outcome, Rejected) for outcome in outcomes)
    ]
