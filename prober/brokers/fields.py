"""Paths to the group and the number in a message of another publisher.

    ordering_key         the ordering key
    attributes.NAME      an attribute; its name is the whole text behind the first dot
    json.FIELD.FIELD     a field of the data, a JSON object

A group is text or a whole number. A sequence number is a whole number, as number or text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from prober.brokers.base import Received
from prober.errors import ConfigError

ORDERING_KEY: Final = "ordering_key"
ATTRIBUTES: Final = "attributes"
JSON: Final = "json"
NAMES_SHOWN: Final = 5
TEXT_SHOWN: Final = 40

_WHOLE: Final = re.compile(r"[+-]?\d{1,18}")


class NoValue(Exception):
    """A message lacks a value; the text is the reason, to follow the message's name: `has no attribute account (it has: user, seq)`."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path to a value. `names` are its parts behind the first."""

    root: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.root, *self.names))


def parse_path(text: str) -> FieldPath:
    """Parse a path. Raises ConfigError for anything else."""
    root, _, rest = text.strip().partition(".")
    if root == ORDERING_KEY and not rest:
        return FieldPath(ORDERING_KEY)
    if root == ATTRIBUTES and rest:
        return FieldPath(ATTRIBUTES, (rest,))
    if root == JSON and rest and all(rest.split(".")):
        return FieldPath(JSON, tuple(rest.split(".")))
    raise ConfigError(f"{text!r} is not a path into a message: write ordering_key, attributes.NAME or json.FIELD.FIELD")


class Message:
    """A received message whose fields are read; its data are decoded at most once."""

    def __init__(self, received: Received) -> None:
        self._received = received
        self._content: Mapping[str, Any] | None = None

    def group(self, path: FieldPath) -> str:
        """Return the value of a path as the name of a group. Raises NoValue, also if it is empty."""
        value = self._value(path)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise NoValue(f"has {_shown(value)} in {path}, which is no name of a group")
        if value == "":
            raise NoValue(f"has nothing in {path}")
        return str(value)

    def number(self, path: FieldPath) -> int:
        """Return the value of a path as a sequence number. Raises NoValue."""
        value = self._value(path)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
            return value
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            return int(value)
        raise NoValue(f"has {_shown(value)} in {path}, which is not a whole number")

    def _value(self, path: FieldPath) -> object:
        received = self._received
        if path.root == ORDERING_KEY:
            return received.ordering_key
        if path.root == ATTRIBUTES:
            (name,) = path.names
            if name not in received.attributes:
                raise NoValue(f"has no attribute {name}{_there(received.attributes)}")
            return received.attributes[name]
        here: Any = self._decoded()
        for name in path.names:
            if not isinstance(here, dict) or name not in here:
                raise NoValue(f"has no field {'.'.join(path.names)} in its data{_there(here) if isinstance(here, dict) else ''}")
            here = here[name]
        return here

    def _decoded(self) -> Mapping[str, Any]:
        if self._content is None:
            try:
                content = json.loads(self._received.data)
            except (ValueError, RecursionError):
                raise NoValue("has data that are not JSON") from None
            if not isinstance(content, dict):
                raise NoValue("has data that are JSON and not an object")
            self._content = content
        return self._content


def _there(named: Mapping[str, object]) -> str:
    names = sorted(named)
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f" (it has: {', '.join(names[:NAMES_SHOWN])}{more})" if names else " (it has none)"


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}..."
