"""What a history counts for objectives about publishes and first receipts, event by event, by the rules of `prober.slo.indicators`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from prober.core.findings import FAILING
from prober.probes.catalogue import DISTURBED
from prober.sinks.history.schema import LAGGED
from prober.slo.counts import OVERDUE
from prober.slo.indicators import Indicator
from prober.slo.objectives import DEFAULTS, SliCounts

Row = dict[str, Any]
THRESHOLDS_S: Final = {one.indicator: one.threshold_s or 0.0 for one in DEFAULTS}
GOOD, BAD, UNDECIDED = range(3)


def rows_of(history: Path, table: str) -> list[Row]:
    """All rows of a table."""
    rows: list[Row] = pq.read_table(history / table, partitioning=None).to_pylist()
    return rows


@dataclass
class Message:
    """What its events say: when it was to be sent, how its publishes ended, and when it was confirmed and received first.

    lags   for how long of the time to its confirmation, and to its receipt, the prober lagged.
    """

    run_id: str
    key: str
    intended: float
    attempts: int = 0
    confirmations: int = 0
    refusals: int = 0
    confirmed: float | None = None
    received: float | None = None
    lags: tuple[float, float] = (0.0, 0.0)


def counted(history: Path, since: float, until: float) -> dict[Indicator, SliCounts]:
    """The messages that were to be sent in that time, and the runs that ended in it, whatever their target."""
    runs = {row["run_id"]: row for row in rows_of(history, "runs")}
    overdue = {
        (row["run_id"], row["key"])
        for row in rows_of(history, "findings")
        if row["kind"] in set(OVERDUE)
        and row["status"] in set(FAILING)
        and row["subscription"] == runs[row["run_id"]]["subscription"]
    }
    totals: Counter[tuple[Indicator, int]] = Counter(_checks(history, since, until))
    for message in _messages(history, {run_id: row["subscription"] for run_id, row in runs.items()}):
        if since <= message.intended < until:
            for indicator, place, number in _outcomes(message, is_overdue=(message.run_id, message.key) in overdue):
                if runs[message.run_id]["probe"] not in DISTURBED.get(indicator, ()):
                    totals[indicator, place] += number
    indicators = {indicator for indicator, _ in totals}
    return {one: SliCounts(*(totals[one, place] for place in (GOOD, BAD, UNDECIDED))) for one in indicators}


def _checks(history: Path, since: float, until: float) -> Mapping[tuple[Indicator, int], int]:
    totals: Counter[tuple[Indicator, int]] = Counter()
    for row in rows_of(history, "runs"):
        if row["verdict"] is not None and since <= row["time"].timestamp() < until:
            for check in row["checks"]:
                for place, name in enumerate(("good", "bad", "undecided")):
                    totals[Indicator(check["indicator"]), place] += check[name]
    return totals


def _messages(history: Path, subscription_of: Mapping[str, str]) -> Iterable[Message]:
    """Those that runs published themselves, from their events in order. They are received on the first subscription of their run."""
    found: dict[tuple[str, str, int], Message] = {}
    for row in sorted(rows_of(history, "events"), key=lambda row: (row["run_id"], row["number"])):
        name, at = (row["run_id"], row["key"], row["seq"]), row["time"].timestamp()
        match row["event"]:
            case "publish":
                late_s = 0.0 if row["intended_t"] is None else row["t"] - row["intended_t"]
                found.setdefault(name, Message(row["run_id"], row["key"], at - late_s)).attempts += 1
            case "published":
                message = found[name]
                message.confirmations += 1
                if message.confirmed is None:
                    message.confirmed, message.lags = at, (row[LAGGED] or 0.0, message.lags[1])
            case "publish_failed" | "publish_unknown":
                found[name].refusals += 1
            case "delivered" if row["epoch"] == row["run_id"] and row["subscription"] == subscription_of[row["run_id"]]:
                if name in found and found[name].received is None:
                    found[name].received, found[name].lags = at, (found[name].lags[0], row[LAGGED] or 0.0)
    return found.values()


def _outcomes(message: Message, *, is_overdue: bool) -> Iterator[tuple[Indicator, int, int]]:
    """What a message counts for, as what, and how often."""
    unanswered = message.attempts - message.confirmations - message.refusals
    for place, number in ((GOOD, message.confirmations), (BAD, message.refusals), (UNDECIDED, unanswered)):
        yield Indicator.PUBLISH_AVAILABILITY, place, number
    if message.confirmed is not None or unanswered:
        yield Indicator.PUBLISH_LATENCY, _place(Indicator.PUBLISH_LATENCY, message, message.confirmed, message.lags[0]), 1
    if message.received is not None:
        yield Indicator.END_TO_END_LATENCY, _place(Indicator.END_TO_END_LATENCY, message, message.received, message.lags[1]), 1
    elif message.confirmed is not None:
        yield Indicator.END_TO_END_LATENCY, BAD if is_overdue else UNDECIDED, 1


def _place(indicator: Indicator, message: Message, until: float | None, lagged_s: float) -> int:
    if until is None:
        return UNDECIDED
    took_us, limit_us = round((until - message.intended) * 1e6), round(THRESHOLDS_S[indicator] * 1e6)
    if took_us <= limit_us:
        return GOOD
    return BAD if took_us - round(lagged_s * 1e6) > limit_us else UNDECIDED
