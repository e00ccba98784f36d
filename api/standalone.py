"""The API in a process of its own, from the status store alone: for many readers, or several replicas behind one address.

It does not probe, so it cannot start runs, and its metrics are about itself. From a changed configuration it applies the objectives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType, TracebackType
from typing import Final, Self

from api.app import create_app
from api.view import Archive
from prober.clock import wall_s
from prober.config.following import ConfigurationFile, ConfigurationStatus, Following, restart_keys
from prober.config.models import Config
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey
from prober.serving.server import listen, reload_signal, serve_until, stop_signals
from prober.sinks.live.feed import LiveFeed
from prober.sinks.live.snapshot import Readiness, RunOrdered, StatusSnapshot
from prober.sinks.metrics import Component, Metrics, Scrapes, families
from prober.sinks.status.database import Database, StatusError, StoreReadOnly, StoreUnavailable
from prober.sinks.status.migration import prepare
from prober.sinks.status.queries import StatusQueries

ASKED_EVERY_S: Final = 5.0
READ_AT_START: Final = ("api.", "history.reports", "instance", "status.url", "telemetry.")

_log = logging.getLogger(__name__)


async def run_alone(file: ConfigurationFile, environ: Mapping[str, str], version: str, announce: Callable[[str], None]) -> None:
    """Serve the API until a signal comes.

    Calls `announce` with the URL. Waits for a store that cannot be reached.

    Raises ConfigError, StatusError or HistoryError for errors that a user can correct.
    """
    config = file.config
    with stop_signals() as stop, await listen(config.api.host, config.api.port) as listening:
        archive = Archive.of(config, StatusQueries(Database(config.status.url.get_secret_value())))
        async with Alone(file, archive, version, environ) as view:
            app = create_app(view, archive, config.api)
            with reload_signal(view.reload if file.path else None):
                await serve_until(stop, app, listening, announce=announce)


class Alone:
    """View of an API without a prober: whether the store of the archive answers, which it checks every few seconds.

    It applies changes of the configuration file to the archive.
    """

    def __init__(
        self, file: ConfigurationFile, archive: Archive, version: str, environ: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._config, self._archive = file.config, archive
        self._version, self._started_at = version, wall_s()
        self._metrics = Metrics(version=version)
        self._scrapes = Scrapes(self._metrics)
        self.feed = LiveFeed()
        self._problem = "the status store was not asked yet"
        self._following = Following(file, environ, self._apply, self._configured, self.failed)

    async def __aenter__(self) -> Self:
        await self._ask()
        self._watching = asyncio.create_task(self._watch())
        self._keeping_on = asyncio.create_task(self._following.keep_on())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in (self._watching, self._keeping_on):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._archive.queries.database.close()

    def snapshot(self) -> StatusSnapshot:
        """Return an empty snapshot: all data comes from the store."""
        at, since = wall_s(), self._started_at
        troubles = tuple(filter(None, (self._configuration.trouble,)))
        return StatusSnapshot(
            at, Verdict.UNKNOWN, since, self._version, self._config.name, since, probe_instances=(), slos=(), troubles=troubles
        )

    def reload(self) -> None:
        """Read the configuration file immediately, if there is one."""
        self._following.ask()

    def run_now(self, instance: InstanceKey) -> RunOrdered:
        """Raise KeyError for every probe instance: this process does not probe."""
        raise KeyError(instance)

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        """Return the response to a scrape."""
        return await self._scrapes.page(accept)

    def is_stored(self) -> bool:
        """Return True: this process has no data that is not stored."""
        return True

    def is_unwritten(self, run_id: str) -> bool:
        """Return False: this process executes no runs."""
        return False

    def readiness(self) -> Readiness:
        """Return whether the store answers."""
        return Readiness(not self._problem, (self._problem,) if self._problem else ())

    def alive(self) -> bool:
        """Return whether the checks of the store still run."""
        return not self._watching.done()

    def failed(self, error: Exception) -> None:
        """Count and log a request that failed because of an internal error."""
        self._metrics.health.internal_error(Component.API)
        _log.error("internal error in the API", exc_info=error)

    async def _apply(self, config: Config) -> tuple[str, ...]:
        """Apply the objectives; return the changed keys that the API reads only at its start."""
        self._archive.follow(config)
        return tuple(key for key in restart_keys(self._config, config) if key.startswith(READ_AT_START))

    def _configured(self, status: ConfigurationStatus) -> None:
        self._configuration = status
        self._metrics.health.configured(wall_s() if status.refused_at is None else None)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(ASKED_EVERY_S)
            await self._ask()

    async def _ask(self) -> None:
        """Check that the store answers and has a supported revision; an unsupported one stays a problem until a command changes it."""
        problem = ""
        try:
            await asyncio.to_thread(self._look)
        except StatusError as error:
            problem = _in_public(error)
            if not self._problem:
                _log.warning("%s: %s", problem, error)
        self._metrics.health.set(families.STATUS_STORE_UP, not problem)
        self._problem = problem

    def _look(self) -> None:
        prepare(self._archive.queries.database)
        self._archive.queries.probers()


def _in_public(error: StatusError) -> str:
    """Return the problem without hosts and folders, which the text of an error may contain."""
    if isinstance(error, StoreReadOnly):
        return "the status store is read-only"
    return "the status store cannot be reached" if isinstance(error, StoreUnavailable) else str(error)
