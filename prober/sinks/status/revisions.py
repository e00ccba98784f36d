"""Revisions of the tables: those that this program contains, the one of a store, and whether the program may use the store.

The version table has one row. Programs of every version read it, so its columns never change. A program of an older revision than the
store's does not contain that revision; it goes by `oldest_program`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, inspect, text

VERSION_TABLE: Final = "status_version"
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
FOLDERS: Final = [_MIGRATIONS / "versions"]
"""Folders with the modules of revisions; tests add revisions of their own."""
UPGRADE: Final = "ordering-prober store upgrade"
DOWNGRADE: Final = "ordering-prober store downgrade"


@dataclass(frozen=True, slots=True)
class StoreRevision:
    """The row of the version table.

    oldest_program  the revision of the oldest program that may use the store; None: a development version made the store.
    pinned          the store was downgraded on purpose: only `store upgrade` upgrades it, no program at its start.
    """

    revision: str
    oldest_program: str | None
    pinned: bool


def read_revision(connection: Connection) -> StoreRevision | None:
    """Read the revision of a store; None: the store is empty."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    row = connection.execute(text(f"SELECT * FROM {VERSION_TABLE}")).mappings().first()
    return None if row is None else StoreRevision(row["version_num"], row.get("oldest_program"), bool(row.get("pinned")))


def known() -> list[str]:
    """List the revisions of this program, the oldest first.

    The last revision is that of the program.
    """
    return [script.revision for script in scripts()]


def scripts() -> list[Script]:
    """List the modules of the revisions of this program, the oldest first."""
    return list(_scripts(tuple(FOLDERS)))


def configuration() -> Config:
    """Return the settings of Alembic."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("version_locations", "\n".join(map(str, FOLDERS)))
    config.set_main_option("path_separator", "newline")
    return config


@cache
def _scripts(_folders: tuple[Path, ...]) -> tuple[Script, ...]:
    return tuple(ScriptDirectory.from_config(configuration()).walk_revisions())[::-1]


def refusal(store: StoreRevision) -> str:
    """Return why this program may not use a store; empty if it may.

    The text is one line and names the command that changes the store.
    """
    revisions = known()
    own = revisions[-1]
    if store.revision == own or (store.revision not in revisions and store.oldest_program in revisions):
        return ""
    if store.revision in revisions:
        pinned = " after a downgrade" if store.pinned else ""
        return f"the status store has revision {store.revision}{pinned}, and this program needs {own}: run `{UPGRADE}`"
    if store.oldest_program is None:
        return f"the status store was made by a development version (schema {store.revision}): use another store"
    return (
        f"the status store has revision {store.revision}, for which this program (revision {own}) is too old: run "
        f"`{DOWNGRADE} --to {own}` with the program that upgraded the store, or use that program"
    )
