"""Lists: every filter is a condition. A cursor that is written is read again."""

from __future__ import annotations

import base64
from dataclasses import fields
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from prober.sinks.status.listings import (
    CURSOR_LENGTH_MAX,
    FINDINGS,
    INCIDENTS,
    RUNS,
    BadCursor,
    Filter,
    FindingFilter,
    IncidentFilter,
    Listing,
    Position,
    RunFilter,
    conditions,
    read_cursor,
    write_cursor,
)

WANTED = RunFilter(probe="ordering")


@pytest.mark.parametrize(
    ("listing", "wanted"),
    [
        (RUNS, RunFilter),
        (FINDINGS, FindingFilter),
        (INCIDENTS, IncidentFilter),
    ],
)
def test_every_filter_makes_a_condition(listing: Listing[Any], wanted: type[Filter]) -> None:
    for name in (field.name for field in fields(wanted)):
        asked: dict[str, Any] = {name: name == "open" or name}
        assert len(list(conditions(listing, wanted(**asked)))) == 1
    assert list(conditions(listing, wanted())) == []


def test_open_and_closed_are_two_choices() -> None:
    shown = {str(*conditions(FINDINGS, FindingFilter(open=choice))) for choice in (True, False)}
    assert len(shown) == 2


@hypothesis.given(st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=100))
def test_a_position_survives(at: float, name: str) -> None:
    position = Position(at, name)
    assert read_cursor(write_cursor(position, WANTED), WANTED) == position


@pytest.mark.parametrize("other", [RunFilter(), RunFilter(probe="affinity"), FindingFilter()])
def test_a_cursor_belongs_to_its_filter(other: object) -> None:
    with pytest.raises(BadCursor, match="another list or filter"):
        read_cursor(write_cursor(Position(1.0, "run-1"), WANTED), other)


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "\0",
        "../../etc/passwd",
        "' OR 1=1 --",
        encoded("null"),
        encoded("{}"),
        encoded("[]"),
        encoded('["a", 1.0]'),
        encoded('["a", 1.0, "run-1", 4]'),
        encoded('["a", NaN, "run-1"]'),
        encoded('["a", "1", "run-1"]'),
        encoded('["a", 1, 2]'),
        encoded("[" * 700),
        "A" * (CURSOR_LENGTH_MAX + 1),
        write_cursor(Position(1.0, "run-1"), WANTED) + "=",
        write_cursor(Position(1.0, "run-1"), WANTED)[:-1],
        write_cursor(Position(float("nan"), "run-1"), WANTED),
    ],
)
def test_anything_else_is_refused_in_one_line(cursor: str) -> None:
    with pytest.raises(BadCursor) as refused:
        read_cursor(cursor, WANTED)
    assert "\n" not in str(refused.value)


@hypothesis.given(st.text(max_size=60))
def test_no_text_does_harm(cursor: str) -> None:
    with pytest.raises(BadCursor):
        read_cursor(cursor, WANTED)
