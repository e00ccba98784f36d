"""How every site of this process stands, in memory: what it tells the status store, and what it shows while that cannot be reached.

What a site stands for is three-valued, like everything here: the verdict of its newest run, UNKNOWN before the first one and when a PASS
is not renewed in time, nothing while it is under maintenance. All sites together are FAIL if one is, else UNKNOWN if one is or there
is none, else PASS.

Everything is bounded, and what is dropped is counted. Nothing here reads a clock: times are seconds since 1970, told by the caller, who
takes them best from a clock that does not step.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from prober.config.following import ConfigurationStatus
from prober.config.workloads import is_fed
from prober.core.findings import FAILING, Kind
from prober.core.judge import RecordedFinding
from prober.core.verdict import Verdict, worst
from prober.evidence.explain import explain
from prober.monitoring.comparison import OwnSubscriptionStatus, shown
from prober.runs.classification import Observation
from prober.runs.result import RunResult, finding_id_of
from prober.runs.sink import RunBegun, RunEnded
from prober.runs.site import Site, SiteKey
from prober.sinks.live.incidents import Exemplar, Incident, after_run
from prober.sinks.live.snapshot import (
    FailingFinding,
    LastRun,
    Outage,
    ProberSnapshot,
    RunSummary,
    SiteSnapshot,
    SkippedRun,
    StatusSnapshot,
)
from prober.slo.budgets import MeasuredHours, SloSnapshot, slo_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import Measure, Objective, SliCounts

RUNS_KEPT_MAX: Final = 50
FINDINGS_KEPT_MAX: Final = 20
MISSED_INTERVALS_MAX: Final = 3
"""A site is overdue when no run ended for so many intervals and the time of its longest run."""


class LiveRun:
    """Listens to one run: that it is under way is all there is to show of it before its end."""

    def __init__(self, state: LiveState, site: Site) -> None:
        self._state, self._site = state, site

    def event(self, seen: Observation) -> None:
        """Nothing of it is shown."""

    def ended(self, end: RunEnded) -> None:
        """The run is over; what came of it is shown if it counts."""
        self._state.over(self._site)
        if end.is_counted:
            self._state.ended(self._site, end.result, end.ended_at)
        else:
            self._state.checked(self._site.target, end.checks)


class LiveState:
    """Told of each run and of what the schedule does. KeyError for a site, target or objective that is not watched.

    `changes` grows whenever something changes that a reader would see, but for the passing of time.
    """

    def __init__(
        self, sites: Iterable[Site], objectives: Iterable[Objective] = (), *, version: str, instance: str, started_at: float
    ) -> None:
        self.changes = 0
        self._records: dict[SiteKey, _Record] = {}
        self._probes: dict[str, set[str]] = {}
        for site in sites:
            self.watched(site, started_at)
        self._objectives = {objective.name: objective for objective in objectives}
        self._checks: dict[tuple[str, Measure], SliCounts] = {}
        self._counted: dict[tuple[str, Measure], SliCounts] = {}
        self._hours: dict[tuple[str, Measure], tuple[int, MeasuredHours]] = {}
        self._configuration: ConfigurationStatus | None = None
        self._own: tuple[OwnSubscriptionStatus, ...] = ()
        self._version, self._instance, self._started_at = version, instance, started_at
        self._verdict, self._since = Verdict.UNKNOWN, started_at

    def follow(self, sites: Iterable[Site], objectives: Iterable[Objective]) -> None:
        """These are the sites that may be watched, and the objectives, from now on. What was counted so far stays counted."""
        self._probes = {}
        for site in sites:
            self._probes.setdefault(site.target, set()).add(site.probe)
        self._objectives = {objective.name: objective for objective in objectives}
        self.changes += 1

    def configured(self, status: ConfigurationStatus) -> None:
        """Which configuration is in force."""
        self._configuration = status
        self.changes += 1

    def read(self, own: tuple[OwnSubscriptionStatus, ...]) -> None:
        """The user's own subscriptions were read."""
        self._own = own
        self.changes += 1

    def watched(self, site: Site, at: float) -> None:
        """A site is watched from now on. One that was watched until now has become another one: what is known of it stays."""
        known = self._records.get(site.key)
        if known is None:
            self._records[site.key] = _Record(site, at)
        else:
            known.site, known.waiting_since, known.next_run_at = site, at, None
        self.changes += 1
        self._probes.setdefault(site.target, set()).add(site.probe)

    def left(self, site: Site) -> None:
        """A site is gone or somebody else's from now on; what was counted there stays counted."""
        self._records.pop(site.key, None)
        self.changes += 1

    def planned(self, site: Site, at: float | None) -> None:
        """The next run is to begin then; None: nobody knows."""
        self._records[site.key].next_run_at = at

    def expected(self, site: Site) -> None:
        """The schedule asked for a run."""
        self._records[site.key].expected += 1

    def skipped(self, site: Site, reason: str, at: float) -> None:
        """A run that the schedule asked for did not start."""
        self._records[site.key].skip(SkippedRun(reason, at))
        self.changes += 1

    def begin(self, run: RunBegun) -> LiveRun:
        """A run begins, on the topic and subscription that its site names."""
        self.started(run.site, run.started_at)
        return LiveRun(self, run.site)

    def started(self, site: Site, at: float) -> None:
        """A run is under way at a site."""
        record = self._records[site.key]
        record.site, record.running_since = site, at
        self.changes += 1

    def over(self, site: Site) -> None:
        """No run is under way any more. What came of it, if it counts, is told by `ended`."""
        record = self._records.get(site.key)
        if record is not None:  # else the site is somebody else's by now
            record.running_since = None
        self.changes += 1

    def ended(self, site: Site, result: RunResult, at: float) -> None:
        """A run ended. Its checks count for the objectives of its target."""
        self._records[site.key].end(result, at)
        self.changes += 1
        self.checked(site.target, result.checks)
        self._overall(at)

    def checked(self, target: str, checks: Mapping[Indicator, SliCounts]) -> None:
        """The checks of a run, or what was proven before it was cut short, count for the objectives of its target."""
        for objective in self._objectives.values():
            counts = checks.get(objective.indicator)
            if counts is not None:
                key = target, objective.measure
                self._checks[key] = self._checks.get(key, SliCounts()) + counts

    def under_maintenance(self, site: Site, reason: str | None, at: float) -> None:
        """Maintenance began, or goes on, for this reason; None: there is none, or no more."""
        if self._records[site.key].maintain(reason, at):
            self.changes += 1
        self._overall(at)

    def counted(self, target: str, objective: str, total: SliCounts) -> None:
        """So much was counted on a target since the start for an objective, by name, beyond the checks of runs: durations, slices of time.

        A total, which takes the place of the one before. Raises KeyError for a target or an objective that is not known.
        """
        if target not in self._probes or objective not in self._objectives:
            raise KeyError(target, objective)
        self._counted[target, self._objectives[objective].measure] = total

    def snapshot(self, now: float, troubles: tuple[str, ...] = ()) -> StatusSnapshot:
        """How everything stands now; `troubles` of the prober itself are passed on."""
        return StatusSnapshot(
            now,
            self._overall(now),
            self._since,
            self._version,
            self._instance,
            self._started_at,
            tuple(record.snapshot(now) for record in self._records.values()),
            tuple(self._slos(now)),
            troubles,
            (
                ProberSnapshot(
                    self._instance, self._version, self._started_at, now, configuration=self._configuration, own=self._own
                ),
            ),
            tuple(sorted(self._incidents(), key=lambda one: one.first_at, reverse=True)),
            own_subscriptions=shown(self._own, now),
        )

    def _incidents(self) -> Iterator[Incident]:
        """Those that this process began to see, which may be less than the store knows."""
        return (incident for record in self._records.values() for incident in record.incidents.values())

    def _overall(self, now: float) -> Verdict:
        """The verdict of all sites; notes when it changes."""
        verdict = worst(filter(None, (record.status(now) for record in self._records.values())))
        if verdict is not self._verdict:
            self._verdict, self._since = verdict, now
        return verdict

    def _slos(self, now: float) -> Iterator[SloSnapshot]:
        """Every objective on every target that feeds its indicator, by configuration or in fact, since the start of this process."""
        for target, probes in self._probes.items():
            for objective in self._objectives.values():
                key = target, objective.measure
                total = self._checks.get(key, SliCounts()) + self._counted.get(key, SliCounts())
                if total != SliCounts() or is_fed(objective.indicator, probes):
                    share = self._measured(key, total, now).share(objective.window_s, self._started_at, now)
                    yield slo_of(target, objective, total, self._started_at, share)

    def _measured(self, key: tuple[str, Measure], total: SliCounts, now: float) -> MeasuredHours:
        """The measured hours; things decided since the last snapshot belong to the hour of this one."""
        decided, hours = self._hours.get(key, (0, MeasuredHours()))
        if total.decided != decided:
            self._hours[key] = total.decided, (hours := hours.including(now))
        return hours


