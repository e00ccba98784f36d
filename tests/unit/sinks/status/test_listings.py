"""Lists: one statement for each choice of filters, whatever they ask for, and every filter is a column."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from prober.core.verdict import Verdict
from prober.sinks.status.listings import (
    FINDINGS,
    FINDINGS_IN_SHORT,
    INCIDENTS,
    RUNS,
    RUNS_IN_SHORT,
    Filter,
    Listing,
    given,
    statement,
)
from prober.sinks.status.records import FindingFilter, IncidentFilter, RunFilter


def made_for(wanted: Filter) -> object:
    return statement(RUNS, tuple(given(wanted)))


def test_a_statement_is_made_once_for_a_choice_of_filters() -> None:
    first = made_for(RunFilter(probe="ordering", verdict=Verdict.FAIL))
    assert made_for(RunFilter(probe="redelivery", verdict=Verdict.PASS)) is first
    assert made_for(RunFilter(probe="ordering")) is not first
    assert statement(RUNS_IN_SHORT, ("probe", "verdict")) is not first


def test_open_and_closed_are_two_choices() -> None:
    assert given(FindingFilter(open=True)).keys() == {"open"}
    assert given(FindingFilter(open=False)).keys() == {"closed"}
    assert given(FindingFilter()).keys() == set()


@pytest.mark.parametrize(
    ("listing", "wanted"),
    [
        (RUNS, RunFilter),
        (RUNS_IN_SHORT, RunFilter),
        (FINDINGS, FindingFilter),
        (FINDINGS_IN_SHORT, FindingFilter),
        (INCIDENTS, IncidentFilter),
    ],
)
def test_every_filter_makes_a_condition(listing: Listing, wanted: type[Filter]) -> None:
    for name in (field.name for field in fields(wanted)):
        asked: dict[str, Any] = {name: name == "open" or name}
        (chosen,) = given(wanted(**asked))
        assert str(statement(listing, (chosen,))) != str(statement(listing, ()))
