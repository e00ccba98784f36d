"""What the nightly jobs say."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException

from api.models.keys import HotKey, HotKeyList, JobReport, KeySpread, ReportList
from api.query_parameters import HotKeyParameters, ReportParameters
from api.response_cache import ResponseCache
from api.view import Archive
from prober.reports.reader import ReportReader
from prober.sinks.metrics.label_values import Job

DAYS_MAX: Final = 100


def router(answers: ResponseCache, archive: Archive) -> APIRouter:
    """`GET /hot-keys` and `GET /reports`."""
    routes = APIRouter(tags=["reports"])

    @routes.get("/hot-keys", response_model=HotKeyList, response_description="The hot keys.")
    async def hot_keys(request: Request, asked: Annotated[HotKeyParameters, Query()]) -> Response:
        """The hot keys of a day: those that carry, or hold up, more than their share. 404 if there is no report about it."""
        return await answers.answer(request, lambda: _hot_keys(_reader(archive), asked))

    @routes.get("/reports", response_model=ReportList, response_description="The reports.")
    async def reports(request: Request, asked: Annotated[ReportParameters, Query()]) -> Response:
        """What each nightly job says about a day, in short."""
        return await answers.answer(request, lambda: _reports(_reader(archive), asked.date))

    return routes


def _reader(archive: Archive) -> ReportReader:
    if archive.reports is None:
        raise HTTPException(404, "it is not known where reports are; history.reports says where")
    return archive.reports


def _hot_keys(reader: ReportReader, asked: HotKeyParameters) -> HotKeyList:
    day = asked.date or reader.latest_day(Job.HOT_KEYS)
    report = None if day is None else reader.hot_keys(day, asked.limit, target=asked.target, subscription=asked.subscription)
    if report is None:
        raise HTTPException(404, f"there is no report on hot keys about {day}" if day else "there is no report on hot keys yet")
    return HotKeyList(
        report=JobReport.model_validate(report.summary),
        items=tuple(map(HotKey.model_validate, report.keys)),
        subscriptions=tuple(map(KeySpread.model_validate, report.subscriptions)),
        left_out=report.left_out,
    )


def _reports(reader: ReportReader, day: date | None) -> ReportList:
    days = sorted({day for job in Job for day in reader.days(job, DAYS_MAX)}, reverse=True)[:DAYS_MAX]
    shown = day or (days[0] if days else None)
    summaries = {} if shown is None else reader.summaries(shown)
    return ReportList(day=shown, items=tuple(map(JobReport.model_validate, summaries.values())), days=tuple(days))
