"""What an export says of a message, and which of its fields are the key and the number of it.

With metadata Pub/Sub writes the subscription, the message id and the publish time into fields of their own, and everything else, the
ordering key included, into `attributes` (`CloudStorageConfig.AvroConfig` and `BigQueryConfig` in Pub/Sub's API). Without metadata only
the data is there, and key and number must be in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from prober.errors import ConfigError, ProberError

Row: TypeAlias = Mapping[str, Any]
"""One row as it was written: columns or fields by name."""

KEY_ATTRIBUTE: Final = "ordering_key"
_NUMBER_LENGTH_MAX: Final = 30


class ExportError(ProberError):
    """An export cannot be read; the text says where and why, and what to do, on one line."""


class ExportedMessage(NamedTuple):
    """A message in an export.

    source        the file or table that holds it; `row`: its place there, from 1.
    stream        its ordering key and, where several write to one place, the subscription that wrote it.
    message_id    empty: not known. `published_s`: seconds since 1970, by Pub/Sub's clock; None: not known.
    number        the publisher's own, which grows along the key; None: it has none.
    """

    source: str
    row: int
    subscription: str
    key: str
    message_id: str
    published_s: float | None
    number: int | None


@dataclass(frozen=True, slots=True)
class ValuePath:
    """Where a value of a message is: an attribute, a field of its data, which is JSON, or a column. `path` is what follows the colon."""

    place: str
    path: tuple[str, ...]

    def find(self, row: Row) -> Any:
        """The value; None if the row has none there."""
        if self.place == "attribute":
            return _mapping(row.get("attributes")).get(self.path[0])
        value: Any = _mapping(row.get("data")) if self.place == "json" else row
        for name in self.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


def field_path(text: str) -> ValuePath:
    """From `attribute:NAME`, `json:FIELD.FIELD` or `column:NAME`. Raises ConfigError."""
    place, colon, rest = text.partition(":")
    if not colon or not rest or place not in ("attribute", "json", "column"):
        raise ConfigError(f"{text!r} names no field: write attribute:NAME, json:FIELD (in data that is JSON) or column:NAME")
    return ValuePath(place, (rest,) if place == "attribute" else tuple(rest.split(".")))


@dataclass(frozen=True, slots=True)
class MessageFields:
    """Where the ordering key and the publisher's number are; no `number`: messages have none."""

    key: ValuePath = ValuePath("attribute", (KEY_ATTRIBUTE,))
    number: ValuePath | None = None

    def message(self, row: Row, source: str, place: int) -> ExportedMessage:
        """What a row says. Raises `ExportError` for a number that is none."""
        key = self.key.find(row)
        number = None if self.number is None else self.number.find(row)
        try:
            return ExportedMessage(
                source,
                place,
                str(row.get("subscription_name") or ""),
                "" if key is None else str(key),
                str(row.get("message_id") or ""),
                _seconds(row.get("publish_time")),
                None if number is None else _whole(number),
            )
        except ValueError as wrong:
            raise ExportError(f"{source}, row {place}: {wrong}") from None


def _mapping(value: Any) -> Mapping[str, Any]:
    """A map as it is, or from JSON text; empty for anything else."""
    if isinstance(value, str | bytes):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _seconds(value: Any) -> float | None:
    """A point in time; a whole number is in microseconds, as in Avro. Raises ValueError."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value / 1e6
    time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def _whole(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or len(text) > _NUMBER_LENGTH_MAX or not text.removeprefix("-").isdecimal():
        raise ValueError(f"{text[:_NUMBER_LENGTH_MAX]!r} is not a whole number: choose another field with --number")
    return int(text)
