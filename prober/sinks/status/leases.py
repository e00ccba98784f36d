"""Leases in the status store: they assign work that only one of several probers may do.

A holder keeps a lease until it expires or is released, and renews it before. Time is the clock of the database, so the clocks of probers do
not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlalchemy import ColumnElement, delete, select

from prober.sinks.status.columns import storable
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import Lease


class Leases:
    """The leases of one holder, within one group of holders. Every method raises `StoreUnavailable`; safe for any thread."""

    def __init__(
        self, database: Database, group: str, holder: str, length_s: float, now: Callable[[], ColumnElement[float]] | None = None
    ) -> None:
        """`now` is the time at the database in seconds since 1970; by default the clock of the database."""
        self._database, self._group, self._holder, self._length_s = database, group, holder, length_s
        self._now = now or database.now

    def take(self, names: Collection[str]) -> set[str]:
        """Take or renew the leases that no other holder has; return those now held."""
        insert = self._database.insert(Lease)
        free = (Lease.holder == self._holder) | (Lease.until < self._now())
        change = {"holder": insert.excluded.holder, "until": insert.excluded.until}
        statement = insert.on_conflict_do_update(index_elements=["name"], set_=change, where=free)
        mine = select(Lease.name).where(Lease.holder == self._holder, Lease.name.in_(list(map(self._stored, names))))
        with self._database.writing() as connection:
            for name in sorted(names):  # in one order, so that two holders never wait for each other
                values = {"name": self._stored(name), "holder": self._holder, "until": self._now() + self._length_s}
                connection.execute(statement.values(values))
            return {self._plain(name) for name in connection.execute(mine).scalars()}

    def holders(self, names_begin_with: str) -> set[str]:
        """Return the current holders of leases whose names have this prefix."""
        begin = Lease.name.startswith(self._stored(names_begin_with), autoescape=True)
        with self._database.reading() as connection:
            return set(connection.execute(select(Lease.holder).where(begin, Lease.until >= self._now())).scalars())

    def release(self, names: Collection[str]) -> None:
        """Release leases of this holder; leases of others stay."""
        mine = (Lease.holder == self._holder) & Lease.name.in_(list(map(self._stored, names)))
        with self._database.writing() as connection:
            connection.execute(delete(Lease).where(mine))

    def _stored(self, name: str) -> str:
        return f"{self._group}/{storable(name)}"

    def _plain(self, stored: str) -> str:
        return stored.removeprefix(f"{self._group}/")
