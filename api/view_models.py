"""Content of each page, from the store and the reports. Queries block: call them in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException

from api.charts import LATENCIES, TITLES, ChartSpan, Plot, TimeRange, histogram_plot, share_plot, thresholds
from api.finding_case import case_of
from api.heat_map import Measure, key_map
from api.incident_chart import incident_chart
from api.lookups import finding_of, incident_of, objective_of, run_of
from api.models.base import API
from api.query_parameters import (
    ChartParameters,
    FindingParameters,
    HotKeyPageParameters,
    IncidentParameters,
    InstanceParameters,
    ListParameters,
    RunParameters,
    as_query,
)
from api.recent import Recent, slices_of
from api.runbooks import INDEX, SUFFIX, Reader, runbooks
from api.timeline import RANGE, Timeline, timeline_span
from api.view import Archive
from prober.config.models import Api
from prober.core.coverage import opportunities_of
from prober.core.findings import Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.probes.catalogue import is_fed
from prober.sinks.live.snapshot import InstanceSnapshot, StatusSnapshot
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.listings import FindingFilter, Item, Page, RunFilter
from prober.sinks.status.over_time import OverTime, monthly_uptime
from prober.sinks.status.queries import FindingGroup
from prober.sinks.status.records import FindingRecord, Shown
from prober.sinks.status.slices import counted_windows
from prober.slo.budgets import SloSnapshot
from prober.slo.figures import figures_as_text
from prober.slo.objectives import HOUR_S, Objective, windows_s
from prober.slo.uptime import MonthlyUptime

FINDINGS_SHOWN_MAX: Final = 100
INCIDENT_FINDINGS_MAX: Final = 20
SITE_RUNS_MAX: Final = 5
SITE_FINDINGS_MAX: Final = 5
KEY_FINDINGS_MAX: Final = 20
DAYS_SHOWN_MAX: Final = 14
ACKNOWLEDGEMENTS_FRESH_S: Final = 5.0
UPTIME_FRESH_S: Final = 300.0
ACKNOWLEDGED_H: Final = 8
"""Default duration of an acknowledgement."""

UNCONFIGURED: Final = (
    "It is not configured where the nightly jobs put their reports (history.reports), so nothing is known about hot keys."
)

Values: TypeAlias = Mapping[str, object]


class PageContents:
    """Content of pages from an archive. Raises `HTTPException` for missing records, and the errors of the archive."""

    def __init__(self, archive: Archive, settings: Api) -> None:
        self._archive, self._recent = archive, Recent(archive)
        self._runbooks, self._writes = settings.runbooks, settings.token is not None

    def status(self, asked: ChartParameters, snapshot: StatusSnapshot) -> Values:
        """Return the current status, with the timeline and hot keys."""
        return {
            "runbooks": self._runbooks,
            "snapshot": snapshot,
            "linked": snapshot.stored,
            "timeline": self._timeline(snapshot, asked.range),
            "hot": self._recent.hot_keys(),
        }

    def incidents(self, asked: IncidentParameters, snapshot: StatusSnapshot) -> Values:
        """Return a page of incidents."""
        feed = urlencode(as_query(asked, without={"cursor", "limit"}))
        listed = _listed(self._archive.queries.incidents, asked, snapshot)
        ask = partial(self._archive.queries.acknowledgements, snapshot.at)
        acknowledged = self._recent.fresh("acknowledgements", ACKNOWLEDGEMENTS_FRESH_S, ask)
        return {**listed, "runbooks": self._runbooks, "feed": feed, "symptoms": tuple(Symptom), "acknowledged": acknowledged}

    def incident(self, incident_id: str, snapshot: StatusSnapshot) -> Values:
        """Return an incident with its exemplar and its newest findings."""
        queries, incident = self._archive.queries, incident_of(self._archive, incident_id)
        found = queries.findings(FindingFilter(incident_id=incident_id), limit=INCIDENT_FINDINGS_MAX)
        shown = queries.finding(incident.exemplar.finding_id) if incident.exemplar.finding_id else None
        return {
            "now": snapshot.at,
            "snapshot": snapshot,
            "incident": incident,
            "case": None if shown is None else case_of(shown, None, None),
            "chart": incident_chart(OverTime(queries.database), incident, snapshot.at),
            "found": found.items,
            "runbooks": self._runbooks,
            "writes": self._writes,
            "acknowledging": f"{API.lstrip('/')}/incidents/{quote(incident.incident_id, safe='')}/acknowledge",
            "suggested_end": (snapshot.at // HOUR_S + ACKNOWLEDGED_H) * HOUR_S,
        }

    def comparisons(self, snapshot: StatusSnapshot) -> Values:
        """Return all comparisons from the newest runs."""
        return {"now": snapshot.at, "compared": self._archive.compared(snapshot.at), "runbooks": self._runbooks}

    def findings(self, asked: FindingParameters, snapshot: StatusSnapshot) -> Values:
        """Return a page of findings."""
        listed = _listed(self._archive.queries.findings, asked, snapshot)
        return {**listed, "kinds": tuple(Kind), "statuses": tuple(Status)}

    def finding(self, finding_id: str, shown: Shown, snapshot: StatusSnapshot) -> Values:
        """Return a finding with its run, and the number of equal findings on its key."""
        queries, record = self._archive.queries, finding_of(self._archive, finding_id)
        groups = queries.findings_of_key(record.key)
        alike = next((group for group in groups if _is_alike(group, record)), None)
        return {
            "case": case_of(record, queries.run(record.run_id), alike, shown),
            "snapshot": snapshot,
            "record": record,
            "incident": None if record.incident_id is None else queries.incident(record.incident_id),
            "runbooks": self._runbooks,
        }

    def probe_instances(self, snapshot: StatusSnapshot) -> Values:
        """Return all probe instances."""
        return {
            "now": snapshot.at,
            "linked": snapshot.stored,
            "probe": None,
            "probe_instances": snapshot.probe_instances,
            "timeline": self._timeline(snapshot),
        }

    def probe(self, probe: str, asked: InstanceParameters, snapshot: StatusSnapshot) -> Values:
        """Return the matching probe instances of a probe; a single one in full."""
        found = tuple(
            instance
            for instance in snapshot.probe_instances
            if instance.probe_instance.probe == probe and asked.agrees(instance.probe_instance)
        )
        if not found:
            raise HTTPException(404, "there is no such probe, or it does not run there; the page of all probes has those that do")
        values = {
            "now": snapshot.at,
            "linked": snapshot.stored,
            "probe": probe,
            "probe_instances": found,
            "timeline": self._timeline(snapshot),
        }
        if len(found) > 1:
            return values
        span = asked.span(snapshot)
        instance, whole = found[0].probe_instance, timeline_span(snapshot.at, span.reach)
        drawn = self._recent.charts_of(instance, span)
        spread = {TITLES[one]: self._recent.latency_map(instance, one, whole) for one in LATENCIES}
        others = "".join(f"{urlencode({name: value})}&" for name, value in asked if name != "range" and value is not None)
        return {**values, **self._instance(found[0], snapshot), "span": span, "drawn": drawn, "spread": spread, "others": others}

    def _timeline(self, snapshot: StatusSnapshot, reach: TimeRange | None = None) -> Timeline:
        return self._recent.timeline(snapshot, timeline_span(snapshot.at, reach or RANGE))

    def _instance(self, shown: InstanceSnapshot, snapshot: StatusSnapshot) -> Values:
        instance, queries = shown.probe_instance, self._archive.queries
        where = {"probe": instance.probe, "target": instance.target, "vantage": instance.vantage, "part": instance.part}
        runs = RunFilter(probe=instance.probe, target=instance.target, vantage=instance.vantage, part=instance.part)
        findings = FindingFilter(probe=instance.probe, target=instance.target, vantage=instance.vantage, part=instance.part)
        return {
            "shown": shown,
            "probe_instance": instance,
            "runbooks": self._runbooks,
            "incidents": tuple(one for one in snapshot.incidents if instance.key in one.affected),
            "runs": queries.runs(runs, limit=SITE_RUNS_MAX).items,
            "found": queries.findings(findings, limit=SITE_FINDINGS_MAX).items,
            "slos": tuple(
                slo for slo in snapshot.slos if slo.target == instance.target and is_fed(slo.objective.indicator, {instance.probe})
            ),
            "query": urlencode({name: value for name, value in where.items() if value}),
        }

    def objectives(self, snapshot: StatusSnapshot) -> Values:
        """Return all objectives, with their status on each target."""
        slos = {one.name: tuple(slo for slo in snapshot.slos if slo.objective.name == one.name) for one in self._archive.objectives}
        return {"now": snapshot.at, "objectives": self._archive.objectives, "slos": slos, "uptime": self.uptime(snapshot)}

    def uptime(self, snapshot: StatusSnapshot) -> tuple[MonthlyUptime, ...]:
        """Return the uptime of each target by month, a few minutes old at most. Raises the errors of the store."""
        ask = partial(monthly_uptime, self._archive.queries.database, snapshot.at)
        return self._recent.fresh("uptime", UPTIME_FRESH_S, ask)

    def runs(self, asked: RunParameters, snapshot: StatusSnapshot) -> Values:
        """Return a page of runs."""
        return {**_listed(self._archive.queries.runs, asked, snapshot), "verdicts": tuple(Verdict)}

    def run(self, run_id: str) -> Values:
        """Return a run with its findings."""
        run = run_of(self._archive, run_id)
        found = self._archive.queries.findings(FindingFilter(run_id=run_id), limit=FINDINGS_SHOWN_MAX)
        limits = thresholds(self._archive.objectives)
        spread = [histogram_plot(name, took, limits.get(name)) for name, took in run.durations.items() if took.histogram]
        return {
            "run": run,
            "found": found.items,
            "figures": figures_as_text(run.figures),
            "opportunities": opportunities_of(run.counters),
            "spread": spread,
        }

    def key(self, key: str) -> Values:
        """Return the findings on a key, and its entries in the report on hot keys."""
        queries, report = self._archive.queries, self._archive.newest_hot_keys()
        return {
            "key": key,
            "groups": queries.findings_of_key(key) if key else (),
            "found": queries.findings(FindingFilter(key=key), limit=KEY_FINDINGS_MAX).items if key else (),
            "report": report,
            "hot": () if report is None else tuple(one for one in report.keys if one.key == key),
        }

    def hot_keys(self, asked: HotKeyPageParameters, snapshot: StatusSnapshot) -> Values:
        """Return the hot keys of a day; without a date also the current top keys of observed streams."""
        return {**self._hot_keys_of_day(asked), "streams": asked.of_streams(snapshot.streams), "now": snapshot.at}

    def _hot_keys_of_day(self, asked: HotKeyPageParameters) -> Values:
        reader = self._archive.reports
        if reader is None:
            return {"report": None, "days": (), "summaries": {}, "why": UNCONFIGURED, "map": None}
        days = reader.days(Job.HOT_KEYS, DAYS_SHOWN_MAX)
        report = asked.of_day(reader)
        if asked.date is not None and report is None:
            raise HTTPException(404, f"there is no report about {asked.date}")
        return {
            "report": report,
            "days": days,
            "summaries": {} if report is None else reader.summaries(report.summary.day),
            "why": "",
            "map": None if report is None else key_map(report.keys, report.summary.day, asked.measure),
            "measure": asked.measure,
            "measures": tuple(Measure),
        }

    def objective(self, name: str, asked: ChartParameters, snapshot: StatusSnapshot) -> Values:
        """Return an objective on each of its targets."""
        objective = objective_of(self._archive, name)
        slos = tuple(slo for slo in snapshot.slos if slo.objective.name == name)
        counted = {window: self._archive.queries.counts(window, snapshot.at) for window in windows_s(objective)}
        report, span = self._archive.newest_burn(name), asked.span(snapshot)
        return {
            "objective": objective,
            "slos": slos,
            "now": snapshot.at,
            "runbooks": self._runbooks,
            "windows": {slo.target: tuple(counted_windows(slo, counted)) for slo in slos},
            "span": span,
            "chart_of": self._count_charts(objective, slos, span),
            "detectable": {slo.target: self._archive.detectable.get((slo.target, objective.indicator), ()) for slo in slos},
            "report": report,
        }

    def books(self, reader: Reader) -> Values:
        """Return all runbooks, those about the service first."""
        books = [book for name, book in runbooks().items() if name != INDEX]
        groups = [(about, [book for book in books if book.about == about]) for about in ("service", "prober")]
        return {"index": runbooks()[INDEX], "groups": groups, "reader": reader}

    def book(self, name: str, reader: Reader) -> Values:
        """Return a runbook, also by the name of its file."""
        book = runbooks().get(name.removesuffix(SUFFIX))
        if book is None or book.name == INDEX:
            raise HTTPException(404, "there is no runbook of this name; the page of all runbooks has those that there are")
        return {"book": book, "reader": reader}

    def _count_charts(self, objective: Objective, slos: Iterable[SloSnapshot], span: ChartSpan) -> Mapping[str, Plot]:
        counts = slices_of(self._archive, objective, span)
        return {slo.target: share_plot(objective, counts.get(slo.target, {}), span) for slo in slos}


def _listed(ask: Callable[..., Page[Item]], asked: ListParameters, snapshot: StatusSnapshot) -> Values:
    """Return a page of a list, the query of the next one (empty: none), and the options of its form.

    The options are targets, probes and vantages.
    """
    page = ask(asked.wanted, limit=asked.limit, cursor=asked.cursor)
    older = {} if page.next_cursor is None else {**as_query(asked, without={"cursor"}), "cursor": page.next_cursor}
    places = {
        f"{name}s": tuple(dict.fromkeys(getattr(instance.probe_instance, name) for instance in snapshot.probe_instances))
        for name in ("target", "probe", "vantage")
    }
    return {"now": snapshot.at, "asked": asked, "found": page.items, "older": urlencode(older), **places}


def _is_alike(group: FindingGroup, record: FindingRecord) -> bool:
    return (group.subscription, group.kind, group.status) == (record.subscription, record.kind, record.status)
