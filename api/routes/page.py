"""HTML pages. They are rendered on the server, from the same store and the same snapshot as the responses for programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Final, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from api.charts import LATENCIES, TITLES, TimeRange, histogram_plot, share_plot, thresholds
from api.dependencies import Cached, Snapshot, Stored, StoredSnapshot
from api.finding_case import case_of
from api.heat_map import Measure, key_map
from api.incident_chart import incident_chart
from api.lookups import finding_of, incident_of, objective_of, run_of
from api.models.base import API
from api.problems import wrong
from api.query_parameters import (
    ChartParameters,
    EvidenceParameters,
    FindingParameters,
    HotKeyPageParameters,
    IncidentParameters,
    InstanceParameters,
    ListParameters,
    QueryParameters,
    RunParameters,
    as_query,
)
from api.recent import Recent, slices_of
from api.runbooks import INDEX, SUFFIX, Reader, runbooks
from api.templates import rendered_page, root_of
from api.timeline import RANGE, Timeline, timeline_span
from api.view import Archive
from prober.core.coverage import opportunities_of
from prober.core.findings import Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.probes.catalogue import is_fed
from prober.reports.reader import ReportReader
from prober.sinks.live.snapshot import InstanceSnapshot, StatusSnapshot
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.listings import FindingFilter, Item, Page, RunFilter
from prober.sinks.status.over_time import OverTime
from prober.sinks.status.queries import FindingGroup
from prober.sinks.status.records import FindingRecord
from prober.sinks.status.slices import counted_windows
from prober.slo.figures import figures_as_text
from prober.slo.objectives import HOUR_S, windows_s

FINDINGS_SHOWN_MAX: Final = 100
INCIDENT_FINDINGS_MAX: Final = 20
INSTANCE_RUNS_MAX: Final = 5
INSTANCE_FINDINGS_MAX: Final = 5
KEY_FINDINGS_MAX: Final = 20
DAYS_SHOWN_MAX: Final = 14
ACKNOWLEDGEMENTS_FRESH_S: Final = 5.0
ACKNOWLEDGED_H: Final = 8
"""Default duration of an acknowledgement."""
UNCONFIGURED: Final = (
    "It is not configured where the nightly jobs put their reports (history.reports), so nothing is known about hot keys."
)
_FORM_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)

Asked = TypeVar("Asked", bound=QueryParameters)
Values: TypeAlias = dict[str, object]

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


async def as_page(request: Request) -> None:
    """Mark errors of a request to be answered with a page, unless the client prefers data. A dependency."""
    request.state.is_page = True


# --- current state ---------------------------------------------------------------------------------------------------------------


@router.get("/")
def status_page(request: Request, recent: Cached, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of the current status, with the timeline and hot keys."""
    timeline = _timeline(recent, snapshot, _asked(request, ChartParameters).range)
    return _page(request, "status.html", snapshot=snapshot, linked=snapshot.stored, timeline=timeline, hot=recent.hot_keys())


