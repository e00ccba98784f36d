"""Well-formed lines of a trace file: parsed, checked and made events in one pass.

For each kind of event there is a *shape*, a struct of msgspec with the fields of the event in the same order; msgspec recognizes the
shape of a line by its field "event", as it parses. A shape takes what the format allows and no more, so what is read needs no further
look. What is refused may be right all the same, such as a line of a newer writer with a field more: that is for others to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import astuple

from prober.core.events import Event

_INT64_MAX: Final = 2**63 - 1


_REFUSALS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a line that has none of the shapes."""

LineReader: TypeAlias = Callable[[bytes], Event]
"""Makes an event of a line."""


class Shape(NamedTuple):
    """How one kind of event stands in a line.

    name        what its field "event" says.
    make        makes it, of the values of its fields.
    takes       what each field takes, in the order of `make`; see `taken`.
    defaults    what stands for a field that the line does not have; other names in it mean nothing.
    """

    name: str
    make: Callable[..., Event]
    takes: Mapping[str, Any]
    defaults: Mapping[str, object]


def taken(accepted: Iterable[type], least: int | None) -> Any:
    """What a field takes: one of the JSON types `accepted`, numbers from `least` on, whole numbers of 64 bits."""
    return reduce(or_, [_bounded(kind, least) for kind in accepted])


def _bounded(kind: type, least: int | None) -> Any:
    if kind is int:  # without bounds msgspec takes numbers of any length, which other readers cannot
        return Annotated[int, msgspec.Meta(ge=-_INT64_MAX - 1 if least is None else least, le=_INT64_MAX)]
    return Annotated[float, msgspec.Meta(ge=least)] if kind is float and least is not None else kind


def line_reader(shapes: Iterable[Shape], otherwise: LineReader) -> LineReader:
    """What reads lines of these shapes; any other line goes to `otherwise`."""
    make = {_struct(shape): shape.make for shape in shapes}
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


def _struct(shape: Shape) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (name, kind, shape.defaults[name]) if name in shape.defaults else (name, kind) for name, kind in shape.takes.items()
    ]
    return msgspec.defstruct(
        shape.name, fields, tag_field="event", tag=shape.name, kw_only=True, forbid_unknown_fields=True, gc=False
    )
