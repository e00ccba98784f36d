"""Measuring, while `verify` reads a file, in which order its messages came: what `verify --reorder` adds to the judging."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from prober.cli.reorder_report import MeasuredOrder
from prober.core.events import Event
from prober.ordering.measurement import OrderMeasurement
from prober.traces.header import TraceHeader


class Timeouts(NamedTuple):
    """Seconds, above 0: how long to wait for a missing message, and after how long without any an idle stream is forgotten."""

    wait_s: float
    idle_s: float


class Measuring:
    """Looks at the events of one file as they pass by to whoever judges them. A fault of it never reaches the judge.

    fault   one line about a fault of ours, after which nothing more was measured; empty if there was none.
    """

    def __init__(self, path: str, timeouts: Timeouts) -> None:
        self.fault = ""
        self._path = path
        self._timeouts = timeouts
        self._measurement: OrderMeasurement | None = None

    def follow(self, events: Iterable[Event], header: TraceHeader) -> Iterator[Event]:
        """The same events; each was measured before it is given on. Call it once."""
        start_known = header.rules.subscription_predates_first_publish
        measurement = OrderMeasurement(self._timeouts.wait_s, self._timeouts.idle_s, start_known=start_known)
        self._measurement = measurement
        for event in events:
            if not self.fault:
                with self._guarded():
                    measurement.observe(event)
            yield event

    def report(self) -> MeasuredOrder | None:
        """What was measured of the events that were taken; None if the file could not be read, or after a fault."""
        if self._measurement is not None and not self.fault:
            with self._guarded():
                return MeasuredOrder(self._measurement.report(), self._timeouts.wait_s, self._timeouts.idle_s)
        return None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as fault:
            self.fault = f"{self._path}: the order of messages cannot be measured: {fault!r}; please report this with the file"
