"""The ramp of `push`: the highest rate on one key at which push keeps up.

One message of a key is outstanding at a time, so each message costs a round trip to the endpoint, and push may not keep up with a busy key.
On a key of its own the ramp publishes at each of `RATES_PER_S` for `STEP_S` seconds, and acknowledges every message on receipt. Push *kept
up* if all messages of a step were received at most `WAITING_S` after its last publish; then the next step starts. Otherwise it *fell
behind*, and the ramp ends. So the highest rate of push lies between two measurements, or is at least the largest rate of the ramp.

A step is *undecided* if publishing did not keep up, or if the prober's event loop lagged while messages were missing: neither proves
anything about push. The ramp ends there, and the run counts it (`push_ramps_undecided`). No result of the ramp is a violation.
"""

from __future__ import annotations

from asyncio import Event
from typing import Final

from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.experiment import Workload
from prober.slo.figures import Figure

RATES_PER_S: Final = (5, 10, 20, 40)
STEP_S: Final = 2.0
REQUESTS_PER_S: Final = 5
"""Publish requests per second, which share its messages: a key has one writer, which waits for each confirmation."""
WAITING_S: Final = 1.0
LATE_SHARE: Final = 0.2
"""Share of `STEP_S` by which publishing a step may take longer."""
SETTLE_S: Final = 10.0
"""Longest wait for outstanding messages at the end of the ramp, in seconds."""

REQUESTS: Final = round(len(RATES_PER_S) * STEP_S * REQUESTS_PER_S)
MESSAGES: Final = round(sum(RATES_PER_S) * STEP_S)
"""Messages of a ramp up to the largest rate; `REQUESTS` are its publish requests."""


class PushRamp:
    """Publishes the ramp on its key, and measures the rates at which push keeps up."""

    def __init__(self, context: ProbeContext, workload: Workload) -> None:
        self.key = f"push-ramp-{workload.part}"
        self._context, self._sizes = context, workload.sizes
        self._sent = 0
        self._missing: set[int] = set()
        self._nothing_missing = Event()

    def received(self, delivery: Delivery) -> None:
        """Acknowledge a message of the ramp."""
        delivery.ack()
        self._arrived(delivery.seq)

    async def climb(self) -> bool:
        """Run the steps and record the measurements. Return whether all messages were received.

        If they were, later steps of the probe wait for none of them.
        """
        for rate_per_s in RATES_PER_S:
            kept_up = await self._step(rate_per_s)
            if kept_up is None:
                self._context.count("push_ramps_undecided")
                break
            self._context.recording.measured(Figure.PUSH_KEPT_UP if kept_up else Figure.PUSH_FELL_BEHIND, rate_per_s)
            if not kept_up:
                break
        return await comes_within(SETTLE_S, self._nothing_missing)

    async def _step(self, rate_per_s: int) -> bool | None:
        """Publish for `STEP_S` at a rate, in messages per second. Return whether push kept up; None if undecided."""
        began_t = self._context.now()
        reached = await self._publish(rate_per_s // REQUESTS_PER_S) and self._context.now() - began_t <= (1 + LATE_SHARE) * STEP_S
        if await comes_within(WAITING_S, self._nothing_missing):
            return True if reached else None
        lagged = self._context.recording.lagged_s(self._context.now() - began_t) > 0.0
        return False if reached and not lagged else None

    async def _publish(self, messages: int) -> bool:
        """Publish the requests of a step, each of `messages` messages. Return whether all were confirmed."""
        all_confirmed = True
        async for due_t in self._context.ticks(round(STEP_S * REQUESTS_PER_S), 1 / REQUESTS_PER_S):
            seqs = range(self._sent + 1, self._sent + messages + 1)
            self._sent += messages
            self._missing.update(seqs)
            self._nothing_missing.clear()
            if await self._context.publish(self.key, messages, self._sizes, due_t) < messages:
                all_confirmed = False
                for seq in seqs:
                    self._arrived(seq)
        return all_confirmed

    def _arrived(self, seq: int) -> None:
        """Stop waiting for a message that was received, or was not confirmed."""
        self._missing.discard(seq)
        if not self._missing:
            self._nothing_missing.set()
