"""The user's own subscriptions, beside the prober's own messages.

They are read again and again, and compared at the time of each reading.

Reading never touches what is probed: it happens in a thread, ends after a while, and a failure is reported and counted and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from prober.brokers.endpoint import parse_endpoint
from prober.clock import monotonic_s, wall_s
from prober.config.models import Config, Schedule, TargetSettings
from prober.config.sections import OwnDiscovery, OwnSubscription
from prober.core.events import Delivered
from prober.monitoring.cloud import CloudMonitoring, MonitoringError
from prober.monitoring.comparison import OwnSubscriptionStatus, ProberAges, Reading, shown
from prober.probes.context import DeliveryKind
from prober.runs.backlog import Backlog, joined
from prober.runs.classification import Observation
from prober.runs.sink import RunBegun, RunEnded
from prober.schedule.own_discovery import AdminOf, OwnDiscoveries, Watched
from prober.schedule.scheduler import Scheduler
from prober.sinks.metrics import Component, Metrics, SkipReason

AGE_S: Final = 1
STOP_GRACE_S: Final = 1.0
RECEIVED: Final = ("deliveries_first", "deliveries_unrecorded")

Series = tuple[str, str, str]
Backlogs = Callable[[Series], Mapping[str, Backlog]]

_log = logging.getLogger(__name__)


class OwnSubscriptions:
    """Watches the subscriptions of a configuration; without any it does nothing.

    It is also a sink, to note when runs received messages.
    """

    def __init__(
        self,
        config: Config,
        backlogs: Backlogs,
        admin_of: AdminOf,
        metrics: Metrics,
        reported: Callable[[tuple[OwnSubscriptionStatus, ...]], None],
    ) -> None:
        """`backlogs`: the pending messages on a target.

        `reported`: is called with all statuses after each reading. All on the event loop.
        """
        self._settings, self._backlogs, self._reported = config.monitoring, backlogs, reported
        self._metrics, self._health = metrics.own(), metrics.health
        self._named = {
            one.name: Watched(_target_of(one, config.targets), one.late_after.total_seconds())
            for one in self._settings.subscriptions
        }
        rules = [(rule, _target_of(rule, config.targets)) for rule in self._settings.discover]
        self._discoveries = OwnDiscoveries(rules, admin_of, self._metrics)
        compared = [*(one.target for one in self._named.values()), *(target for _, target in rules)]
        self._targets = {target.name: target for target in compared}
        self._ages = {name: ProberAges() for name in self._targets}
        self._discover_due_t = 0.0
        self._statuses: dict[str, OwnSubscriptionStatus] = {}
        self._follow()
        self._cloud = CloudMonitoring(parse_endpoint(self._settings.endpoint))
        self._scheduler = Scheduler(self)
        self._resources = AsyncExitStack()

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why own subscriptions are not found, one line each."""
        return self._discoveries.troubles

    async def __aenter__(self) -> Self:
        if self._statuses or self._discoveries:
            self._resources.push_async_callback(asyncio.to_thread, self._cloud.close)
            self._resources.push_async_callback(self._scheduler.stop, STOP_GRACE_S)
            self._scheduler.add("ages of messages", Schedule(interval=timedelta(seconds=AGE_S)), 0.0, self._age)
            self._scheduler.add("own subscriptions", Schedule(interval=self._settings.every), 0.0, self._look)
            self._scheduler.start()
            self._tell()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._resources.aclose()

    # --- looking -------------------------------------------------------------------------------------------------------------

    async def _age(self) -> None:
        for target in self._targets.values():
            self._ages[target.name].aged(joined(self._backlogs(target.series).values()).oldest_unacked_age_s, wall_s())

    def _follow(self) -> None:
        """Watches what is named and what was found from now on."""
        watched = self._discoveries.subscriptions() | self._named
        self._statuses = {
            name: self._statuses.get(name) or OwnSubscriptionStatus(name, one.target.name, one.late_after_s)
            for name, one in watched.items()
        }
        self._metrics.follow({name: one.target for name, one in watched.items()})

    async def _look(self) -> None:
        """Looks for subscriptions if that is due, and reads all, one project after the other."""
        if self._discoveries and monotonic_s() >= self._discover_due_t:
            self._discover_due_t = monotonic_s() + self._settings.discover_every.total_seconds()
            await self._discoveries.look(self._named)
            self._follow()
        projects: dict[str, list[str]] = {}
        for name in self._statuses:
            projects.setdefault(name.split("/")[1], []).append(name)
        for names in projects.values():
            await self._read(names)
        self._tell()

    async def _read(self, names: Sequence[str]) -> None:
        now = wall_s()
        try:
            readings = await asyncio.to_thread(self._cloud.read, names, now)
        except MonitoringError as error:
            for name in names:
                if self._statuses[name].failure != str(error):
                    _log.warning("%s cannot be read: %s", name, error)
                self._statuses[name] = replace(self._statuses[name], read_at=now, failure=str(error))
                self._metrics.failed(name, error.failure)
            return
        for name in names:
            self._statuses[name] = self._beside(self._statuses[name], readings[name], now)

    def _beside(self, status: OwnSubscriptionStatus, reading: Reading, now: float) -> OwnSubscriptionStatus:
        """A reading, and how the prober stood at the time of its newest point."""
        point = reading.oldest_unacked_age
        prober = self._ages[status.target].side(now if point is None else point.at, status.late_after_s)
        return replace(status, read_at=now, failure="", reading=reading, prober=prober)

    def _tell(self) -> None:
        statuses = tuple(self._statuses.values())
        for one in shown(statuses, wall_s()):
            self._metrics.read(one)
        self._reported(statuses)

    # --- what runs say -------------------------------------------------------------------------------------------------------

    def begin(self, run: RunBegun) -> _Heard:
        """A run begins."""
        others_publish = not all(rules.publishes_recorded for rules in run.rules.values())
        return _Heard(self._ages.get(run.probe_instance.target), run.started_at, others_publish=others_publish)

    # --- what the schedule says ----------------------------------------------------------------------------------------------

    def expected(self, name: str) -> None:
        """It is time."""

    def skipped(self, name: str, reason: SkipReason) -> None:
        """It was time, and the last look is still under way; the age of what was read says so."""
        _log.debug("%s: skipped: %s", name, reason)

    def failed(self, name: str, error: BaseException) -> None:
        """It ended by a mistake of ours: from now on nothing is known until it succeeds."""
        self._health.internal_error(Component.SCHEDULER)
        _log.error("internal error in %s", name, exc_info=error)
        for own, status in self._statuses.items():
            self._statuses[own] = replace(status, failure="an internal error of the prober; see its log")
        self._tell()


class _Heard:
    """Listens to one run until it has ended."""

    def __init__(self, ages: ProberAges | None, begun_at: float, *, others_publish: bool) -> None:
        self._ages, self._begun_at, self._others_publish = ages, begun_at, others_publish

    def event(self, seen: Observation) -> None:
        """The pending messages show more than one event.

        But messages of other publishers are known to be pending only when they come.
        """
        if self._ages is None or not self._others_publish or seen.kind is not DeliveryKind.FIRST:
            return
        if isinstance(seen.event, Delivered) and isinstance(seen.event.publish_time, int):
            now = wall_s()
            self._ages.aged(max(0.0, now - seen.event.publish_time / 1e9), now)

    def ended(self, end: RunEnded) -> None:
        """The run is over."""
        if self._ages is not None:
            self._ages.ran(self._begun_at, end.ended_at, received=any(map(end.result.counters.get, RECEIVED)))


def _target_of(own: OwnSubscription | OwnDiscovery, targets: Iterable[TargetSettings]) -> TargetSettings:
    named: Iterator[TargetSettings] = (target for target in targets if own.target in (None, target.name))
    return next(named)
