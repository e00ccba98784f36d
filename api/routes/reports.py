"""Reports of the nightly jobs."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException

from api.dependencies import Snapshot, Stored
from api.models.keys import HotKey, HotKeyList, JobReport, KeySpread, ReportList, StreamAnswer
from api.query_parameters import HotKeyParameters, ReportParameters
from api.view import Archive
from prober.reports.reader import ReportReader
from prober.sinks.metrics.label_values import Job

router = APIRouter(tags=["reports"])

DAYS_MAX: Final = 100


@router.get("/hot-keys", response_description="The hot keys.")
def hot_keys(archive: Stored, snapshot: Snapshot, asked: Annotated[HotKeyParameters, Query()]) -> HotKeyList:
    """List the hot keys of a day: keys with more than their share of load or delay.

    Without `date` the newest report, and the current top keys of observed streams. 404 if neither exists.
    """
    streams = tuple(map(StreamAnswer.model_validate, asked.of_streams(snapshot.streams)))
    try:
        return _hot_keys_of_day(_reader(archive), asked).model_copy(update={"streams": streams})
    except HTTPException:
        if not streams:
            raise
        return HotKeyList(report=None, items=(), streams=streams, subscriptions=(), left_out=0)


@router.get("/reports", response_description="The reports.")
def reports(archive: Stored, asked: Annotated[ReportParameters, Query()]) -> ReportList:
    """Return the summary of each nightly job for a day."""
    reader = _reader(archive)
    days = sorted({day for job in Job for day in reader.days(job, DAYS_MAX)}, reverse=True)[:DAYS_MAX]
    shown = asked.date or next(iter(days), None)
    summaries = {} if shown is None else reader.summaries(shown)
    return ReportList(day=shown, items=tuple(map(JobReport.model_validate, summaries.values())), days=tuple(days))


def _reader(archive: Archive) -> ReportReader:
    if archive.reports is None:
        raise HTTPException(404, "history.reports is not configured, so there are no reports of nightly jobs")
    return archive.reports


def _hot_keys_of_day(reader: ReportReader, asked: HotKeyParameters) -> HotKeyList:
    report = asked.of_day(reader)
    if report is None:
        raise HTTPException(404, f"there is no report on hot keys {f'about {asked.date}' if asked.date else 'yet'}")
    return HotKeyList(
        report=JobReport.model_validate(report.summary),
        items=tuple(map(HotKey.model_validate, report.keys)),
        streams=(),
        subscriptions=tuple(map(KeySpread.model_validate, report.subscriptions)),
        left_out=report.left_out,
    )
