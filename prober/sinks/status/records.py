"""What the status store keeps, as values: who reads or writes it needs to know nothing of databases.

All times are seconds since 1970, except those of the events in a trace, which are the recorder's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from prober.config.following import ConfigurationStatus
from prober.core.findings import Finding, Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.monitoring.comparison import OwnSubscriptionStatus
from prober.monitoring.top_keys import StreamKeys
from prober.runs.result import RunResult
from prober.runs.site import Site, SiteKey
from prober.sinks.live.condition import Condition
from prober.sinks.live.snapshot import SiteSnapshot, SkippedRun
from prober.slo.objectives import SliCounts

Item = TypeVar("Item")

SILENT_AFTER_S: Final = 90.0
"""A prober that sent no heartbeat for so long does not report any more."""


@dataclass(frozen=True, slots=True)
class ProberState:
    """How the prober was when a run of it ended: what to look at first when a finding is doubted.

    clock_offset_s     what to add to the time of an event to get seconds since 1970.
    events             how many were recorded in the run; `judged`: of these, so many were judged; None: all.
    unjudged_because   why judging ended early; empty if it did not.
    """

    instance: str
    version: str
    started_at: float
    clock_offset_s: float
    events: int = 0
    judged: int | None = None
    unjudged_because: str = ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it is kept. Its findings are kept apart, at most `entries.KEPT_PER_RUN_MAX`; `findings_omitted` further ones are not.

    Information is never kept one by one, only counted in the result.
    """

    result: RunResult
    environment: str
    region: str
    ended_at: float
    prober: ProberState
    findings_omitted: int = 0

    @property
    def instance(self) -> str:
        """The prober that made it."""
        return self.prober.instance


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session and whose it is: what a diagram needs to know of sessions that began before its first event."""

    subscription: str
    session: str
    subscriber: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The history that shows a finding.

    trace      text of a trace file: the smallest history if `proven`, else what happened around the finding.
    proven     `verify` makes the same finding from this trace.
    complete   no single event can be left out of it, but for those that a sceptic asks for (`evidence.minimise`).
    among      how many events it was reduced from.
    witnesses  the lines of the trace that prove the finding.
    opened     sessions that began before the trace does.

    Of everything on the key of a finding `proven` says the same, `complete` is False, and `among` counts also what is left out.
    """

    trace: str
    proven: bool
    complete: bool
    among: int
    witnesses: tuple[int, ...]
    opened: tuple[OpenSession, ...] = ()


@dataclass(frozen=True, slots=True)
class FindingRecord:
    """A finding as it is kept.

    finding_id   unique, and the same whenever the same run is recorded again.
    found_at     when its run ended.
    after        the number of the run's events after which it was made.
    closed_at    when its incident was closed; None: that is open. Of a finding that failed no run, and has no incident, `found_at`.
    evidence     None if it was not asked for, or if there is none: `unproven_because` then says why.
    on_key       everything that happened on its key until it was made, or the latest of it; None: it was not asked for, or not kept.
    """

    finding_id: str
    run_id: str
    site: SiteKey
    instance: str
    found_at: float
    finding: Finding
    after: int
    explanation: str
    evidence: Evidence | None = None
    unproven_because: str = ""
    closed_at: float | None = None
    incident_id: str | None = None
    on_key: Evidence | None = None


class FailingFindings(NamedTuple):
    """The open findings of a site that failed a run: the newest ones, newest first, and how many there are in total."""

    newest: tuple[FindingRecord, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A run with its findings: written together or not at all.

    interval_s  longest time between the starts of two runs there; 0: not known.
    """

    run: RunRecord
    findings: tuple[FindingRecord, ...] = ()
    interval_s: float = 0.0

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        kept = (proof for record in self.findings for proof in (record.evidence, record.on_key))
        traces = sum(len(proof.trace) for proof in kept if proof is not None)
        return 2_000 * (1 + len(self.findings)) + traces


@dataclass(frozen=True, slots=True)
class ProberRecord:
    """A prober that writes to the store; `last_heartbeat_at` is when it last said how its sites stand, what its own troubles are, and
    which configuration is in force there (None: it did not say), how the user's own subscriptions stand, and the top keys of the streams
    that it observes.
    """

    instance: str
    version: str
    started_at: float
    last_heartbeat_at: float
    troubles: tuple[str, ...] = ()
    configuration: ConfigurationStatus | None = None
    own: tuple[OwnSubscriptionStatus, ...] = ()
    streams: tuple[StreamKeys, ...] = ()

    def is_silent(self, now: float) -> bool:
        """Whether it does not report any more."""
        return now - self.last_heartbeat_at > SILENT_AFTER_S


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """How one prober last said that one of its sites stands: the words of `SiteSnapshot`."""

    instance: str
    last_heartbeat_at: float
    site: Site
    verdict: Verdict | None
    status: Condition
    since: float | None
    last_run_id: str | None
    last_pass_at: float | None
    next_run_at: float | None
    running_since: float | None
    overdue_s: float | None
    runs: Mapping[Verdict, int]
    runs_expected: int
    runs_skipped: int
    last_skip: SkippedRun | None
    maintenance: str | None

    @classmethod
    def told(cls, instance: str, at: float, shown: SiteSnapshot) -> SiteStatus:
        """What a prober says of one of its sites."""
        return cls(
            instance=instance,
            last_heartbeat_at=at,
            site=shown.site,
            verdict=shown.verdict,
            status=shown.status,
            since=shown.since,
            last_run_id=None if shown.last_run is None else shown.last_run.run_id,
            last_pass_at=shown.last_pass_at,
            next_run_at=shown.next_run_at,
            running_since=shown.running_since,
            overdue_s=shown.overdue_s,
            runs=shown.runs,
            runs_expected=shown.runs_expected,
            runs_skipped=shown.runs_skipped,
            last_skip=shown.last_skip,
            maintenance=shown.maintenance,
        )


@dataclass(frozen=True, slots=True)
class Slice:
    """What one process counted for one objective on one target in a slice of time.

    definition   what is counted: the indicator and its threshold. A series begins anew when it changes.
    """

    process: str
    target: str
    objective: str
    definition: str
    length_s: int
    begins_at: float
    counts: SliCounts


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs: all that agree with what is given. `since` is included, `until` is not; both mean when they began."""

    probe: str | None = None
    verdict: Verdict | None = None
    target: str | None = None
    vantage: str | None = None
    since: float | None = None
    until: float | None = None
    part: str | None = None
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings: all that agree with what is given. `since` is included, `until` is not; both mean when they were found."""

    kind: Kind | None = None
    status: Status | None = None
    key: str | None = None
    subscription: str | None = None
    target: str | None = None
    run_id: str | None = None
    since: float | None = None
    until: float | None = None
    open: bool | None = None
    probe: str | None = None
    vantage: str | None = None
    part: str | None = None
    instance: str | None = None
    incident_id: str | None = None


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Which incidents: all that agree with what is given. `since` is included, `until` is not; both mean when they began."""

    target: str | None = None
    symptom: Symptom | None = None
    open: bool | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A part of a list, newest first; `next_cursor` continues it, None: this is the end."""

    items: tuple[Item, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one kind and status on one key, or on all keys of one subscription."""

    subscription: str
    kind: Kind
    status: Status
    count: int
    open: int
    first_at: float
    last_at: float
