"""What the status page says beyond the bare snapshot: headline, causes, and findings put together. Words only; nothing is decided here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api.words import counted, duration, share
from prober.core.indicators import MEANINGS
from prober.core.slo import Objective
from prober.core.verdict import Verdict
from prober.snapshot import FailingFinding, Site, SiteSnapshot, SloSnapshot, Snapshot

CAUSES_SHOWN_MAX: Final = 3
FINDINGS_SHOWN_MAX: Final = 20

_TITLES: Final = {Verdict.PASS: "All probes pass", Verdict.FAIL: "A promise is broken", Verdict.UNKNOWN: "Not everything is known"}
_STANDINGS: Final = {Verdict.FAIL: "FAIL", Verdict.UNKNOWN: "UNKNOWN", Verdict.PASS: "PASS", None: "under maintenance"}


@dataclass(frozen=True, slots=True)
class Headline:
    """The state in one glance: a few words, how many sites stand how, and what is behind it."""

    title: str
    counts: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The kept findings of one kind and status at a site: the newest run's first one, how many there are and in how many runs."""

    site: Site
    shown: FailingFinding
    count: int
    runs: int
    oldest_at: float


def headline(snapshot: Snapshot) -> Headline:
    """What is to be read first. Names at most three sites that are behind the verdict."""
    standings = Counter(site.standing for site in snapshot.sites)
    counts = ", ".join(f"{standings[standing]:,} {word}" for standing, word in _STANDINGS.items() if standings[standing])
    causes = [f"{name(site.site)}: {why(site)}" for site in snapshot.sites if site.standing is snapshot.verdict and why(site)]
    more = len(causes) - CAUSES_SHOWN_MAX
    shown = (*causes[:CAUSES_SHOWN_MAX], *([f"and {more:,} more"] if more > 0 else []))
    title = _TITLES[snapshot.verdict]
    if snapshot.sites and all(site.verdict is None for site in snapshot.sites):
        title = "Nothing is known yet"
    return Headline(title, counts or "nothing is probed", shown)


def name(site: Site) -> str:
    """A site in words."""
    return f"{site.probe} on {site.target} ({site.vantage})"


def why(site: SiteSnapshot) -> str:
    """Why a site does not stand at PASS, in one line; empty if it does."""
    if site.maintenance is not None:
        return site.maintenance or "no reason was given"
    if site.standing is Verdict.UNKNOWN and site.last_run is None:
        return "no run has ended yet" + _overdue(site)
    if site.standing is Verdict.UNKNOWN and site.verdict is Verdict.PASS:
        return f"it passed, but a run is overdue by {duration(site.overdue_s or 0.0)}"
    return (site.last_run.reason if site.last_run else "") + _overdue(site)


def open_findings(snapshot: Snapshot) -> list[FindingGroup]:
    """Findings at sites that have not passed since, the newest first."""
    return _groups(snapshot, is_open=True)


def closed_findings(snapshot: Snapshot) -> list[FindingGroup]:
    """Findings at sites that have passed since, the newest first."""
    return _groups(snapshot, is_open=False)


def dropped_findings(snapshot: Snapshot) -> int:
    """How many findings are not kept any more."""
    return sum(site.findings_dropped for site in snapshot.sites)


def promised(objective: Objective) -> str:
    """The share that is to be good, and over which period."""
    return f"{share(objective.target)} over {duration(objective.window_s)}"


def meaning(objective: Objective) -> str:
    """What is counted and when it is bad, in one sentence."""
    meant = MEANINGS[objective.indicator]
    limit = f" than {duration(objective.threshold_s)}" if objective.threshold_s is not None else ""
    return f"A {meant.unit} is bad if {meant.bad}{limit}."


def proven(slo: SloSnapshot) -> str:
    """Whether the objective is shown to be kept or missed, by what was counted."""
    if slo.error_ratio is None:
        return "unknown"
    return {Verdict.PASS: "proven", Verdict.FAIL: "missed", Verdict.UNKNOWN: "not proven"}[slo.verdict]


def budget(slo: SloSnapshot) -> str:
    """What became of the error budget so far."""
    if slo.budget_left is None:
        return "nothing counted"
    if slo.budget_left < 0.0:
        return f"{1.0 - slo.budget_left:,.3g} times the budget spent"
    return "nothing spent" if slo.budget_left == 1.0 else f"{share(1.0 - slo.budget_left)} spent"


def strip(site: SiteSnapshot) -> str:
    """The history in words, for those who do not see it."""
    if not site.history:
        return "no runs yet"
    verdicts = Counter(run.verdict for run in site.history)
    kinds = ", ".join(
        f"{verdicts[verdict]} {verdict}" for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN) if verdicts[verdict]
    )
    return f"last {counted(len(site.history), 'run')}: {kinds}; the newest {site.history[-1].verdict}"


def _overdue(site: SiteSnapshot) -> str:
    return "" if site.overdue_s is None else f"; a run is overdue by {duration(site.overdue_s)}"


def _groups(snapshot: Snapshot, *, is_open: bool) -> list[FindingGroup]:
    groups = [group for site in snapshot.sites for group in _groups_of(site, is_open=is_open)]
    return sorted(groups, key=lambda group: group.shown.found_at, reverse=True)


def _groups_of(site: SiteSnapshot, *, is_open: bool) -> Iterator[FindingGroup]:
    alike: dict[tuple[str, str], list[FailingFinding]] = {}
    for finding in site.findings:
        if finding.open is is_open:
            alike.setdefault((finding.kind, finding.status), []).append(finding)
    for findings in alike.values():
        runs = len({finding.run_id for finding in findings})
        yield FindingGroup(site.site, findings[0], len(findings), runs, findings[-1].found_at)
