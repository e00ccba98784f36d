"""The service: the only place where everything is put together. What the parts do stands in their own rooms.

async with Service(config, environ, version) as service:
    ...  # probes run on their schedules; the API asks `service` what there is to see

It starts the embedded server if a target is `embedded`, connects to every target from every vantage, and lets the scheduler start a run
per site at a time. Leaving it stops the schedule, waits a moment for the runs under way, and lets go of everything.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Final, Self

from prober.board import Board
from prober.brokers.base import Broker, Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint, resolve_endpoint
from prober.clock import monotonic_s, wall_s
from prober.config.models import Config, TargetSettings
from prober.core.indicators import SLICE_S, Indicator
from prober.embedded.server import EmbeddedServer
from prober.errors import BrokerError, ConfigError
from prober.ground import RENEWED_AFTER_S, sweep
from prober.history.writer import HistoryWriter
from prober.metrics import Backlog, Component, Health, Metrics, Skip, TargetMetrics
from prober.nightly import NightlyReports
from prober.rounds import Audience, Post, Rounds
from prober.scheduler import Scheduler
from prober.sites import is_embedded, sites_of
from prober.snapshot import Readiness, SiteKey, Snapshot
from prober.status.database import Database
from prober.status.dossiers import Prober
from prober.status.queries import StatusQueries
from prober.status.retention import Keeping
from prober.status.store import StatusStore
from prober.status.writer import StatusWriter
from prober.tallies import Tallies
from prober.tracing import Tracing

BEAT_S: Final = 0.25
AGE_S: Final = 1.0
TELL_S: Final = 5.0
STOP_GRACE_S: Final = 5.0
LEAVE_TIMEOUT_S: Final = 5.0
SCHEDULER_SILENT_MAX_S: Final = 10.0
INSTANCE_LENGTH_MAX: Final = 63

_log = logging.getLogger(__name__)


class Service:
    """All of it; see the head of this file. Its methods answer at once, from memory, on the event loop."""

    def __init__(self, config: Config, environ: Mapping[str, str], version: str) -> None:
        self._config, self._environ, self._version = config, environ, version
        self._instance = config.instance or own_name(socket.gethostname())
        self._metrics = Metrics(config.objectives, version)
        self._metrics.health.started(wall_s(), reports_expected=config.history.reports is not None)
        self._tracing = Tracing(config.telemetry, version)
        self._scheduler = Scheduler(_Attendance(self))
        self._resources = AsyncExitStack()
        self._rounds: dict[str, Rounds] = {}
        self._targets: dict[str, TargetMetrics] = {}
        self._tallies = {target.name: Tallies(config.objectives) for target in config.targets}
        self._nightly = NightlyReports(config, self._metrics.health)
        self._server: EmbeddedServer | None = None
        self._names: dict[SiteKey, str] = {}
        self._database = Database(config.status.url.get_secret_value())
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

    def snapshot(self) -> Snapshot:
        """How everything stands now."""
        for name, rounds in self._rounds.items():
            self._board.planned(rounds.post.shown, self._scheduler.next_run_at(name))
        for target, tallies in self._tallies.items():
            for objective, total in tallies.totals.items():
                self._board.counted(target, objective, total)
        return self._board.snapshot(wall_s(), self._troubles())

    def metrics(self, accept: str) -> tuple[str, bytes]:
        """What a scrape with this Accept header gets: content type and body."""
        return self._metrics.expose(accept)

    def readiness(self) -> Readiness:
        """Whether runs are scheduled and recorded; what keeps them from it otherwise."""
        problems = tuple(self._stuck())
        return Readiness(not problems, problems)

    def alive(self) -> bool:
        """Whether what only a restart would bring back is there."""
        return not self._watching.done()

    def of(self, name: str) -> tuple[Post, TargetMetrics, Board]:
        """A site by its name, the metrics of its target, and the board."""
        post = self._rounds[name].post
        return post, self._targets[post.site.target.name], self._board

    @property
    def queries(self) -> StatusQueries:
        """What was, of all probers of the store; they block."""
        return StatusQueries(self._database)

    @property
    def health(self) -> Health:
        """How the prober itself is."""
        return self._metrics.health

    def failed(self, error: Exception) -> None:
        """A request could not be answered because of a mistake of ours."""
        self._metrics.health.internal_error(Component.API)
        _log.error("internal error in the API", exc_info=error)

    def run_now(self, site: SiteKey) -> bool:
        """Begins a run at a site beyond its schedule; False if one is under way. KeyError: there is no such site."""
        return self._scheduler.run_now(self._names[site])

    def _stuck(self) -> Iterator[str]:
        if not self._scheduler.alive(SCHEDULER_SILENT_MAX_S):
            yield "the scheduler is stuck"
        yield from (f"the run of {name} is stuck" for name, rounds in self._rounds.items() if rounds.stuck())

    def _troubles(self) -> tuple[str, ...]:
        """What is wrong with the prober itself, for those who look at the page."""
        troubles = list(self._stuck())
        status = self._status.state()
        troubles += [f"the status store cannot be written: {status.error}"] if status.error else []
        troubles += [f"{status.dropped:,} runs and findings are missing from the status store"] if status.dropped else []
        if self._history is not None:
            state = self._history.state()
            troubles += [f"the history cannot be written: {error}" for error in (state.spool_error, state.store_error) if error]
            troubles += [f"{state.dropped:,} events and findings are missing from the history"] if state.dropped else []
        troubles += [f"the reports of the nightly jobs cannot be read: {self._nightly.error}"] if self._nightly.error else []
        return tuple(troubles)

    # --- putting it together -------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._resources.push_async_callback(asyncio.to_thread, self._tracing.shutdown)
        if self._history is not None:
            await asyncio.to_thread(self._history.start)
            self._resources.push_async_callback(asyncio.to_thread, self._history.close)
        self._resources.callback(self._database.close)
        self._resources.push_async_callback(asyncio.to_thread, self._status.leave)
        self._status.start()
        posts = [post for target in self._config.targets for post in await self._posts(target)]
        self._board = Board(
            (post.shown for post in posts),
            self._config.objectives,
            version=self._version,
            instance=self._instance,
            started_at=wall_s(),
        )
        for target in self._config.targets:
            self._take_up(target, [post for post in posts if post.site.target is target])
        self._resources.push_async_callback(self._leave)
        projects = {(post.endpoint, post.site.target.project): post.broker for post in posts}
        sweeping = asyncio.create_task(self._sweep(projects), name="sweep")
        self._resources.callback(sweeping.cancel)
        self._resources.push_async_callback(self._scheduler.stop, STOP_GRACE_S)
        self._scheduler.start()
        reading = asyncio.create_task(self._nightly.watch(), name="nightly reports")
        self._resources.callback(reading.cancel)
        self._watching = asyncio.create_task(self._watch(), name="watch")
        self._resources.callback(self._watching.cancel)

    def _new_history(self) -> HistoryWriter | None:
        if self._config.history.location is None:
            return None
        health = self._metrics.health
        return HistoryWriter(self._config.history, dropped=partial(health.dropped, Component.HISTORY), failed=health.history_failed)

    def _new_status(self) -> StatusWriter:
        settings, health = self._config.status, self._metrics.health
        return StatusWriter(
            StatusStore(self._database),
            Prober(self._instance, self._version, wall_s()),
            Keeping(settings.retention.total_seconds()),
            dropped=partial(health.dropped, Component.STATUS),
            failed=health.status_failed,
        )

    async def _posts(self, target: TargetSettings) -> list[Post]:
        endpoint = await self._endpoint(target)
        brokers: dict[Vantage, Broker] = {}
        for vantage in {site.vantage for site in sites_of(target)}:
            brokers[vantage] = await connect(endpoint, vantage)
            self._resources.push_async_callback(brokers[vantage].close)
        return [Post(site, endpoint, brokers[site.vantage], self._instance) for site in sites_of(target)]

    async def _endpoint(self, target: TargetSettings) -> Endpoint:
        if not is_embedded(target, self._environ):
            return resolve_endpoint(target.endpoint, self._environ)
        if self._server is None:
            settings = self._config.embedded
            try:
                self._server = await self._resources.enter_async_context(EmbeddedServer(settings.port, settings.faults))
            except OSError as error:
                raise ConfigError(f"{error}; name another port with embedded.port, or 0 for any") from error
            _log.info("embedded Pub/Sub server on %s", self._server.address)
        return Endpoint(self._server.address, secure=False)

    def _take_up(self, target: TargetSettings, posts: Sequence[Post]) -> None:
        """Lets the rounds of a target's sites begin when the scheduler starts."""
        own: list[Rounds] = []

        def backlog() -> Mapping[str, Backlog]:
            return {rounds.name: rounds.backlog() for rounds in own}

        metrics = self._targets[target.name] = self._metrics.watch(target, backlog=backlog)
        tallies, health = self._tallies[target.name], self._metrics.health
        audience = Audience(metrics, tallies, health, self._board, self._tracing, self._history, self._status)
        for post in posts:
            rounds = self._rounds[post.site.name] = Rounds(self._config, post, audience)
            self._names[post.shown.key] = post.site.name
            own.append(rounds)
            settings = post.site.settings
            self._scheduler.add(post.site.name, settings.schedule, settings.jitter.total_seconds(), rounds.go)

    async def _leave(self) -> None:
        """Deletes what was made at the targets, as far as they answer soon."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await asyncio.gather(*(rounds.leave() for rounds in self._rounds.values()))

    async def _sweep(self, brokers: Mapping[tuple[Endpoint, str], Broker]) -> None:
        """Now and every few hours, deletes what probers that are long gone have left in each project."""
        while True:
            for (_, project), broker in brokers.items():
                try:
                    count = await sweep(broker.admin, f"projects/{project}", wall_s())
                    _log.log(
                        logging.INFO if count else logging.DEBUG, "%s: swept %d abandoned topics and subscriptions", project, count
                    )
                except BrokerError as error:
                    _log.info("%s: what may be abandoned there is left for now: %s", project, error)
            await asyncio.sleep(RENEWED_AFTER_S)

    async def _watch(self) -> None:
        """Measures how late the loop wakes up; what else is to be done every so often."""
        regularly = (_Regular(AGE_S, self._age), _Regular(TELL_S, self._tell), _Regular(SLICE_S, self._count_slice))
        while True:
            due_t = monotonic_s() + BEAT_S
            await asyncio.sleep(BEAT_S)
            now = monotonic_s()
            self._metrics.health.lagged(now - due_t)
            for regular in regularly:
                regular.at(now)

    def _age(self) -> None:
        now = datetime.fromtimestamp(wall_s(), UTC)
        for rounds in self._rounds.values():
            rounds.age()
        for target in self._config.targets:
            self._targets[target.name].under_maintenance(self._config.maintenance_of(target, now) is not None)

    def _tell(self) -> None:
        self._status.tell(self.snapshot())

    def _count_slice(self) -> None:
        now = datetime.fromtimestamp(wall_s(), UTC)
        for rounds in self._rounds.values():
            site, backlog = rounds.post.site, rounds.backlog()
            if self._config.maintenance_of(site.target, now) is not None:
                continue
            tallies, keys = self._tallies[site.target.name], site.settings.keys
            tallies.took(Indicator.OLDEST_UNACKED_MESSAGE_AGE, backlog.oldest_unacked_age_s)
            tallies.ended(Indicator.STALLED_KEYS, good=max(0, keys - backlog.stalled_keys), bad=backlog.stalled_keys)


class _Regular:
    """Something to be done again and again, `every_s` seconds after the time before."""

    def __init__(self, every_s: float, action: Callable[[], None]) -> None:
        self._every_s, self._action = every_s, action
        self._due_t = monotonic_s() + every_s

    def at(self, now: float) -> None:
        """Does it if it is due."""
        if now >= self._due_t:
            self._due_t = max(now, self._due_t + self._every_s)
            self._action()


class _Attendance:
    """Notes what the schedule asks for, and what does not happen."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def expected(self, name: str) -> None:
        """The schedule asked for a run."""
        post, metrics, board = self._service.of(name)
        metrics.expected(post.site.probe)
        board.expected(post.shown)

    def skipped(self, name: str, reason: Skip) -> None:
        """A run that the schedule asked for does not start."""
        post, metrics, board = self._service.of(name)
        metrics.skipped(post.site.probe, reason)
        board.skipped(post.shown, reason, wall_s())
        _log.warning("%s: a run was skipped: %s", name, reason)

    def failed(self, name: str, error: BaseException) -> None:
        """Rounds ended by a mistake of ours."""
        self._service.health.internal_error(Component.SCHEDULER)
        _log.error("internal error in %s", name, exc_info=error)


def own_name(host: str) -> str:
    """A host's name as it may stand in the names of topics and in labels: small letters, digits, hyphens."""
    return re.sub("[^a-z0-9]+", "-", host.lower()).strip("-")[:INSTANCE_LENGTH_MAX].rstrip("-") or "prober"
