"""The pages for people. Each is made on the server, from the same store and the same snapshot as the answers for programs.

They are written in a thread, so that the event loop, on which probes measure time, does not stand still meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final, TypeAlias, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from api.current_status import CurrentStatus
from api.problems import AbsentPage, error_answer, unreachable
from api.query_parameters import (
    ChartParameters,
    EvidenceParameters,
    FindingParameters,
    HotKeyParameters,
    IncidentParameters,
    QueryParameters,
    RunParameters,
    SiteParameters,
)
from api.recent import Recent
from api.response_cache import ResponseCache
from api.runbooks import Reader
from api.templates import rendered_page, root_of
from api.view import Archive
from api.view_models import PageContents, PageNotFound
from prober.config.models import Api
from prober.sinks.history.store import HistoryError
from prober.sinks.status.database import NotStorable, StatusError
from prober.sinks.status.listings import BadCursor

_FORM_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)

Values: TypeAlias = Mapping[str, object]
Asked = TypeVar("Asked", bound=QueryParameters)


def router(answers: ResponseCache, current: CurrentStatus, archive: Archive, settings: Api) -> APIRouter:
    """`/` and the pages of incidents, findings, runs, probes, objectives, comparisons, keys, hot keys, runbooks, and of the API."""
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    contents = PageContents(archive, settings.runbooks, writes=settings.token is not None)
    recent = Recent(archive)
    _add_current(routes, answers, current, contents, recent)
    _add_objectives(routes, answers, current, contents)
    _add_sites(routes, answers, current, contents, recent)
    _add_kept(routes, answers, contents)
    return routes


def _add_current(routes: APIRouter, answers: ResponseCache, current: CurrentStatus, contents: PageContents, recent: Recent) -> None:
    """The pages that say how things stand at the moment."""

    @routes.get("/")
    async def status_page(request: Request) -> Response:
        """How everything stands."""
        snapshot = await current.snapshot()

        def values() -> Values:
            span = _asked(request, ChartParameters).span(snapshot)
            return {
                "runbooks": contents.runbooks,
                "snapshot": snapshot,
                "linked": snapshot.stored,
                "span": span,
                "charts_of": recent.charts(snapshot, span),
                "hot": recent.hot_keys(),
            }

        return await answers.ask(lambda: _made(request, "status.html", values))

    @routes.get("/findings")
    async def findings_page(request: Request) -> Response:
        """Findings, newest first."""
        snapshot = await current.snapshot()
        return await answers.ask(
            lambda: _made(request, "findings.html", lambda: contents.findings(_asked(request, FindingParameters), snapshot))
        )

    @routes.get("/incidents")
    async def incidents_page(request: Request) -> Response:
        """Incidents, newest first."""
        snapshot = await current.snapshot()
        return await answers.ask(
            lambda: _made(request, "incidents.html", lambda: contents.incidents(_asked(request, IncidentParameters), snapshot))
        )

    @routes.get("/incidents/{incident_id}")
    async def incident_page(request: Request, incident_id: str) -> Response:
        """One incident."""
        snapshot = await current.snapshot()
        return await answers.ask(lambda: _made(request, "incident.html", lambda: contents.incident(incident_id, snapshot)))

    @routes.get("/runs")
    async def runs_page(request: Request) -> Response:
        """Runs, newest first."""
        snapshot = await current.snapshot()
        return await answers.ask(
            lambda: _made(request, "runs.html", lambda: contents.runs(_asked(request, RunParameters), snapshot))
        )

    @routes.get("/hot-keys")
    async def hot_keys_page(request: Request) -> Response:
        """The hot keys of a day, and the top keys of observed streams now."""
        snapshot = await current.snapshot()
        return await answers.ask(
            lambda: _made(request, "hot_keys.html", lambda: contents.hot_keys(_asked(request, HotKeyParameters), snapshot))
        )


def _add_objectives(routes: APIRouter, answers: ResponseCache, current: CurrentStatus, contents: PageContents) -> None:
    """The pages of objectives."""

    @routes.get("/slos")
    async def objectives_page(request: Request) -> Response:
        """Every objective."""
        snapshot = await current.snapshot()
        return await answers.ask(lambda: _made(request, "slos.html", lambda: contents.objectives(snapshot)))

    @routes.get("/slos/{name}")
    async def objective_page(request: Request, name: str) -> Response:
        """One objective."""
        snapshot = await current.snapshot()
        return await answers.ask(
            lambda: _made(request, "slo.html", lambda: contents.objective(name, _asked(request, ChartParameters), snapshot))
        )

    @routes.get("/comparisons")
    async def comparisons_page(request: Request) -> Response:
        """Targets that are compared."""
        snapshot = await current.snapshot()
        return await answers.ask(lambda: _made(request, "comparisons.html", lambda: contents.comparisons(snapshot)))


def _add_sites(routes: APIRouter, answers: ResponseCache, current: CurrentStatus, contents: PageContents, recent: Recent) -> None:
    """The pages of probes, and of one on one target from one vantage."""

    @routes.get("/probes")
    async def probes_page(request: Request) -> Response:
        """Every site, probe by probe."""
        snapshot = await current.snapshot()
        return await answers.ask(lambda: _made(request, "probes.html", lambda: contents.sites(snapshot)))

    @routes.get("/probes/{probe:path}")
    async def probe_page(request: Request, probe: str) -> Response:
        """The sites of a probe; where only one agrees with what is asked, all about it."""
        snapshot = await current.snapshot()

        def values() -> Values:
            asked = SiteParameters.model_validate(dict(request.query_params))  # an empty part says something
            return contents.probe(probe, asked, snapshot, recent)

        return await answers.ask(lambda: _made(request, "probe.html", values))


def _add_kept(routes: APIRouter, answers: ResponseCache, contents: PageContents) -> None:
    """The pages of what does not change any more."""

    @routes.get("/findings/{finding_id}")
    async def finding_page(request: Request, finding_id: str) -> Response:
        """One finding with everything that is needed to believe it."""

        def values() -> Values:
            return contents.finding(finding_id, _asked(request, EvidenceParameters).show)

        return await answers.ask(lambda: _made(request, "finding.html", values))

    @routes.get("/runs/{run_id}")
    async def run_page(request: Request, run_id: str) -> Response:
        """One run."""
        return await answers.ask(lambda: _made(request, "run.html", lambda: contents.run(run_id)))

    @routes.get("/keys")
    async def key_page(request: Request, key: Annotated[str, Query()] = "") -> Response:
        """What was found on a key."""
        return await answers.ask(lambda: _made(request, "key.html", lambda: contents.key(key)))

    @routes.get("/runbooks")
    async def runbooks_page(request: Request) -> Response:
        """Every runbook."""
        return await answers.ask(lambda: _made(request, "runbooks.html", lambda: contents.books(_reader(request))))

    @routes.get("/runbooks/{name}")
    async def runbook_page(request: Request, name: str) -> Response:
        """The runbook of an alert. The query fills in its placeholders."""
        return await answers.ask(lambda: _made(request, "runbook.html", lambda: contents.book(name, _reader(request))))

    @routes.get("/docs")
    async def reference_page(request: Request) -> Response:
        """The operations and answers of the API."""
        return await answers.ask(lambda: _made(request, "docs.html", lambda: {"document": request.app.openapi()}))


def _reader(request: Request) -> Reader:
    return Reader(root_of(request), str(request.base_url), request.query_params)


def _made(request: Request, template: str, values: Callable[[], Values]) -> Response:
    """The page, or one that says why it cannot be made; for a program that wants no page, problem details. Raises `AbsentPage`."""
    try:
        return rendered_page(template, {"root": root_of(request), "address": request.base_url, **values()})
    except PageNotFound as absent:
        raise AbsentPage(str(absent)) from None
    except (BadCursor, NotStorable, ValidationError) as wrong:
        return error_answer(request, 400, _wrong(wrong), is_page=True)
    except (StatusError, HistoryError) as error:
        return unreachable(request, error, is_page=True)


def _asked(request: Request, question: type[Asked]) -> Asked:
    """The parameters of the address; those that a form leaves empty are not asked, and its times are in UTC."""
    given = {name: value for name, value in request.query_params.items() if value}
    return question.model_validate({name: _in_utc(value) if name in {"since", "until"} else value for name, value in given.items()})


def _in_utc(value: str) -> str:
    """A time with its zone: a field of a form says none, and leaves out seconds that are 0."""
    return f"{value}{':00' * (len(value) == 16)}Z" if _FORM_TIME.fullmatch(value) else value


def _wrong(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}" for one in found)
