"""Pages that are written from rows are what their models would write."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.listed_pages import encode_page, times_of
from api.models.base import Answer
from api.models.findings import FindingAnswer, FindingPage
from api.models.runs import RunAnswer, RunPage
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.sinks.status.records import ListedFinding, ListedRun, Page

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
TIMES = st.floats(0, 4e9)
NUMBERS = st.floats(0, 1e6)
RUNS = st.builds(
    ListedRun,
    **dict.fromkeys(("run_id", "probe", "target", "vantage", "part", "environment", "region"), TEXTS),
    **dict.fromkeys(("reason", "topic", "subscription", "instance"), TEXTS),
    **dict.fromkeys(("started_at", "ended_at"), TIMES),
    verdict=st.sampled_from([verdict.value for verdict in Verdict]),
    duration_s=NUMBERS,
    seed=st.integers(-(2**63), 2**63 - 1),
    internal_error=st.booleans(),
)
FINDINGS = st.builds(
    ListedFinding,
    **dict.fromkeys(("finding_id", "run_id", "probe", "target", "vantage", "part", "instance"), TEXTS),
    **dict.fromkeys(("subscription", "key", "explanation"), TEXTS),
    kind=st.sampled_from([kind.value for kind in Kind]),
    status=st.sampled_from([status.value for status in Status]),
    found_at=TIMES,
    t=NUMBERS,
    closed_at=st.none() | TIMES,
    incident_id=st.none() | TEXTS,
)
PAGES: dict[type[RunPage] | type[FindingPage], tuple[type[Answer], type[ListedRun] | type[ListedFinding]]] = {
    RunPage: (RunAnswer, ListedRun),
    FindingPage: (FindingAnswer, ListedFinding),
}


@pytest.mark.parametrize("listed", PAGES)
def test_items_have_the_fields_of_their_model(listed: type[RunPage]) -> None:
    model, item = PAGES[listed]
    assert tuple(model.model_fields) == item._fields
    assert times_of(model) == tuple(name for name in item._fields if name.endswith("_at"))


@given(st.lists(RUNS | FINDINGS, min_size=1, max_size=3), st.none() | TEXTS)
def test_a_page_is_what_its_model_would_write(items: list[Any], cursor: str | None) -> None:
    for listed, (model, item) in PAGES.items():
        page: Page[Any] = Page(tuple(one for one in items if isinstance(one, item)), cursor)
        written = encode_page(page, model)
        assert written.body == listed.model_validate(page).model_dump_json().encode()
        assert written.next_cursor == cursor


def test_a_time_is_rounded_as_models_do() -> None:
    random = Random(1)
    halves = [1_772_366_400.0 + number / 128 for number in range(128)]  # of which the odd ones end with half a microsecond
    for at in (*halves, *(random.uniform(1e9, 2e9) for _ in range(20_000))):
        page = Page((ListedRun("a", "b", "c", "d", "e", "f", "g", "PASS", "", at, at + 0.5, 0.5, 1, "t", "s", False, "i"),), None)
        assert encode_page(page, RunAnswer).body == RunPage.model_validate(page).model_dump_json().encode()
