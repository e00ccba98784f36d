"""Statements as they are sent: written for one database once, with the order of their values and how its columns are read.

SQLAlchemy makes them and keeps the connections. What it does around each time that one is carried out takes longer than SQLite needs to
find a row, so single questions go to the driver (`Database.ask`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import JSON, Boolean, Dialect, Select
from sqlalchemy.types import TypeEngine

WRITTEN_MAX: Final = 512

Row: TypeAlias = tuple[Any, ...]


class Written(NamedTuple):
    """A statement in the words of one database.

    names      those of its columns.
    order      the names of its values, as the driver wants them: one after the other; None: by name.
    constants  values that it always has.
    readers    what makes a value of what the driver says, by the number of the column.
    """

    text: str
    names: Sequence[str]
    order: Sequence[str] | None
    constants: Mapping[str, Any]
    readers: Sequence[tuple[int, Callable[[Any], Any]]]

    def values(self, given: Mapping[str, Any]) -> Any:
        """The values for the driver."""
        values = {**self.constants, **given}
        return values if self.order is None else [values[name] for name in self.order]

    def read(self, row: Row) -> Row:
        """A row, as its columns are declared."""
        if not self.readers:
            return row
        values = list(row)
        for number, reader in self.readers:
            if values[number] is not None:
                values[number] = reader(values[number])
        return tuple(values)


@lru_cache(WRITTEN_MAX)
def written(statement: Select[Any], dialect: Dialect, *, is_sqlite: bool) -> Written:
    """The statement, whose values are numbers and texts, for a database."""
    compiled = statement.compile(dialect=dialect)
    readers = [(number, _reader(column.type)) for number, column in enumerate(statement.selected_columns)] if is_sqlite else []
    return Written(
        str(compiled),
        statement.selected_columns.keys(),
        compiled.positiontup,
        {name: value for name, value in compiled.params.items() if value is not None},
        [(number, reader) for number, reader in readers if reader is not None],
    )


def _reader(kind: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    """SQLite knows numbers and texts only; the driver of PostgreSQL reads the rest itself."""
    if isinstance(kind, JSON):
        return json.loads
    return bool if isinstance(kind, Boolean) else None
