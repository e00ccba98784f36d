"""Query parameters of each list: names, formats, and the filters of the store that they set.

Unknown and repeated parameters are rejected: a misspelled filter must not return all records.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.exceptions import HTTPException

from api.charts import ChartSpan, TimeRange
from api.heat_map import Measure
from prober.core.findings import Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.monitoring.top_keys import StreamKeys
from prober.reports.reader import ReportReader
from prober.reports.values import HotKeysReport
from prober.runs.probe_instance import ProbeInstance
from prober.sinks.live.feed import WatchedRun
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.listings import CURSOR_LENGTH_MAX, PAGE_MAX, FindingFilter, IncidentFilter, RunFilter
from prober.sinks.status.records import Shown

PAGE: Final = 50
TEXT_LENGTH_MAX: Final = 1024
"""Maximum length of a stored text; an ordering key has at most as many bytes."""
_COLUMNS: Final = {"run": "run_id", "incident": "incident_id"}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _written_as_time(value: object) -> object:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError("write a time with its zone, like 2026-03-01T12:00:00Z (in an address, + is %2B)")
    return value


def _written_as_date(value: object) -> object:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError("write a day like 2026-02-28")
    return value


Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=TEXT_LENGTH_MAX)]
Printable: TypeAlias = Annotated[str, Field(min_length=1, max_length=TEXT_LENGTH_MAX, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
"""Text without control characters."""
Moment: TypeAlias = Annotated[datetime.datetime, BeforeValidator(_written_as_time), Field(examples=["2026-03-01T12:00:00Z"])]
Date: TypeAlias = Annotated[datetime.date, BeforeValidator(_written_as_date), Field(examples=["2026-02-28"])]


class QueryParameters(BaseModel):
    """Base of query parameters. Undeclared ones are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Paged(QueryParameters):
    """Selection of a page of a list."""

    limit: Annotated[int, Field(ge=1, le=PAGE_MAX, examples=[20])] = PAGE
    """Maximum number of items."""
    cursor: Annotated[str | None, Field(max_length=CURSOR_LENGTH_MAX)] = None
    """`next_cursor` of the page before, with the same filter; without it the first page."""


def _columns(asked: Paged) -> dict[str, Any]:
    """Return the filters of a list, by column of the store; times in seconds since 1970."""
    given = ((_COLUMNS.get(name, name), value) for name, value in asked if name not in Paged.model_fields)
    return {name: value.timestamp() if isinstance(value, datetime.datetime) else value for name, value in given}


def as_query(asked: Paged, without: Collection[str] = ()) -> dict[str, str]:
    """Return the parameters of a request, in the notation of an address."""
    given = asked.model_dump(mode="json", exclude_none=True, exclude=set(without), exclude_defaults=True)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


class RunParameters(Paged):
    """Filters of a list of runs; all given ones must match."""

    probe: Annotated[Name | None, Field(examples=["ordering"])] = None
    """Name of the probe."""
    verdict: Annotated[Verdict | None, Field(examples=["FAIL"])] = None
    """Verdict of the run."""
    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """Name of the target."""
    vantage: Annotated[Name | None, Field(examples=["wire"])] = None
    """Vantage of the run."""
    part: Annotated[Name | None, Field(examples=["2/4"])] = None
    """Part of the probe's keys."""
    instance: Annotated[Printable | None, Field(examples=["prober-0"])] = None
    """Name of the prober that executed it."""
    since: Moment | None = None
    """Earliest start."""
    until: Moment | None = None
    """Upper bound of the start, excluded."""

    @property
    def wanted(self) -> RunFilter:
        """Filter for the store."""
        return RunFilter(**_columns(self))


class FindingParameters(Paged):
    """Filters of a list of findings; all given ones must match."""

    kind: Annotated[Kind | None, Field(examples=["REDELIVERY_SKIP"])] = None
    """Kind of finding."""
    status: Annotated[Status | None, Field(examples=["violation"])] = None
    """Certainty of the finding."""
    key: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX, examples=["ordering-3"])] = None
    """Ordering key."""
    subscription: Annotated[Name | None, Field(examples=["projects/my-project/subscriptions/okp-ordering"])] = None
    """Full name of the subscription."""
    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """Name of the target."""
    probe: Annotated[Name | None, Field(examples=["ordering"])] = None
    """Name of the probe."""
    vantage: Annotated[Name | None, Field(examples=["wire"])] = None
    """Vantage of the run."""
    part: Annotated[Name | None, Field(examples=["2/4"])] = None
    """Part of the probe's keys."""
    instance: Annotated[Printable | None, Field(examples=["prober-0"])] = None
    """Name of the prober that made it."""
    run: Annotated[Name | None, Field(examples=["ordering-1f3a9c02"])] = None
    """Id of the run that made it."""
    incident: Annotated[Name | None, Field(examples=["ordering-1f3a9c02-redelivery"])] = None
    """Id of its incident."""
    open: bool | None = None
    """true: its incident is open. false: it is closed, or the finding failed no run."""
    since: Moment | None = None
    """Earliest time of the finding."""
    until: Moment | None = None
    """Upper bound of the time of the finding, excluded."""

    @property
    def wanted(self) -> FindingFilter:
        """Filter for the store."""
        return FindingFilter(**_columns(self))


