"""Column types of the status store, and the base class of its records.

SQLite and PostgreSQL do not accept the same texts and numbers. A NUL character and half of a surrogate pair are stored as U+FFFD. A number
that is not finite is refused (`NotStorable`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import JSON, BigInteger, Boolean, Dialect, Double, LargeBinary, MetaData, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, MappedAsDataclass

from prober.core.findings import Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.sinks.live.condition import Condition

NAMES: Final = {"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}


def storable(value: Any) -> Any:
    """Return a text, or a value with texts in mappings and lists, in the form that every database accepts."""
    match value:
        case str():
            return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
        case Mapping():
            return {storable(name): storable(one) for name, one in value.items()}
        case list() | tuple():
            return [storable(one) for one in value]
    return value


class StoredText(TypeDecorator[str]):
    """Text in the form that every database accepts, in values and in comparisons."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the stored form of a text."""
        stored: str | None = storable(value)
        return stored


class Named(TypeDecorator[Any]):
    """An enumeration, stored as the text of its value."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the stored text of a member."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        """Return the member of a stored text."""
        return None if value is None else self.kind(value)


class Json(TypeDecorator[Any]):
    """A value of any type that pydantic serializes as JSON; None is NULL."""

    impl = JSON
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__(none_as_null=True)
        self.kind = kind
        self._adapter = TypeAdapter[Any](kind)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return a value as JSON types."""
        return None if value is None else storable(self._adapter.dump_python(value, mode="json"))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the value of JSON types."""
        return None if value is None else self._adapter.validate_python(value)


class PackedText(TypeDecorator[str]):
    """Long, repetitive text, stored compressed."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        """Compress a text."""
        return None if value is None else zlib.compress(value.encode())

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        """Decompress a text."""
        return None if value is None else zlib.decompress(value).decode()


class Record(MappedAsDataclass, DeclarativeBase):
    """A row of a table. The annotation of a field defines the type of its column and whether it may be NULL."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {  # noqa: RUF012  # SQLAlchemy reads it once
        str: StoredText(),
        float: Double(),
        int: BigInteger(),
        bool: Boolean(),
        Condition: Named(Condition),
        Kind: Named(Kind),
        Status: Named(Status),
        Symptom: Named(Symptom),
        Verdict: Named(Verdict),
    }


def values_of(record: Record) -> dict[str, Any]:
    """Return the values of a record by column, for an INSERT."""
    return {column.key: getattr(record, column.key) for column in record.__table__.columns}
