"""Pairs of publish requests that differ in the ordering key only: the cost of a key for its publisher.

Both requests of a pair are sent at the same time, in random order. They contain equally many messages of the same length. Messages with a
key are recorded, and published again until every outcome is settled; messages without a key are neither. Only the first attempt of each
counts. A pair shares the minute, the connection and the state of the prober, so only the key differs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from prober.brokers.base import Confirmed, Outcome, Outgoing
from prober.probes.context import ProbeContext
from prober.probes.payload import Stamp
from prober.probes.publishing import unsettled
from prober.slo.confidence import Difference, mean_difference, share_difference


class Answer(NamedTuple):
    """End of a request: whether all of it was confirmed, and its duration in seconds."""

    confirmed: bool
    took_s: float


@dataclass(frozen=True, slots=True)
class RequestPairs:
    """Answers to requests with a key and without, pair by pair."""

    answers: list[tuple[Answer, Answer]] = field(default_factory=list)

    def latency(self) -> Difference | None:
        """Return the extra duration of a request with a key, in seconds; None with fewer than two confirmed pairs."""
        confirmed = [(keyed, keyless) for keyed, keyless in self.answers if keyed.confirmed and keyless.confirmed]
        return mean_difference([keyed.took_s - keyless.took_s for keyed, keyless in confirmed])

    def availability(self) -> Difference | None:
        """Return the excess of the share of failed requests with a key; None without pairs."""
        only = Counter((keyed.confirmed, keyless.confirmed) for keyed, keyless in self.answers)
        return share_difference(only[False, True], only[True, False], len(self.answers)) if self.answers else None


class PairedPublishing:
    """Publishes bursts with a key and without, side by side. Belongs to the event loop; raises no BrokerError."""

    def __init__(self, context: ProbeContext) -> None:
        self.pairs = RequestPairs()
        self._context = context

    async def publish(self, key: str, count: int, sizes: Sequence[int], intended_t: float) -> int:
        """Publish the next messages of a key, and as many without a key.

        Return how many messages with a key were confirmed in the end.
        """
        publishing = self._context.publishing
        seqs = publishing.next_seqs(key, count)
        keyless = [self._without_key(key, seq, sizes[seq % len(sizes)]) for seq in seqs]
        requests = {
            True: self._timed(publishing.attempt(key, seqs, sizes, intended_t)),
            False: self._timed(publishing.attempt("", (), beside=keyless)),
        }
        is_first = self._context.random.random() < 0.5
        first, second = await asyncio.gather(requests[is_first], requests[not is_first])
        (outcomes, answer), (others, other) = (first, second) if is_first else (second, first)
        self.pairs.answers.append((answer, other))
        self._context.count("publish_pairs")
        self._context.count("publishes_without_key", sum(isinstance(outcome, Confirmed) for outcome in others))
        if answer.confirmed:
            return len(outcomes)
        confirmed = sum(isinstance(outcome, Confirmed) for outcome in outcomes)
        await publishing.resume(key)
        return confirmed + await publishing.settle(key, unsettled(seqs, [outcomes]), sizes, intended_t, generation=1)

    async def _timed(self, attempt: Awaitable[Sequence[Outcome]]) -> tuple[Sequence[Outcome], Answer]:
        began_t = self._context.now()
        outcomes = await attempt
        return outcomes, Answer(all(isinstance(one, Confirmed) for one in outcomes), self._context.now() - began_t)

    def _without_key(self, key: str, seq: int, size: int) -> Outgoing:
        """Return a message as long as its twin, including the twin's key and attributes."""
        attributes = Stamp(self._context.epoch, seq).attributes(key, b"")
        around = len(key) + sum(len(name) + len(value) for name, value in attributes.items())
        return Outgoing("", self._context.random.randbytes(size + around))
