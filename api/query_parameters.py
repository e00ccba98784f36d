"""Questions to the API: the parameters of each list, how they are written, and what they mean to the store.

A parameter that does not exist is refused, since a filter with a slip of the pen must not give everything; so is one that is given twice.
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
"""Nothing that is kept is longer; an ordering key has at most as many bytes."""
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
"""Without control characters."""
Moment: TypeAlias = Annotated[datetime.datetime, BeforeValidator(_written_as_time), Field(examples=["2026-03-01T12:00:00Z"])]
Date: TypeAlias = Annotated[datetime.date, BeforeValidator(_written_as_date), Field(examples=["2026-02-28"])]


class QueryParameters(BaseModel):
    """Nothing but what is declared may be asked."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Paged(QueryParameters):
    """Which part of a list."""

    limit: Annotated[int, Field(ge=1, le=PAGE_MAX, examples=[20])] = PAGE
    """How many items at most."""
    cursor: Annotated[str | None, Field(max_length=CURSOR_LENGTH_MAX)] = None
    """`next_cursor` of the page before, with the same filter; without it the list begins."""


def _columns(asked: Paged) -> dict[str, Any]:
    """The filters of a list, by column of the store; times in seconds since 1970."""
    given = ((name, value) for name, value in asked if name not in Paged.model_fields)
    return {_COLUMNS.get(name, name): seconds(value) if isinstance(value, datetime.datetime) else value for name, value in given}


def as_query(asked: Paged, without: Collection[str] = ()) -> dict[str, str]:
    """The parameters of a request, as they are written in an address."""
    given = asked.model_dump(mode="json", exclude_none=True, exclude=set(without), exclude_defaults=True)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


class RunParameters(Paged):
    """Which runs: all that agree with what is given."""

    probe: Annotated[Name | None, Field(examples=["ordering"])] = None
    """Of this probe."""
    verdict: Annotated[Verdict | None, Field(examples=["FAIL"])] = None
    """That ended with this verdict."""
    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """On this target."""
    vantage: Annotated[Name | None, Field(examples=["wire"])] = None
    """Seen from here."""
    part: Annotated[Name | None, Field(examples=["2/4"])] = None
    """Of this part of the probe's keys."""
    instance: Annotated[Printable | None, Field(examples=["prober-0"])] = None
    """That the prober of this name made."""
    since: Moment | None = None
    """That began then or later."""
    until: Moment | None = None
    """That began earlier."""

    @property
    def wanted(self) -> RunFilter:
        """The same for the store."""
        return RunFilter(**_columns(self))


class FindingParameters(Paged):
    """Which findings: all that agree with what is given."""

    kind: Annotated[Kind | None, Field(examples=["REDELIVERY_SKIP"])] = None
    """Of this kind."""
    status: Annotated[Status | None, Field(examples=["violation"])] = None
    """That are so sure."""
    key: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX, examples=["ordering-3"])] = None
    """On this ordering key."""
    subscription: Annotated[Name | None, Field(examples=["projects/my-project/subscriptions/okp-ordering"])] = None
    """On the subscription of this full name."""
    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """On this target."""
    probe: Annotated[Name | None, Field(examples=["ordering"])] = None
    """That runs of this probe made."""
    vantage: Annotated[Name | None, Field(examples=["wire"])] = None
    """Seen from here."""
    part: Annotated[Name | None, Field(examples=["2/4"])] = None
    """That runs of this part of the probe's keys made."""
    instance: Annotated[Printable | None, Field(examples=["prober-0"])] = None
    """That the prober of this name made."""
    run: Annotated[Name | None, Field(examples=["ordering-1f3a9c02"])] = None
    """That this run made."""
    incident: Annotated[Name | None, Field(examples=["ordering-1f3a9c02-redelivery"])] = None
    """That belong to this incident."""
    open: bool | None = None
    """true: their incident is open. false: it is closed, or they failed no run."""
    since: Moment | None = None
    """That were found then or later."""
    until: Moment | None = None
    """That were found earlier."""

    @property
    def wanted(self) -> FindingFilter:
        """The same for the store."""
        return FindingFilter(**_columns(self))


class IncidentParameters(Paged):
    """Which incidents: all that agree with what is given."""

    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """On this target."""
    symptom: Annotated[Symptom | None, Field(examples=["redelivery"])] = None
    """With this symptom."""
    open: bool | None = None
    """true: open ones. false: closed ones."""
    since: Moment | None = None
    """That began then or later."""
    until: Moment | None = None
    """That began earlier."""

    @property
    def wanted(self) -> IncidentFilter:
        """The same for the store."""
        return IncidentFilter(**_columns(self))


ListParameters: TypeAlias = RunParameters | FindingParameters | IncidentParameters


class EvidenceParameters(QueryParameters):
    """Which events."""

    show: Annotated[Shown, Field(examples=["smallest"])] = Shown.SMALLEST
    """The smallest history that shows the finding, or everything on its key until it was made: the latest of it, if that is much."""


