"""The status of every probe instance of this process, in memory: reported to the status store, and shown while the store is unreachable.

The condition of a probe instance follows from its newest run (`condition.of_run`). It is STARTING until the first run has ended or is late,
UNKNOWN when a PASS is not renewed in time, MAINTENANCE under maintenance. It is OUTAGE when its newest run could not reach the target. It
is also OUTAGE, before its own next run, when no run of any probe instance has reached the target since its outage started.

All data are bounded, and drops are counted. This module reads no clock: callers pass times in seconds since 1970, preferably from a clock
that does not step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final, NamedTuple

from prober.config.following import ConfigurationStatus
from prober.core.findings import FAILING
from prober.core.guarded_verifier import RecordedFinding
from prober.core.kinds import Symptom, symptom_of
from prober.core.verdict import Verdict, worst
from prober.evidence.explain import explain
from prober.monitoring.comparison import OwnSubscriptionStatus, shown
from prober.monitoring.top_keys import StreamKeys
from prober.probes.catalogue import is_fed
from prober.runs.classification import Observation
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.runs.result import RunResult, finding_id_of
from prober.runs.sink import RunBegun, RunEnded
from prober.sinks.live.condition import Condition, of_run
from prober.sinks.live.incidents import EndedRun, Exemplar, Incident, after_run, earliest, reached
from prober.sinks.live.snapshot import (
    FailingFinding,
    InstanceSnapshot,
    LastRun,
    ProberSnapshot,
    RunSummary,
    SkippedRun,
    StatusSnapshot,
    fields_from,
)
from prober.slo.budgets import MeasuredHours, SloSnapshot, slo_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import Measure, Objective, SliCounts

RUNS_KEPT_MAX: Final = 50
FINDINGS_KEPT_MAX: Final = 20
MISSED_INTERVALS_MAX: Final = 3
"""A probe instance is overdue when no run has ended for this number of intervals plus the time of its longest run."""
FIRST_RUN_MAX_S: Final = 300.0
"""STARTING lasts for the interval and this time at most: longer than a first run of any probe on a target that answers."""


class LiveRun:
    """Listener of one run: before its end, only its start is shown."""

    def __init__(self, state: LiveState, instance: ProbeInstance) -> None:
        self._state, self._instance = state, instance

    def event(self, seen: Observation) -> None:
        """Ignore the event."""

    def ended(self, end: RunEnded) -> None:
        """Record the end of the run, and its result if it counts."""
        self._state.over(self._instance)
        if end.is_counted:
            self._state.ended(self._instance, end.result, end.ended_at)
        else:
            self._state.checked(self._instance.target, end.checks)


class LiveState:
    """State of all probe instances, updated by runs and by events of the schedule.

    Methods raise KeyError for a probe instance, target or objective that is not watched.

    `changes` increases with every change that a reader can see, except the passing of time.
    """

    def __init__(
        self,
        instances: Iterable[ProbeInstance],
        objectives: Iterable[Objective] = (),
        *,
        version: str,
        instance: str,
        started_at: float,
    ) -> None:
        self.changes = 0
        self._records: dict[InstanceKey, _Record] = {}
        self._probes: dict[str, set[str]] = {}
        for probe_instance in instances:
            self.watched(probe_instance, started_at)
        self._objectives = {objective.name: objective for objective in objectives}
        self._incidents: dict[str, dict[Symptom, Incident]] = {}
        self._reached: dict[str, float] = {}
        self._checks: dict[tuple[str, Measure], SliCounts] = {}
        self._counted: dict[tuple[str, Measure], SliCounts] = {}
        self._hours: dict[tuple[str, Measure], tuple[int, MeasuredHours]] = {}
        self._configuration: ConfigurationStatus | None = None
        self._own: tuple[OwnSubscriptionStatus, ...] = ()
        self._version, self._instance, self._started_at = version, instance, started_at
        self._verdict, self._since = Verdict.UNKNOWN, started_at

    def follow(self, instances: Iterable[ProbeInstance], objectives: Iterable[Objective]) -> None:
        """Replace the known probes of targets and the objectives. Previous counts are kept."""
        self._probes = {}
        for instance in instances:
            self._probes.setdefault(instance.target, set()).add(instance.probe)
        self._objectives = {objective.name: objective for objective in objectives}
        self.changes += 1

    def configured(self, status: ConfigurationStatus) -> None:
        """Record the configuration in force."""
        self._configuration = status
        self.changes += 1

    def read(self, own: tuple[OwnSubscriptionStatus, ...]) -> None:
        """Record the readings of the user's own subscriptions."""
        self._own = own
        self.changes += 1

    def watched(self, instance: ProbeInstance, at: float) -> None:
        """Watch a probe instance. If an instance with its key was watched before, replace it and keep its record."""
        known = self._records.get(instance.key)
        if known is None:
            self._records[instance.key] = _Record(InstanceSnapshot(instance), at)
        else:
            known.shown, known.waiting_since = replace(known.shown, probe_instance=instance, next_run_at=None), at
        self.changes += 1
        self._probes.setdefault(instance.target, set()).add(instance.probe)

    def left(self, instance: ProbeInstance) -> None:
        """Stop watching a probe instance: it was removed, or belongs to another prober.

        Earlier counts are kept.
        """
        self._records.pop(instance.key, None)
        self.changes += 1

    def planned(self, instance: ProbeInstance, at: float | None) -> None:
        """Record the start of the next run; None: unknown."""
        self._change(instance, next_run_at=at)

    def expected(self, instance: ProbeInstance) -> None:
        """Count a scheduled run."""
        self._change(instance, runs_expected=self._records[instance.key].shown.runs_expected + 1)

    def skipped(self, instance: ProbeInstance, reason: str, at: float) -> None:
        """Count a scheduled run that did not start."""
        skipped = self._records[instance.key].shown.runs_skipped + 1
        self._change(instance, runs_skipped=skipped, last_skip=SkippedRun(reason, at))
        self.changes += 1

    def begin(self, run: RunBegun) -> LiveRun:
        """Record the start of a run and return its listener. The probe instance names the run's topic and subscription."""
        self.started(run.probe_instance, run.started_at)
        return LiveRun(self, run.probe_instance)

    def started(self, instance: ProbeInstance, at: float) -> None:
        """Record that a run is in progress."""
        self._change(instance, probe_instance=instance, running_since=at)
        self.changes += 1

    def over(self, instance: ProbeInstance) -> None:
        """Record that no run is in progress.

        `ended` records the result, if it counts.
        """
        if instance.key in self._records:  # otherwise the probe instance belongs to another prober now
            self._change(instance, running_since=None)
        self.changes += 1

    def ended(self, instance: ProbeInstance, result: RunResult, at: float) -> None:
        """Record the result of a run, and count its checks for the objectives of its target."""
        record = self._records[instance.key]
        shown = record.end(result, at)
        known = self._incidents.setdefault(instance.target, {})
        exemplars = {finding.kind: Exemplar(finding.finding_id, None) for finding in reversed(shown)}
        found_at = earliest((finding.kind, finding.found_at) for finding in shown)
        reached_at = self._reached.get(instance.target)
        run = EndedRun(result, at, instance.interval_s, exemplars, reached_at, found_at=found_at)
        known |= after_run(known, run)
        if reached(result):
            self._reached[instance.target] = at
        self.changes += 1
        self.checked(instance.target, result.checks)
        self._overall(at)

    def checked(self, target: str, checks: Mapping[Indicator, SliCounts]) -> None:
        """Count the checks of a run for the objectives of its target; of a run that was cut short, those that were proven."""
        for objective in self._objectives.values():
            counts = checks.get(objective.indicator)
            if counts is not None:
                key = target, objective.measure
                self._checks[key] = self._checks.get(key, SliCounts()) + counts

    def under_maintenance(self, instance: ProbeInstance, reason: str | None, at: float) -> None:
        """Record the reason of a maintenance that starts or continues; None: there is no maintenance."""
        if self._records[instance.key].maintain(reason, at):
            self.changes += 1
        self._overall(at)

    def counted(self, target: str, objective: str, total: SliCounts) -> None:
        """Replace the total of an objective, by name, on a target since the start, without the checks of runs: durations, slices of time.

        Raises KeyError for an unknown target or objective.
        """
        if target not in self._probes or objective not in self._objectives:
            raise KeyError(target, objective)
        self._counted[target, self._objectives[objective].measure] = total

    def snapshot(self, now: float, troubles: tuple[str, ...] = (), streams: tuple[StreamKeys, ...] = ()) -> StatusSnapshot:
        """Return a snapshot of the state; it includes `troubles` of the prober and the observed `streams`."""
        incidents = (one for target in self._incidents for one in self._open(target, now).incidents.values())
        return StatusSnapshot(
            now,
            self._overall(now),
            self._since,
            self._version,
            self._instance,
            self._started_at,
            tuple(record.snapshot(now, self._open(record.shown.probe_instance.target, now)) for record in self._records.values()),
            tuple(self._slos(now)),
            troubles,
            (
                ProberSnapshot(
                    self._instance,
                    self._version,
                    self._started_at,
                    now,
                    configuration=self._configuration,
                    own=self._own,
                    streams=streams,
                ),
            ),
            tuple(sorted(incidents, key=lambda one: one.first_at, reverse=True)),
            own_subscriptions=shown(self._own, now),
            streams=streams,
        )

    def _change(self, instance: ProbeInstance, **changes: Any) -> None:
        record = self._records[instance.key]
        record.shown = replace(record.shown, **changes)

    def _open(self, target: str, now: float) -> _Open:
        """Return the open incidents of a target that this process has seen since its start; the store may contain more."""
        incidents = {symptom: one for symptom, one in self._incidents.get(target, {}).items() if one.is_open(now)}
        outage = incidents.get(Symptom.OUTAGE)
        is_lost = outage is not None and self._reached.get(target, outage.first_at) <= outage.first_at
        return _Open(incidents, is_lost)

    def _overall(self, now: float) -> Verdict:
        """Return the verdict of all probe instances and record the time of its change."""
        conditions = (
            record.condition(now, self._open(record.shown.probe_instance.target, now)) for record in self._records.values()
        )
        verdict = worst(filter(None, (condition.verdict for condition in conditions)))
        if verdict is not self._verdict:
            self._verdict, self._since = verdict, now
        return verdict

    def _slos(self, now: float) -> Iterator[SloSnapshot]:
        """Yield the status, since the process started, of each objective on each target whose probes or data feed its indicator."""
        for target, probes in self._probes.items():
            for objective in self._objectives.values():
                key = target, objective.measure
                total = self._checks.get(key, SliCounts()) + self._counted.get(key, SliCounts())
                if total != SliCounts() or is_fed(objective.indicator, probes):
                    share = self._measured(key, total, now).share(objective.window_s, self._started_at, now)
                    yield slo_of(target, objective, total, self._started_at, share)

    def _measured(self, key: tuple[str, Measure], total: SliCounts, now: float) -> MeasuredHours:
        """Return the measured hours; new decisions since the last snapshot belong to the hour of `now`."""
        decided, hours = self._hours.get(key, (0, MeasuredHours()))
        if total.decided != decided:
            self._hours[key] = total.decided, (hours := hours.including(now))
        return hours


