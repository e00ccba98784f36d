"""Findings on a key, and on each subscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query

from api.dependencies import Snapshot, Stored
from api.models.keys import FindingGroupAnswer, HotKey, KeyAnswer, KeySpread, SubscriptionAnswer, SubscriptionList
from api.models.probe_instances import InstanceState
from api.query_parameters import TEXT_LENGTH_MAX, KeyParameters, QueryParameters, SubscriptionParameters
from api.view import Archive
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.status.queries import FindingGroup
from prober.slo.objectives import DAY_S

router = APIRouter(tags=["keys"])

KeyName = Annotated[
    str, Path(max_length=TEXT_LENGTH_MAX, description="The ordering key, percent-encoded; / may stay.", examples=["ordering-3"])
]


@router.get("/keys", response_description="The key.")
def key_by_parameter(archive: Stored, asked: Annotated[KeyParameters, Query()]) -> KeyAnswer:
    """Return the findings on an ordering key, and its entries in the report on hot keys. For keys that a path cannot contain."""
    return _key(archive, asked.key)


@router.get("/keys/{key:path}", response_description="The key.")
def key_by_path(archive: Stored, key: KeyName, _: Annotated[QueryParameters, Query()]) -> KeyAnswer:
    """Return the findings on an ordering key, and its entries in the report on hot keys."""
    return _key(archive, key)


@router.get("/subscriptions", response_description="The subscriptions.")
def subscriptions(archive: Stored, snapshot: Snapshot, asked: Annotated[SubscriptionParameters, Query()]) -> SubscriptionList:
    """List all subscriptions with probes or findings, with their findings."""
    since = snapshot.at - DAY_S if asked.since is None else asked.since.timestamp()
    groups = archive.queries.findings_by_subscription(since)
    probed = {name for instance in snapshot.probe_instances for name in instance.probe_instance.subscriptions}
    report = archive.newest_hot_keys()
    spreads = {} if report is None else {spread.subscription: KeySpread.model_validate(spread) for spread in report.subscriptions}
    names = sorted(probed | {group.subscription for group in groups})
    items = tuple(_subscription(name, snapshot, groups, spreads.get(name)) for name in names)
    return SubscriptionList(since=since, items=items)  # type: ignore[arg-type]  # seconds since 1970 become a time


def _key(archive: Archive, key: str) -> KeyAnswer:
    report = archive.newest_hot_keys()
    hot = () if report is None else (one for one in report.keys if one.key == key)
    return KeyAnswer(
        key=key,
        findings=tuple(map(FindingGroupAnswer.model_validate, archive.queries.findings_of_key(key))),
        report_day=None if report is None else report.summary.day,
        hot=tuple(map(HotKey.model_validate, hot)),
    )


def _subscription(
    name: str, snapshot: StatusSnapshot, groups: Iterable[FindingGroup], spread: KeySpread | None
) -> SubscriptionAnswer:
    instances = [instance for instance in snapshot.probe_instances if name in instance.probe_instance.subscriptions]
    return SubscriptionAnswer(
        subscription=name,
        topic=instances[0].probe_instance.topic if instances else None,
        probe_instances=tuple(map(InstanceState.model_validate, instances)),
        findings=tuple(FindingGroupAnswer.model_validate(group) for group in groups if group.subscription == name),
        spread=spread,
    )
