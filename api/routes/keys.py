"""What was found on a key, and on each subscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from api.current_status import CurrentStatus
from api.models.keys import FindingGroupAnswer, HotKey, KeyAnswer, KeySpread, SubscriptionAnswer, SubscriptionList
from api.models.sites import SiteState
from api.query_parameters import TEXT_LENGTH_MAX, KeyParameters, QueryParameters, SubscriptionParameters, seconds
from api.response_cache import ResponseCache
from api.view import Archive
from prober.reports.reader import ROWS_MAX
from prober.reports.values import HotKeysReport
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.metrics.label_values import Job
from prober.sinks.status import records
from prober.slo.objectives import DAY_S

KeyName = Annotated[
    str, Path(max_length=TEXT_LENGTH_MAX, description="The ordering key, percent-encoded; / may stay.", examples=["ordering-3"])
]


def router(answers: ResponseCache, current: CurrentStatus, archive: Archive) -> APIRouter:
    """`GET /keys`, `GET /keys/{key}` and `GET /subscriptions`."""
    routes = APIRouter(tags=["keys"])

    @routes.get("/keys", response_model=KeyAnswer, response_description="The key.")
    async def key_by_parameter(request: Request, asked: Annotated[KeyParameters, Query()]) -> Response:
        """What was found on an ordering key, and whether it was hot. For keys that an address cannot hold as they are."""
        return await answers.answer(request, lambda: _key(archive, asked.key))

    @routes.get("/keys/{key:path}", response_model=KeyAnswer, response_description="The key.")
    async def key_by_path(request: Request, key: KeyName, _: Annotated[QueryParameters, Query()]) -> Response:
        """What was found on an ordering key, and whether it was hot."""
        return await answers.answer(request, lambda: _key(archive, key))

    @routes.get("/subscriptions", response_model=SubscriptionList, response_description="The subscriptions.")
    async def subscriptions(request: Request, asked: Annotated[SubscriptionParameters, Query()]) -> Response:
        """Every subscription that is probed, or on which something was found, with what was found there."""
        snapshot = await current.snapshot()
        return await answers.answer(request, lambda: _subscriptions(archive, snapshot, seconds(asked.since)))

    return routes


def _key(archive: Archive, key: str) -> KeyAnswer:
    report = _newest(archive)
    hot = () if report is None else (one for one in report.keys if one.key == key)
    return KeyAnswer(
        key=key,
        findings=tuple(map(FindingGroupAnswer.model_validate, archive.queries.findings_of_key(key))),
        report_day=None if report is None else report.summary.day,
        hot=tuple(map(HotKey.model_validate, hot)),
    )


def _subscriptions(archive: Archive, snapshot: StatusSnapshot, since: float | None) -> SubscriptionList:
    since = snapshot.at - DAY_S if since is None else since
    groups = archive.queries.findings_by_subscription(since)
    probed = {name for site in snapshot.sites for name in site.site.subscriptions}
    report = _newest(archive)
    spreads = {} if report is None else {spread.subscription: KeySpread.model_validate(spread) for spread in report.subscriptions}
    names = sorted(probed | {group.subscription for group in groups})
    items = tuple(_subscription(name, snapshot, groups, spreads.get(name)) for name in names)
    return SubscriptionList(since=since, items=items)  # type: ignore[arg-type]  # seconds since 1970 become a time


def _subscription(
    name: str, snapshot: StatusSnapshot, groups: Iterable[records.FindingGroup], spread: KeySpread | None
) -> SubscriptionAnswer:
    sites = [site for site in snapshot.sites if name in site.site.subscriptions]
    return SubscriptionAnswer(
        subscription=name,
        topic=sites[0].site.topic if sites else None,
        sites=tuple(map(SiteState.model_validate, sites)),
        findings=tuple(FindingGroupAnswer.model_validate(group) for group in groups if group.subscription == name),
        spread=spread,
    )


def _newest(archive: Archive) -> HotKeysReport | None:
    """The newest report on hot keys."""
    if archive.reports is None:
        return None
    day = archive.reports.latest_day(Job.HOT_KEYS)
    return None if day is None else archive.reports.hot_keys(day, limit=ROWS_MAX)