class IncidentParameters(Paged):
    """Filters of a list of incidents; all given ones must match."""

    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """Name of the target."""
    symptom: Annotated[Symptom | None, Field(examples=["redelivery"])] = None
    """Symptom of the incident."""
    open: bool | None = None
    """true: open incidents. false: closed incidents."""
    since: Moment | None = None
    """Earliest start."""
    until: Moment | None = None
    """Upper bound of the start, excluded."""

    @property
    def wanted(self) -> IncidentFilter:
        """Filter for the store."""
        return IncidentFilter(**_columns(self))


ListParameters: TypeAlias = RunParameters | FindingParameters | IncidentParameters


class EvidenceParameters(QueryParameters):
    """Selection of events."""

    show: Annotated[Shown, Field(examples=["smallest"])] = Shown.SMALLEST
    """Minimal reproduction of the finding, or all events of its key until then: the latest ones, if they are many."""


class KeyParameters(QueryParameters):
    """Selection of an ordering key."""

    key: Annotated[str, Field(max_length=TEXT_LENGTH_MAX, examples=["ordering-3"])]
    """Ordering key; any text."""


class SubscriptionParameters(QueryParameters):
    """Period of counted findings."""

    since: Moment | None = None
    """Start of the period; without it the last 24 hours."""


class ChartParameters(QueryParameters):
    """Period of charts."""

    range: Annotated[TimeRange | None, Field(examples=["24h"])] = None
    """Length of the period; without it six hours, or one hour while all probers are younger than that."""

    def span(self, snapshot: StatusSnapshot) -> ChartSpan:
        """Return the period of the charts."""
        oldest = min((prober.started_at for prober in snapshot.probers), default=snapshot.started_at)
        usual = TimeRange.HOUR if snapshot.at - oldest <= TimeRange.HOUR.seconds else TimeRange.HOURS
        return ChartSpan.until(snapshot.at, self.range or usual)


class LiveParameters(QueryParameters):
    """Selection of the newest matching run in progress, and of its events."""

    run: Annotated[str, Field(max_length=TEXT_LENGTH_MAX)] = ""
    """Id of the run."""
    probe: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """Name of the probe."""
    target: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """Name of the target."""
    vantage: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """Vantage of the run."""
    part: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """Part of the probe's keys."""
    key: Annotated[str, Field(max_length=TEXT_LENGTH_MAX)] = ""
    """Ordering key of the events; empty: all keys."""
    after: Annotated[int, Field(ge=0)] = 0
    """Number of the event after which the events start."""

    def agrees(self, run: WatchedRun) -> bool:
        """Return whether a run matches."""
        where = run.probe_instance
        return (
            self.run in ("", run.run_id)
            and self.probe in (None, where.probe)
            and is_at(where, self.target, self.vantage, self.part)
        )


class InstanceParameters(ChartParameters):
    """Filters of a probe's instances; all given ones must match."""

    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """Name of the target."""
    vantage: Annotated[Name | None, Field(examples=["wire"])] = None
    """Vantage of the probe instance."""
    part: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX, examples=["2/4"])] = None
    """Part of the probe's keys; empty: probe instances with undivided keys."""

    def agrees(self, instance: ProbeInstance) -> bool:
        """Return whether a probe instance matches."""
        return is_at(instance, self.target, self.vantage, self.part)


class ReportParameters(QueryParameters):
    """Selection of the day of a report."""

    date: Date | None = None
    """Day in UTC; without it the newest day with a report."""


class HotKeyParameters(ReportParameters):
    """Filters of a list of hot keys."""

    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """Name of the target."""
    subscription: Annotated[Name | None, Field(examples=["projects/my-project/subscriptions/okp-ordering"])] = None
    """Full name of the subscription; for an observed stream its name in metrics."""
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX, examples=[20])] = PAGE
    """Maximum number of keys; for each observed stream at most ten."""

    def of_day(self, reader: ReportReader) -> HotKeysReport | None:
        """Return the requested report, or None if it does not exist. Raises HistoryError."""
        day = self.date or reader.latest_day(Job.HOT_KEYS)
        return None if day is None else reader.hot_keys(day, self.limit, target=self.target, subscription=self.subscription)

    def of_streams(self, streams: Iterable[StreamKeys]) -> tuple[StreamKeys, ...]:
        """Return the requested observed streams, each with at most `limit` top keys; none if a day is given."""
        if self.date is not None:
            return ()
        asked = (one for one in streams if self.target in (None, one.target) and self.subscription in (None, one.subscription))
        return tuple(replace(one, top=one.top[: self.limit]) for one in asked)


class HotKeyPageParameters(HotKeyParameters):
    """Filters of hot keys, and the measure of their map."""

    measure: Measure = Measure.BACKLOG
    """Measure that the map shows over the day."""


async def said_once(request: Request) -> None:
    """Reject a parameter that is given twice. (A coroutine, since FastAPI runs plain functions in a thread.)"""
    twice = [name for name, count in Counter(name for name, _ in request.query_params.multi_items()).items() if count > 1]
    if twice:
        raise HTTPException(400, f"{twice[0][:TEXT_LENGTH_MAX]}: give it once")


def is_at(instance: ProbeInstance, target: str | None, vantage: str | None, part: str | None) -> bool:
    """Return whether a probe instance matches every given value."""
    wanted = (target, instance.target), (vantage, instance.vantage), (part, instance.part)
    return all(one in (None, there) for one, there in wanted)
