"""Statements as they are sent: written for one database once, with the order of their values and how its columns are read.

SQLAlchemy makes them and keeps the connections. What it does around each time that one is carried out takes longer than SQLite needs to
find a row, so single questions go to the driver (`Database.ask`).

The driver of SQLite gives the interpreter away for each row and wants it back, from others that want it too. So of a list it gets all rows
as one, which is JSON: to write and read that takes as long as to make the rows one by one, and most of it while others go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from sqlalchemy import JSON, Boolean, Dialect, Double, Select
from sqlalchemy.types import TypeEngine

WRITTEN_MAX: Final = 512

Row: TypeAlias = Sequence[Any]


class Written(NamedTuple):
    """A statement in the words of one database.

    names      those of its columns.
    order      the names of its values, as the driver wants them: one after the other; None: by name.
    constants  values that it always has.
    readers    what makes a value of what the driver says, by the number of the column.
    is_packed  the driver says all rows as one.
    """

    text: str
    names: Sequence[str]
    order: Sequence[str] | None
    constants: Mapping[str, Any]
    readers: Sequence[tuple[int, Callable[[Any], Any]]]
    is_packed: bool

    def values(self, given: Mapping[str, Any]) -> Any:
        """The values for the driver."""
        values = {**self.constants, **given}
        return values if self.order is None else [values[name] for name in self.order]

    def rows(self, said: Sequence[Row]) -> Sequence[Row]:
        """What the driver says, as the columns are declared."""
        rows: Sequence[Row] = orjson.loads(said[0][0]) if self.is_packed else said
        return [self._read(row) for row in rows] if self.readers else rows

    def _read(self, row: Row) -> Row:
        values = list(row)
        for number, reader in self.readers:
            if values[number] is not None:
                values[number] = reader(values[number])
        return values


@lru_cache(WRITTEN_MAX)
def written(statement: Select[Any], dialect: Dialect, *, is_sqlite: bool, is_list: bool) -> Written:
    """The statement, whose values are numbers and texts, for a database."""
    compiled = statement.compile(dialect=dialect)
    columns = statement.selected_columns
    is_packed = is_sqlite and is_list
    readers = [(number, _reader(column.type, is_packed=is_packed)) for number, column in enumerate(columns)] if is_sqlite else []
    return Written(
        _packed(str(compiled), statement, dialect) if is_packed else str(compiled),
        columns.keys(),
        compiled.positiontup,
        {name: value for name, value in compiled.params.items() if value is not None},
        [(number, reader) for number, reader in readers if reader is not None],
        is_packed,
    )


def _packed(text: str, statement: Select[Any], dialect: Dialect) -> str:
    """All rows of a statement as one. It has a limit, so SQLite carries it out by itself, in its order."""
    columns = (_as_json(dialect.identifier_preparer.quote(column.name), column.type) for column in statement.selected_columns)
    return f"SELECT json_group_array(json_array({', '.join(columns)})) FROM ({text})"


def _as_json(column: str, kind: TypeEngine[Any]) -> str:
    """`quote` writes a number so that nothing of it is lost, which JSON in SQLite otherwise cuts after 15 digits."""
    if isinstance(kind, Double):
        return f"CASE WHEN {column} IS NOT NULL THEN json(quote({column})) END"
    return f"json(CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END)" if isinstance(kind, Boolean) else column


def _reader(kind: TypeEngine[Any], *, is_packed: bool) -> Callable[[Any], Any] | None:
    """SQLite knows numbers and texts only; the driver of PostgreSQL reads the rest itself."""
    if isinstance(kind, JSON):
        return json.loads
    return bool if isinstance(kind, Boolean) and not is_packed else None
