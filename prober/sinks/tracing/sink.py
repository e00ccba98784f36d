"""Traces as a sink of runs: made in a thread of their own when a run has ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import Final

from opentelemetry.sdk.resources import Resource

from prober.core.events import Event
from prober.runs.classification import Observation
from prober.runs.result import RunResult
from prober.runs.sink import RunBegun, RunEnded
from prober.sinks.metrics.health import ProberHealth
from prober.sinks.metrics.label_values import Signal
from prober.sinks.otlp.exporters import exports_of, sampled_share
from prober.sinks.tracing.spans import SHARE, Tracing

WAITING_MAX: Final = 32
"""Traces that wait to be made; what comes beyond is given up, and that is logged."""

_log = logging.getLogger(__name__)


def tracing_sink(resource: Resource, health: ProberHealth) -> TracingSink:
    """Return the sink that the environment configures (`prober.sinks.otlp.exporters`). ConfigError: it has a wrong value."""
    share = sampled_share(SHARE)
    return TracingSink(Tracing(exports_of(Signal.TRACES, health), resource, share))


class TracingSink:
    """Traces the runs that count. On the event loop, but for `close`."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tracing")
        self._room = BoundedSemaphore(WAITING_MAX)

    def begin(self, run: RunBegun) -> TracedRun:
        """A run begins; its trace is made when it has ended."""
        return TracedRun(self)

    def trace(self, result: RunResult, events: Sequence[Event]) -> None:
        """Makes the trace of a run soon; never waits. Its events must not change any more."""
        if not self._room.acquire(blocking=False):
            _log.warning("run %s is not traced: %d others wait for their trace", result.run_id, WAITING_MAX)
            return
        self._thread.submit(self._trace, result, events)

    def close(self) -> None:
        """Makes what waits, and sends what is left. Blocks."""
        self._thread.shutdown()
        self._tracing.shutdown()

    def _trace(self, result: RunResult, events: Sequence[Event]) -> None:
        try:
            self._tracing.record(result, events)
        except Exception:
            _log.exception("internal error: run %s could not be traced", result.run_id)
        finally:
            self._room.release()


class TracedRun:
    """Listens to one run: what the recorder keeps is enough to trace it."""

    def __init__(self, sink: TracingSink) -> None:
        self._sink = sink

    def event(self, seen: Observation) -> None:
        """The recorder keeps it."""

    def ended(self, end: RunEnded) -> None:
        """The run is over."""
        if end.is_counted:
            self._sink.trace(end.result, end.recorded.events)
