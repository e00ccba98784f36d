"""The writer of the history.

Records of runs reach a local spool within half a second, and then the store, as Parquet files.

    writer = HistoryWriter(settings, dropped=..., failed=...)
    writer.start()
    log = writer.begin(RunContext(...))
    log.record(event, findings)      # on the event loop, for each event
    log.ended(result)
    writer.close()

The writer has two threads. The flushing thread encodes new records twice a second, appends them to the spool and waits for the disk. The
shipping thread ships ended segments of the spool (`spool`), so that an unresponsive store does not block flushing. Failures of either
thread do not affect the event loop: dropped records are counted and reported by `state`, and both threads continue when the disk or the
store recovers.

A killed process loses the records of its last second. The others are in its spool; the next process with the same settings on the same
machine ships them, once.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Final
from urllib.parse import urlsplit

from prober.clock import monotonic_s, wall_s
from prober.config.sections import HistorySettings
from prober.runs.classification import Observation
from prober.runs.sink import RunBegun, RunEnded
from prober.sinks.history.encoding import Origin, RunContext
from prober.sinks.history.run_log import Meter, RunLog
from prober.sinks.history.spool import Shipper, Spool
from prober.sinks.history.store import SPOOL_FOLDER, HistoryError, HistoryRetention

FLUSH_EVERY_S: Final = 0.5
SHIP_EVERY_S: Final = 1.0
RETRY_AFTER_S: Final = 5.0
SEGMENT_BYTES_MAX: Final = 16 * 2**20
SEGMENT_AGE_MAX_S: Final = 300.0
"""A segment of the spool ends at this size or age. It makes one Parquet file per table and hour, or date, of its rows."""
SPOOL_BYTES_MAX: Final = 2**30
"""Maximum size of records that wait for the store; about ten million events."""
MESSAGES_MAX: Final = 200_000
"""Maximum number of messages and redeliveries of current runs in memory; beyond it the largest run discards its messages."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HistoryWriterState:
    """State of the writer.

    dropped                   number of dropped events and findings.
    spool_error, store_error  reason for the failure of the latest write to the spool or store; empty if it succeeded.
    """

    dropped: int
    spool_error: str
    store_error: str


