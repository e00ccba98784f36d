"""How everything stands, by all probers that write to one store.

What this process knows by itself (`live`) is newer than what it has written, so it takes the place of that. Of a site that several
probers watch the worst counts among those that still report. A prober that told nothing for `SILENT_AFTER_S` does not report any more: a
site that is left without one is UNKNOWN, never what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Final

from prober.config.values import write_duration
from prober.core.findings import FAILING
from prober.core.verdict import Verdict, worst
from prober.runs.site import SiteKey
from prober.sinks.live.snapshot import FailingFinding, LastRun, ProberSnapshot, RunSummary, SiteSnapshot, Snapshot
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import FindingFilter, FindingRecord, ProberRecord, Standing
from prober.sinks.status.slices import Series, begin_of, definition_of, length_for
from prober.slo.budgets import SloSnapshot, burn_of, slo_of
from prober.slo.objectives import Objective, Tally, windows_s

SILENT_AFTER_S: Final = 90.0
RUNS_SHOWN_MAX: Final = 50
FINDINGS_SHOWN_MAX: Final = 20
CLOSED_SHOWN_MAX: Final = 50


class Overview:
    """Asks a store; for any thread."""

    def __init__(self, queries: StatusQueries, objectives: Iterable[Objective]) -> None:
        self._queries = queries
        self._objectives = {definition: one for one in objectives for definition in [(one.name, definition_of(one))]}

    def snapshot(self, live: Snapshot) -> Snapshot:
        """How everything stands at the time of `live`, this process's own knowledge. Raises `StoreUnavailable`."""
        others = self._others(live)
        probers = (*live.probers, *(_seen(told, live.at) for told in others))
        sites = tuple(self._sites(live, {prober.instance for prober in probers if not prober.silent}))
        verdict = worst(site.standing for site in sites if site.standing is not None)
        return replace(
            live,
            verdict=verdict,
            since=_since(verdict, sites, live),
            sites=sites,
            slos=tuple(self._slos(live)),
            troubles=(*live.troubles, *_troubles(others, live.at)),
            probers=probers,
        )

    def _others(self, live: Snapshot) -> tuple[ProberRecord, ...]:
        """The probers of the store but for this process, which knows itself better."""
        mine = {prober.instance for prober in live.probers}
        return tuple(told for told in self._queries.probers() if told.instance not in mine)

    # --- sites ---------------------------------------------------------------------------------------------------------------

    def _sites(self, live: Snapshot, reporting: set[str]) -> Iterator[SiteSnapshot]:
        mine = {prober.instance for prober in live.probers}
        told = [standing for standing in self._queries.standings() if standing.instance not in mine]
        told += [Standing.told(live.instance, live.at, site) for site in live.sites]
        own = {site.site.key: site for site in live.sites}
        closed = self._closed()
        counts = self._queries.failing_counts()
        resources = {key: number for number, key in enumerate(own)}  # in the order of the configuration, those of others behind
        told.sort(key=lambda standing: (resources.get(standing.site.key, len(resources)), standing.site.key, standing.instance))
        for key, standings in groupby(told, key=lambda standing: standing.site.key):
            yield self._site(key, _Told(tuple(standings), reporting), own.get(key), closed.get(key, ()), counts.get(key, 0))

    def _site(
        self, key: SiteKey, told: _Told, own: SiteSnapshot | None, closed: Sequence[FailingFinding], open_count: int
    ) -> SiteSnapshot:
        history = _joined(self._queries.history(key, limit=RUNS_SHOWN_MAX), () if own is None else own.history)
        last_run = self._last_run(history[-1].run_id if history else None, own)
        verdict = None if last_run is None else last_run.verdict
        since = None if verdict is None else self._queries.last_change_at(key, verdict)
        failing = _newest((*map(_shown, self._queries.failing(key, limit=FINDINGS_SHOWN_MAX)), *_unwritten(own, history)))
        newest = told.newest
        return SiteSnapshot(
            site=newest.site,
            verdict=verdict,
            standing=told.standing,
            since=since if own is None or since is not None else own.since,
            overdue_s=max((one.overdue_s for one in told.reporting if one.overdue_s is not None), default=None),
            running_since=newest.running_since,
            next_run_at=min((one.next_run_at for one in told.all if one.next_run_at is not None), default=None),
            last_run=last_run,
            last_pass_at=max((one.last_pass_at for one in told.all if one.last_pass_at is not None), default=None),
            history=history,
            runs={verdict: sum(one.runs.get(verdict, 0) for one in told.all) for verdict in Verdict},
            findings=_newest((*failing, *closed)),
            findings_dropped=max(0, open_count - FINDINGS_SHOWN_MAX),
            runs_expected=sum(one.runs_expected for one in told.all),
            runs_skipped=sum(one.runs_skipped for one in told.all),
            last_skip=max((one.last_skip for one in told.all if one.last_skip is not None), key=lambda skip: skip.at, default=None),
            maintenance=told.maintenance,
        )

    def _last_run(self, run_id: str | None, own: SiteSnapshot | None) -> LastRun | None:
        if own is not None and own.last_run is not None and own.last_run.run_id == run_id:
            return own.last_run
        record = None if run_id is None else self._queries.run(run_id)
        return None if record is None else LastRun.of(record.result)

    def _closed(self) -> Mapping[SiteKey, list[FailingFinding]]:
        """The newest findings that are over, by site."""
        found: dict[SiteKey, list[FailingFinding]] = {}
        for record in self._queries.findings(FindingFilter(open=False), limit=CLOSED_SHOWN_MAX).items:
            if record.finding.status in FAILING:
                found.setdefault(record.site, []).append(_shown(record))
        return found

    # --- objectives ----------------------------------------------------------------------------------------------------------

    def _slos(self, live: Snapshot) -> Iterator[SloSnapshot]:
        """Every objective on every target that this process or the store counts for."""
        windows = {window for one in self._objectives.values() for window in windows_s(one)}
        counted = {window: self._queries.tallies(window, live.at) for window in windows}
        own = {Series(slo.target, slo.objective.name, definition_of(slo.objective)): slo for slo in live.slos}
        stored = {series for tallies in counted.values() for series in tallies if series[1:] in self._objectives}
        for series in (*own, *sorted(stored - own.keys())):
            objective = self._objectives.get(series[1:])
            if objective is not None:
                yield _slo(series, objective, live.at, counted, own.get(series))


