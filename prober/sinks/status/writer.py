"""Writer of the status store that never delays a probe.

    writer = StatusWriter(store, ProberIdentity("prober-0", "1.2.3", wall_s()), RetentionPolicy(...), dropped=..., failed=...)
    writer.start()
    writer.ended(probe instance, result, ended_at, recorded)   # on the event loop, for each run
    writer.heartbeat(snapshot)                       # on the event loop, every few seconds
    writer.close()

A thread creates the evidence, writes, and applies the retention. While the store is down, the thread retries at growing intervals.
Waiting entries beyond the bounds are dropped, the oldest first, and counted. A transaction with an unknown end is repeated, which changes
nothing if it had been committed. Records that the database does not accept are dropped at once, so that they do not block the others.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from secrets import token_hex
from typing import Final

from prober.clock import monotonic_s, wall_s
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory, RunBegun, RunEnded
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.status.database import NotStorable, StatusError
from prober.sinks.status.entries import EndedRun, ProberIdentity, entry_of
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.records import Entry
from prober.sinks.status.retention import RetentionPolicy
from prober.sinks.status.slices import Series, Slices, SliceSpan, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.objectives import SliCounts

ENDED_WAITING_MAX: Final = 1_000
EVENTS_WAITING_MAX: Final = 400_000
"""Maximum number of events of runs that wait for their evidence. Beyond it, a further run is stored without evidence."""
BYTES_WAITING_MAX: Final = 64 * 2**20
"""Approximate maximum size of the runs and findings that wait for the store."""
BATCH_MAX: Final = 100
MAKE_MAX_S: Final = 1.0
"""Time limit of creating evidence before finished entries and the newest heartbeat are written."""
RETRY_FIRST_S: Final = 0.5
RETRY_MAX_S: Final = 10.0
TIDY_EVERY_S: Final = 600.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StatusWriterState:
    """State of the writer.

    dropped         number of dropped runs and findings.
    slices_dropped  number of dropped slices of objectives' counts.
    error           reason why the latest attempt failed; empty if it did not.
    """

    dropped: int
    slices_dropped: int
    error: str

    @property
    def troubles(self) -> tuple[str, ...]:
        """Troubles, one line each, for the status page."""
        dropped = {"runs and findings are": self.dropped, "counts of objectives are": self.slices_dropped}
        missing = (f"{count:,} {what} missing from the status store" for what, count in dropped.items() if count)
        return (*([f"the status store cannot be written: {self.error}"] if self.error else []), *missing)


class StatusRun:
    """Sink of one run: hands the recorded run to the writer at its end."""

    def __init__(self, writer: StatusWriter, instance: ProbeInstance) -> None:
        self._writer, self._instance = writer, instance

    def event(self, seen: Observation) -> None:
        """Do nothing: the recorder keeps the events."""

    def ended(self, end: RunEnded) -> None:
        """Queue the run for writing."""
        if end.is_counted:
            self._writer.ended(self._instance, end.result, end.ended_at, end.recorded)


class StatusWriter:
    """See the module. `ended` and `heartbeat` never wait and never raise; call them on one thread, that of the event loop."""

    def __init__(
        self,
        store: StatusStore,
        prober: ProberIdentity,
        retention: RetentionPolicy,
        *,
        dropped: Callable[[int], None] = lambda _count: None,
        failed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic_s,
        wall_clock: Callable[[], float] = wall_s,
    ) -> None:
        """`dropped` gets the number of dropped runs and findings.

        `failed` is called after a failed attempt. Both are called from any thread.
        """
        self._store, self._prober, self._retention = store, prober, retention
        self._clock, self._wall_clock = clock, wall_clock
        self._dropped, self._failed = dropped, failed
        self._dropped_count, self._error = 0, ""
        self._lock = threading.Lock()  # guards what both sides touch; held for moments only
        self._ended: deque[EndedRun] = deque()
        self._events_waiting = 0
        self._reported: StatusSnapshot | None = None
        self._slices = Slices(f"{prober.instance}-{token_hex(4)}")
        self._made: EndedRun | None = None
        self._entries: deque[Entry] = deque()
        self._bytes_waiting = 0
        self._prepared = False
        self._tidy_due_t = clock() + RETRY_MAX_S
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name="status-writer", daemon=True)

    # --- the event loop ------------------------------------------------------------------------------------------------------

    def begin(self, run: RunBegun) -> StatusRun:
        """Return the sink of a run; the run is written after its end, if it counts."""
        return StatusRun(self, run.probe_instance)

    def ended(self, instance: ProbeInstance, result: RunResult, ended_at: float, recorded: KeptHistory | None = None) -> None:
        """Queue a run that ended. `recorded` has the events for the evidence of its findings; they must not change any more."""
        offset_s = self._wall_clock() - self._clock()
        with self._lock:
            if recorded is not None and result.findings and self._events_waiting + len(recorded.events) > EVENTS_WAITING_MAX:
                recorded = None
            elif recorded is not None and not result.findings:
                recorded = replace(recorded, events=())
            if len(self._ended) >= ENDED_WAITING_MAX:
                self._drop(1 + len(self._take_ended().result.findings))
            self._ended.append(EndedRun(instance, result, ended_at, offset_s, recorded))
            self._events_waiting += _events(self._ended[-1])
        self._wake.set()

    def heartbeat(self, snapshot: StatusSnapshot) -> None:
        """Queue the state of all probe instances, in place of the state before."""
        with self._lock:
            self._reported = snapshot
            for slo in snapshot.slos:
                series = Series(slo.target, slo.objective.name, definition_of(slo.objective))
                self._slices.record(series, slo.total, snapshot.at)
        self._wake.set()

    def is_waiting(self, run_id: str) -> bool:
        """Return whether a run has ended and is not written yet."""
        with self._lock:
            names = [one.result.run_id for one in self._ended] + [entry.run.run_id for entry in self._entries]
            names += [self._made.result.run_id] if self._made else []
            return run_id in names

    def state(self) -> StatusWriterState:
        """State of the writer."""
        with self._lock:
            return StatusWriterState(self._dropped_count, self._slices.dropped, self._error)

    # --- the thread ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; it ends with `close`, or with the process."""
        self._thread.start()

    def close(self, timeout_s: float = 10.0) -> StatusWriterState:
        """Write the waiting entries, without missing evidence, and end. Entries not stored within `timeout_s` are lost and counted."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        with self._lock:
            waiting = [*self._ended, *([self._made] if self._made else [])]
            lost = len(waiting) + len(self._entries)
            if lost:
                _log.warning("the status store did not take %d runs before the prober stopped: they are missing from it", lost)
                findings = sum(len(one.result.findings) for one in waiting) + sum(len(one.findings) for one in self._entries)
                self._drop(lost + findings)
        return self.state()

    def leave(self, timeout_s: float = 10.0) -> StatusWriterState:
        """Close, and record in the store, if it can be reached, that this prober has stopped.

        Its probe instances then no longer count as missing.
        """
        state = self.close(timeout_s)
        try:
            if self._prepared:
                self._store.leave(self._prober.instance)
        except StatusError as error:
            _log.warning("the status store is not notified that this prober has stopped: %s", error)
        return state

    def _keep_writing(self) -> None:
        pause_s = RETRY_FIRST_S
        while not self._stopping.is_set():
            self._wake.wait(TIDY_EVERY_S)
            self._wake.clear()
            while not self.write() and not self._stopping.wait(pause_s):
                pause_s = min(2 * pause_s, RETRY_MAX_S)
            pause_s = RETRY_FIRST_S
        self.write()

    def write(self) -> bool:
        """Write all waiting entries; False if the store failed, and they stay. For one thread at a time."""
        try:
            if not self._prepared:
                self._store.prepare()
                self._prepared = True
            refused = self._write_reported()  # first: evidence takes a while, and a FAIL must not wait for it
            while self._make_entries(MAKE_MAX_S):
                self._write_entries()
                refused = self._write_reported() or refused
            self._tidy()
        except StatusError as error:
            self._make_entries()  # waiting runs take less memory with their evidence made
            self._prepared = False  # the store may be another one afterwards
            self._note_failure(str(error))
            return False
        except Exception as fault:  # a mistake of ours must not end the thread
            self._note_failure(f"internal error: {fault!r}")
            _log.exception("internal error in the writer of the status store")
            return False
        self._error = refused
        return True

    def _make_entries(self, seconds: float = inf) -> bool:
        """Create entries of ended runs for about this many seconds; False: no entry waits to be written."""
        until_t = self._clock() + seconds
        while self._make_entry() and self._clock() < until_t:
            pass
        return bool(self._entries)

    def _make_entry(self) -> bool:
        """Create the entry of the run that ended first, with its evidence; False: there is none."""
        with self._lock:
            if not self._ended:
                return False
            ended = self._made = self._take_ended()
            waiting = len(self._ended)
        try:
            entry = entry_of(ended, self._prober, stopping=self._stopping.is_set, waiting=waiting)
        except Exception:  # as above; the runs behind it go on
            _log.exception("internal error: run %s cannot be kept in the status store", ended.result.run_id)
            with self._lock:
                self._made = None
                self._drop(1 + len(ended.result.findings))
            return True
        with self._lock:
            self._made = None
            self._entries.append(entry)
            self._bytes_waiting += entry.size
            while self._bytes_waiting > BYTES_WAITING_MAX:
                self._drop_entry()
        return True

    def _write_reported(self) -> str:
        """Write the heartbeat; return why the store refused it, or an empty text."""
        reported, slices = self._take_reported()
        if reported is None:
            return ""
        identity = self._prober
        prober = ProberRecord(identity.instance, identity.version, identity.started_at, reported.at, reported.troubles)
        for mine in reported.probers:
            prober.configuration, prober.own, prober.streams = mine.configuration, mine.own, mine.streams
        try:
            self._store.heartbeat(prober, reported.probe_instances, self._slices.as_slices(slices))
        except NotStorable as refused:
            self._note_failure(str(refused))
            return str(refused)
        except StatusError:
            with self._lock:
                self._reported = self._reported or reported
                self._slices.put_back(slices)
            raise
        return ""

    def _take_reported(self) -> tuple[StatusSnapshot | None, dict[SliceSpan, SliCounts]]:
        with self._lock:
            reported, self._reported = self._reported, None
            return reported, self._slices.take()

    def _write_entries(self) -> None:
        batch = list(islice(self._entries, BATCH_MAX))
        try:
            self._store.record(batch, self._wall_clock())
        except NotStorable:
            self._write_one_by_one(batch)
            return
        self._confirm(batch)

    def _write_one_by_one(self, batch: list[Entry]) -> None:
        for entry in batch:
            try:
                self._store.record([entry], self._wall_clock())
            except NotStorable as refused:
                self._note_failure(f"run {entry.run.run_id} is refused: {refused}")
                with self._lock:
                    self._drop_entry()
            else:
                self._confirm([entry])

    def _confirm(self, batch: list[Entry]) -> None:
        with self._lock:
            for entry in batch:
                self._entries.popleft()
                self._bytes_waiting -= entry.size

    def _tidy(self) -> None:
        if self._clock() < self._tidy_due_t:
            return
        self._tidy_due_t = self._clock() + RETRY_MAX_S
        if self._store.tidy(self._retention, self._wall_clock()).done:
            self._tidy_due_t = self._clock() + TIDY_EVERY_S

    def _note_failure(self, problem: str) -> None:
        if problem != self._error:
            _log.warning("the status store is not written: %s", problem)
        self._error = problem
        self._failed()

    # --- with the lock held --------------------------------------------------------------------------------------------------

    def _take_ended(self) -> EndedRun:
        ended = self._ended.popleft()
        self._events_waiting -= _events(ended)
        return ended

    def _drop_entry(self) -> None:
        entry = self._entries.popleft()
        self._bytes_waiting -= entry.size
        self._drop(1 + len(entry.findings))

    def _drop(self, count: int) -> None:
        self._dropped_count += count
        self._dropped(count)


def _events(ended: EndedRun) -> int:
    return 0 if ended.recorded is None else len(ended.recorded.events)
