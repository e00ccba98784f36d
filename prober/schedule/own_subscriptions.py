"""The user's own subscriptions, compared with the prober's own messages.

They are read periodically, and compared at the time of each reading. A reading does not affect the probes: it runs in a thread with a
timeout, and a failure is only reported and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from math import nan
from types import TracebackType
from typing import Final, NamedTuple, Self

from prober.brokers.base import Admin
from prober.brokers.endpoint import parse_endpoint
from prober.clock import monotonic_s, wall_s
from prober.config.models import Config, TargetSettings
from prober.config.sections import SUBSCRIPTIONS_MAX, OwnDiscovery, OwnSubscription
from prober.core.events import Delivered
from prober.errors import BrokerError
from prober.monitoring.cloud import CloudMonitoring, MonitoringError, Rule
from prober.monitoring.comparison import OwnSubscriptionStatus, ProberAges, Reading, shown
from prober.probes.context import DeliveryKind
from prober.probes.resources import OURS
from prober.runs.backlog import Backlog, joined
from prober.runs.classification import Observation
from prober.runs.sink import RunBegun, RunEnded
from prober.schedule.scheduler import repeat
from prober.sinks.metrics import Component, Metrics
from prober.sinks.metrics.targets import OwnMetrics

AGE_S: Final = 1.0
DISCOVER_EVERY_S: Final = 600.0
RECEIVED: Final = ("deliveries_first", "deliveries_unrecorded")

Series = tuple[str, str, str]
Backlogs = Callable[[Series], Mapping[str, Backlog]]

_log = logging.getLogger(__name__)


class OwnSubscriptions:
    """Watches the subscriptions of a configuration; does nothing without subscriptions.

    It is also a sink, to note runs that received messages.
    """

    def __init__(
        self,
        config: Config,
        backlogs: Backlogs,
        admin_of: AdminOf,
        metrics: Metrics,
        reported: Callable[[tuple[OwnSubscriptionStatus, ...]], None],
    ) -> None:
        """Create the watch. `backlogs`: returns the pending messages on a target.

        `reported` is called with all statuses after each reading. All on the event loop.
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
        self._resources = AsyncExitStack()

    @property
    def troubles(self) -> tuple[str, ...]:
        """Reasons why own subscriptions are not found, one line each."""
        return self._discoveries.troubles

    async def __aenter__(self) -> Self:
        if self._statuses or self._discoveries:
            self._resources.push_async_callback(asyncio.to_thread, self._cloud.close)
            for every_s, action in ((AGE_S, self._age), (self._settings.every.total_seconds(), self._look)):
                self._resources.callback(asyncio.create_task(repeat(every_s, action, self.failed), name="own subscriptions").cancel)
            self._tell()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._resources.aclose()

    # --- readings ------------------------------------------------------------------------------------------------------------

    async def _age(self) -> None:
        for target in self._targets.values():
            self._ages[target.name].aged(joined(self._backlogs(target.series).values()).oldest_unacked_age_s, wall_s())

    def _follow(self) -> None:
        """Watch the named subscriptions and those found so far."""
        watched = self._discoveries.subscriptions() | self._named
        self._statuses = {
            name: self._statuses.get(name) or OwnSubscriptionStatus(name, one.target.name, one.late_after_s)
            for name, one in watched.items()
        }
        self._metrics.follow({name: one.target for name, one in watched.items()})

    async def _look(self) -> None:
        """Discover subscriptions if that is due, and read all of them, one project after the other."""
        if self._discoveries and monotonic_s() >= self._discover_due_t:
            self._discover_due_t = monotonic_s() + DISCOVER_EVERY_S
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
        """Return the status with a reading and the prober's state at the time of its newest point."""
        point = reading.oldest_unacked_age
        prober = self._ages[status.target].side(now if point is None else point.at, status.late_after_s)
        return replace(status, read_at=now, failure="", reading=reading, prober=prober)

    def _tell(self) -> None:
        statuses = tuple(self._statuses.values())
        for one in shown(statuses, wall_s()):
            self._metrics.read(one)
        self._reported(statuses)

    # --- callbacks of runs ---------------------------------------------------------------------------------------------------

    def begin(self, run: RunBegun) -> _Heard:
        """Return the listener of a run."""
        others_publish = not all(rules.publishes_recorded for rules in run.rules.values())
        return _Heard(self._ages.get(run.probe_instance.target), run.started_at, others_publish=others_publish)

    def failed(self, error: Exception) -> None:
        """Report an internal error, and mark all statuses as failed until a reading succeeds."""
        self._health.internal_error(Component.SCHEDULER)
        _log.error("internal error in own subscriptions", exc_info=error)
        for own, status in self._statuses.items():
            self._statuses[own] = replace(status, failure="an internal error of the prober; see its log")
        self._tell()


