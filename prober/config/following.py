"""Reload of the configuration file while the program runs.

The file is read regularly, and its content is applied or refused.

The content counts, not the time of the file: Kubernetes changes mounted files by moving a symbolic link, and an editor writes in steps. New
content is applied when two reads in a row return it; after a SIGHUP one read is enough. Refused content changes nothing, and is not tried
again until the file changes or the next SIGHUP.

Sections in `FOLLOWED` are applied while the program runs. The others are read at its start only: listen addresses, stores, names. Of these
the old values stay in force, and the differing keys are reported by name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, NamedTuple

from pydantic import BaseModel

from prober.clock import wall_s
from prober.config.loading import load_with_warnings, read_content
from prober.config.models import Config
from prober.config.problems import report
from prober.config.workloads import capacity_problems
from prober.errors import ConfigError, ProberError

LOOK_EVERY_S: Final = 2.0
DIGEST_LENGTH: Final = 12
REFUSAL_LENGTH_MAX: Final = 2_000
REFUSED: Final = "the configuration file was refused"
"""Prefix of each message about a refused file."""

_log = logging.getLogger(__name__)
FOLLOWED: Final = frozenset({"targets", "probes", "slos", "maintenance", "budget", "comparisons"})


@dataclass(frozen=True, slots=True)
class ConfigurationStatus:
    """The configuration in force. Times are seconds since 1970.

    file        its path; empty: there is none, only defaults and the environment.
    digest      first digits of its SHA-256, as `sha256sum` prints them; empty without a file.
    since       time at which it came into force.
    restart     its keys that wait for a restart; until then their old values apply.
    refused_at  time at which the present content was refused; None: it was not. `refusal` states the reason on one line.
    usd_per_month   maximum cost of its probes on the real service, at list price; 0: it has no probes there.
    faults      faults that its embedded server injects.
    """

    file: str
    digest: str
    since: float
    restart: tuple[str, ...] = ()
    refused_at: float | None = None
    refusal: str = ""
    usd_per_month: float = 0.0
    faults: tuple[str, ...] = ()

    @property
    def trouble(self) -> str:
        """Trouble to show to the operator of the prober; empty: none."""
        return f"{REFUSED}, and the old configuration stays in force: {self.refusal}" if self.refused_at is not None else ""


class ConfigurationFile(NamedTuple):
    """The configuration as read at the start. `digest` is that of the content, None without a file."""

    config: Config
    path: str | None = None
    warnings: tuple[str, ...] = ()
    digest: str | None = None

    @classmethod
    def read(cls, path: str | None, environ: Mapping[str, str]) -> ConfigurationFile:
        """Read a file (None: the defaults) and an environment. Raises ConfigError."""
        content = None if path is None else read_content(path)
        config, warnings = load_with_warnings(path, environ, content=content)
        return cls(config, path, warnings, None if content is None else _digest(content))


class Following:
    """Follower of a file; belongs to one event loop.

    `apply` applies a configuration and returns the keys that wait for a restart, or raises a ProberError and changes nothing.
    `report` is called with the state, at once and after each change; `failed` with internal errors.
    """

    def __init__(
        self,
        file: ConfigurationFile,
        environ: Mapping[str, str],
        apply: Callable[[Config], Awaitable[tuple[str, ...]]],
        report: Callable[[ConfigurationStatus], None],
        failed: Callable[[Exception], None],
        now: Callable[[], float] = wall_s,
    ) -> None:
        self._path, self._environ, self._apply, self._report, self._now = file.path, environ, apply, report, now
        self._failed = failed
        self._seen = self._handled = file.digest
        self._asked = asyncio.Event()
        self._status = ConfigurationStatus(file.path or "", (file.digest or "")[:DIGEST_LENGTH], now())
        report(self._status)

    def ask(self) -> None:
        """Read and apply the file at once, even if it seems unchanged."""
        self._asked.set()

    async def keep_on(self) -> None:
        """Follow the file until cancelled."""
        while self._path is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LOOK_EVERY_S)
            asked = self._asked.is_set()
            self._asked.clear()
            await self.look(at_once=asked)

    async def look(self, *, at_once: bool = False) -> None:
        """Read the file once and apply new, stable content; `at_once`: any content. For the event loop; raises nothing."""
        assert self._path is not None
        content: bytes | None = None
        try:
            content = await asyncio.to_thread(read_content, self._path)
            seen = _digest(content)
        except ConfigError as error:
            seen = str(error)
        before, self._seen = self._seen, seen
        if not at_once and (seen != before or seen == self._handled):
            return
        self._handled = seen
        try:
            if content is None:
                raise ConfigError(seen)
            config, warnings = await asyncio.to_thread(load_with_warnings, self._path, self._environ, content=content)
            restart = await self._apply(config)
        except ProberError as error:
            self._refuse(str(error))
        except Exception as fault:  # a mistake of ours must not end the service
            self._failed(fault)
            self._refuse(f"internal error: {fault!r}")
        else:
            self._accept(seen[:DIGEST_LENGTH], restart, warnings)

    def _accept(self, digest: str, restart: tuple[str, ...], warnings: tuple[str, ...]) -> None:
        is_same = digest == self._status.digest
        for warning in warnings:
            _log.warning("%s", warning)
        _log.info("%s: configuration %s is in force", self._path, digest)
        if restart:
            _log.warning("restart to apply: %s", ", ".join(restart))
        since = self._status.since if is_same else self._now()
        self._tell(ConfigurationStatus(self._path or "", digest, since, restart))

    def _refuse(self, why: str) -> None:
        _log.error("%s, and the old configuration stays in force: %s", REFUSED, why)
        reason = "; ".join(line.strip() for line in why.splitlines())[:REFUSAL_LENGTH_MAX]
        self._tell(replace(self._status, refused_at=self._now(), refusal=reason))

    def _tell(self, status: ConfigurationStatus) -> None:
        self._status = status
        self._report(status)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def restart_keys(old: Config, new: Config) -> tuple[str, ...]:
    """Return the differing keys that are read at the start only, in the notation of users: `api.port`."""
    return tuple(_differing(old, new, (), FOLLOWED))


def in_force(old: Config, new: Config) -> Config:
    """Return the new configuration with the old values of the keys that need a restart.

    Raises ConfigError if the combination exceeds the capacity of one prober.
    """
    mixed = new.model_copy(update={name: getattr(old, name) for name in Config.model_fields if name not in FOLLOWED})
    problems = list(capacity_problems(mixed.targets, shared=mixed.sharding.group is not None))
    if problems:
        raise ConfigError(report(problems, f"without a restart for {', '.join(restart_keys(old, new))}", {}))
    return mixed


def _differing(old: BaseModel, new: BaseModel, at: tuple[str, ...], left_out: frozenset[str] = frozenset()) -> Iterator[str]:
    for name in type(old).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        if name in left_out or before == after:
            continue
        if isinstance(before, BaseModel) and isinstance(after, BaseModel):
            yield from _differing(before, after, (*at, name))
        else:
            yield ".".join((*at, name))