@router.get("/findings")
def findings_page(request: Request, archive: Stored, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of findings, newest first."""
    listed = _listed(archive.queries.findings, _asked(request, FindingParameters), snapshot)
    return _page(request, "findings.html", **listed, kinds=tuple(Kind), statuses=tuple(Status))


@router.get("/incidents")
def incidents_page(request: Request, archive: Stored, recent: Cached, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of incidents, newest first."""
    asked = _asked(request, IncidentParameters)
    feed = urlencode(as_query(asked, without={"cursor", "limit"}))
    listed = _listed(archive.queries.incidents, asked, snapshot)
    ask = partial(archive.queries.acknowledgements, snapshot.at)
    acknowledged = recent.fresh("acknowledgements", ACKNOWLEDGEMENTS_FRESH_S, ask)
    return _page(request, "incidents.html", **listed, feed=feed, symptoms=tuple(Symptom), acknowledged=acknowledged)


@router.get("/incidents/{incident_id}")
def incident_page(request: Request, archive: Stored, snapshot: Snapshot, incident_id: str) -> HTMLResponse:
    """Return the page of one incident with its exemplar and its newest findings."""
    queries, incident = archive.queries, incident_of(archive, incident_id)
    shown = queries.finding(incident.exemplar.finding_id) if incident.exemplar.finding_id else None
    return _page(
        request,
        "incident.html",
        now=snapshot.at,
        snapshot=snapshot,
        incident=incident,
        case=None if shown is None else case_of(shown, None, None),
        chart=incident_chart(OverTime(queries.database), incident, snapshot.at),
        found=queries.findings(FindingFilter(incident_id=incident_id), limit=INCIDENT_FINDINGS_MAX).items,
        writes=request.app.state.settings.token is not None,
        acknowledging=f"{API.lstrip('/')}/incidents/{quote(incident.incident_id, safe='')}/acknowledge",
        suggested_end=(snapshot.at // HOUR_S + ACKNOWLEDGED_H) * HOUR_S,
    )


@router.get("/runs")
def runs_page(request: Request, archive: Stored, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of runs, newest first."""
    listed = _listed(archive.queries.runs, _asked(request, RunParameters), snapshot)
    return _page(request, "runs.html", **listed, verdicts=tuple(Verdict))


@router.get("/hot-keys")
def hot_keys_page(request: Request, archive: Stored, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of the hot keys of a day; without a date also the current top keys of observed streams."""
    asked, reader = _asked(request, HotKeyPageParameters), archive.reports
    reported: Values = {"report": None, "days": (), "summaries": {}, "why": UNCONFIGURED, "map": None}
    if reader is not None:
        reported = _hot_keys_of_day(reader, asked)
    return _page(request, "hot_keys.html", **reported, streams=asked.of_streams(snapshot.streams), now=snapshot.at)


# --- objectives and probes -------------------------------------------------------------------------------------------------------


@router.get("/slos")
def objectives_page(request: Request, archive: Stored, recent: Cached, snapshot: StoredSnapshot) -> HTMLResponse:
    """Return the page of all objectives, with their status on each target."""
    slos = {one.name: tuple(slo for slo in snapshot.slos if slo.objective.name == one.name) for one in archive.objectives}
    uptime = recent.monthly_uptime(snapshot.at)
    return _page(request, "slos.html", now=snapshot.at, objectives=archive.objectives, slos=slos, uptime=uptime)


@router.get("/slos/{name}")
def objective_page(request: Request, archive: Stored, snapshot: StoredSnapshot, name: str) -> HTMLResponse:
    """Return the page of one objective, on each of its targets."""
    objective, span = objective_of(archive, name), _asked(request, ChartParameters).span(snapshot)
    slos = tuple(slo for slo in snapshot.slos if slo.objective.name == name)
    counted = {window: archive.queries.counts(window, snapshot.at) for window in windows_s(objective)}
    slices = slices_of(archive, objective, span)
    return _page(
        request,
        "slo.html",
        objective=objective,
        slos=slos,
        now=snapshot.at,
        windows={slo.target: tuple(counted_windows(slo, counted)) for slo in slos},
        span=span,
        chart_of={slo.target: share_plot(objective, slices.get(slo.target, {}), span) for slo in slos},
        detectable={slo.target: archive.detectable.get((slo.target, objective.indicator), ()) for slo in slos},
        report=archive.newest_burn(name),
    )


@router.get("/comparisons")
def comparisons_page(request: Request, archive: Stored, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of comparisons of targets."""
    return _page(request, "comparisons.html", now=snapshot.at, compared=archive.compared(snapshot.at))


@router.get("/probes")
def probes_page(request: Request, recent: Cached, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of all probe instances, by probe."""
    return _page(request, "probes.html", **_probes(recent, snapshot, snapshot.probe_instances))


@router.get("/probes/{probe:path}")
def probe_page(request: Request, archive: Stored, recent: Cached, snapshot: Snapshot, probe: str) -> HTMLResponse:
    """Return the page of the probe instances of a probe; in full, if only one matches."""
    asked = _validated(InstanceParameters, dict(request.query_params))  # an empty part is a filter too
    found = tuple(
        instance
        for instance in snapshot.probe_instances
        if instance.probe_instance.probe == probe and asked.agrees(instance.probe_instance)
    )
    if not found:
        raise HTTPException(404, "there is no such probe, or it does not run there; the page of all probes has those that do")
    values = _probes(recent, snapshot, found, probe)
    if len(found) > 1:
        return _page(request, "probe.html", **values)
    span = asked.span(snapshot)
    instance, whole = found[0].probe_instance, timeline_span(snapshot.at, span.reach)
    return _page(
        request,
        "probe.html",
        **values,
        **_instance(archive, found[0], snapshot),
        span=span,
        drawn=recent.charts_of(instance, span),
        spread={TITLES[one]: recent.latency_map(instance, one, whole) for one in LATENCIES},
        others="".join(f"{urlencode({name: value})}&" for name, value in asked if name != "range" and value is not None),
    )


# --- past records ----------------------------------------------------------------------------------------------------------------


@router.get("/findings/{finding_id}")
def finding_page(request: Request, archive: Stored, snapshot: Snapshot, finding_id: str) -> HTMLResponse:
    """Return the page of one finding with its run, and the number of equal findings on its key."""
    shown = _asked(request, EvidenceParameters).show
    queries, record = archive.queries, finding_of(archive, finding_id)
    alike = next((group for group in queries.findings_of_key(record.key) if _is_alike(group, record)), None)
    return _page(
        request,
        "finding.html",
        case=case_of(record, queries.run(record.run_id), alike, shown),
        snapshot=snapshot,
        record=record,
        incident=None if record.incident_id is None else queries.incident(record.incident_id),
    )


@router.get("/runs/{run_id}")
def run_page(request: Request, archive: Stored, run_id: str) -> HTMLResponse:
    """Return the page of one run with its findings."""
    run, limits = run_of(archive, run_id), thresholds(archive.objectives)
    return _page(
        request,
        "run.html",
        run=run,
        found=archive.queries.findings(FindingFilter(run_id=run_id), limit=FINDINGS_SHOWN_MAX).items,
        figures=figures_as_text(run.figures),
        opportunities=opportunities_of(run.counters),
        spread=[histogram_plot(name, took, limits.get(name)) for name, took in run.durations.items() if took.histogram],
    )


@router.get("/keys")
def key_page(request: Request, archive: Stored, key: Annotated[str, Query()] = "") -> HTMLResponse:
    """Return the page of the findings on a key, and its entries in the report on hot keys."""
    queries, report = archive.queries, archive.newest_hot_keys()
    return _page(
        request,
        "key.html",
        key=key,
        groups=queries.findings_of_key(key) if key else (),
        found=queries.findings(FindingFilter(key=key), limit=KEY_FINDINGS_MAX).items if key else (),
        report=report,
        hot=() if report is None else tuple(one for one in report.keys if one.key == key),
    )


@router.get("/runbooks")
def runbooks_page(request: Request) -> HTMLResponse:
    """Return the page of all runbooks, those about the service first."""
    books = [book for name, book in runbooks().items() if name != INDEX]
    groups = [(about, [book for book in books if book.about == about]) for about in ("service", "prober")]
    return _page(request, "runbooks.html", index=runbooks()[INDEX], groups=groups, reader=_reader(request))


@router.get("/runbooks/{name}")
def runbook_page(request: Request, name: str) -> HTMLResponse:
    """Return the page of an alert's runbook, also by the name of its file, with its placeholders filled in from the query."""
    book = runbooks().get(name.removesuffix(SUFFIX))
    if book is None or book.name == INDEX:
        raise HTTPException(404, "there is no runbook of this name; the page of all runbooks has those that there are")
    return _page(request, "runbook.html", book=book, reader=_reader(request))


@router.get("/docs")
def reference_page(request: Request) -> HTMLResponse:
    """Return the page of operations and responses of the API."""
    return _page(request, "docs.html", document=request.app.openapi())


# --- parts of several pages ------------------------------------------------------------------------------------------------------


def _page(request: Request, template: str, **values: object) -> HTMLResponse:
    common = {"root": root_of(request), "address": request.base_url, "runbooks": request.app.state.settings.runbooks}
    return rendered_page(template, common | values)


def _reader(request: Request) -> Reader:
    return Reader(root_of(request), str(request.base_url), request.query_params)


def _timeline(recent: Recent, snapshot: StatusSnapshot, reach: TimeRange | None = None) -> Timeline:
    return recent.timeline(snapshot, timeline_span(snapshot.at, reach or RANGE))


def _probes(recent: Recent, snapshot: StatusSnapshot, shown: tuple[InstanceSnapshot, ...], probe: str | None = None) -> Values:
    timeline = _timeline(recent, snapshot)
    return {"now": snapshot.at, "linked": snapshot.stored, "probe": probe, "probe_instances": shown, "timeline": timeline}


def _instance(archive: Archive, shown: InstanceSnapshot, snapshot: StatusSnapshot) -> Values:
    instance, queries = shown.probe_instance, archive.queries
    where = instance.key._asdict()
    return {
        "shown": shown,
        "probe_instance": instance,
        "incidents": tuple(one for one in snapshot.incidents if instance.key in one.affected),
        "runs": queries.runs(RunFilter(**where), limit=INSTANCE_RUNS_MAX).items,
        "found": queries.findings(FindingFilter(**where), limit=INSTANCE_FINDINGS_MAX).items,
        "slos": tuple(
            slo for slo in snapshot.slos if slo.target == instance.target and is_fed(slo.objective.indicator, {instance.probe})
        ),
        "query": urlencode({name: value for name, value in where.items() if value}),
    }


def _hot_keys_of_day(reader: ReportReader, asked: HotKeyPageParameters) -> Values:
    report = asked.of_day(reader)
    if asked.date is not None and report is None:
        raise HTTPException(404, f"there is no report about {asked.date}")
    return {
        "report": report,
        "days": reader.days(Job.HOT_KEYS, DAYS_SHOWN_MAX),
        "summaries": {} if report is None else reader.summaries(report.summary.day),
        "why": "",
        "map": None if report is None else key_map(report.keys, report.summary.day, asked.measure),
        "measure": asked.measure,
        "measures": tuple(Measure),
    }


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


def _asked(request: Request, question: type[Asked]) -> Asked:
    """Return the parameters of the address, without those that a form leaves empty, and with times in UTC. Raises `HTTPException`."""
    given = {name: value for name, value in request.query_params.items() if value}
    return _validated(question, {name: _in_utc(value) if name in {"since", "until"} else value for name, value in given.items()})


def _validated(question: type[Asked], given: dict[str, str]) -> Asked:
    try:
        return question.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise HTTPException(400, "; ".join(wrong({**one, "loc": ("query", *one["loc"])}) for one in found)) from None


def _in_utc(value: str) -> str:
    """Return a time with its zone: a field of a form contains none, and leaves out seconds that are 0."""
    return f"{value}{':00' * (len(value) == 16)}Z" if _FORM_TIME.fullmatch(value) else value
