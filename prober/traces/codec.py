"""One event as one JSON object: the table of names on disk, and a decoder fast enough for millions of lines.

The fields of an event on disk are those of its value in `prober.core.events`, so the vocabulary has one definition; the names of the
events are those of the probe history. Reflection happens once, at import.

A line is decoded twice at most. For each kind of event there is a struct of msgspec with the fields of the event in the same order, which
takes what the format allows and no more; msgspec recognizes it by the field "event" as it parses, so nearly every line is parsed, checked
and made an event in one pass. A line that it refuses may still be right, such as a line of a newer writer with a field more: it is parsed
as plain JSON and looked at field by field, to be accepted or to be refused with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import reduce
from math import isfinite
from operator import or_
from types import NoneType
from typing import Annotated, Any, Final, TypeAlias, get_args, get_type_hints

import msgspec
import orjson
from msgspec.structs import astuple

from prober.core.events import EVENT_TYPES, Event

# What the prober itself decides has a least value. What a delivery claims about itself has none: a wrong claim is a finding.
LEAST: Mapping[str, int] = {"seq": 1, "generation": 0, "seconds": 0, "settle_s": 0, "size": 0}
UNBOUNDED_EVENTS = frozenset({"delivered"})

# Optional fields that are written only with another value than these.
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
    "since_t": None,
    "data_size": None,
}

LineReader: TypeAlias = Callable[[bytes], Event]
"""A function that parses a line to an event."""

_INT64_MAX: Final = 2**63 - 1

_REFUSALS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of msgspec for a line that matches none of its structs."""

WORDS: Mapping[type, str] = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


class BadEvent(ValueError):
    """A JSON object is not an event of this format; the text states the problem and the remedy."""


def json_excerpt(value: object) -> str:
    """Return a JSON value as it is written in the file, cut to 40 characters."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= 40 else text[:37] + "..."


def words_for(accepted: tuple[type, ...]) -> str:
    """Return the accepted types of a field as text: "a number or null"."""
    return " or ".join(WORDS[kind] for kind in accepted)


@dataclass(frozen=True, slots=True)
class FieldForm:
    """One field on disk: its accepted JSON types, exactly, and its least valid value (None: any)."""

    name: str
    accepted: tuple[type, ...]
    least: int | None

    def settled(self, value: Any, event: str) -> object:
        """Return the value in the event's type: whole numbers become floats for a field of floats. Raises `BadEvent`."""
        if type(value) is int and int not in self.accepted and float in self.accepted:
            value = float(value)
        if type(value) not in self.accepted:
            is_too_large = int in self.accepted and type(value) is float and abs(value) > _INT64_MAX
            limit = "; whole numbers have 64 bits" if is_too_large else ""
            raise BadEvent(f'"{event}" needs {words_for(self.accepted)} in "{self.name}", not {json_excerpt(value)}{limit}')
        if self.least is not None and value < self.least:
            raise BadEvent(f'"{event}" has {json_excerpt(value)} in "{self.name}", which must be at least {self.least}')
        return value


class EventForm:
    """The form of one kind of event on disk.

    name        its name on disk.
    make        creates it, from the values of its fields.
    fields      these fields, in that order.
    defaults    the values of fields that may be omitted.
    takes       the types that msgspec accepts for each field, in the same order.
    """

    __slots__ = ("defaults", "fields", "make", "name", "takes")

    def __init__(self, name: str, event_type: type[Event]) -> None:
        hints = get_type_hints(event_type)
        least = {} if name in UNBOUNDED_EVENTS else LEAST
        self.name = name
        self.make: Callable[..., Event] = event_type
        self.fields = tuple(
            FieldForm(f.name, get_args(hints[f.name]) or (hints[f.name],), least.get(f.name)) for f in fields(event_type)
        )
        self.defaults = {f.name: f.default for f in fields(event_type) if f.default is not MISSING}
        self.takes = {form.name: _taken(form.accepted, form.least) for form in self.fields}

    def event(self, row: Mapping[str, object]) -> Event:
        """Return the event of a row. Raises `BadEvent` if a field is missing, or has an invalid value."""
        missing = [form.name for form in self.fields if form.name not in row]
        if missing:
            raise BadEvent(f'"{self.name}" needs the field "{missing[0]}"')
        return self.make(*[form.settled(row[form.name], self.name) for form in self.fields])


def _taken(accepted: Iterable[type], least: int | None) -> Any:
    """Return the msgspec type of the JSON types `accepted`: numbers from `least` on, whole numbers of 64 bits."""
    return reduce(or_, [_bounded(kind, least) for kind in accepted])


def _bounded(kind: type, least: int | None) -> Any:
    if kind is int:  # without bounds msgspec takes numbers of any length, which other readers cannot
        return Annotated[int, msgspec.Meta(ge=-_INT64_MAX - 1 if least is None else least, le=_INT64_MAX)]
    return Annotated[float, msgspec.Meta(ge=least)] if kind is float and least is not None else kind


FORMS: Mapping[str, EventForm] = {name: EventForm(name, event_type) for name, event_type in EVENT_TYPES.items()}
FORM_OF: Mapping[type[Event], EventForm] = {event_type: FORMS[name] for name, event_type in EVENT_TYPES.items()}


def event_decoder(subscription: str, key: str) -> LineReader:
    """Return a decoder of lines; the given subscription and key (the header's) are the defaults of events without them.

    It raises `BadEvent`, or orjson's JSONDecodeError (both are ValueErrors). Fields that the format does not know are ignored: a newer
    writer may add some.
    """
    home = {"subscription": subscription, "key": key}
    defaults = {name: form.defaults | home for name, form in FORMS.items()}
    return line_reader(defaults, otherwise=lambda line: plain_event(orjson.loads(line), defaults))


def line_reader(defaults: Mapping[str, Mapping[str, object]], otherwise: LineReader) -> LineReader:
    """Return a reader that parses well-formed lines in one pass; any other line goes to `otherwise`.

    `defaults` are the values of fields that a line does not have, by event; other names in them are ignored.
    """
    make = {_struct(form, defaults[name]): form.make for name, form in FORMS.items()}
    parse: Callable[[bytes], Any] = msgspec.json.Decoder(reduce(or_, make)).decode

    def read(line: bytes) -> Event:
        try:
            values = parse(line)
        except _REFUSALS:
            pass
        else:
            return make[type(values)](*astuple(values))
        return otherwise(line)

    return read


def _struct(form: EventForm, defaults: Mapping[str, object]) -> type[msgspec.Struct]:
    columns: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (name, kind, defaults[name]) if name in defaults else (name, kind) for name, kind in form.takes.items()
    ]
    return msgspec.defstruct(
        form.name, columns, tag_field="event", tag=form.name, kw_only=True, forbid_unknown_fields=True, gc=False
    )


def plain_event(row: object, defaults: Mapping[str, dict[str, object]]) -> Event:
    """Return the event of a JSON value; `defaults` are the values of missing fields, by event. Raises `BadEvent`."""
    if not isinstance(row, dict):
        raise BadEvent(f"every line is one JSON object, not {json_excerpt(row)}")
    name = row.get("event")
    if not isinstance(name, str):
        raise BadEvent('an event needs its name, a string in the field "event"')
    if name not in FORMS:
        raise BadEvent(f"unknown event {json_excerpt(name)}; known are {', '.join(FORMS)}")
    return FORMS[name].event(defaults[name] | row)


def encode_event(event: Event, subscription: str, key: str) -> bytes:
    """Encode an event as a line without its line end. The given subscription and key (the header's) are omitted.

    Raises ValueError for numbers that JSON cannot represent (NaN, infinity).
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