class _Open(NamedTuple):
    """Open incidents of a target. `is_lost`: no run of any probe instance has reached it since its outage started."""

    incidents: Mapping[Symptom, Incident]
    is_lost: bool


@dataclass(slots=True)
class _Record:
    """Record of one probe instance. `shown`: its snapshot but for what depends on time or other probe instances.

    `waiting_since`: start of the wait for the end of a run.
    """

    shown: InstanceSnapshot
    waiting_since: float
    is_unreachable: bool = False
    longest_s: float = 0.0

    def end(self, result: RunResult, at: float) -> tuple[FailingFinding, ...]:
        """Record an ended run; return the findings that failed it."""
        shown, numbered = self.shown, enumerate(result.findings, 1)
        failing = tuple(_finding(result, number, made, at) for number, made in numbered if made.finding.status in FAILING)
        self.waiting_since, self.is_unreachable = at, result.unreachable
        self.longest_s = max(self.longest_s, result.duration_s)
        self.shown = replace(
            shown,
            verdict=result.verdict,
            since=shown.since if result.verdict is shown.verdict else at,
            running_since=None,
            last_run=LastRun.of(result),
            last_pass_at=at if result.verdict is Verdict.PASS else shown.last_pass_at,
            history=(*shown.history, RunSummary(**fields_from(RunSummary, result)))[-RUNS_KEPT_MAX:],
            runs={**shown.runs, result.verdict: shown.runs[result.verdict] + 1},
            findings=(*failing, *shown.findings)[:FINDINGS_KEPT_MAX],
        )
        return failing

    def maintain(self, reason: str | None, at: float) -> bool:
        """Record the maintenance; return whether it changed."""
        before = self.shown.maintenance
        if before is not None and reason is None:
            self.waiting_since = at
        self.shown = replace(self.shown, maintenance=reason)
        return before != reason

    def overdue_s(self, now: float) -> float | None:
        late_s = now - self.waiting_since - MISSED_INTERVALS_MAX * self.shown.probe_instance.interval_s - self.longest_s
        return late_s if late_s > 0.0 and self.shown.maintenance is None else None

    def condition(self, now: float, known: _Open) -> Condition:
        shown = self.shown
        if shown.maintenance is not None:
            return Condition.MAINTENANCE
        if known.is_lost or (self.is_unreachable and Symptom.OUTAGE in known.incidents):
            return Condition.OUTAGE
        if shown.last_run is None:
            is_late = now - self.waiting_since > shown.probe_instance.interval_s + FIRST_RUN_MAX_S
            return Condition.UNKNOWN if is_late else Condition.STARTING
        is_stale = self.overdue_s(now) is not None and shown.verdict is Verdict.PASS
        return Condition.UNKNOWN if is_stale else of_run(shown.last_run.verdict, shown.last_run.reason)

    def snapshot(self, now: float, known: _Open) -> InstanceSnapshot:
        key = self.shown.probe_instance.key
        affecting = {symptom: one for symptom, one in known.incidents.items() if key in one.affected}
        begun = {symptom: one.first_at for symptom, one in affecting.items()}
        findings = tuple(one for one in self.shown.findings if one.found_at >= begun.get(symptom_of(one.kind), inf))
        counted = sum(one.affected[key].total() for one in affecting.values())
        return replace(
            self.shown,
            status=self.condition(now, known),
            overdue_s=self.overdue_s(now),
            findings=findings,
            findings_dropped=max(0, counted - len(findings)),
        )


def _finding(result: RunResult, number: int, made: RecordedFinding, at: float) -> FailingFinding:
    finding = made.finding
    return FailingFinding(
        result.run_id,
        result.found_at(finding, at),
        finding.kind,
        finding.status,
        finding.subscription,
        finding.key,
        finding.t,
        explain(finding, result.clock_offset_s),
        finding_id=finding_id_of(result.run_id, number),
    )
