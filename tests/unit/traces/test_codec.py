"""The quick way to read a line of a trace gives what the thorough way gives, or nothing."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prober.core.events import EVENT_TYPES, Event, PublishInvoked
from prober.traces.codec import FORMS, LineReader, line_reader, plain_event
from tests.nightly import AT_NIGHT

DEFAULTS: dict[str, dict[str, object]] = {name: form.defaults | {"subscription": "s", "key": "k"} for name, form in FORMS.items()}


class Refused(Exception):
    pass


def refuse(_line: bytes) -> Event:
    raise Refused


QUICKLY: LineReader = line_reader(DEFAULTS, refuse)


def quickly(line: bytes) -> Event | None:
    try:
        return QUICKLY(line)
    except Refused:
        return None


def thoroughly(line: bytes) -> Event | None:
    try:
        return plain_event(orjson.loads(line), DEFAULTS)
    except ValueError:
        return None


NUMBERS = (
    st.sampled_from(["0", "-0", "1.0", "-0.0", "1e3", "1E+2", "1e-400", "5e-324", "1.7976931348623159e308", "9007199254740993"])
    | st.sampled_from(["00", "1.", "+1", ".5", "-", "NaN", "1e999"])
    | st.sampled_from([str(2**bits + more) for bits in (63, 64, 100) for more in (-1, 0, 1)])
    | st.integers(-3, 2**70).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
)
TEXTS = st.text(max_size=5).map(json.dumps)
STRINGS = TEXTS | st.sampled_from(
    ['""', '"é"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\x"', '"\n"', '"\\"event\\":\\"acked"']
)
OTHERS = st.sampled_from(["null", "true", "false", "[]", '{"event":"acked"}'])
VALUES = NUMBERS | STRINGS | OTHERS
USUAL: dict[str, st.SearchStrategy[str]] = {
    "str": TEXTS,
    "int": st.integers(1, 9).map(str),
    "float": st.floats(0, 1e9).map(repr),
    "bool": st.sampled_from(["true", "false"]),
    "NoneType": st.just("null"),
}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Mostly right lines: a field is missing, doubled, foreign, or of a strange value now and then, or bytes are wrong."""
    name = draw(st.sampled_from(list(EVENT_TYPES)))
    forms = FORMS[name].fields
    strange = draw(st.none() | st.sampled_from(forms))
    members = [("event", json.dumps(name))]
    for form in forms:
        usual = st.one_of([USUAL[kind.__name__] for kind in form.accepted])
        members.append((form.name, draw(VALUES if form is strange else usual)))
    if draw(st.booleans()):
        members = draw(st.permutations(members))
    change = draw(st.sampled_from(["none", "none", "less", "more"]))
    members = members[1:] if change == "less" else members
    members += [(draw(st.sampled_from(["t", "seq", "event", "colour"])), draw(VALUES))] if change == "more" else []
    text = "{" + draw(st.sampled_from([",", ", "])).join(f'"{field}":{value}' for field, value in members) + "}"
    line = text.encode("utf-8", "surrogatepass")
    at, put = draw(st.one_of([st.just((0, b""))] * 3 + [st.tuples(st.integers(0, len(line)), st.binary(max_size=2))]))
    return line[:at] + put + line[at + len(put) :]


@given(lines())
@settings(max_examples=500 if AT_NIGHT else 100)
@example(b'{"t":1,"event":"interrupted","event":"ended","drained":true}')
@example(b'{"event":"interrupted","t":1,"colour":"\xff"}')
@example(b'{"event":"interrupted","t":1,"colour":' + b"[" * 5000)
def test_what_is_read_quickly_is_what_is_read_thoroughly(line: bytes) -> None:
    event = quickly(line)
    if event is not None:
        assert repr(event) == repr(thoroughly(line))  # which tells 1 from 1.0, and 0.0 from -0.0


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_what_a_writer_writes_is_read_quickly(name: str) -> None:
    values: dict[str, Any] = {"str": "x", "int": 1, "float": 1.5, "bool": True}
    row = {form.name: values[form.accepted[0].__name__] for form in FORMS[name].fields}
    assert quickly(orjson.dumps({"event": name} | row)) == FORMS[name].make(**row)
    needed = {field.name for field in fields(EVENT_TYPES[name]) if field.default is MISSING} - {"subscription", "key"}
    event = quickly(orjson.dumps({"event": name} | {field: row[field] for field in needed}))
    assert event is not None
    assert event == thoroughly(orjson.dumps({"event": name} | {field: row[field] for field in needed}))


def test_an_event_is_a_value() -> None:
    event = PublishInvoked(1.0, "k", "e", 1)
    assert event == PublishInvoked(t=1.0, key="k", epoch="e", seq=1)
    assert hash(event) == hash(replace(event))
    assert replace(event, seq=2) != event
    assert not hasattr(event, "__dict__")
    assert repr(event).startswith("PublishInvoked(t=1.0, key='k'")


def test_mypy_does_not_let_an_event_be_changed() -> None:
    event = PublishInvoked(1.0, "k", "e", 1)
    event.t = 2.0  # type: ignore[misc]  # mypy would call this comment unused if it were allowed
