"""The first line of a trace file: the subject of the events, and the rules of their verification."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, isinf
from typing import Any, Final

import orjson

from prober.core.rules import Mode, Rules
from prober.traces.codec import json_excerpt

FORMAT: Final = "ordering-trace"
VERSION: Final = 1


class BadHeader(ValueError):
    """The first line is not a header of this format; the text states the problem and the remedy."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A finding that a test trace must produce: a kind and a status, in the words of `prober.core.findings`."""

    kind: str
    status: str


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """The subject of a trace.

    subscription, key   the defaults of events that name none.
    rules               the bounds and the mode of the verification.
    name                a description of the trace, for people.
    expect              the findings of status violation, indeterminate or liveness that a correct checker makes; None: not stated.
    extra               further header fields, kept unchanged.
    """

    subscription: str
    key: str
    rules: Rules = field(default_factory=Rules)
    name: str = ""
    expect: tuple[Expectation, ...] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


def _seconds(value: object) -> float:
    if value is None:
        return inf
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadHeader(f"must be a number of seconds, or null for no bound, not {json_excerpt(value)}")
    if value < 0:
        raise BadHeader(f"is {json_excerpt(value)}, and a time span is at least 0 seconds (null for no bound)")
    return float(value)


def _whole(least: int, unbounded: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if value is None:
            return unbounded
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadHeader(f"must be a whole number, or null for no bound, not {json_excerpt(value)}")
        if value < least:
            raise BadHeader(f"is {value}, and must be at least {least} (null for no bound)")
        return value

    return read


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadHeader(f"must be true or false, not {json_excerpt(value)}")
    return value


_READERS: Final[Mapping[str, Callable[[object], Any]]] = {"float": _seconds, "bool": _switch, "int": _whole(least=0, unbounded=0)}

# How each rule is read. Null is "no bound": for a time infinity, for dead letters no policy.
RULE_READERS: Final[Mapping[str, Callable[[object], Any]]] = {
    **{rule.name: _READERS[str(rule.type)] for rule in fields(Rules) if rule.name != "mode"},
    "window": _whole(least=1, unbounded=sys.maxsize),
}

HEADER_FIELDS: Final = ("format", "version", "subscription", "key", "mode", "rules", "name", "expect")


def _text(row: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if value is None and name not in row:
        raise BadHeader(f'the header needs the field "{name}"')
    if not isinstance(value, str):
        raise BadHeader(f'the header needs a string in "{name}", not {json_excerpt(value)}')
    return value


def _mode(row: Mapping[str, object]) -> Mode:
    name = _text(row, "mode")
    if name not in list(Mode):
        raise BadHeader(f"unknown mode {json_excerpt(name)}; known are {', '.join(Mode)}")
    return Mode(name)


def rules_from_json(row: object, mode: Mode) -> Rules:
    """Return rules from their JSON object: an omitted rule keeps its default, null is "no bound". Raises `BadHeader`."""
    if not isinstance(row, dict):
        raise BadHeader('the header needs an object in "rules" ({} for the defaults)')
    given: dict[str, Any] = {}
    for name, value in row.items():
        if name not in RULE_READERS:
            raise BadHeader(f"unknown rule {json_excerpt(name)}; known are {', '.join(RULE_READERS)}")
        try:
            given[name] = RULE_READERS[name](value)
        except BadHeader as wrong:
            raise BadHeader(f'the rule "{name}" {wrong}') from None
    return Rules(mode=mode, **given)


def _expectation(row: object) -> Expectation:
    if not (isinstance(row, dict) and isinstance(row.get("kind"), str) and isinstance(row.get("status"), str)):
        raise BadHeader(f'"expect" lists objects with "kind" and "status", not {json_excerpt(row)}')
    return Expectation(row["kind"], row["status"])


def _expect(row: Mapping[str, object]) -> tuple[Expectation, ...] | None:
    if "expect" not in row:
        return None
    listed = row["expect"]
    if not isinstance(listed, list):
        raise BadHeader(f'the header needs a list in "expect", not {json_excerpt(listed)}')
    return tuple(map(_expectation, listed))


def _check_format(row: Mapping[str, object]) -> None:
    if row.get("format") != FORMAT:
        raise BadHeader(f'not a trace file: line 1 must be a header with "format": "{FORMAT}"')
    version = row.get("version")
    if type(version) is not int or version != VERSION:
        raise BadHeader(f"version {json_excerpt(version)} of the trace format is unknown; this program reads version {VERSION}")


def decode_header(line: bytes) -> TraceHeader:
    """Return the header of a trace file from its first line. Raises `BadHeader`, or orjson's JSONDecodeError (both are ValueErrors)."""
    row = orjson.loads(line)
    if not isinstance(row, dict):
        raise BadHeader(f'not a trace file: line 1 must be a header with "format": "{FORMAT}"')
    _check_format(row)
    if "rules" not in row:
        raise BadHeader('the header needs the field "rules" ({} for the defaults)')
    return TraceHeader(
        subscription=_text(row, "subscription"),
        key=_text(row, "key"),
        rules=rules_from_json(row["rules"], _mode(row)),
        name=_text(row, "name", ""),
        expect=_expect(row),
        extra={name: value for name, value in row.items() if name not in HEADER_FIELDS},
    )


def rules_as_json(rules: Rules) -> dict[str, object]:
    """Return all rules but the mode, as JSON values: no bound is null."""
    given = {name: getattr(rules, name) for name in RULE_READERS}
    return {name: None if isinstance(value, float) and isinf(value) else value for name, value in given.items()}


def encode_header(header: TraceHeader) -> bytes:
    """Return the first line of a trace file without its line end."""
    row: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "subscription": header.subscription,
        "key": header.key,
        "mode": header.rules.mode.value,
        "rules": rules_as_json(header.rules),
    }
    if header.name:
        row["name"] = header.name
    if header.expect is not None:
        row["expect"] = [{"kind": one.kind, "status": one.status} for one in header.expect]
    return orjson.dumps(row | {name: value for name, value in header.extra.items() if name not in HEADER_FIELDS})
