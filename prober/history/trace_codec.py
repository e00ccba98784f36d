"""One event as one JSON object: the table of names on disk, and a decoder fast enough for millions of lines.

The fields of an event on disk are those of its value in `prober.core.events`, so the vocabulary has one definition; the names of the
events are those of the probe history. Reflection happens once, at import. Per event, decoding is one look-up, one merge with the defaults,
one comparison of the fields' types with the known good combinations, and the constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import product
from math import isfinite
from operator import itemgetter
from types import NoneType
from typing import Any, get_args, get_type_hints

import orjson

from prober.core.events import Event
from prober.history.schema import EVENT_TYPES as EVENT_TYPES

# What the prober itself decides has a least value. What a delivery claims about itself has none: a wrong claim is a finding.
LEAST: Mapping[str, int] = {"seq": 1, "generation": 0, "seconds": 0, "settle_s": 0, "size": 0}
UNBOUNDED_EVENTS = frozenset({"delivered"})

# Optional fields that are written only when they say something.
QUIET_DEFAULTS: Mapping[str, object] = {
    "publish_time": None,
    "invoked_t": None,
    "intended_t": None,
    "size": 0,
    "defect": None,
    "matches_filter": True,
    "region": "",
    "max_outstanding_messages": None,
    "max_outstanding_bytes": None,
    "lost": False,
}

WORDS: Mapping[type, str] = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


class BadEvent(ValueError):
    """One JSON object is not an event of this format; the text says what is wrong with it and what to do."""


def shown(value: object) -> str:
    """A JSON value as it would stand in the file, cut to 40 characters."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= 40 else text[:37] + "..."


def words_for(accepted: tuple[type, ...]) -> str:
    """What a field takes, in words: "a number or null"."""
    return " or ".join(WORDS[kind] for kind in accepted)


@dataclass(frozen=True, slots=True)
class FieldForm:
    """One field on disk: the exact JSON types it takes and the least value that makes sense (None: any)."""

    name: str
    accepted: tuple[type, ...]
    least: int | None

    def settled(self, value: object, event: str) -> object:
        """The value as the event keeps it: whole numbers become floats where a number is meant. Raises `BadEvent`."""
        if type(value) in self.accepted:
            return value
        if type(value) is int and float in self.accepted:
            return float(value)
        raise BadEvent(f'"{event}" needs {words_for(self.accepted)} in "{self.name}", not {shown(value)}')


def picker(names: Sequence[str]) -> Callable[[Mapping[str, object]], tuple[Any, ...]]:
    """A function that takes these values, in this order, out of a row; it raises KeyError if one is missing."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: (row[names[0]],)  # itemgetter would give the bare value


class EventForm:
    """How one kind of event stands on disk."""

    __slots__ = ("defaults", "fields", "make", "name", "pick", "signatures", "thresholds")

    def __init__(self, name: str, event_type: type[Event]) -> None:
        hints = get_type_hints(event_type)
        least = {} if name in UNBOUNDED_EVENTS else LEAST
        self.name = name
        self.make: Callable[..., Event] = event_type
        self.fields = tuple(
            FieldForm(f.name, get_args(hints[f.name]) or (hints[f.name],), least.get(f.name)) for f in fields(event_type)
        )
        self.defaults = {f.name: f.default for f in fields(event_type) if f.default is not MISSING}
        self.pick = picker([form.name for form in self.fields])
        self.signatures = frozenset(product(*(form.accepted for form in self.fields)))
        self.thresholds = tuple((i, form.least) for i, form in enumerate(self.fields) if form.least is not None)

    def settle(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """Values of unusual types, made usual or refused with `BadEvent`."""
        return tuple(form.settled(value, self.name) for form, value in zip(self.fields, values, strict=True))

    def check_least(self, values: tuple[Any, ...]) -> None:
        """Refuse numbers below what makes sense."""
        for index, least in self.thresholds:
            if values[index] < least:
                name = self.fields[index].name
                raise BadEvent(f'"{self.name}" has {shown(values[index])} in "{name}", which is at least {least}')

    def missing(self, row: Mapping[str, object]) -> str:
        """The name of a field that the row should have and has not; empty if it has all."""
        return next((form.name for form in self.fields if form.name not in row), "")


FORMS: Mapping[str, EventForm] = {name: EventForm(name, event_type) for name, event_type in EVENT_TYPES.items()}
FORM_OF: Mapping[type[Event], EventForm] = {event_type: FORMS[name] for name, event_type in EVENT_TYPES.items()}


class EventDecoder:
    """Turns parsed JSON objects into events; a missing subscription or key is the header's.

    Fields that the format does not know are ignored: a newer writer may add some.
    """

    __slots__ = ("_table",)

    def __init__(self, subscription: str, key: str) -> None:
        home = {"subscription": subscription, "key": key}
        self._table = {name: (form, form.defaults | home) for name, form in FORMS.items()}

    def decode(self, row: Any) -> Event:
        """The event that a JSON value describes. Raises `BadEvent`; never returns a value of the wrong type."""
        try:
            form, defaults = self._table[row["event"]]
            values = form.pick(defaults | row)
        except (KeyError, TypeError, IndexError):
            raise self._fault(row) from None
        if tuple(map(type, values)) not in form.signatures:
            values = form.settle(values)
        if form.thresholds:
            form.check_least(values)
        return form.make(*values)

    def _fault(self, row: object) -> BadEvent:
        if not isinstance(row, dict):
            return BadEvent(f"every line is one JSON object, not {shown(row)}")
        name = row.get("event")
        if not isinstance(name, str):
            return BadEvent('an event needs its name, a string in the field "event"')
        if name not in self._table:
            return BadEvent(f"unknown event {shown(name)}; known are {', '.join(FORMS)}")
        form, defaults = self._table[name]
        return BadEvent(f'"{name}" needs the field "{form.missing(defaults | row)}"')


def encode_event(event: Event, subscription: str, key: str) -> bytes:
    """One line without its line end. Subscription and key are left out when they are those given (the header's).

    Raises ValueError for numbers that JSON cannot hold (NaN, infinity).
    """
    form = FORM_OF[type(event)]
    row: dict[str, object] = {"t": event.t, "event": form.name}
    home = {"subscription": subscription, "key": key}
    for name in (field.name for field in form.fields):
        value = getattr(event, name)
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f'"{form.name}" cannot be written: {name} is {value}')
        if home.get(name) != value and not (name in QUIET_DEFAULTS and value == QUIET_DEFAULTS[name]):
            row[name] = value
    return orjson.dumps(row)
