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

from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from prober.core.events import Delivered, Event, PublishInvoked
from prober.ordering.reordering import ReorderMeter, Summary
from prober.ordering.resequencer import GAPS_MAX, Arrivals, Resequencer

STREAMS_MAX: Final = 10_000
WAITING_MAX: Final = 100_000
"""Number of messages that may wait on all streams; beyond that the stream with the most of them gives its waits up."""
N_MAX: Final = 100
EXTENT_BINS: Final = 100


class StreamName(NamedTuple):
    """The identity of a stream."""

    subscription: str
    key: str
    epoch: str


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


class _Stream(NamedTuple):
    name: StreamName
    resequencer: Resequencer
    meter: ReorderMeter


class OrderMeasurement:
    """The measurement of one history from its events, in recorder order.

    wait_timeout_s      how long a resequencer waits for a missing message, from the arrival of the one that has to wait.
    idle_timeout_s      after how long without activity it forgets a stream; the next message restarts it.
    start_known         False: the subscription may have been made after the first publish of an epoch.
    initial             the first number of every stream, if that is agreed; then numbers may start below 1.
    """

    def __init__(
        self,
        wait_timeout_s: float,
        idle_timeout_s: float,
        *,
        start_known: bool = True,
        streams_max: int = STREAMS_MAX,
        initial: int | None = None,
    ) -> None:
        """Create a measurement. Raises ValueError for a timeout that is not positive."""
        if not (wait_timeout_s > 0 and idle_timeout_s > 0):
            raise ValueError("timeouts must be positive")
        self._timeouts = wait_timeout_s, idle_timeout_s
        self._start_known = start_known
        self._initial = initial
        self._streams_max = streams_max
        self._streams: dict[StreamName, _Stream] = {}
        self._waiting = 0
        self._published: dict[tuple[str, str], tuple[int, int]] = {}  # the lowest and the highest number of an epoch of a key
        self._without_key = self._without_number = self._not_published = self._not_followed = 0
        self._now = self._latest_t = -inf

    def observe(self, event: Event) -> None:
        """Measure the next event."""
        self._latest_t = event.t
        if isinstance(event, Delivered):
            self._deliver(event)
        elif isinstance(event, PublishInvoked):
            self._publish(event)

    def report(self) -> OrderReport:
        """Return the measurements at the time of the latest event; waits that end later have not ended."""
        self._advance(self._latest_t)
        measured = [MeasuredStream(each.name, each.resequencer.arrivals, each.meter.summary()) for each in self._streams.values()]
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
        elif event.seq < 1 and self._initial is None:
            self._without_number += 1
        elif event.seq > self._published.get((event.key, event.epoch), (0, inf))[1]:
            self._not_published += 1
        elif (stream := self._stream(event)) is None:
            self._not_followed += 1
        else:
            stream.meter.observe(event.seq, event.t)
            self._arrive(stream.resequencer, event)

    def _arrive(self, resequencer: Resequencer, event: Delivered) -> None:
        waited = resequencer.arrivals.waiting
        self._now = max(self._now, event.t)
        resequencer.arrive(event.seq, self._now)
        self._waiting += resequencer.arrivals.waiting - waited
        if self._waiting > WAITING_MAX:
            self._advance(event.t)
            if self._waiting > WAITING_MAX:
                most = max(self._streams.values(), key=lambda each: each.resequencer.arrivals.waiting).resequencer
                self._waiting -= most.arrivals.waiting
                most.give_up()

    def _advance(self, t: float) -> None:
        self._now = max(self._now, t)
        for stream in self._streams.values():
            stream.resequencer.advance(self._now)
        self._waiting = sum(stream.resequencer.arrivals.waiting for stream in self._streams.values())

    def _stream(self, event: Delivered) -> _Stream | None:
        """Return the stream of a delivery; None if the maximum of streams is followed already."""
        name = StreamName(event.subscription, event.key, event.epoch)
        if name not in self._streams and len(self._streams) < self._streams_max:
            first = self._first_number(event)
            meter = ReorderMeter(first, n_max=N_MAX, gaps=GAPS_MAX, extent_bins=EXTENT_BINS)
            resequencer = Resequencer(event.seq if first is None else first, *self._timeouts)
            self._streams[name] = _Stream(name, resequencer, meter)
        return self._streams.get(name)

    def _first_number(self, event: Delivered) -> int | None:
        if self._initial is not None or not self._start_known:
            return self._initial
        if (published := self._published.get((event.key, event.epoch))) is not None:
            return published[0]
        return 1 if len(self._published) < self._streams_max else None  # its publishes could not be kept
