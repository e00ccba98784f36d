"""Immutable snapshots of the prober's state, for the API and the pages.

A *probe instance* is a probe on a target, at a vantage. Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prober.config.following import ConfigurationStatus
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.monitoring.comparison import OwnSubscriptionSnapshot, OwnSubscriptionStatus
from prober.monitoring.top_keys import StreamKeys
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.sinks.live.condition import Condition, of_run, worst_of
from prober.sinks.live.incidents import Incident
from prober.slo.budgets import SloSnapshot

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BLIND_RUNS_MIN: Final = 2


def fields_from(kind: type[DataclassInstance], source: object, *without: str) -> dict[str, Any]:
    """Return the fields of a dataclass by name, each from the attribute of the same name of `source`."""
    return {one.name: getattr(source, one.name) for one in fields(kind) if one.name not in without}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of a run, with fields of `RunResult`."""

    run_id: str
    verdict: Verdict
    reason: str
    started_at: float
    duration_s: float
    internal_error: bool


@dataclass(frozen=True, slots=True)
class FindingCount:
    """Number of findings of a kind and status in a run."""

    kind: Kind
    status: Status
    count: int


@dataclass(frozen=True, slots=True)
class LastRun(RunSummary):
    """The newest run of a probe instance: its summary, resources, findings and counters."""

    seed: int
    topic: str
    subscription: str
    findings: tuple[FindingCount, ...]
    counters: Mapping[str, int]

    @classmethod
    def of(cls, result: RunResult) -> LastRun:
        """Return the record of a run from its result."""
        counted = tuple(FindingCount(*sort, count) for sort, count in result.counts.items())
        return cls(**fields_from(cls, result, "findings"), findings=counted)


@dataclass(frozen=True, slots=True)
class FailingFinding:
    """A finding that failed a run.

    found_at     time at which the checker made it, in seconds since 1970.
    t            time of the decision in the run's own time, in seconds of the monotonic clock.
    explanation  plain words, on one line.
    finding_id   its id in the status store, also if the store does not contain it (yet).
    """

    run_id: str
    found_at: float
    kind: Kind
    status: Status
    subscription: str
    key: str
    t: float
    explanation: str
    finding_id: str = ""


@dataclass(frozen=True, slots=True)
class RunOrdered:
    """Answer to a request for a run. `run_id`: the run that starts now; None: no run starts, for `reason`."""

    run_id: str | None
    reason: str = ""


class SkippedRun(NamedTuple):
    """A scheduled run that did not start."""

    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class InstanceSnapshot:
    """State of a probe instance.

    verdict         of the newest run; None: no run has ended yet. `since`: end of the first run in a row with this verdict.
    status          its current condition, which counts for the status of the prober.
    overdue_s       time since a run should have ended; None: not overdue.
    running_since   start of the current run; None: there is none.
    next_run_at     start of the next run; None: unknown.
    history         the last runs, oldest first; `runs`: numbers of all runs so far, by verdict.
    findings        the newest findings of open incidents, newest run first; `findings_dropped`: number of others.
    runs_expected   number of scheduled runs; `runs_skipped` of them did not start.
    maintenance     its reason, which may be empty; None: not under maintenance.
    """

    probe_instance: ProbeInstance
    verdict: Verdict | None = None
    status: Condition = Condition.STARTING
    since: float | None = None
    overdue_s: float | None = None
    running_since: float | None = None
    next_run_at: float | None = None
    last_run: LastRun | None = None
    last_pass_at: float | None = None
    history: tuple[RunSummary, ...] = ()
    runs: Mapping[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))
    findings: tuple[FailingFinding, ...] = ()
    findings_dropped: int = 0
    runs_expected: int = 0
    runs_skipped: int = 0
    last_skip: SkippedRun | None = None
    maintenance: str | None = None

    @property
    def is_counted(self) -> bool:
        """Whether the probe instance counts: it is not under maintenance."""
        return self.status is not Condition.MAINTENANCE

    @property
    def last_condition(self) -> Condition | None:
        """Condition by the newest run alone; None: no run has ended yet."""
        return None if self.last_run is None else of_run(self.last_run.verdict, self.last_run.reason)

    @property
    def is_blind(self) -> bool:
        """Whether the newest runs reached the target but could not be verified; a single run of this kind may be an accident."""
        newest = self.history[-BLIND_RUNS_MIN:]
        is_unknown = len(newest) == BLIND_RUNS_MIN and all(run.verdict is Verdict.UNKNOWN for run in newest)
        return self.status is Condition.UNKNOWN and is_unknown


@dataclass(frozen=True, slots=True)
class ProberSnapshot:
    """State of a prober.

    `last_heartbeat_at`: time of the latest report of its probe instances; `silent`: the report is too old to rely on.

    `configuration`: the configuration in force; None: not reported. `own`: readings of the user's own subscriptions. `streams`: observed
    streams with their top keys.
    """

    instance: str
    version: str
    started_at: float
    last_heartbeat_at: float
    silent: bool = False
    configuration: ConfigurationStatus | None = None
    own: tuple[OwnSubscriptionStatus, ...] = ()
    streams: tuple[StreamKeys, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """The complete state at `at`. `since`: time from which the verdict has been the present one.

    version, instance, started_at   of the process that answers.
    probers    all probers.
    incidents  all open incidents, the newest first.
    troubles   problems of probers or the store, one line each; none is a problem of a target.
    own_subscriptions   the user's own subscriptions beside the prober's; they do not count for the verdict.
    streams    observed streams with their current top keys, of all probers.
    stored     read from the status store, and so complete in runs, findings and incidents.
    """

    at: float
    verdict: Verdict
    since: float
    version: str
    instance: str
    started_at: float
    probe_instances: tuple[InstanceSnapshot, ...]
    slos: tuple[SloSnapshot, ...]
    troubles: tuple[str, ...] = ()
    probers: tuple[ProberSnapshot, ...] = ()
    incidents: tuple[Incident, ...] = ()
    own_subscriptions: tuple[OwnSubscriptionSnapshot, ...] = ()
    streams: tuple[StreamKeys, ...] = ()
    stored: bool = False

    @property
    def status(self) -> Condition:
        """The worst condition of all probe instances and their open incidents; BLIND if no probe of a target can verify."""
        conditions = [instance.status for instance in self.probe_instances if instance.is_counted]
        blind = [Condition.BLIND] if self.blind else []
        return worst_of([*conditions, *blind, *(one.status for one in self.counted_incidents)])

    @property
    def counted_incidents(self) -> tuple[Incident, ...]:
        """Incidents that affect a probe instance that is probed and not under maintenance."""
        counted = {instance.probe_instance.key for instance in self.probe_instances if instance.is_counted}
        return tuple(one for one in self.incidents if not counted.isdisjoint(one.affected))

    @property
    def blind(self) -> Mapping[str, tuple[InstanceSnapshot, ...]]:
        """Targets without any probe instance that can verify, with their probe instances."""
        by_target: dict[str, list[InstanceSnapshot]] = {}
        for instance in self.probe_instances:
            if instance.is_counted:
                by_target.setdefault(instance.probe_instance.target, []).append(instance)
        return {
            target: tuple(instances) for target, instances in by_target.items() if all(instance.is_blind for instance in instances)
        }


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service is ready.

    `problems`: obstacles, one line each, without internal details.
    """

    ready: bool
    problems: tuple[str, ...] = ()