class _Told:
    """What probers say of one site."""

    def __init__(self, told: tuple[Standing, ...], reporting: set[str]) -> None:
        self.all = told
        self.reporting = tuple(one for one in told if one.instance in reporting)

    @property
    def newest(self) -> Standing:
        return max(self.all, key=lambda one: one.told_at)

    @property
    def standing(self) -> Verdict | None:
        """The worst of those that report; None if all of these are under maintenance."""
        standings = [one.standing for one in self.reporting if one.standing is not None]
        return None if self.reporting and not standings else worst(standings)

    @property
    def maintenance(self) -> str | None:
        return (
            next((one.maintenance for one in self.reporting if one.maintenance is not None), None)
            if self.standing is None
            else None
        )


def _is_silent(told: ProberRecord, now: float) -> bool:
    return now - told.told_at > SILENT_AFTER_S


def _seen(told: ProberRecord, now: float) -> ProberSnapshot:
    return ProberSnapshot(told.instance, told.version, told.started_at, told.told_at, _is_silent(told, now))


def _troubles(others: Iterable[ProberRecord], now: float) -> Iterator[str]:
    """What other probers say of themselves, and which of them say nothing any more."""
    for told in others:
        if _is_silent(told, now):
            yield f"{told.instance} has told nothing for {write_duration(timedelta(seconds=int(now - told.told_at)))}"
        else:
            yield from (f"{told.instance}: {trouble}" for trouble in told.troubles)


def _since(verdict: Verdict, sites: Iterable[SiteSnapshot], live: Snapshot) -> float:
    """Since when the verdict is what it is: since the first of its sites came to it; PASS since the last one did."""
    at = [site.since for site in sites if site.standing is verdict and site.since is not None]
    if not at:
        return live.since
    return max(at) if verdict is Verdict.PASS else min(at)


def _slo(
    series: Series, objective: Objective, now: float, counted: Mapping[float, Mapping[Series, Tally]], own: SloSnapshot | None
) -> SloSnapshot:
    """What the store counted over the objective's period; what was not written yet is missing, so at first this process knows more."""

    def tally(window: float) -> Tally:
        return counted[window].get(series, Tally())

    burn = burn_of(objective, tally)
    total, period_s = tally(objective.window_s), objective.window_s
    if own is not None and own.total.decided > total.decided:
        return replace(own, burn=burn)
    return slo_of(series.target, objective, total, begin_of(now - period_s, length_for(period_s)), burn)


def _joined(stored: tuple[RunSummary, ...], own: Iterable[RunSummary]) -> tuple[RunSummary, ...]:
    runs = {run.run_id: run for run in (*stored, *own)}
    return tuple(sorted(runs.values(), key=lambda run: (run.started_at, run.run_id)))[-RUNS_SHOWN_MAX:]


def _unwritten(own: SiteSnapshot | None, history: Sequence[RunSummary]) -> Iterator[FailingFinding]:
    """What this process found in its newest run, which the store may not have yet."""
    if own is not None and history:
        yield from (finding for finding in own.findings if finding.run_id == history[-1].run_id)


def _newest(findings: Iterable[FailingFinding]) -> tuple[FailingFinding, ...]:
    """Open ones first, each once."""
    once = {one.finding_id: one for one in findings}
    ordered = sorted(once.values(), key=lambda one: (one.open, one.found_at), reverse=True)
    return tuple(ordered[:FINDINGS_SHOWN_MAX])


def _shown(record: FindingRecord) -> FailingFinding:
    finding = record.finding
    return FailingFinding(
        record.run_id,
        record.found_at,
        finding.kind,
        finding.status,
        finding.subscription,
        finding.key,
        finding.t,
        record.explanation,
        open=record.closed_at is None,
        finding_id=record.finding_id,
    )
