"""Latency of the first message of each key, for probes that hold back later messages of a key.

The probe does not delay that message: no earlier message of its key is outstanding. A first message that never arrives has no latency: the
checker reports it.
"""

from __future__ import annotations

from prober.probes.context import Delivery, ProbeContext
from prober.slo.indicators import Indicator


class FirstOfKeys:
    """Measures an indicator from the intended send time of the first message of each key to its first receipt."""

    def __init__(self, context: ProbeContext, indicator: Indicator) -> None:
        self._context, self._indicator = context, indicator
        self._due: dict[str, float] = {}

    def due(self, key: str) -> None:
        """Note that the first message of a key is to be sent now."""
        self._due[key] = self._context.now()

    def received(self, delivery: Delivery) -> None:
        """Take a delivery; measure the latency if it is the first of its key."""
        if delivery.seq != 1 or (due_t := self._due.pop(delivery.key, None)) is None:
            return
        now = self._context.now()
        self._context.recording.took(self._indicator, now - due_t, due_t, now)
        self._context.count("first_messages_measured")
