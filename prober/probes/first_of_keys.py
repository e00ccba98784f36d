"""Latency of the first message of each key, for probes that hold back later messages of a key.

The probe does not delay that message: no earlier message of its key is outstanding. A first message that never arrives has no latency: the
checker reports it.
"""

from __future__ import annotations

import asyncio

from prober.probes.context import Delivery, ProbeContext
from prober.probes.experiment import Workload
from prober.slo.indicators import Indicator


class FirstOfKeys:
    """Publishes bursts, and measures an indicator from the intended send time of the first message of each key to its first receipt."""

    def __init__(self, context: ProbeContext, indicator: Indicator) -> None:
        self._context, self._indicator = context, indicator
        self._due: dict[str, float] = {}

    async def bursts(self, key: str, workload: Workload, *, measured: bool = True) -> None:
        """Publish the bursts of a key, with pauses of about the time to an acknowledgement."""
        context = self._context
        if measured:
            self._due[key] = context.now()
        for _ in range(workload.bursts):
            await context.publish(key, workload.burst_messages, workload.sizes)
            await asyncio.sleep(context.random.uniform(0.5, 1.5) * workload.ack_after_s)

    def received(self, delivery: Delivery) -> None:
        """Measure the latency of a delivery if it is the first of its key."""
        if delivery.seq != 1 or (due_t := self._due.pop(delivery.key, None)) is None:
            return
        now = self._context.now()
        self._context.recording.took(self._indicator, now - due_t, due_t, now)
        self._context.count("first_messages_measured")
