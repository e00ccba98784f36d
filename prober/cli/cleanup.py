"""The command `ordering-prober cleanup`: delete unused topics and subscriptions of probers.

Stopped probers delete their own, and running probers delete those older than a day. This command is for the resources of killed probers in
projects without a prober, and for the end of a project.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.brokers.base import Admin, Vantage
from prober.brokers.endpoint import Endpoint, resolve_endpoint
from prober.cli.options import EndpointOption, Targets
from prober.cli.process import ExitCode, confirm, must_know
from prober.clock import wall_s
from prober.durations import duration_s, write_duration
from prober.errors import BrokerError, ConfigError
from prober.probes.resources import OURS
from prober.runs.lifetimes import CleanupBounds, Kept, in_order_of_deletion, made_at, reason_to_keep, steady_name

if TYPE_CHECKING:
    from prober.config.models import Config, TargetSettings

DEFAULT_AGE: Final = "24h"


@dataclass(slots=True)
class Project:
    """A project behind an endpoint, and the configured targets to clean there; without names all resources of probers."""

    endpoint: Endpoint
    project: str
    targets: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.project} at {self.endpoint}"


@dataclass(slots=True)
class Found:
    """Resources in one project: those to delete, in order, and the number of the others by reason."""

    place: Project
    names: Sequence[str] = ()
    kept: Counter[Kept] = field(default_factory=Counter)


def cleanup(
    config: Annotated[str, typer.Option(metavar="FILE", help="The configuration that says where to clean up.")],
    target: Targets = None,
    endpoint: EndpointOption = "",
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Leave what is younger; 0s leaves nothing for its age.")
    ] = DEFAULT_AGE,
    in_use: Annotated[bool, typer.Option("--in-use", help="Also delete what a living prober uses or may use.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete topics and subscriptions that probers left behind.

    Only what carries the prober's label and a name as probers give it. Exit code 0: done, or nothing to do. 2: wrong usage or
    configuration. 3: a service cannot be reached, or something could not be deleted.
    """
    from prober.config.loading import load

    settings = load(config, os.environ, opens_store=False)
    places = projects_of(settings, target or [], os.environ, endpoint)
    bounds = CleanupBounds(duration_s(older_than), _living(settings), in_use)
    failures: list[BrokerError] = []
    found = asyncio.run(_find_all(settings, places, bounds, failures))
    _print_found(found, wall_s())
    count = sum(len(one.names) for one in found)
    if count and not dry_run:
        if not yes:
            confirm(f"Delete these {count}?", "add --yes to delete, or --dry-run to only look")
        deleted = asyncio.run(_delete_all(found, failures))
        print(f"deleted {deleted} of {count}")
    for failure in failures:
        print(f"ordering-prober: {failure}", file=sys.stderr)
    raise typer.Exit(int(ExitCode.UNKNOWN if failures else ExitCode.PASS))


def projects_of(config: Config, wanted: Sequence[str], environ: Mapping[str, str], override: str = "") -> list[Project]:
    """Return each project to clean once; all of Google's endpoints show the same resources. Raises ConfigError if there is none."""
    from prober.schedule.instances import is_embedded

    must_know("target", wanted, [one.name for one in config.targets])
    remote = [one for one in config.targets if not is_embedded(one, environ, override) and (not wanted or one.name in wanted)]
    if not remote:
        raise ConfigError("there is no target to clean up: what is on the embedded server ends with it")
    found: dict[tuple[str, str], Project] = {}
    for one in remote:
        endpoint = resolve_endpoint(one.endpoint, environ, override)
        server = "" if endpoint.secure else endpoint.address
        place = found.setdefault((server, one.project), Project(endpoint, one.project))
        place.targets.update({one.name} if wanted else ())
    return list(found.values())


def _living(config: Config) -> frozenset[str] | None:
    """Return the live probers in the status store of the configuration; None, with a warning, if it cannot be read."""
    from prober.sinks.status.database import Database, StatusError
    from prober.sinks.status.queries import StatusQueries

    database = Database(config.status.url.get_secret_value())
    try:
        if database.is_missing:
            raise StatusError(f"{database}: there is no such file")
        probers = StatusQueries(database).probers()
    except StatusError as error:
        print(f"the status store cannot say which probers live: {error}", file=sys.stderr)
        return None
    finally:
        database.close()
    now = wall_s()
    return frozenset(one.instance for one in probers if not one.is_silent(now))


# --- finding -----------------------------------------------------------------------------------------------------------------


async def _find_all(config: Config, places: Iterable[Project], bounds: CleanupBounds, failures: list[BrokerError]) -> list[Found]:
    """Return the resources of each reachable project; `failures` receives the errors of the others."""
    found = []
    for place in places:
        try:
            async with _admin(place) as admin:
                names = await admin.owned(f"projects/{place.project}", OURS)
            found.append(_sorted_out(place, _of_targets(names, place.targets, config.targets), bounds, wall_s()))
        except BrokerError as error:
            failures.append(error)
    return found


def _sorted_out(place: Project, names: Iterable[str], bounds: CleanupBounds, now: float) -> Found:
    found, going = Found(place), []
    for name in names:
        reason = reason_to_keep(name, now, bounds)
        if reason is None:
            going.append(name)
        else:
            found.kept[reason] += 1
    found.names = in_order_of_deletion(going)
    return found


def _of_targets(names: Iterable[str], wanted: Set[str], targets: Sequence[TargetSettings]) -> list[str]:
    """Return the names that belong to the selected targets, or all. If names of targets have a common end, the longest one counts."""
    from prober.schedule.instances import instances_of

    if not wanted:
        return list(names)
    ends = {instance.resource_name(""): target.name for target in targets for instance in instances_of(target)}
    return [name for name in names if (end := _longest_end(name, ends)) is not None and ends[end] in wanted]


def _longest_end(name: str, ends: Iterable[str]) -> str | None:
    steady = steady_name(name.rpartition("/")[2]) or ""
    return max(filter(steady.endswith, ends), key=len, default=None)


def _print_found(found: Iterable[Found], now: float) -> None:
    for one in found:
        print(f"{one.place}: {len(one.names) or 'nothing'} to delete")
        for name in one.names:
            age = timedelta(minutes=int(now - (made_at(name) or now)) // 60)
            print(f"  {name}  ({write_duration(age)} old)")
        for reason, count in sorted(one.kept.items()):
            print(f"  {count} left: {reason}")


# --- deleting ----------------------------------------------------------------------------------------------------------------


async def _delete_all(found: Iterable[Found], failures: list[BrokerError]) -> int:
    """Delete the resources and return their number; resources already gone do not count, errors go to `failures`."""
    deleted = 0
    for one in found:
        async with _admin(one.place) as admin:
            for name in one.names:
                try:
                    deleted += await admin.delete(name, OURS)
                except BrokerError as error:
                    failures.append(error)
    return deleted


@asynccontextmanager
async def _admin(place: Project) -> AsyncIterator[Admin]:
    from prober.brokers.connect import connect

    broker = await connect(place.endpoint, Vantage.WIRE)
    try:
        yield broker.admin
    finally:
        await broker.close()
