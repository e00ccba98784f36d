"""Status of all probe instances, objectives and incidents, read from one status store.

If several probers run a probe instance, the worst status among the reporting probers counts. Without a reporting prober the status is
UNKNOWN, never the last known one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from prober.core.kinds import Symptom
from prober.core.verdict import Verdict, worst
from prober.monitoring.comparison import OwnSubscriptionSnapshot, shown
from prober.probes.catalogue import is_fed
from prober.sinks.live.condition import Condition, worst_of
from prober.sinks.live.incidents import Incident
from prober.sinks.live.snapshot import (
    FailingFinding,
    InstanceSnapshot,
    LastRun,
    ProberSnapshot,
    RunSummary,
    StatusSnapshot,
    fields_from,
)
from prober.sinks.status.over_time import OverTime
from prober.sinks.status.prober_records import InstanceRecord, ProberRecord
from prober.sinks.status.queries import FailingFindings, StatusQueries
from prober.sinks.status.records import RunRecord
from prober.sinks.status.slices import Counted, Series, counting_since, definition_of, window_begin
from prober.slo.budgets import MeasuredHours, SloSnapshot, burn_of, slo_of
from prober.slo.objectives import Objective, SliCounts, windows_s

RUNS_SHOWN_MAX: Final = 50
FINDINGS_SHOWN_MAX: Final = 20
SILENT: Final = "the prober that read it has sent no heartbeat for a while"


class Overview:
    """Queries of the overview; safe for any thread. The number of queries is fixed, plus one for each probe instance."""

    def __init__(self, queries: StatusQueries, objectives: Iterable[Objective]) -> None:
        self._queries = queries
        self._objectives = {definition: one for one in objectives for definition in [(one.name, definition_of(one))]}

    def snapshot(self, live: StatusSnapshot) -> StatusSnapshot:
        """Return the status at the time of `live`, as stored. Raises `StoreUnavailable`.

        `live` supplies only the answering process, the time and the troubles of that process; probe instances come from the store.
        """
        probers = self._queries.probers()
        instances = tuple(self._instances({reported.instance for reported in probers if not reported.is_silent(live.at)}))
        incidents = self._queries.open_incidents()
        statuses = [
            _status(instance, verdict, incidents)
            for instance in instances
            for verdict in [instance.status.verdict]
            if verdict is not None
        ]
        verdict = worst(status for status, _ in statuses)
        return replace(
            live,
            verdict=verdict,
            since=_since(verdict, [since for status, since in statuses if status is verdict and since is not None], live),
            probe_instances=instances,
            incidents=incidents,
            slos=tuple(self._slos(instances, live.at, [reported.started_at for reported in probers] or [live.started_at])),
            troubles=(*live.troubles, *_troubles(probers, live)),
            probers=tuple(_seen(reported, live.at) for reported in probers),
            own_subscriptions=_own(probers, live.at),
            streams=tuple(one for reported in probers if not reported.is_silent(live.at) for one in reported.streams),
            stored=True,
        )

    # --- probe instances ---------------------------------------------------------------------------------------------------------------

    def _instances(self, reporting: set[str]) -> Iterator[InstanceSnapshot]:
        reported = [
            (key, tuple(said)) for key, said in groupby(self._queries.probe_instances(), key=lambda one: one.probe_instance.key)
        ]
        histories = {key: self._queries.history(key, limit=RUNS_SHOWN_MAX) for key, _ in reported}
        last_runs = self._queries.runs_named([history[-1].run_id for history in histories.values() if history])
        since, failing = self._queries.verdicts_since(), self._queries.failing(limit=FINDINGS_SHOWN_MAX)
        for key, said in reported:
            history = histories[key]
            kept = _Kept(
                history,
                last_runs.get(history[-1].run_id) if history else None,
                since.get(key, _ended_at(history)),
                failing.get(key, FailingFindings((), 0)),
            )
            yield _instance(_Reported(said, reporting), kept)

    # --- objectives ----------------------------------------------------------------------------------------------------------

    def _slos(self, instances: Iterable[InstanceSnapshot], now: float, started: Sequence[float]) -> Iterator[SloSnapshot]:
        """Return every objective on every target with a count, or with a probe that feeds it.

        `started`: the starts of the known probers.
        """
        over_time = OverTime(self._queries.database)
        windows = {window for one in self._objectives.values() for window in windows_s(one)}
        counted = {window: over_time.counted(window, now) for window in windows}
        known = dict.fromkeys(self._expected(instances))
        known |= dict.fromkeys(
            sorted({series for counts in counted.values() for series in counts if series[1:] in self._objectives})
        )
        for series in known:
            of_series = {window: counts[series] for window, counts in counted.items() if series in counts}
            yield _slo(series, self._objectives[series[1:]], now, of_series, started)

    def _expected(self, instances: Iterable[InstanceSnapshot]) -> Iterator[Series]:
        probes: dict[str, set[str]] = {}
        for instance in instances:
            probes.setdefault(instance.probe_instance.target, set()).add(instance.probe_instance.probe)
        for target, names in probes.items():
            for definition, objective in self._objectives.items():
                if is_fed(objective.indicator, names):
                    yield Series(target, *definition)


class _Reported:
    def __init__(self, reported: tuple[InstanceRecord, ...], reporting: set[str]) -> None:
        self.all = reported
        self.reporting = tuple(one for one in reported if one.instance in reporting)

    @property
    def newest(self) -> InstanceRecord:
        return max(self.all, key=lambda one: one.last_heartbeat_at)

    @property
    def status(self) -> Condition:
        """The worst status among the reporting probers; UNKNOWN without one, MAINTENANCE if all report it."""
        return worst_of(one.status for one in self.reporting)

    @property
    def passes_at(self) -> list[float]:
        """The ends of each prober's last run that passed."""
        return [one.last_pass_at for one in self.all if one.last_pass_at is not None]

    @property
    def maintenance(self) -> str | None:
        reasons = [one.maintenance for one in self.reporting if one.maintenance is not None]
        return reasons[0] if reasons and self.status is Condition.MAINTENANCE else None


