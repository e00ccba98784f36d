"""The order of deliveries in a recorded history, by stream: the actions of a resequencer, and the metrics of RFC 4737.

A *stream* is one epoch of one ordering key on one subscription, since only there one publisher counts 1, 2, 3, ... The subscriber
does not matter: a key that moves between subscribers stays one stream, in the order in which the recorder saw it. Each stream
goes through a `Resequencer` and a `ReorderMeter`, whose module docstrings define all terms here. This module describes and never verifies:
numbers come out of order for legal reasons too (a publisher that tried again, a nacked message with all that follow it).

The first number of a stream is the lowest that was recorded as published by the time of its first delivery, and 1 if no publish was
recorded. It is unknown, and the first delivery is the start, if the subscription may have been created later than the epoch.

Not measured, only counted: deliveries without an ordering key; those without a number (it counts from 1); and those with a number
above all that were published in their epoch, if its publishes were recorded, since one such claim would make all that follow look late.

Memory is bounded by the number of streams that are followed, and for each by the bounds of its two instruments. Deliveries on other streams
are counted as not measured.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from prober.core.events import Delivered, Event, PublishInvoked
from prober.ordering.reordering import ReorderMeter, Summary
from prober.ordering.resequencer import (
    ArrivalOutcome,
    EpochEnded,
    GaveUp,
    OrderRange,
    Output,
    Reason,
    Refused,
    Released,
    Resequencer,
    ResequencerLimits,
    Waiting,
)

STREAMS_MAX: Final = 10_000
GAPS_MAX: Final = 100
N_MAX: Final = 100
EXTENT_BINS: Final = 100


class StreamName(NamedTuple):
    """The identity of a stream."""

    subscription: str
    key: str
    epoch: str


@dataclass(slots=True)
class Arrivals:
    """Deliveries by outcome, as a resequencer with timeouts classifies them.

    Each field counts deliveries unless its row names something else.

    deliveries         all that were measured: the sum of in_order, early, late, duplicates, late_or_duplicate and before_start.
    in_order           the next expected message.
    early              an earlier message was missing, so it had to wait.
    overtook           of the early ones: its wait ended by timeout, and it was released before the missing ones.
    waiting            of the early ones: its wait had not ended when the history did.
    late               received after it had been given up.
    duplicates         its number had been received before.
    late_or_duplicate  either of the two; too many numbers were given up to remember which.
    before_start       its number is below the first of its stream.
    gave_up            missing numbers that were given up because a wait timed out.
    gave_up_early      missing numbers that were given up because too many messages waited at once.
    forgotten          how often the stream was idle for so long that it restarted from its first number.
    released           released messages.
    """

    deliveries: int = 0
    early: int = 0
    overtook: int = 0
    late: int = 0
    duplicates: int = 0
    late_or_duplicate: int = 0
    before_start: int = 0
    gave_up: int = 0
    gave_up_early: int = 0
    forgotten: int = 0
    released: int = 0

    @property
    def in_order(self) -> int:
        """The number of deliveries without the early and the refused ones."""
        return self.deliveries - self.early - self.late - self.duplicates - self.late_or_duplicate - self.before_start

    @property
    def waiting(self) -> int:
        """The number of early messages that were not released; every in-order message was released at once."""
        return self.in_order + self.early - self.released

    def take(self, output: Output[None]) -> None:
        """Count one output of the resequencer of this stream."""
        match output:
            case Waiting():
                self.early += 1
            case Released():
                self.released += 1
                self.overtook += output.outcome is ArrivalOutcome.OVERTOOK
            case Refused():
                self._refused(output.outcome)
            case GaveUp(first=first, last=last, reason=Reason.TIMEOUT):
                self.gave_up += last - first + 1
            case GaveUp(first=first, last=last):
                self.gave_up_early += last - first + 1
            case EpochEnded():
                self.forgotten += 1
            case _:  # the beginning of an epoch; completion, which needs a last number
                pass

    def _refused(self, outcome: ArrivalOutcome) -> None:
        self.late += outcome is ArrivalOutcome.LATE
        self.duplicates += outcome is ArrivalOutcome.DUPLICATE
        self.late_or_duplicate += outcome is ArrivalOutcome.LATE_OR_DUPLICATE
        self.before_start += outcome is ArrivalOutcome.BEFORE_START


class MeasuredStream(NamedTuple):
    """A stream at the end of the history."""

    name: StreamName
    arrivals: Arrivals
    reordering: Summary

    @property
    def badness(self) -> tuple[float, int, int, int]:
        """The sort key of streams: reordered ratio, then numbers given up, then extent, then length."""
        arrivals, reordering = self.arrivals, self.reordering
        return reordering.ratio_max, arrivals.gave_up + arrivals.gave_up_early, reordering.extent_max, arrivals.deliveries


@dataclass(frozen=True, slots=True)
class OrderReport:
    """All streams, the worst first, and the number of unmeasured deliveries, by reason.

    without_key     no ordering key, so their order is not guaranteed.
    without_number  no sequence number.
    not_published   the number is above all that were published in the epoch so far.
    not_followed    on streams beyond the first `STREAMS_MAX`.
    """

    streams: tuple[MeasuredStream, ...] = ()
    without_key: int = 0
    without_number: int = 0
    not_published: int = 0
    not_followed: int = 0

    @property
    def received(self) -> int:
        """The arrivals of all streams that were in order or reordered."""
        return sum(each.reordering.received for each in self.streams)

    @property
    def reordered_ratio(self) -> float:
        """The reordered share (RFC 4737) of the received messages. Raises ZeroDivisionError without any."""
        return sum(each.reordering.reordered for each in self.streams) / self.received

    @property
    def extent_max(self) -> int:
        """The largest reordering extent (RFC 4737) of all streams; 0 without any."""
        return max((each.reordering.extent_max for each in self.streams), default=0)


@dataclass(slots=True)
class _Stream:
    name: StreamName
    bounds: OrderRange
    meter: ReorderMeter
    arrivals: Arrivals = field(default_factory=Arrivals)


class OrderMeasurement:
    """The measurement of one history from its events, in recorder order.

    wait_timeout_s      how long a resequencer waits for a missing message, from the arrival of the one that has to wait.
    idle_timeout_s      after how long without activity it forgets a stream; the next message restarts it.
    start_known         False: the subscription may have been made after the first publish of an epoch.
    bounds              the first and the last number of every stream, if these are agreed; then numbers may start below 1.
    """

    def __init__(
        self,
        wait_timeout_s: float,
        idle_timeout_s: float,
        *,
        start_known: bool = True,
        streams_max: int = STREAMS_MAX,
        bounds: OrderRange | None = None,
    ) -> None:
        """Create a measurement. Raises ValueError for a timeout that is not positive."""
        limits = ResequencerLimits(wait_timeout_s, idle_timeout_s, groups=streams_max, gaps_per_group=GAPS_MAX)
        self._resequencer: Resequencer[None] = Resequencer(limits)
        self._start_known = start_known
        self._bounds = bounds
        self._streams_max = streams_max
        self._streams: dict[Hashable, _Stream] = {}
        self._published: dict[tuple[str, str], tuple[int, int]] = {}  # the lowest and the highest number of an epoch of a key
        self._without_key = self._without_number = self._not_published = self._not_followed = 0
        self._latest_t = -inf

    def observe(self, event: Event) -> None:
        """Measure the next event."""
        self._latest_t = event.t
        if isinstance(event, Delivered):
            self._deliver(event)
        elif isinstance(event, PublishInvoked):
            self._publish(event)

    def report(self) -> OrderReport:
        """Return the measurements at the time of the latest event; waits that end later have not ended."""
        self._count(self._resequencer.advance(self._latest_t))
        measured = [MeasuredStream(each.name, each.arrivals, each.meter.summary()) for each in self._streams.values()]
        measured.sort(key=lambda each: each.name)
        measured.sort(key=lambda each: each.badness, reverse=True)
        not_measured = self._without_key, self._without_number, self._not_published, self._not_followed
        return OrderReport(tuple(measured), *not_measured)

    def _publish(self, event: PublishInvoked) -> None:
        source, seq = (event.key, event.epoch), event.seq
        if source in self._published or len(self._published) < self._streams_max:
            lowest, highest = self._published.get(source, (seq, seq))
            self._published[source] = min(lowest, seq), max(highest, seq)

    def _deliver(self, event: Delivered) -> None:
        if not event.key:
            self._without_key += 1
        elif event.seq < 1 and self._bounds is None:
            self._without_number += 1
        elif event.seq > self._published.get((event.key, event.epoch), (0, inf))[1]:
            self._not_published += 1
        elif (stream := self._stream(event)) is None:
            self._not_followed += 1
        else:
            stream.arrivals.deliveries += 1
            stream.meter.observe(event.seq, event.t)
            self._count(self._resequencer.arrive(event.t, stream.name, event.seq, None, stream.bounds))

    def _stream(self, event: Delivered) -> _Stream | None:
        """Return the stream of a delivery; None if the maximum of streams is followed already."""
        name = StreamName(event.subscription, event.key, event.epoch)
        if name not in self._streams and len(self._streams) < self._streams_max:
            first = self._first_number(event)
            meter = ReorderMeter(first, n_max=N_MAX, gaps=GAPS_MAX, extent_bins=EXTENT_BINS)
            self._streams[name] = _Stream(name, self._bounds or OrderRange(event.seq if first is None else first), meter)
        return self._streams.get(name)

    def _first_number(self, event: Delivered) -> int | None:
        if self._bounds is not None:
            return self._bounds.initial
        if not self._start_known:
            return None
        if (published := self._published.get((event.key, event.epoch))) is not None:
            return published[0]
        return 1 if len(self._published) < self._streams_max else None  # its publishes could not be kept

    def _count(self, outputs: list[Output[None]]) -> None:
        for output in outputs:
            self._streams[output.group].arrivals.take(output)
