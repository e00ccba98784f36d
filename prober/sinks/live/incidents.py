"""An incident: the findings of one cause, which is to say of one kind at one site while nothing shows that it is over.

    incidents = after_run(open_incidents, site, result, ended_at, exemplars)

**When it is over.** One run without the finding shows nothing about a fault of which one run in ten tells. So what counts is how many
*chances* the fault had: runs in which something was decided that the kind could have made bad. Until the finding was seen last, `runs` of
`chances` runs had it. It may be as rare as the lower 95 % bound of that share (Clopper-Pearson); an incident is closed when the fault, were
it that rare and still there, would have kept quiet in all chances since with a probability of at most 5 %: after 3 divided by that
share (the rule of three). That is 60 runs after a single one, 6 after five of five, 55 after ten of a hundred. It is at least
`MET_MIN`, and at most `MET_MAX` runs or `QUIET_MAX_S`, since what is seen once in a blue moon would stay open for ever.

A run that could not have shown the fault says nothing, whatever its verdict: it counts neither way, and time alone closes nothing. Runs may
be told in any order: one that began before the finding was last seen does not count as one since.

Pure: times are seconds since 1970, told by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, NamedTuple

from prober.core.findings import FAILING, Kind, Status
from prober.core.kinds import KINDS
from prober.runs.result import RunResult
from prober.runs.site import SiteKey
from prober.slo.confidence import lower_bound
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, SliCounts

MET_MIN: Final = 3
MET_MAX: Final = 1_000
QUIET_MAX_S: Final = 7 * DAY_S
"""For so long at most an incident waits for further chances once it had `MET_MIN`."""
RULE_OF_THREE: Final = 3.0
HISTORY_MAX: Final = 100
YOUNG_RUNS_MAX: Final = 10
"""While so few runs had it, a smaller proof takes the place of the exemplar; later its address stays what it is."""


class Exemplar(NamedTuple):
    """A finding that stands for its incident. `events`: how long the trace is that proves it; None: none does."""

    finding_id: str
    events: int | None


class Acknowledgement(NamedTuple):
    """Somebody knows. `until`: from then on nobody does any more; None: it holds until the incident is over."""

    at: float
    by: str
    note: str
    until: float | None


@dataclass(frozen=True, slots=True)
class Incident:
    """What is known of one fault at one site.

    status          the worst that was seen.
    first_at, last_at   the ends of the first and of the last run that had it.
    findings        all of them, also those that are not kept one by one.
    runs, chances   how many runs had it, of how many that could have shown it.
    met_in_a_row    chances since it was last seen.
    bad, decided    things that ended bad, and good or bad, in all its chances; by the indicator that its kind counts for, else none.
    history         a 1 for each of the newest chances that had it and a 0 for each that had not, the newest last.
    closed_at       None: it is open.
    """

    incident_id: str
    site: SiteKey
    kind: Kind
    status: Status
    first_at: float
    last_at: float
    findings: int
    runs: int
    chances: int
    met_in_a_row: int
    bad: int
    decided: int
    history: str
    exemplar: Exemplar
    closed_at: float | None = None
    acknowledged: Acknowledgement | None = None

    @property
    def closes_after(self) -> int:
        """How many chances in a row without it show that it is over."""
        return closes_after(self.runs, self.chances - self.met_in_a_row)

    @property
    def bad_share(self) -> float | None:
        """The share of the counted things that ended bad; None: its kind counts for no indicator."""
        return self.bad / self.decided if self.decided else None

    def is_acknowledged(self, now: float) -> bool:
        """Whether somebody knows of it at that time."""
        return self.acknowledged is not None and (self.acknowledged.until is None or now < self.acknowledged.until)


def closes_after(runs: int, chances: int) -> int:
    """How many chances in a row without it show that a fault is over which `runs` of `chances` runs had until it was last seen."""
    return min(MET_MAX, max(MET_MIN, ceil(RULE_OF_THREE / lower_bound(runs, chances))))


def found_in(result: RunResult) -> dict[Kind, tuple[Status, int]]:
    """The kinds that failed a run, with the worst status and how many findings there were, kept or not."""
    found: dict[Kind, tuple[Status, int]] = {}
    for (kind, status), count in result.counts.items():
        if status in FAILING and count:
            before = found.get(kind, (status, 0))
            found[kind] = _worse(before[0], status), before[1] + count
    return found


def had_chance(kind: Kind, result: RunResult) -> bool:
    """Whether something was decided in the run that this kind makes bad; of one that no indicator counts, whether something came."""
    return _counted(kind, result).decided > 0


def after_run(
    known: Mapping[Kind, Incident], site: SiteKey, result: RunResult, ended_at: float, exemplars: Mapping[Kind, Exemplar]
) -> dict[Kind, Incident]:
    """The incidents of a site that a run begins or changes, given those that it may belong to.

    `exemplars` has a finding of each kind that failed the run, if any is kept. A run must be told only once.
    """
    found = found_in(result)
    changed: dict[Kind, Incident] = {}
    for kind, (status, count) in found.items():
        shown = exemplars.get(kind, Exemplar("", None))
        before = known.get(kind) or _unseen(kind, status, site, result, ended_at, shown)
        changed[kind] = _seen(before, status, count, result, ended_at, shown)
    for kind, incident in known.items():
        if kind not in found and incident.closed_at is None and result.started_at >= incident.first_at and had_chance(kind, result):
            changed[kind] = _met(incident, result, ended_at)
    return changed


def _unseen(kind: Kind, status: Status, site: SiteKey, result: RunResult, at: float, shown: Exemplar) -> Incident:
    name = f"{result.run_id}-{kind.value}"
    return Incident(name, site, kind, status, at, at, 0, 0, 0, 0, 0, 0, "", shown)


def _seen(before: Incident, status: Status, count: int, result: RunResult, at: float, shown: Exemplar) -> Incident:
    return replace(
        _counted_on(before, result, "1"),
        status=_worse(before.status, status),
        first_at=min(before.first_at, at),
        last_at=max(before.last_at, at),
        findings=before.findings + count,
        runs=before.runs + 1,
        met_in_a_row=before.met_in_a_row if at < before.last_at else 0,
        exemplar=_better(before, shown),
    )


def _met(before: Incident, result: RunResult, at: float) -> Incident:
    is_since = result.started_at >= before.last_at
    after = replace(_counted_on(before, result, "0"), met_in_a_row=before.met_in_a_row + is_since)
    is_quiet = at - after.last_at >= QUIET_MAX_S and after.met_in_a_row >= MET_MIN
    return replace(after, closed_at=at) if is_quiet or after.met_in_a_row >= after.closes_after else after


def _counted_on(before: Incident, result: RunResult, mark: str) -> Incident:
    """One chance more."""
    one = _counted(before.kind, result) if KINDS[before.kind].indicator else SliCounts()
    return replace(
        before,
        chances=before.chances + 1,
        bad=before.bad + one.bad,
        decided=before.decided + one.decided,
        history=(before.history + mark)[-HISTORY_MAX:],
    )


def _counted(kind: Kind, result: RunResult) -> SliCounts:
    return result.checks.get(Indicator(KINDS[kind].indicator or Indicator.ORDER), SliCounts())


def _better(before: Incident, shown: Exemplar) -> Exemplar:
    """A proof beats none; a smaller one beats a larger one only while few have seen the address of the other."""
    known = before.exemplar
    if not shown.finding_id or (known.events is not None and shown.events is None):
        return known
    if known.events is None:
        return shown if shown.events is not None or not known.finding_id else known
    is_smaller = shown.events is not None and shown.events < known.events
    return shown if is_smaller and before.runs < YOUNG_RUNS_MAX else known


def _worse(one: Status, other: Status) -> Status:
    return Status.VIOLATION if Status.VIOLATION in (one, other) else other