class HistoryWriter:
    """Recorder of runs; see the docstring of the module. `begin`, and the logs that it returns, are for the event loop only."""

    def __init__(
        self,
        settings: HistorySettings,
        *,
        dropped: Callable[[int], None] = lambda _count: None,
        failed: Callable[[], None] = lambda: None,
        process: str | None = None,
        clock: Callable[[], float] = monotonic_s,
        wall_clock: Callable[[], float] = wall_s,
    ) -> None:
        """Prepare the writer, without access to disk or store. Raises `HistoryError` if the settings name no location.

        dropped   called with the number of dropped records, in any thread.
        failed    called after a failed write, in any thread.
        process   name of this incarnation, never used before; by default a new name.
        """
        if settings.location is None:
            raise HistoryError("the history has no location: set history.location")
        self.origin = Origin(process or new_process(wall_clock()), wall_clock() - clock())
        self._root = spool_root(settings)
        self._clock, self._wall_clock = clock, wall_clock
        self._failed = failed
        self._meter = Meter(dropped)
        self._logs: list[RunLog] = []
        self._frames: list[bytes] = []
        self._frames_items = 0
        self._spool: Spool | None = None
        self._spool_bytes_max = min(SPOOL_BYTES_MAX, settings.size_max)
        self._spool_error = ""
        self._segment_began_t = 0.0
        policy = HistoryRetention(settings.retention, settings.size_max)
        self._shipper = Shipper(settings.location, self._root, policy, failed)
        self._stopping, self._wake = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []

    # --- the event loop ------------------------------------------------------------------------------------------------------

    def begin(self, run: RunContext) -> RunLog:
        """Return the log of a run that starts. The caller must call `ended` or `release` on the log in any case."""
        log = RunLog(run, self.origin, self._meter, self._clock)
        self._logs.append(log)
        return log

    def state(self) -> HistoryWriterState:
        """Return the state of the writer, from memory."""
        return HistoryWriterState(self._meter.dropped_count, self._spool_error, self._shipper.error)

    # --- threads -------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads; they end with `close`, or with the process."""
        for name, work in (("history-flush", self._keep_flushing), ("history-ship", self._keep_shipping)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self, timeout_s: float = 10.0) -> HistoryWriterState:
        """Write all records and end the threads; return the state. After `timeout_s` the rest stays in the spool for the next process."""
        deadline_t = self._clock() + timeout_s
        self._stopping.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(max(0.0, deadline_t - self._clock()))
        state = self.state()
        if self._spool is not None and not any(thread.is_alive() for thread in self._threads):
            self._spool.close()
        return state

    def _keep_flushing(self) -> None:
        while not self._stopping.wait(FLUSH_EVERY_S):
            self._guarded(self.flush)
        self._guarded(self.flush)
        self._guarded(self.end_segment)

    def _keep_shipping(self) -> None:
        done = True
        while not self._stopping.is_set():
            self._wake.wait(SHIP_EVERY_S if done else RETRY_AFTER_S)
            done = self._guarded(self.ship)
        self._threads[0].join()
        self._guarded(self.ship)

    def _guarded(self, work: Callable[[], bool]) -> bool:
        try:
            return work()
        except Exception:  # an internal error must not end the thread
            self._failed()
            _log.exception("internal error in the history's writer")
            return False

    # --- work of the threads -------------------------------------------------------------------------------------------------

    def flush(self) -> bool:
        """Write new records to the disk. Return False if the disk does not accept them; the next call repeats the write."""
        try:
            self._append()  # frames of a failed flush
            self._take()
            self._append()
        except OSError as error:
            if not self._spool_error:
                _log.warning("the history cannot be written to the spool: %s", error)
            self._spool_error = str(error)
            self._failed()
            return False
        self._spool_error = ""
        if self._spool is not None and self._segment_is_due(self._spool):
            self.end_segment()
        return True

    def end_segment(self) -> bool:
        """End the current segment, so that it can be shipped."""
        if self._spool is not None:
            self._spool.end_segment()
        return True

    def ship(self) -> bool:
        """Ship ended segments to the store and enforce retention. Return False if the store fails."""
        self._wake.clear()
        return self._shipper.ship(self._spool, self._clock(), self._wall_clock())

    def _take(self) -> None:
        for log in list(self._logs):
            done = log.done  # before `take`: later records are left for the next flush
            taken = log.take()
            self._frames += taken.frames
            self._frames_items += taken.items
            if done:
                self._logs.remove(log)
        while sum(log.messages for log in self._logs) > MESSAGES_MAX:
            max(self._logs, key=lambda log: log.messages).give_up_messages()

    def _append(self) -> None:
        if not self._frames:
            return
        spool = self._spool = self._spool or Spool(self._root, self.origin.process, self._spool_bytes_max)
        if not spool.length:
            self._segment_began_t = self._clock()
        spool.append(self._frames)
        self._meter.saved += self._frames_items
        self._frames, self._frames_items = [], 0

    def _segment_is_due(self, spool: Spool) -> bool:
        old = self._clock() - self._segment_began_t >= SEGMENT_AGE_MAX_S
        return spool.length >= SEGMENT_BYTES_MAX or (old and spool.length > 0)


def new_process(wall_time_s: float) -> str:
    """Return a unique name for a process: its start time, and random digits."""
    return f"{datetime.fromtimestamp(wall_time_s, UTC):%Y%m%dt%H%M%Sz}-{token_hex(4)}"


def spool_root(settings: HistorySettings) -> Path:
    """Return the local folder that all processes with this history and this spool share.

    By default `_spool` in the folder of a local history, which readers of Parquet skip; for other histories, a folder in the system's
    temporary folder.
    """
    location = settings.location or ""
    named_after = hashlib.sha256(location.encode()).hexdigest()[:12]
    if settings.spool is not None:
        return Path(settings.spool) / named_after
    scheme = urlsplit(location).scheme
    if scheme in ("", "file"):
        return Path(urlsplit(location).path if scheme else location) / SPOOL_FOLDER
    return Path(tempfile.gettempdir()) / f"ordering-prober-spool-{os.getuid()}-{named_after}"


# --- runs --------------------------------------------------------------------------------------------------------------------


class HistorySink:
    """Sink that records every run in the history."""

    def __init__(self, writer: HistoryWriter) -> None:
        self._writer = writer

    def begin(self, run: RunBegun) -> HistoryRun:
        """Start the record of a run and return its listener."""
        instance = run.probe_instance
        context = RunContext(
            run_id=run.run_id,
            target=instance.target,
            environment=instance.environment,
            region=instance.region,
            probe=instance.probe,
            vantage=instance.vantage,
            topic=instance.topic,
            rules=run.rules,
            started_at=run.started_at,
            seed=run.seed,
        )
        return HistoryRun(self._writer.begin(context))


class HistoryRun:
    """Listener that records one run, with the checks that count (`RunEnded.checks`), so that later evaluations count the same."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    def event(self, seen: Observation) -> None:
        """Record the next event of the run."""
        self._log.record(seen.event, seen.findings, seen.latency.lagged_s if seen.latency is not None else 0.0)

    def ended(self, end: RunEnded) -> None:
        """Record the end of the run."""
        result = replace(end.result, checks=end.checks)
        self._log.ended(result, end.findings, end.recorded.verified, stopped=end.cut_short)
