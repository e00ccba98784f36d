"""The option `verify --reorder`: measure the order in which the messages of a file arrived, and print it as a table or as JSON.

docs/trace-files.md defines each measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from prober.cli.findings import one_line
from prober.core.events import Event
from prober.ordering.measurement import STREAMS_MAX, MeasuredStream, OrderMeasurement, OrderReport
from prober.ordering.reordering import Summary
from prober.ordering.resequencer import Arrivals
from prober.traces.header import TraceHeader

SHOWN_IN_TEXT: Final = 20
SHOWN_IN_JSON: Final = 100
NAME_WIDTH: Final = 40

_COLUMNS: Final = (
    *("key", "epoch", "subscription"),
    *("deliveries", "in order", "early", "late", "duplicates", "gave up", "waiting", "reordered", "ratio", "extent", "n"),
)
_NAMES: Final = 3
"""Number of columns with names, which are left-aligned."""


@dataclass(frozen=True, slots=True)
class MeasuredOrder:
    """Measurements of one file, and their timeouts in seconds."""

    report: OrderReport
    wait_timeout_s: float
    idle_timeout_s: float


# ----------------------------------------------------------------------------------------------------------------------- text


def order_lines(order: MeasuredOrder) -> Iterator[str]:
    """Return the worst streams as a table, then the measurements that the table omits."""
    streams = order.report.streams
    yield (
        f"  order of the messages by number (a missing one is waited for {order.wait_timeout_s:g} s, "
        f"a stream is forgotten when idle for {order.idle_timeout_s:g} s):"
    )
    if streams:
        yield from _table([_COLUMNS, *(_cells(each) for each in streams[:SHOWN_IN_TEXT]), *_all_together(streams)])
    yield from (f"    {note}" for note in _notes(order.report))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        names = [cell.ljust(width) for cell, width in zip(row[:_NAMES], widths, strict=False)]
        numbers = [cell.rjust(width) for cell, width in zip(row[_NAMES:], widths[_NAMES:], strict=True)]
        yield "    " + "  ".join([*names, *numbers])


def _cells(stream: MeasuredStream) -> Sequence[str]:
    reordering = stream.reordering
    names = (stream.name.key, stream.name.epoch, stream.name.subscription)
    ratio = _ratio(reordering.ratio, reordering.ratio_max)
    degrees = max(reordering.n_reordered, default=0)
    return (
        *map(_short, names),
        *_counts(stream.arrivals),
        f"{reordering.reordered:,}",
        ratio,
        f"{reordering.extent_max:,}",
        str(degrees),
    )


def _all_together(streams: Sequence[MeasuredStream]) -> Iterator[Sequence[str]]:
    if len(streams) == 1:
        return
    summaries = [each.reordering for each in streams]
    reordered, received = (sum(counts) for counts in zip(*((each.reordered, each.received) for each in summaries), strict=True))
    undecided = sum(each.undecided for each in summaries)
    ratio = _ratio(reordered / received, (reordered + undecided) / (received + undecided)) if received else _ratio(0.0, 0.0)
    extent = max(each.extent_max for each in summaries)
    degrees = max((n for each in summaries for n in each.n_reordered), default=0)
    shown = (f"all {len(streams):,} streams", "", "")
    yield *shown, *_counts(_total(streams)), f"{reordered:,}", ratio, f"{extent:,}", str(degrees)


def _counts(arrivals: Arrivals) -> Sequence[str]:
    gave_up = arrivals.gave_up + arrivals.gave_up_early
    shown = (
        arrivals.deliveries, arrivals.in_order, arrivals.early, arrivals.late, arrivals.duplicates, gave_up, arrivals.waiting,
    )  # fmt: skip
    return tuple(f"{count:,}" for count in shown)


def _total(streams: Sequence[MeasuredStream]) -> Arrivals:
    return Arrivals(**{each.name: sum(getattr(stream.arrivals, each.name) for stream in streams) for each in fields(Arrivals)})


def _notes(report: OrderReport) -> Iterator[str]:
    """Return results that do not fit into a table, in words; only those that occurred."""
    total, streams = _total(report.streams), report.streams
    undecided = sum(each.reordering.undecided for each in streams)
    reported = {
        "streams left out here, which did better than those above": len(streams) - SHOWN_IN_TEXT,
        "messages with a number below the first of their stream, neither early nor late": total.before_start,
        "messages that are late or duplicates; so much is missing that it is not known which": total.late_or_duplicate,
        "messages that are reordered or duplicates, likewise; the ratio lies between the two that are shown": undecided,
        "missing messages given up before the timeout, because too many waited": total.gave_up_early,
        "streams forgotten when idle, whose next message was taken for the beginning of a new one": total.forgotten,
        "deliveries not measured, because they have no ordering key": report.without_key,
        "deliveries not measured, because they have no sequence number": report.without_number,
        "deliveries not measured, because nothing with so high a number was published": report.not_published,
        f"deliveries not measured, because only the first {STREAMS_MAX:,} streams are": report.not_followed,
    }
    yield from (f"{words}: {count:,}" for words, count in reported.items() if count > 0)
    if not streams:
        yield "nothing to measure: no delivery has both an ordering key and a sequence number"


def _ratio(low: float, high: float) -> str:
    return f"{low:.2%}" if low == high else f"{low:.2%} to {high:.2%}"


def _short(name: str) -> str:
    name = one_line(name)
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 3] + "..."


# ----------------------------------------------------------------------------------------------------------------------- JSON


_ARRIVALS: Final = (
    *("deliveries", "in_order", "early", "overtook", "waiting", "late", "duplicates", "late_or_duplicate"),
    *("before_start", "gave_up", "gave_up_early", "forgotten"),
)


def order_row(order: MeasuredOrder) -> Mapping[str, object]:
    """Return the field `order` of the object for one file: the worst streams in full, all others in the totals."""
    report, streams = order.report, order.report.streams
    return {
        "wait_timeout_s": order.wait_timeout_s,
        "idle_timeout_s": order.idle_timeout_s,
        "streams_measured": len(streams),
        "total": _arrivals_row(_total(streams))
        | {
            "first_deliveries": sum(each.reordering.received for each in streams),
            "reordered": sum(each.reordering.reordered for each in streams),
            "undecided": sum(each.reordering.undecided for each in streams),
        },
        "worst_streams": [_stream_row(each) for each in streams[:SHOWN_IN_JSON]],
        "streams_omitted": max(0, len(streams) - SHOWN_IN_JSON),
        "not_measured": {
            "without_key": report.without_key,
            "without_number": report.without_number,
            "not_published": report.not_published,
            "not_followed": report.not_followed,
        },
    }


def _stream_row(stream: MeasuredStream) -> Mapping[str, object]:
    return {**stream.name._asdict(), **_arrivals_row(stream.arrivals), "reordering": _summary_row(stream.reordering)}


def _arrivals_row(arrivals: Arrivals) -> dict[str, object]:
    return {name: getattr(arrivals, name) for name in _ARRIVALS}


def _summary_row(reordering: Summary) -> Mapping[str, object]:
    return {
        "first_deliveries": reordering.received,
        "reordered": reordering.reordered,
        "undecided": reordering.undecided,
        "ratio": reordering.ratio,
        "ratio_max": reordering.ratio_max,
        "extent_max": reordering.extent_max,
        "extents": dict(sorted(reordering.extents.items())),
        "extents_beyond": reordering.extents_beyond,
        "n_reordered": dict(sorted(reordering.n_reordered.items())),
        "degrees": {n: reordering.degree(n) for n in sorted(reordering.n_reordered)},
        "late_max_s": reordering.late_max_s,
        "missing": reordering.missing,
        "discontinuities": reordering.discontinuities,
        "reordering_gaps": dict(sorted(reordering.reordering_gaps.items())),
        "reordering_gaps_beyond": reordering.reordering_gaps_beyond,
        "free_run_average": reordering.runs.average,
        "free_run_variation": reordering.runs.variation,
    }


# -------------------------------------------------------------------------------------------------------------------- measuring


class Timeouts(NamedTuple):
    """Timeouts in seconds, above 0: the wait for a missing message, and the silence after which a stream is forgotten."""

    wait_s: float
    idle_s: float


class Measuring:
    """Measures one file's events on their way to the checker."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._measurement: OrderMeasurement | None = None

    def follow(self, events: Iterable[Event], header: TraceHeader) -> Iterator[Event]:
        """Yield the same events; each is measured before. Call it once."""
        start_known = header.rules.subscription_predates_first_publish and header.rules.publishes_recorded
        self._measurement = measurement = OrderMeasurement(*self._timeouts, start_known=start_known)
        for event in events:
            measurement.observe(event)
            yield event

    def report(self) -> MeasuredOrder | None:
        """Return the measurements of the events so far; None if the file could not be read."""
        return None if self._measurement is None else MeasuredOrder(self._measurement.report(), *self._timeouts)
