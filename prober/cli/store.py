"""The commands `ordering-prober store`: the revision of the status store, and its manual changes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prober.cli.options import Output
from prober.cli.process import ExitCode, Format, confirm, help_without_command, must_know, own_version

if TYPE_CHECKING:
    from prober.sinks.status.database import Database
    from prober.sinks.status.migration import RevisionChange

store_app = typer.Typer(
    help="Show, upgrade or downgrade the revision of the status store.",
    callback=help_without_command,
    invoke_without_command=True,
    rich_markup_mode=None,
)


def _revisions() -> list[str]:
    from prober.sinks.status.revisions import known

    return known()


_CONFIG = typer.Option(metavar="FILE", help="The configuration with `status.url`; without it the environment and the default.")
_TO = typer.Option(metavar="REVISION", help="The revision to end with, such as 1.", autocompletion=_revisions)


@store_app.command("status")
def store_status(config: Annotated[str | None, _CONFIG] = None, output: Output = Format.TEXT) -> None:
    """Print the revision of the store, the revision of this program, whether they fit, and the pending steps.

    Changes nothing. Exit code 0: this program may use the store, and no step is pending. 1: steps are pending; `store upgrade` takes them.
    2: wrong usage, or a newer store that this program may not use. 3: the store cannot be reached.
    """
    with _opened(config) as database:
        found = _state(database)
    if output is Format.JSON:
        print(json.dumps(found))
    else:
        print("\n".join(_as_text(found)))
    pending = ExitCode.FAIL if found["pending"] else ExitCode.PASS
    raise typer.Exit(int(pending if found["pending"] or found["compatible"] else ExitCode.MALFORMED))


@store_app.command("upgrade")
def store_upgrade(
    config: Annotated[str | None, _CONFIG] = None,
    to: Annotated[str | None, _TO] = None,
) -> None:
    """Upgrade the store to the revision of this program, or to an older one, and end the pin of a downgrade.

    Exit code 0: done, or nothing to do. 2: wrong usage, or a newer store that this program may not use. 3: the store cannot be reached.
    """
    from prober.sinks.status.migration import upgrade

    must_know("revision", [to] if to else [], _revisions())
    with _opened(config) as database:
        _report(database, upgrade(database, to))


@store_app.command("downgrade")
def store_downgrade(
    to: Annotated[str, _TO],
    config: Annotated[str | None, _CONFIG] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Downgrade the store, and pin it there until `store upgrade`: no program upgrades it at its start.

    Deletes what the undone revisions have added. Exit code 0: done, or nothing to do. 2: wrong usage, or a store whose revision this
    program does not contain. 3: the store cannot be reached.
    """
    from prober.sinks.status.migration import downgrade

    must_know("revision", [to], _revisions())
    with _opened(config) as database:
        if not yes:
            confirm(f"Downgrade {database} to revision {to}?", "add --yes to downgrade")
        _report(database, downgrade(database, to), ", pinned until `store upgrade`")


@contextmanager
def _opened(config: str | None) -> Iterator[Database]:
    """Open the store of a configuration. Ends the command with code 3 if it cannot be reached."""
    from prober.config.loading import load
    from prober.sinks.status.database import Database, StoreUnavailable

    database = Database(load(config, os.environ, opens_store=False).status.url.get_secret_value())
    try:
        yield database
    except StoreUnavailable as error:
        print(f"ordering-prober: {error}", file=sys.stderr)
        raise typer.Exit(int(ExitCode.UNKNOWN)) from None
    finally:
        database.close()


def _report(database: Database, change: RevisionChange, more: str = "") -> None:
    before = "empty" if change.before is None else f"revision {change.before}"
    done = "" if change.before == change.after else f"; now revision {change.after}"
    print(f"{database}: {before}{done}{more}")


def _state(database: Database) -> dict[str, Any]:
    """Return the fields of `store status`. A file that does not exist is an empty store, and reading would create it."""
    from prober.sinks.status.migration import stored_revision
    from prober.sinks.status.revisions import refusal, scripts

    is_missing = database.is_missing
    store = None if is_missing else stored_revision(database)
    revisions = _revisions()
    after = 0 if store is None else revisions.index(store.revision) + 1 if store.revision in revisions else len(revisions)
    reason = "the status store is empty" if store is None else refusal(store)
    return {
        "store": str(database),
        "revision": store and store.revision,
        "program_revision": revisions[-1],
        "version": own_version(),
        "compatible": not reason,
        "reason": reason,
        "oldest_program": store and store.oldest_program,
        "pinned": store is not None and store.pinned,
        "pending": [
            {"revision": step.revision, "oldest_program": step.module.oldest_program, "about": step.doc}
            for step in scripts()[after:]
        ],
    }


def _as_text(found: dict[str, Any]) -> Iterator[str]:
    yield f"store: {found['store']}"
    yield f"revision: {found['revision'] or 'none'}{', pinned by `store downgrade`' if found['pinned'] else ''}"
    yield f"program: revision {found['program_revision']}, version {found['version']}"
    yield f"oldest program that may use the store: {found['oldest_program'] or 'unknown'}"
    yield f"compatible: {'yes' if found['compatible'] else 'no: ' + found['reason']}"
    yield f"pending: {len(found['pending']) or 'none'}"
    for step in found["pending"]:
        yield f"  {step['revision']}: {step['about']} Oldest program afterwards: {step['oldest_program']}."