@dataclass(frozen=True, slots=True)
class _Kept:
    history: tuple[RunSummary, ...]
    last_run: RunRecord | None
    since: float | None
    failing: FailingFindings

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the newest run."""
        return self.history[-1].verdict if self.history else None


def _instance(reported: _Reported, kept: _Kept) -> InstanceSnapshot:
    newest = reported.newest
    return InstanceSnapshot(
        probe_instance=newest.probe_instance,
        verdict=kept.verdict,
        status=reported.status,
        since=kept.since if newest.verdict in (None, kept.verdict) else newest.since,
        overdue_s=max((one.overdue_s for one in reported.reporting if one.overdue_s is not None), default=None),
        running_since=newest.running_since if newest in reported.reporting else None,
        next_run_at=min((one.next_run_at for one in reported.reporting if one.next_run_at is not None), default=None),
        last_run=None if kept.last_run is None else LastRun.of(kept.last_run.result),
        last_pass_at=max((*reported.passes_at, *_passed_at(kept.history)), default=None),
        history=kept.history,
        runs={verdict: sum(one.runs.get(verdict, 0) for one in reported.all) for verdict in Verdict},
        findings=tuple(FailingFinding(**fields_from(FailingFinding, record)) for record in kept.failing.newest),
        findings_dropped=max(0, kept.failing.total - FINDINGS_SHOWN_MAX),
        runs_expected=sum(one.runs_expected for one in reported.all),
        runs_skipped=sum(one.runs_skipped for one in reported.all),
        last_skip=max((one.last_skip for one in reported.all if one.last_skip is not None), key=lambda skip: skip.at, default=None),
        maintenance=reported.maintenance,
    )


def _passed_at(history: Iterable[RunSummary]) -> Iterator[float]:
    """Return the ends of the runs that passed; a restarted prober does not remember them."""
    return (run.started_at + run.duration_s for run in history if run.verdict is Verdict.PASS)


def _ended_at(history: Sequence[RunSummary]) -> float | None:
    """Return the approximate end of the newest run, for two runs of different verdicts with the same start."""
    return history[-1].started_at + history[-1].duration_s if history else None


def _seen(reported: ProberRecord, now: float) -> ProberSnapshot:
    return ProberSnapshot(**fields_from(ProberSnapshot, reported, "silent"), silent=reported.is_silent(now))


def _own(probers: Iterable[ProberRecord], now: float) -> tuple[OwnSubscriptionSnapshot, ...]:
    """Return the user's own subscriptions as all probers report them; unknown for silent probers."""
    return shown((one.unknown(SILENT) if reported.is_silent(now) else one for reported in probers for one in reported.own), now)


def _troubles(probers: Iterable[ProberRecord], live: StatusSnapshot) -> Iterator[str]:
    """Return the troubles that other probers report, and one for each silent prober."""
    for reported in probers:
        if reported.is_silent(live.at):
            # Since when, and not for how long: that would be another text each time.
            since = datetime.fromtimestamp(reported.last_heartbeat_at, UTC)
            yield f"{reported.instance} has sent no heartbeat since {since:%Y-%m-%d %H:%M:%S} UTC"
        elif reported.instance != live.instance:
            yield from (f"{reported.instance}: {trouble}" for trouble in reported.troubles)


def _status(instance: InstanceSnapshot, status: Verdict, incidents: Iterable[Incident]) -> tuple[Verdict, float | None]:
    """Return the verdict that a probe instance counts with, and its start; an outage has a start of its own.

    While an incident is open there, a PASS may not last, and a FAIL is not new: it started with the incident.
    """
    if instance.status is Condition.OUTAGE:
        outages = (one for one in incidents if one.symptom is Symptom.OUTAGE and one.target == instance.probe_instance.target)
        return status, min((one.first_at for one in outages), default=None)
    if status is Verdict.UNKNOWN and instance.verdict not in (None, Verdict.UNKNOWN):
        return status, None  # it has not begun, or is late: its newest run does not say since when
    begun = min((one.first_at for one in incidents if instance.probe_instance.key in one.affected), default=None)
    if begun is None or status is Verdict.UNKNOWN:
        return status, instance.since
    return Verdict.UNKNOWN if status is Verdict.PASS else status, min(begun, instance.since or begun)


def _since(verdict: Verdict, at: Sequence[float], live: StatusSnapshot) -> float:
    """Return the start of the overall verdict: when its first probe instance reached it; for PASS when the last one did."""
    if not at:
        return live.since
    return max(at) if verdict is Verdict.PASS else min(at)


def _slo(
    series: Series, objective: Objective, now: float, counted: Mapping[float, Counted], started: Sequence[float]
) -> SloSnapshot:
    def counts(window: float) -> SliCounts:
        return counted[window].total if window in counted else SliCounts()

    period_s = objective.window_s
    inside = [counted[window] for window in windows_s(objective) if window in counted]
    since = max(window_begin(period_s, now), counting_since(inside, started) if inside else min(started))
    hours = counted[period_s].hours if period_s in counted else MeasuredHours()
    measured = hours.share(period_s, since, now)
    return slo_of(series.target, objective, counts(period_s), since, measured, burn_of(objective, counts))
