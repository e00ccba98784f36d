"""Records of one run, buffered for the spool.

The event loop fills the log, the flushing thread empties it. The loop only appends to lists, the thread only removes from their front. Both
are single operations of the interpreter, so neither waits for the other. The buffer is bounded: beyond the limit, events are dropped and
counted, and a later `Interrupted` marks the gap for the checker.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from prober.core.events import Event, Interrupted
from prober.core.findings import Finding
from prober.core.guarded_verifier import RecordedFinding
from prober.runs.result import RunResult
from prober.sinks.history.encoding import (
    EventCounts,
    EventEncoder,
    Origin,
    RunContext,
    as_stream,
    beginning_row,
    ending_row,
    finding_row,
    message_batches,
    rows_batch,
)
from prober.sinks.history.messages import MessageRows
from prober.sinks.history.schema import FINDINGS, RUNS, Table
from prober.slo.objectives import whole_micros

WAITING_MAX: Final = 200_000
"""Maximum number of events and findings that wait for the spool, of all runs together."""

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")


@dataclass(slots=True)
class Meter:
    """Numbers of records of all runs: `took` by the event loop, `saved` (or lost) by the flushing thread. The rest waits for the spool."""

    dropped: Callable[[int], None]
    took: int = 0
    saved: int = 0
    dropped_count: int = 0

    def drop(self, count: int) -> None:
        """Count dropped records."""
        self.dropped_count += count
        self.dropped(count)


@dataclass(slots=True)
class Taken:
    """A part of a run for the spool: frames, and the number of events and findings in them."""

    frames: list[bytes] = field(default_factory=list)
    items: int = 0


@dataclass(frozen=True, slots=True)
class _End:
    """Result of a run, with the time of its end on the recorder's clock."""

    t: float
    result: RunResult
    counts: EventCounts