class _Heard:
    def __init__(self, ages: ProberAges | None, begun_at: float, *, others_publish: bool) -> None:
        self._ages, self._begun_at, self._others_publish = ages, begun_at, others_publish

    def event(self, seen: Observation) -> None:
        """Note the age of a first delivery of another publisher's message.

        Other messages are covered by the pending ones; those of other publishers become known only at their delivery.
        """
        if self._ages is None or not self._others_publish or seen.kind is not DeliveryKind.FIRST:
            return
        if isinstance(seen.event, Delivered) and isinstance(seen.event.publish_time, int):
            now = wall_s()
            self._ages.aged(max(0.0, now - seen.event.publish_time / 1e9), now)

    def ended(self, end: RunEnded) -> None:
        if self._ages is not None:
            self._ages.ran(self._begun_at, end.ended_at, received=any(map(end.result.counters.get, RECEIVED)))


def _target_of(own: OwnSubscription | OwnDiscovery, targets: Iterable[TargetSettings]) -> TargetSettings:
    named: Iterator[TargetSettings] = (target for target in targets if own.target in (None, target.name))
    return next(named)


# --- finds the user's own subscriptions by the administration API of their target: it lists subscriptions, and nothing else ---


AdminOf = Callable[[str], Admin | None]
"""Returns the administration of a target by its name; None without an open connection."""


class Watched(NamedTuple):
    """Settings of a watched subscription: the target it is compared with, and the age from which a message is late."""

    target: TargetSettings
    late_after_s: float


@dataclass(slots=True)
class _Found:
    """Result of a rule. `left_out`: None if unknown. `trouble`: reason for a missing result; empty with a result."""

    names: tuple[str, ...] = ()
    left_out: int | None = None
    trouble: str = ""


class OwnDiscoveries:
    """Rules of a configuration, and the subscriptions found by each. For the event loop.

    If listing fails, the last result stays; the failure is logged once and reported as trouble of the prober, not as a fault of a service.
    """

    def __init__(self, rules: Collection[tuple[OwnDiscovery, TargetSettings]], admin_of: AdminOf, metrics: OwnMetrics) -> None:
        self._rules: Final = {number: (rule, target, _Found()) for number, (rule, target) in enumerate(rules)}
        self._admin_of, self._metrics = admin_of, metrics

    def __len__(self) -> int:
        return len(self._rules)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Reasons why rules have no result, one line each."""
        return tuple(found.trouble for _, _, found in self._rules.values() if found.trouble)

    def subscriptions(self) -> dict[str, Watched]:
        """Return the found subscriptions, by name."""
        return {
            name: Watched(target, rule.late_after.total_seconds())
            for rule, target, found in self._rules.values()
            for name in found.names
        }

    async def look(self, named: Collection[str]) -> None:
        """Apply each rule once. Subscriptions in `named`, of other rules and of probers are not found again."""
        for number, (rule, target, found) in self._rules.items():
            others = {name for other, (_, _, of) in self._rules.items() if other != number for name in of.names}
            await self._look(number, rule, target, found, {*named, *others})
        self._count()

    async def _look(self, number: int, rule: OwnDiscovery, target: TargetSettings, found: _Found, taken: Collection[str]) -> None:
        key, project, before = f"monitoring.discover[{number}]", f"projects/{rule.project or target.project}", found.trouble
        try:
            listed = await self._listed(target, project)
        except BrokerError as error:
            found.left_out, found.trouble = None, f"own subscriptions: {project} cannot be listed for {key}: {error}"
        else:
            theirs = {name: labels for name, labels in listed.items() if name not in taken and not _is_ours(labels)}
            wanted, left_out_before = Rule(rule.matching, rule.labels), found.left_out
            found.names, found.left_out = wanted.choose(theirs, found.names, min(rule.at_most, SUBSCRIPTIONS_MAX - len(taken)))
            if found.left_out and found.left_out != left_out_before:
                _log.warning("%s: %d more subscriptions match %s and are left out", key, found.left_out, wanted)
            is_none = not found.names and not found.left_out
            found.trouble = (
                f"own subscriptions: none of {len(theirs)} others in {project} matches {wanted} ({key})" if is_none else ""
            )
        if found.trouble and found.trouble != before:
            _log.warning("%s", found.trouble)

    async def _listed(self, target: TargetSettings, project: str) -> Mapping[str, Mapping[str, str]]:
        """Return all subscriptions of a project with their labels. Raises BrokerError."""
        admin = self._admin_of(target.name)
        if admin is None:
            raise BrokerError(f"nothing is probed on {target.name}")
        return await admin.subscriptions(project)

    def _count(self) -> None:
        """Report the results to the metrics by target; NaN if a rule of the target has no result."""
        by_target: dict[str, list[_Found]] = {}
        for _, target, found in self._rules.values():
            by_target.setdefault(target.name, []).append(found)
        targets = {target.name: target for _, target, _ in self._rules.values()}
        for name, of_target in by_target.items():
            known = [found.left_out for found in of_target if found.left_out is not None]
            is_known = len(known) == len(of_target)
            watched = sum(len(found.names) for found in of_target)
            self._metrics.discovered(targets[name], watched if is_known else nan, sum(known) if is_known else nan)


def _is_ours(labels: Mapping[str, str]) -> bool:
    return OURS.items() <= labels.items()