class KeyParameters(QueryParameters):
    """Which key."""

    key: Annotated[str, Field(max_length=TEXT_LENGTH_MAX, examples=["ordering-3"])]
    """The ordering key; any text."""


class SubscriptionParameters(QueryParameters):
    """Since when."""

    since: Moment | None = None
    """Findings from then on are counted; without it those of the last 24 hours."""


class ChartParameters(QueryParameters):
    """Which charts."""

    range: Annotated[TimeRange | None, Field(examples=["24h"])] = None
    """How far back they reach; without it six hours, or one as long as no prober is older."""

    def span(self, snapshot: StatusSnapshot) -> ChartSpan:
        """The time that they show."""
        oldest = min((prober.started_at for prober in snapshot.probers), default=snapshot.started_at)
        usual = TimeRange.HOUR if snapshot.at - oldest <= TimeRange.HOUR.seconds else TimeRange.HOURS
        return ChartSpan.until(snapshot.at, self.range or usual)


class LiveParameters(QueryParameters):
    """Which run under way, the newest one that agrees with all, and what of it."""

    run: Annotated[str, Field(max_length=TEXT_LENGTH_MAX)] = ""
    """The run of this name."""
    probe: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """Of this probe."""
    target: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """On this target."""
    vantage: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """Seen from here."""
    part: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX)] = None
    """On this part of the keys."""
    key: Annotated[str, Field(max_length=TEXT_LENGTH_MAX)] = ""
    """Only events on this ordering key; empty: on all of them."""
    after: Annotated[int, Field(ge=0)] = 0
    """Events behind this number."""

    def agrees(self, run: WatchedRun) -> bool:
        """Whether the run is one of those."""
        where = run.probe_instance
        return (
            self.run in ("", run.run_id)
            and self.probe in (None, where.probe)
            and is_at(where, self.target, self.vantage, self.part)
        )


class InstanceParameters(ChartParameters):
    """Which probe instances of a probe: all that agree with what is given."""

    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """On this target."""
    vantage: Annotated[Name | None, Field(examples=["wire"])] = None
    """Seen from here."""
    part: Annotated[str | None, Field(max_length=TEXT_LENGTH_MAX, examples=["2/4"])] = None
    """On this part of the keys; empty: where they are not divided."""

    def agrees(self, instance: ProbeInstance) -> bool:
        """Whether the probe instance is one of those."""
        return is_at(instance, self.target, self.vantage, self.part)


class ReportParameters(QueryParameters):
    """Which day."""

    date: Date | None = None
    """The day in UTC; without it the newest one that is reported on."""


class HotKeyParameters(ReportParameters):
    """Which hot keys."""

    target: Annotated[Name | None, Field(examples=["europe"])] = None
    """On this target."""
    subscription: Annotated[Name | None, Field(examples=["projects/my-project/subscriptions/okp-ordering"])] = None
    """On the subscription of this full name; of an observed stream, of this name in metrics."""
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX, examples=[20])] = PAGE
    """How many keys at most; of each observed stream at most ten."""

    def of_day(self, reader: ReportReader) -> HotKeysReport | None:
        """The report that is asked for; None: there is none. Raises HistoryError."""
        day = self.date or reader.latest_day(Job.HOT_KEYS)
        return None if day is None else reader.hot_keys(day, self.limit, target=self.target, subscription=self.subscription)

    def of_streams(self, streams: Iterable[StreamKeys]) -> tuple[StreamKeys, ...]:
        """The observed streams that are asked for, each with so many top keys; none for a day."""
        if self.date is not None:
            return ()
        asked = (one for one in streams if self.target in (None, one.target) and self.subscription in (None, one.subscription))
        return tuple(replace(one, top=one.top[: self.limit]) for one in asked)


class HotKeyPageParameters(HotKeyParameters):
    """Which hot keys, and what the map of them shows."""

    measure: Measure = Measure.BACKLOG
    """The measure that the map shows over the day."""


async def said_once(request: Request) -> None:
    """Refuses a parameter that is given twice. (A coroutine only since FastAPI runs everything else in a thread.)"""
    twice = [name for name, count in Counter(name for name, _ in request.query_params.multi_items()).items() if count > 1]
    if twice:
        raise HTTPException(400, f"{twice[0][:TEXT_LENGTH_MAX]}: give it once")


def is_at(instance: ProbeInstance, target: str | None, vantage: str | None, part: str | None) -> bool:
    """Whether a probe instance agrees with every given value."""
    wanted = (target, instance.target), (vantage, instance.vantage), (part, instance.part)
    return all(one in (None, there) for one, there in wanted)


def seconds(moment: datetime.datetime | None) -> float | None:
    """A time in seconds since 1970."""
    return None if moment is None else moment.timestamp()
