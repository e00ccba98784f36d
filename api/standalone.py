"""The API in a process of its own, from the status store alone: for many readers, or several replicas behind one address.

It probes nothing, so a run cannot be begun here, and its metrics are about itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from api.app import create_app
from api.server import serve_until, stop_signals
from api.view import Archive
from prober.clock import wall_s
from prober.config.models import Config
from prober.core.verdict import Verdict
from prober.runs.site import SiteKey
from prober.sinks.live.snapshot import Readiness, RunOrdered, StatusSnapshot
from prober.sinks.metrics import Component, Metrics, Scrapes
from prober.sinks.status.database import Database, StoreUnavailable
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore

ASKED_EVERY_S: Final = 5.0

_log = logging.getLogger(__name__)


async def run_alone(config: Config, version: str, announce: Callable[[str], None]) -> None:
    """Serves the API until a signal comes. `announce` is told its URL. A store that cannot be reached is waited for.

    Raises ConfigError, StatusError or HistoryError for what a user can do something about.
    """
    database = Database(config.status.url.get_secret_value())
    archive = Archive.of(config, StatusQueries(database))
    with stop_signals() as stop:
        async with Alone(config, database, version) as view:
            app = create_app(view, archive, config.api)
            await serve_until(stop, app, config.api.host, config.api.port, announce=announce)


class Alone:
    """What the API knows of a service that it is not: nothing but whether the store answers, which is asked every few seconds."""

    def __init__(self, config: Config, database: Database, version: str) -> None:
        self._instance = config.name
        self._version, self._started_at = version, wall_s()
        self._metrics = Metrics(version=version)
        self._scrapes = Scrapes(self._metrics)
        self._database, self._store = database, StatusStore(database)
        self._problem = "the status store was not asked yet"
        self._is_prepared = False

    async def __aenter__(self) -> Self:
        await self._ask()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._watching.cancel()
        with suppress(asyncio.CancelledError):
            await self._watching
        self._database.close()

    def snapshot(self) -> StatusSnapshot:
        """Nothing is known but by the store."""
        at, since = wall_s(), self._started_at
        return StatusSnapshot(at, Verdict.UNKNOWN, since, self._version, self._instance, since, sites=(), slos=())

    def run_now(self, site: SiteKey) -> RunOrdered:
        """Nothing is probed here."""
        raise KeyError(site)

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        """What a scrape gets."""
        return await self._scrapes.page(accept)

    def is_stored(self) -> bool:
        """Nothing is known here that is not stored."""
        return True

    def is_unwritten(self, run_id: str) -> bool:
        """Nothing runs here."""
        return False

    def readiness(self) -> Readiness:
        """Whether the store answers."""
        return Readiness(not self._problem, (self._problem,) if self._problem else ())

    def alive(self) -> bool:
        """Whether the store is still being asked."""
        return not self._watching.done()

    def failed(self, error: Exception) -> None:
        """A request could not be answered because of a mistake of ours."""
        self._metrics.health.internal_error(Component.API)
        _log.error("internal error in the API", exc_info=error)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(ASKED_EVERY_S)
            await self._ask()

    async def _ask(self) -> None:
        """Looks whether the store answers. Raises StatusError if it is there and will never do."""
        problem = ""
        try:
            await asyncio.to_thread(self._look)
        except StoreUnavailable as error:
            problem = "the status store cannot be reached"
            if not self._problem:
                _log.warning("%s: %s", problem, error)
        self._metrics.health.status_answers(not problem)
        self._problem = problem

    def _look(self) -> None:
        """Makes the tables when it is reached for the first time; then just asks."""
        if not self._is_prepared:
            self._store.prepare()
            self._is_prepared = True
        StatusQueries(self._database).probers()
