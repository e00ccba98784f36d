"""Content of the store that pages show beyond the current status. It is cached, so any number of readers cause few queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, TypeVar

from api.charts import TITLES, ChartSpan, Plot, duration_plots, thresholds
from api.heat_map import HeatMap, latency_map
from api.timeline import Timeline, timeline_of
from api.view import Archive
from prober.clock import monotonic_s
from prober.reports.values import HotKeysReport
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.sinks.history.store import HistoryError
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.database import StatusError
from prober.sinks.status.over_time import BinOfRuns, OverTime, monthly_uptime
from prober.sinks.status.slices import begin_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective, SliCounts
from prober.slo.uptime import MonthlyUptime

FRESH_PART: Final = 10_000
"""Fraction of its time range for which a chart, timeline or map is fresh, between `FRESH_MIN_S` and `FRESH_MAX_S`."""
FRESH_MIN_S: Final = 4.0
FRESH_MAX_S: Final = 300.0
HOT_KEYS_FRESH_S: Final = 60.0
UPTIME_FRESH_S: Final = 300.0
HOT_KEYS_SHOWN_MAX: Final = 5

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class HotKeys:
    """The newest report on hot keys; None: there is none, for the reason `why`."""

    report: HotKeysReport | None
    why: str = ""


def bins_of(archive: Archive, instance: InstanceKey, span: ChartSpan) -> tuple[BinOfRuns, ...]:
    """Return the data of the charts of a probe instance, the oldest first. Raises the errors of the store."""
    return OverTime(archive.queries.database).runs(instance, span.since, span.bin_s, TITLES)


def slices_of(archive: Archive, objective: Objective, span: ChartSpan) -> Mapping[str, Mapping[float, SliCounts]]:
    """Return the slices of an objective for its charts, by target and start time. Raises the errors of the store."""
    length_s = span.reach.slice_s
    return OverTime(archive.queries.database).counts(objective, begin_of(span.since, length_s), span.now, length_s)


def _fresh_s(span: ChartSpan) -> float:
    return min(max(span.reach.seconds / FRESH_PART, FRESH_MIN_S), FRESH_MAX_S)


class Recent:
    """Cache of answers for some seconds. Thread-safe: at worst two threads run the same query at once."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._answers: dict[object, tuple[float, object]] = {}

    def timeline(self, snapshot: StatusSnapshot, span: ChartSpan) -> Timeline:
        """Return the timeline of every probe instance; without rows if the store cannot be queried."""
        self._forget({instance.probe_instance.key for instance in snapshot.probe_instances})
        ask = partial(OverTime(self._archive.queries.database).verdicts, span.since, span.now, span.reach.cell_s)
        try:
            found = self.fresh(f"timeline {span.reach}", _fresh_s(span), ask)
        except StatusError:
            return Timeline(span, {})
        return timeline_of((instance.probe_instance.key for instance in snapshot.probe_instances), found, span)

    def charts_of(self, instance: ProbeInstance, span: ChartSpan) -> tuple[Plot, ...]:
        """Return the charts of one probe instance. Raises the errors of the store."""
        archive = self._archive

        def ask() -> tuple[Plot, ...]:
            return duration_plots(bins_of(archive, instance.key, span), instance.interval_s, span, archive.objectives)

        return self.fresh((instance.key, span.reach), _fresh_s(span), ask)

    def latency_map(self, instance: ProbeInstance, indicator: Indicator, span: ChartSpan) -> HeatMap | None:
        """Return the distribution of a probe instance's latencies over a span of whole cells. Raises the errors of the store."""
        limit_s = thresholds(self._archive.objectives).get(indicator)

        def ask() -> HeatMap | None:
            over_time = OverTime(self._archive.queries.database)
            return latency_map(
                over_time.histograms(instance.key, indicator, span.since, span.now, span.reach.cell_s), span, limit_s
            )

        return self.fresh((instance.key, span.reach, indicator), _fresh_s(span), ask)

    def hot_keys(self) -> HotKeys:
        """Return the first hot keys of the newest report. Never fails."""
        return self.fresh(Job.HOT_KEYS, HOT_KEYS_FRESH_S, self._hot_keys)

    def _hot_keys(self) -> HotKeys:
        if self._archive.reports is None:
            return HotKeys(None, "It is not configured where the nightly jobs put their reports (history.reports).")
        try:
            report = self._archive.newest_hot_keys(HOT_KEYS_SHOWN_MAX)
        except HistoryError:
            return HotKeys(None, "The place of the reports cannot be reached at the moment.")
        return HotKeys(report, "" if report is not None else "There is no report yet.")

    def monthly_uptime(self, now: float) -> tuple[MonthlyUptime, ...]:
        """Return the uptime of each target by month. Raises the errors of the store."""
        return self.fresh("uptime", UPTIME_FRESH_S, partial(monthly_uptime, self._archive.queries.database, now))

    def fresh(self, name: object, fresh_s: float, ask: Callable[[], _Value]) -> _Value:
        """Return the answer to a question, at most `fresh_s` seconds old. Each `name` has one question; raises what that raises."""
        now = monotonic_s()
        asked_t, value = self._answers.get(name, (-inf, None))
        if now - asked_t >= fresh_s:
            value = ask()
            self._answers[name] = now, value
        return value  # type: ignore[return-value]  # the answer to the question of this name

    def _forget(self, instances: set[InstanceKey]) -> None:
        for name in [name for name in self._answers if isinstance(name, tuple) and name[0] not in instances]:
            self._answers.pop(name, None)