class RunLog:
    """Log of one run. `record` can be a recorder's listener."""

    def __init__(self, run: RunContext, origin: Origin, meter: Meter, clock: Callable[[], float]) -> None:
        self.run = run
        self._clock = clock
        self._origin = origin
        self._meter = meter
        self._encoder = EventEncoder(run, origin)
        self._count = 0
        self._dropped = 0
        self._interrupted = False
        self._lost = False
        """Whether the history lacks any event of the run."""
        self._over = False
        # Shared by the event loop and the flushing thread.
        self._events: list[Event] = []
        self._findings: list[RecordedFinding] = []
        self._began: list[Mapping[str, object]] = [beginning_row(run, origin, clock())]
        self._end: _End | None = None
        self._jumps: deque[tuple[int, int]] = deque()
        self._lagged_s: dict[int, float] = {}
        # For the flushing thread only.
        self._taken = 0
        self._next = 1
        self._messages: MessageRows | None = MessageRows(run.run_id, run.rules, origin.clock_offset_s)

    def record(self, event: Event, findings: Iterable[Finding] = (), lagged_s: float = 0.0) -> None:
        """Record the next event of the run and its findings. Never waits, never raises; on the event loop only.

        `lagged_s`: seconds of event loop lag in the latency that the event shows.
        """
        self._count += 1
        meter = self._meter
        if meter.took - meter.saved >= WAITING_MAX:
            self._drop(findings)
            return
        if self._interrupted:
            self._resume(event.t)
        meter.took += 1
        if lagged_s:
            self._lagged_s[self._count] = lagged_s
        self._events.append(event)
        if findings:
            self._keep(tuple(findings))

    def ended(
        self, result: RunResult, late: Sequence[Finding] = (), verified_events: int | None = None, *, stopped: bool = False
    ) -> None:
        """Record the end of the run; `late` are the findings that only the end decided.

        `verified_events`: number of events after which the recorder stopped verification; None if it verified all. `stopped`: the prober
        was stopped.
        """
        self._keep(late)
        counts = EventCounts(self._count, self._dropped, verified_events, stopped=stopped)
        self._end = _End(self._clock(), result, counts)
        self.release()

    def release(self) -> None:
        """Close the log. Without `ended` before, the run counts as cut short."""
        self._over = True

    def _keep(self, findings: Sequence[Finding]) -> None:
        self._meter.took += len(findings)
        self._findings.extend(RecordedFinding(finding, self._count) for finding in findings)

    def _drop(self, findings: Iterable[Finding]) -> None:
        self._dropped += 1
        self._interrupted = self._lost = True
        self._meter.drop(1 + len(tuple(findings)))

    def _resume(self, t: float) -> None:
        """Append an interruption with the number of the last dropped event."""
        self._jumps.append((self._count - 1 - self._dropped, self._count - 1))
        self._dropped -= 1
        self._interrupted = False
        self._meter.took += 1
        self._events.append(Interrupted(t))

    # --- the flushing thread -------------------------------------------------------------------------------------------------

    def take(self) -> Taken:
        """Take all new records as frames. Records that cannot be encoded are dropped and counted."""
        taken = Taken()
        over, end = self._over, self._end  # before the events: if the run is over, these are the last
        for first, events in self._pieces(_front(self._events)):
            taken.items += len(events)
            lagged_s = self._take_lags(range(first, first + len(events)))
            taken.frames += self._event_frames(first, events, lagged_s)
            self._follow(first, events, lagged_s)
        findings, began = _front(self._findings), _front(self._began)
        taken.items += len(findings)
        found = (finding_row(made, self.run, self._origin) for made in findings)
        taken.frames += self._row_frames(FINDINGS, found, len(findings)) + self._row_frames(RUNS, began, len(began))
        if end is not None:
            taken.frames += self._end_frames(end)
            self._end = None
        if over:
            self._messages = None
        return taken

    @property
    def done(self) -> bool:
        """Whether all records are taken and no more can follow."""
        return self._over and not (self._events or self._findings or self._began or self._end)

    def _take_lags(self, numbers: range) -> Mapping[int, float]:
        if not self._lagged_s:
            return {}
        return {number: self._lagged_s.pop(number) for number in numbers if number in self._lagged_s}

    def _follow(self, first: int, events: list[Event], lagged_s: Mapping[int, float]) -> None:
        """Add the events to the messages of the run, as long as their rows can be written."""
        if self._messages is None:
            return
        try:
            for number, event in enumerate(events, first):
                self._messages.add(event, lagged_s.get(number, 0.0))
        except Exception:
            _log.exception("internal error: the messages of run %s cannot be written to the history", self.run.run_id)
            self._messages = None

    @property
    def messages(self) -> int:
        """Number of messages and redeliveries of the run in memory."""
        return 0 if self._messages is None else self._messages.size

    def give_up_messages(self) -> None:
        """Discard the messages of the run; their rows will not be written."""
        self._messages = None

    def _end_frames(self, end: _End) -> list[bytes]:
        """Return the frames of the messages, then the frame of the run's end.

        Without the row of the end, readers ignore messages of which only a part has reached the disk.
        """
        messages = None if self._messages is None or self._lost else self._message_frames(self._messages, end)
        frames, count = messages or ([], None)
        counts = replace(end.counts, messages=count)
        row = ending_row(self.run, self._origin, end.t, end.result, counts)
        return [*frames, *self._row_frames(RUNS, [row], 1)]

    def _message_frames(self, messages: MessageRows, end: _End) -> tuple[list[bytes], int] | None:
        """Return the message rows of an ended run as frames, with their number; None if they cannot be encoded."""
        rows = messages.rows(whole_micros(end.t + self._origin.clock_offset_s))
        try:
            batches = list(message_batches(rows, self.run, self._origin))
            return [as_stream(batch) for batch in batches], sum(batch.num_rows for batch in batches)
        except Exception:
            _log.exception("internal error: the messages of run %s cannot be written to the history", self.run.run_id)
            return None

    def _pieces(self, events: list[Event]) -> Iterator[tuple[int, list[Event]]]:
        """Yield the events in parts with consecutive numbers, each part with its first number."""
        begin = 0
        while self._jumps and self._jumps[0][0] < self._taken + len(events):
            position, number = self._jumps.popleft()
            end = position - self._taken
            if end > begin:
                yield self._next, events[begin:end]
            begin, self._next = end, number
        if len(events) > begin:
            yield self._next, events[begin:]
        self._next += len(events) - begin
        self._taken += len(events)

    def _event_frames(self, first: int, events: list[Event], lagged_s: Mapping[int, float]) -> list[bytes]:
        try:
            return [as_stream(batch) for batch in self._encoder.batches(first, events, lagged_s)]
        except Exception:  # internal error: record the gap and continue
            _log.exception("internal error: events of run %s cannot be written to the history", self.run.run_id)
            self._meter.drop(len(events))
            self._lost = True
            hole = self._encoder.batches(first + len(events) - 1, [Interrupted(events[-1].t)])
            return [as_stream(batch) for batch in hole]

    def _row_frames(self, table: Table, rows: Iterable[Mapping[str, object]], count: int) -> list[bytes]:
        try:
            return [as_stream(rows_batch(table, rows))] if count else []
        except Exception:
            _log.exception("internal error: %s of run %s cannot be written to the history", table.name, self.run.run_id)
            self._meter.drop(count)
            return []


def _front(waiting: list[_Item]) -> list[_Item]:
    """Remove and return the present items of a list to which another thread appends."""
    count = len(waiting)
    front = waiting[:count]
    del waiting[:count]
    return front
