"""Who of several probers does what only one of them is to do: leases in the status store.

A lease is held until it ends or is released, and renewed before. Time is the database's, so that the clocks of probers do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlalchemy import ColumnElement, delete, select

from prober.sinks.status.columns import storable
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import Lease


class Leases:
    """The leases of one holder, all within one group of holders. Every method raises `StoreUnavailable`; for any thread."""

    def __init__(
        self, database: Database, group: str, holder: str, length_s: float, now: Callable[[], ColumnElement[float]] | None = None
    ) -> None:
        """`now` is the time in the database, seconds since 1970; by default its own clock."""
        self._database, self._group, self._holder, self._length_s = database, group, holder, length_s
        self._now = now or database.now

    def take(self, names: Collection[str]) -> set[str]:
        """Takes or renews the leases that no other holder has; those that are held now."""
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
        """Who holds leases at present whose names begin so."""
        begin = Lease.name.startswith(self._stored(names_begin_with), autoescape=True)
        with self._database.reading() as connection:
            return set(connection.execute(select(Lease.holder).where(begin, Lease.until >= self._now())).scalars())

    def release(self, names: Collection[str]) -> None:
        """Gives leases back; those of others stay."""
        mine = (Lease.holder == self._holder) & Lease.name.in_(list(map(self._stored, names)))
        with self._database.writing() as connection:
            connection.execute(delete(Lease).where(mine))

    def _stored(self, name: str) -> str:
        return f"{self._group}/{storable(name)}"

    def _plain(self, stored: str) -> str:
        return stored.removeprefix(f"{self._group}/")
