"""The service: the only module that connects all parts.

async with Service(config, environ, version) as service:
    ...  # probes run on their schedules; the API reads its data from `service`

It starts the embedded server if a target is `embedded`, connects to every target from every vantage, and lets the scheduler start a run per
probe instance at a time. Leaving it stops the schedule, waits a moment for the runs under way, and closes everything.

With a configuration file it follows that file: changes are applied without a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Final, Self

from prober.clock import monotonic_s, wall_s
from prober.config.following import ConfigurationFile, ConfigurationStatus, Following
from prober.config.models import Config, TargetSettings
from prober.drills.schedule import FireDrills, drills_of
from prober.errors import BrokerError
from prober.probes.observe import NAME as OBSERVE
from prober.reports.reader import NightlyReports
from prober.runs.lifetimes import RENEWED_AFTER_S, sweep
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.runs.sink import RunSink
from prober.schedule.assignments import Assignments, Unshared
from prober.schedule.connections import Connections, PushReceivers
from prober.schedule.forecast import billed_instances, check_budget, price_of
from prober.schedule.instances import Changes, changes_of, instances_of
from prober.schedule.own_subscriptions import OwnSubscriptions
from prober.schedule.probe_loop import OpenProbe, Surroundings
from prober.schedule.scheduler import Regular
from prober.schedule.sharding import LEASE_S, ShardingMember
from prober.schedule.store_watch import StoreWatch
from prober.sinks.history.writer import HistorySink, HistoryWriter
from prober.sinks.live.feed import LiveFeed
from prober.sinks.live.snapshot import Readiness, RunOrdered, StatusSnapshot
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import Component, Metrics, Scrapes, families
from prober.sinks.metrics.measurements import MetricsSink
from prober.sinks.otlp.exporters import resource_of
from prober.sinks.otlp.metrics import metrics_export
from prober.sinks.status.checkpoints import StoredCheckpoints
from prober.sinks.status.database import Database, StatusError
from prober.sinks.status.entries import ProberIdentity
from prober.sinks.status.leases import Leases
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.retention import RetentionPolicy
from prober.sinks.status.store import StatusStore
from prober.sinks.status.writer import StatusWriter
from prober.sinks.top_keys import TopKeys
from prober.sinks.tracing.spans import tracing_sink
from prober.slo.counts import SloCounters
from prober.slo.indicators import SLICE_S

TICK_S: Final = 0.25
AGE_S: Final = 1.0
PREPARE_TIMEOUT_S: Final = 3.0
HEARTBEAT_S: Final = 5.0
"""Interval of heartbeats in seconds; after a change the next one follows within `TICK_S`."""

_log = logging.getLogger(__name__)


class Service:
    """The whole service; see the module docstring. Its methods answer from memory, on the event loop."""

    def __init__(self, config: Config, environ: Mapping[str, str], version: str, file: ConfigurationFile | None = None) -> None:
        """Create the service; `file`: the file to follow, which contains the configuration."""
        self._config, self._environ, self._version = config, environ, version
        self._file = file or ConfigurationFile(config)
        self._followers: list[Callable[[Config], None]] = []
        self._instance = config.name
        self._metrics = Metrics(config.objectives, version, sorted({target.environment for target in config.targets}))
        self._scrapes = Scrapes(self._metrics)
        self._metrics.health.set(families.START, wall_s())
        self._metrics.health.set(families.REPORTS_EXPECTED, config.history.reports is not None)
        self.feed = LiveFeed()
        self._top_keys = TopKeys()
        self._metrics.watch_keys(self._top_keys.snapshot)
        resource = resource_of(self._instance, version)
        self._tracing = tracing_sink(resource, self._metrics.health)
        self._metrics_export = metrics_export(resource, self._metrics)
        self._resources = AsyncExitStack()
        self._counters: dict[str, SloCounters] = {}
        self._surroundings: dict[tuple[str, str, str], Surroundings] = {}
        self._nightly = NightlyReports(config, self._metrics.health)
        self._drills = FireDrills(config.drills, self._metrics.drills(drills_of(config.drills)), self._metrics.health)
        pushes = PushReceivers(config.push, self._instance, partial(self._metrics.health.count, families.PUSH_REQUESTS))
        self._connections = Connections(environ, config.embedded, self._instance, self._metrics.errors_at, pushes)
        self._changing = asyncio.Lock()
        self._sharding: ShardingMember | None = None
        self._database = Database(config.status.url.get_secret_value())
        self._store_watch = StoreWatch(config, self._metrics, self.queries)
        self._checkpoints = StoredCheckpoints(self._database, config.sharding.group or self._instance)
        self._history = self._new_history()
        self._status = self._new_status()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._resources.aclose()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._resources.aclose()

    # --- what the API asks ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> StatusSnapshot:
        """Return the current state of the service."""
        self._assignments.plan()
        for target in self._config.targets:
            for objective, total in self._counters[target.name].totals.items():
                self._live.counted(target.name, objective, total)
        return self._live.snapshot(wall_s(), self._troubles(), self._top_keys.snapshot())

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        """Return the content type and body of a scrape with this Accept header."""
        return await self._scrapes.page(accept)

    def is_stored(self) -> bool:
        """Return whether the status store accepts the data of this process."""
        return not self._status.state().error

    def is_unwritten(self, run_id: str) -> bool:
        """Return whether a run of this process has ended and is not written to the status store yet."""
        return self._status.is_waiting(run_id)

    def readiness(self) -> Readiness:
        """Return whether runs are scheduled and recorded, and the problems if not."""
        incompatible = self._sharding.incompatible if self._sharding else ""
        problems = tuple(filter(None, (*self._assignments.stuck(), incompatible)))
        return Readiness(not problems, problems)

    def alive(self) -> bool:
        """Return whether the background task that only a restart would bring back is running."""
        return not self._watching.done()

    @property
    def queries(self) -> StatusQueries:
        """The stored results of all probers of the store; its methods block."""
        return StatusQueries(self._database)

    def failed(self, error: Exception) -> None:
        """Count and log an internal error in the answer to a request."""
        self._metrics.health.internal_error(Component.API)
        _log.error("internal error in the API", exc_info=error)

    def run_now(self, instance: InstanceKey) -> RunOrdered:
        """Start a run at a probe instance beyond its schedule, if possible. KeyError: there is no such probe instance."""
        return self._assignments.run_now(instance)

    def followed_by(self, follower: Callable[[Config], None]) -> None:
        """Call `follower` with each configuration that takes effect from now on."""
        self._followers.append(follower)

    def reload(self) -> None:
        """Read the configuration file at once, if there is one."""
        self._following.ask()

    def _troubles(self) -> tuple[str, ...]:
        troubles = [self._configuration.trouble] if self._configuration.trouble else []
        troubles += self._assignments.stuck()
        troubles += [*self._status.state().troubles, *self._own.troubles]
        if self._history is not None:
            state = self._history.state()
            troubles += [f"the history cannot be written: {error}" for error in (state.spool_error, state.store_error) if error]
            troubles += [f"{state.dropped:,} events and findings are missing from the history"] if state.dropped else []
        asking = self._sharding.error if self._sharding else ""
        troubles += [f"the other probers cannot be asked for their share: {asking}"] if asking else []
        troubles += [f"the reports of the nightly jobs cannot be read: {self._nightly.error}"] if self._nightly.error else []
        return tuple(troubles)

    # --- putting it together -------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        await self._resources.enter_async_context(self._metrics_export)
        self._resources.push_async_callback(asyncio.to_thread, self._tracing.close)
        if self._history is not None:
            await asyncio.to_thread(self._history.start)
            self._resources.push_async_callback(asyncio.to_thread, self._history.close)
        self._resources.callback(self._database.close)
        self._resources.callback(self._top_keys.close)
        self._resources.push_async_callback(asyncio.to_thread, self._status.leave)
        await self._prepare_store()
        self._status.start()
        await self._resources.enter_async_context(self._connections)
        instances = [await self._connections.open(instance) for target in self._config.targets for instance in instances_of(target)]
        self._live = LiveState((), version=self._version, instance=self._instance, started_at=wall_s())
        self._assignments = Assignments(self._config, self._live, self._metrics.health)
        self._unshared = Unshared(self._assignments, self._renew, self._planning_failed)
        self._own = OwnSubscriptions(
            self._config, self._assignments.backlogs, self._assignments.admin_of, self._metrics, self._live.read
        )
        self._following = Following(self._file, self._environ, self._apply, self._configured, self._planning_failed)
        self._work_at(instances)
        self._resources.push_async_callback(self._assignments.leave)
        sweeping = asyncio.create_task(self._sweep(), name="sweep")
        self._resources.callback(sweeping.cancel)
        self._sharding = self._new_sharding()
        self._resources.push_async_callback(self._unshared.close)
        if self._sharding is not None:
            self._resources.push_async_callback(self._sharding.leave)  # when the runs have ended
        self._resources.push_async_callback(self._assignments.stop)
        await self._resources.enter_async_context(self._drills)  # which may find its port taken
        self._assignments.start()
        await self._take_up()
        following = asyncio.create_task(self._following.keep_on(), name="configuration")
        self._resources.callback(following.cancel)
        await self._resources.enter_async_context(self._own)
        reading = asyncio.create_task(self._nightly.watch(), name="nightly reports")
        self._resources.callback(reading.cancel)
        await self._resources.enter_async_context(self._store_watch)
        self._send_heartbeat()
        self._watching = asyncio.create_task(self._watch(), name="watch")
        self._resources.callback(self._watching.cancel)

    def _new_history(self) -> HistoryWriter | None:
        if self._config.history.location is None:
            return None
        health = self._metrics.health
        failed = partial(health.count, families.HISTORY_FAILURES)
        return HistoryWriter(self._config.history, dropped=partial(health.dropped, Component.HISTORY), failed=failed)

    def _new_status(self) -> StatusWriter:
        health = self._metrics.health
        return StatusWriter(
            StatusStore(self._database),
            ProberIdentity(self._instance, self._version, wall_s()),
            RetentionPolicy(self._config.status.retention.total_seconds()),
            dropped=partial(health.dropped, Component.STATUS),
            failed=partial(health.count, families.STATUS_FAILURES),
        )

    def _work_at(self, instances: Iterable[OpenProbe]) -> None:
        """Follow the probe instances of the configuration in force."""
        shown = tuple(instances)
        for target in self._config.targets:
            self._counters.setdefault(target.name, SloCounters(())).follow(self._config.objectives)
            known = self._surroundings.get(target.series)
            if known is None:
                self._surroundings[target.series] = self._watch_target(target)
            else:
                known.metrics.follow(target)
        self._live.follow((open_probe.shown for open_probe in shown), self._config.objectives)
        self._assignments.follow(self._config, shown, self._surroundings)

    def _watch_target(self, target: TargetSettings) -> Surroundings:
        metrics = self._metrics.watch(target, backlog=partial(self._assignments.backlogs, target.series))
        counters, health = self._counters[target.name], self._metrics.health
        shared: list[RunSink] = [self._live, self.feed, self._status, self._tracing, self._own]
        if self._history is not None:
            shared.append(HistorySink(self._history))

        def sinks(instance: ProbeInstance, names: Sequence[str]) -> list[RunSink]:
            measuring = MetricsSink(metrics, names, counters, health, instance.probe, instance.vantage)
            observing = [self._top_keys.sink(names[0])] if instance.probe == OBSERVE else []
            return [measuring, *shared, *observing]

        return Surroundings(metrics, self._live, sinks, counters, self._checkpoints)

    # --- another configuration -----------------------------------------------------------------------------------------------

    async def _apply(self, config: Config) -> tuple[str, ...]:
        """Apply a configuration; return the keys that wait for a restart. If `Connections.open` or `changes_of` raises, nothing changes."""
        changes = changes_of(self._config, config, self._metrics.has_bound)
        check_budget(changes.config, self._environ)
        known = {open_probe.probe_instance.name: open_probe for open_probe in self._assignments.instances}
        probe_instances = [instance for target in changes.config.targets for instance in instances_of(target)]
        async with self._changing:
            try:
                instances = [
                    known[instance.name] if instance.name in changes.kept else await self._connections.open(instance)
                    for instance in probe_instances
                ]
                self._take_over(changes, instances)
            finally:
                await self._tidy()
        return changes.restart

    def _take_over(self, changes: Changes, instances: Iterable[OpenProbe]) -> None:
        self._config = changes.config
        self._work_at(instances)
        self._metrics.health.follow(target.environment for target in self._config.targets)
        self._nightly.follow(self._config)
        self._store_watch.follow(self._config)
        for follower in self._followers:
            follower(self._config)
        if self._sharding is None:
            self._unshared.follow()
        else:
            self._sharding.follow(self._assignments.probe_instances, changes.changed, self._renew)
        for words, names in (("changed", changes.changed), ("gone", changes.gone), ("new", changes.new)):
            if names:
                _log.info("%s: %s", words, ", ".join(sorted(names)))

    def _configured(self, status: ConfigurationStatus) -> None:
        most = price_of(billed_instances(self._config, self._environ)).most
        self._configuration = replace(status, usd_per_month=round(most, 2), faults=self._config.embedded.faults)
        self._metrics.health.configured(wall_s() if status.refused_at is None else None)
        self._live.configured(self._configuration)

    async def _renew(self, name: str) -> None:
        await self._assignments.renew(name)
        async with self._changing:
            await self._tidy()

    async def _give(self, name: str) -> None:
        await self._assignments.give(name)
        async with self._changing:
            await self._tidy()

    async def _tidy(self) -> None:
        """Close connections of removed probe instances without a run under way."""
        used = self._assignments.used
        for series, around in tuple(self._surroundings.items()):
            here = [open_probe for open_probe in used if open_probe.probe_instance.target.series == series]
            if not here:
                self._metrics.forget(self._surroundings.pop(series).metrics)
                continue
            names = {name for open_probe in here for name in open_probe.names_in_metrics}
            around.metrics.forget_all_but({open_probe.shown.key for open_probe in here}, names)
        await self._connections.close_unused([open_probe.broker for open_probe in used])

    async def _prepare_store(self) -> None:
        """Create or upgrade the tables if the store answers soon; else the writer does it later."""
        with suppress(StatusError, TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(StatusStore(self._database).prepare), PREPARE_TIMEOUT_S)

    def _new_sharding(self) -> ShardingMember | None:
        group = self._config.sharding.group
        if group is None:
            return None
        leases, assignments = Leases(self._database, group, self._instance, LEASE_S), self._assignments
        return ShardingMember(
            assignments.probe_instances, leases, self._instance, assignments.take, self._give, self._planning_failed
        )

    async def _take_up(self) -> None:
        """Start to probe: all probe instances, or the share of this prober."""
        if self._sharding is None:
            self._unshared.follow()
            return
        sharding = asyncio.create_task(self._sharding.keep_on(), name="sharding")
        self._resources.callback(sharding.cancel)

    def _planning_failed(self, fault: Exception) -> None:
        self._metrics.health.internal_error(Component.SCHEDULER)
        _log.error("internal error while it was decided what to probe", exc_info=fault)

    async def _sweep(self) -> None:
        """Delete abandoned resources of former probers in each project, now and every few hours."""
        while True:
            instances = self._assignments.instances
            brokers = {(one.endpoint, one.probe_instance.target.project): one.broker for one in instances}
            for (_, project), broker in brokers.items():
                try:
                    deleted, left = await sweep(broker.admin, f"projects/{project}", wall_s())
                except BrokerError as error:
                    self._metrics.health.swept(project, None)
                    _log.warning("%s: what may be abandoned there is left for now: %s", project, error)
                    continue
                self._metrics.health.swept(project, left)
                level = logging.WARNING if left else logging.INFO if deleted else logging.DEBUG
                _log.log(level, "%s: of abandoned topics and subscriptions %d were swept, %d are left", project, deleted, left)
            await asyncio.sleep(RENEWED_AFTER_S)

    async def _watch(self) -> None:
        """Measure the lag of the event loop, and do the regular work."""
        assignments = self._assignments
        regularly = (Regular(AGE_S, assignments.age), Regular(SLICE_S, assignments.count_slice))
        heartbeat, reported = Regular(HEARTBEAT_S, self._send_heartbeat), 0
        while True:
            due_t = monotonic_s() + TICK_S
            await asyncio.sleep(TICK_S)
            now = monotonic_s()
            self._metrics.health.took(families.LOOP_LAG, now - due_t)
            for regular in regularly:
                regular.at(now)
            heartbeat.at(now, at_once=self._live.changes != reported)
            reported = self._live.changes

    def _send_heartbeat(self) -> None:
        self._status.heartbeat(self.snapshot())
        self._metrics.health.set(families.STATUS_STORE_UP, not self._status.state().error)