@dataclass(slots=True)
class _Record:
    """What is remembered of one site. `waiting_since`: from when on the end of a run is waited for."""

    site: Site
    waiting_since: float
    since: float | None = None
    running_since: float | None = None
    next_run_at: float | None = None
    last_run: LastRun | None = None
    last_pass_at: float | None = None
    longest_s: float = 0.0
    history: deque[RunSummary] = field(default_factory=lambda: deque(maxlen=RUNS_KEPT_MAX))
    runs: Counter[Verdict] = field(default_factory=lambda: Counter(dict.fromkeys(Verdict, 0)))
    findings: tuple[FailingFinding, ...] = ()
    findings_count: int = 0
    incidents: dict[Kind, Incident] = field(default_factory=dict)
    outage: Outage | None = None
    expected: int = 0
    skipped: int = 0
    last_skip: SkippedRun | None = None
    maintenance: str | None = None

    @property
    def verdict(self) -> Verdict | None:
        return self.last_run.verdict if self.last_run else None

    def skip(self, skip: SkippedRun) -> None:
        self.skipped += 1
        self.last_skip = skip

    def end(self, result: RunResult, at: float) -> None:
        if result.verdict is not self.verdict:
            self.since = at
        self.running_since = None
        self.waiting_since = at
        self.longest_s = max(self.longest_s, result.duration_s)
        self.last_run = LastRun.of(result)
        self.history.append(_summary(result))
        self.runs[result.verdict] += 1
        if result.verdict is Verdict.PASS:
            self.last_pass_at = at
        self.findings_count += sum(count for (_, status), count in result.counts.items() if status in FAILING)
        numbered = enumerate(result.findings, 1)
        failing = tuple(_finding(result, number, made, at) for number, made in numbered if made.finding.status in FAILING)
        self._follow(result, at, failing)
        kept = (replace(finding, open=self._is_open(finding)) for finding in self.findings)
        self.findings = (*failing, *kept)[:FINDINGS_KEPT_MAX]

    def _is_open(self, finding: FailingFinding) -> bool:
        incident = self.incidents.get(finding.kind)
        return incident is not None and finding.found_at >= incident.first_at

    def _follow(self, result: RunResult, at: float, failing: Iterable[FailingFinding]) -> None:
        """Incidents, and whether the target is reached."""
        shown = {finding.kind: Exemplar(finding.finding_id, None) for finding in failing}
        told = self.incidents | after_run(self.incidents, self.site.key, result, at, shown)
        self.incidents = {kind: incident for kind, incident in told.items() if incident.closed_at is None}
        before = self.outage or Outage(at, 0, 0)
        unsent = result.checks.get(Indicator.PUBLISH_AVAILABILITY, SliCounts()).bad
        self.outage = Outage(before.since, before.runs + 1, before.unsent + unsent) if result.unreachable else None

    def maintain(self, reason: str | None, at: float) -> bool:
        """True: that is new."""
        if self.maintenance is not None and reason is None:
            self.waiting_since = at
        before, self.maintenance = self.maintenance, reason
        return before != reason

    def overdue_s(self, now: float) -> float | None:
        late_s = now - self.waiting_since - MISSED_INTERVALS_MAX * self.site.interval_s - self.longest_s
        return late_s if late_s > 0.0 and self.maintenance is None else None

    def status(self, now: float) -> Verdict | None:
        if self.maintenance is not None:
            return None
        late = self.overdue_s(now) is not None and self.verdict is Verdict.PASS
        return Verdict.UNKNOWN if late else self.verdict or Verdict.UNKNOWN

    def snapshot(self, now: float) -> SiteSnapshot:
        return SiteSnapshot(
            site=self.site,
            verdict=self.verdict,
            status=self.status(now),
            since=self.since,
            overdue_s=self.overdue_s(now),
            running_since=self.running_since,
            next_run_at=self.next_run_at,
            last_run=self.last_run,
            last_pass_at=self.last_pass_at,
            history=tuple(self.history),
            runs=dict(self.runs),
            findings=self.findings,
            findings_dropped=max(0, self.findings_count - len(self.findings)),
            runs_expected=self.expected,
            runs_skipped=self.skipped,
            last_skip=self.last_skip,
            maintenance=self.maintenance,
            outage=self.outage,
        )


def _summary(result: RunResult) -> RunSummary:
    return RunSummary(
        result.run_id, result.verdict, result.reason, result.started_at, result.duration_s, internal_error=result.internal_error
    )


def _finding(result: RunResult, number: int, made: RecordedFinding, at: float) -> FailingFinding:
    finding = made.finding
    return FailingFinding(
        result.run_id,
        at,
        finding.kind,
        finding.status,
        finding.subscription,
        finding.key,
        finding.t,
        explain(finding, result.clock_offset_s),
        finding_id=finding_id_of(result.run_id, number),
    )
