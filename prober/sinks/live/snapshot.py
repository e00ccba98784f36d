"""How everything stands, as frozen values: what the service answers when it is asked, and what is shown of it.

A *probe instance* is one probe on one target, seen from one vantage. Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

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

BLIND_RUNS_MIN: Final = 2


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What is remembered of a run: the words of `RunResult`."""

    run_id: str
    verdict: Verdict
    reason: str
    started_at: float
    duration_s: float
    internal_error: bool


@dataclass(frozen=True, slots=True)
class FindingCount:
    """How many findings of one kind and status a run made."""

    kind: Kind
    status: Status
    count: int


@dataclass(frozen=True, slots=True)
class LastRun(RunSummary):
    """What is remembered of a probe instance's newest run beyond the summary: what it used, found and counted."""

    seed: int
    topic: str
    subscription: str
    findings: tuple[FindingCount, ...]
    counters: Mapping[str, int]

    @classmethod
    def of(cls, result: RunResult) -> LastRun:
        """What is remembered of a run."""
        return cls(
            result.run_id,
            result.verdict,
            result.reason,
            result.started_at,
            result.duration_s,
            internal_error=result.internal_error,
            seed=result.seed,
            topic=result.topic,
            subscription=result.subscription,
            findings=tuple(FindingCount(*sort, count) for sort, count in result.counts.items()),
            counters=dict(result.counters),
        )


@dataclass(frozen=True, slots=True)
class FailingFinding:
    """A finding that failed a run.

    found_at     when the checker made it, seconds since 1970.
    t            when it was decided in the run's own time, in seconds of the monotonic clock.
    explanation  it in plain words, on one line.
    finding_id   its name in the status store, whether it is there (yet) or not.
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
    """What became of the wish for a run at a probe instance. `run_id`: the run that begins now; None: none does, and `reason` says why."""

    run_id: str | None
    reason: str = ""


class SkippedRun(NamedTuple):
    """A run that the schedule asked for and that did not start."""

    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class InstanceSnapshot:
    """How a probe instance stands.

    verdict         of the newest run; None: no run has ended yet. `since`: it has been that since the end of that run.
    status          its condition now; it counts for all of them together.
    overdue_s       for how long a run should have ended by now; None if it is not overdue.
    running_since   when the run under way began; None if there is none.
    next_run_at     when the next one is to begin; None if that is not known.
    history         the last runs, oldest first; `runs` says how many ended with each verdict so far.
    findings        the newest ones of open incidents, newest run first; `findings_dropped`: further ones.
    runs_expected   how many runs the schedule asked for; `runs_skipped` of them did not start.
    maintenance     its reason, which may be empty; None: not under maintenance.
    """

    probe_instance: ProbeInstance
    verdict: Verdict | None
    status: Condition
    since: float | None
    overdue_s: float | None
    running_since: float | None
    next_run_at: float | None
    last_run: LastRun | None
    last_pass_at: float | None
    history: tuple[RunSummary, ...]
    runs: Mapping[Verdict, int]
    findings: tuple[FailingFinding, ...]
    findings_dropped: int
    runs_expected: int
    runs_skipped: int
    last_skip: SkippedRun | None
    maintenance: str | None

    @property
    def is_counted(self) -> bool:
        """Whether it is not under maintenance."""
        return self.status is not Condition.MAINTENANCE

    @property
    def last_condition(self) -> Condition | None:
        """Its condition after the newest run alone; None: no run has ended yet."""
        return None if self.last_run is None else of_run(self.last_run.verdict, self.last_run.reason)

    @property
    def is_blind(self) -> bool:
        """Whether its newest runs reached the target and could not be verified: one of them may be bad luck."""
        newest = self.history[-BLIND_RUNS_MIN:]
        is_unknown = len(newest) == BLIND_RUNS_MIN and all(run.verdict is Verdict.UNKNOWN for run in newest)
        return self.status is Condition.UNKNOWN and is_unknown


@dataclass(frozen=True, slots=True)
class ProberSnapshot:
    """One prober.

    `last_heartbeat_at`: when it last reported its probe instances; `silent`: that is too long ago to rely on.

    `configuration`: the one in force there; None: not reported. `own`: what it read of the user's own subscriptions. `streams`: the streams
    that it observes, with their top keys.
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
    """How everything stands at `at`. `since`: when the verdict was first seen to be this one.

    version, instance, started_at   of the process that answers.
    probers    who probes.
    incidents  all that are open, the newest first.
    troubles   what is wrong with probers or the store, one line each; none of it says anything about a target.
    own_subscriptions   the user's own subscriptions beside the prober's; nothing in them counts for the verdict.
    streams    observed streams with the top keys of the moment, of all probers.
    stored     whether it was read from the status store, so that all runs, findings and incidents in it are there.
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
        """The worst condition of all probe instances and of their open incidents; BLIND if no probe of a target verifies anything."""
        conditions = [instance.status for instance in self.probe_instances if instance.is_counted]
        blind = [Condition.BLIND] if self.blind else []
        return worst_of([*conditions, *blind, *(one.status for one in self.counted_incidents)])

    @property
    def counted_incidents(self) -> tuple[Incident, ...]:
        """Incidents that affect a probe instance which is probed and not under maintenance."""
        counted = {instance.probe_instance.key for instance in self.probe_instances if instance.is_counted}
        return tuple(one for one in self.incidents if not counted.isdisjoint(one.affected))

    @property
    def blind(self) -> Mapping[str, tuple[InstanceSnapshot, ...]]:
        """Targets of which no probe instance can verify anything, with their probe instances."""
        by_target: dict[str, list[InstanceSnapshot]] = {}
        for instance in self.probe_instances:
            if instance.is_counted:
                by_target.setdefault(instance.probe_instance.target, []).append(instance)
        return {
            target: tuple(instances) for target, instances in by_target.items() if all(instance.is_blind for instance in instances)
        }


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service does its work.

    `problems`: what keeps it from that, one line each, without internal details.
    """

    ready: bool
    problems: tuple[str, ...] = ()
