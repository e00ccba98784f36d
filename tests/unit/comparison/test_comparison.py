"""Two targets compared: nothing is concluded of what did not run, and it is said what would help."""

from __future__ import annotations

import json
from math import inf

import pytest

from prober.comparison.comparison import Comparison, comparison_as_json, comparison_as_text, in_words, rounded_up
from prober.comparison.pairs import ComparedExperiment
from prober.slo.comparison import Standing
from tests.unit.comparison.runs import ORDERING, compared, pair

SAME = [pair(at) for at in range(20)]


def spread(*slower_s: float) -> Comparison:
    return compared(*[pair(at, slower_s=each) for at, each in enumerate(slower_s)])


def test_the_same_twice_is_no_worse() -> None:
    found = compared(*SAME)
    assert (found.standing, found.needed_s, found.pairs) == (Standing.NO_WORSE, None, {ORDERING: 20})
    assert comparison_as_text(found).startswith("canary is no worse than production in any of 3 aspects\n")


def test_a_broken_candidate_is_worse_and_what_it_is_worse_in_stands_first() -> None:
    found = compared(*[pair(at, bad=200) for at in range(20)])
    first, second, *_ = comparison_as_text(found).splitlines()
    assert found.standing is Standing.WORSE
    assert first == "canary is worse than production: order"
    assert second.split()[:2] == ["order", "worse"]


def test_an_experiment_that_did_not_run_leaves_it_open() -> None:
    never = ComparedExperiment("seek", "library", "2/4")
    found = compared(*SAME, wanted=(ORDERING, never))
    assert (found.standing, found.missing) == (Standing.UNKNOWN, (never,))
    assert "no pair of runs yet of: seek (library) 2/4" in comparison_as_text(found)
    assert compared(*[pair(at, bad=200) for at in range(20)], wanted=(ORDERING, never)).standing is Standing.WORSE


def test_nothing_at_all_is_unknown() -> None:
    found = compared()
    assert (found.standing, found.needed_s, found.aspects) == (Standing.UNKNOWN, None, ())
    assert "no pair of runs yet of: ordering (wire)" in comparison_as_text(found)


def test_few_pairs_say_how_long_it_would_take() -> None:
    found = compared(*SAME[:2], took_s=10.0)
    assert found.needed_s is not None
    assert 25.0 <= found.needed_s < 200.0
    assert f"it probably takes the runs of {in_words(found.needed_s)} to tell; these are of 10 s" in comparison_as_text(found)


def test_what_looks_worse_decides_how_long_it_takes() -> None:
    found = spread(0.9, 0.1, 0.5, 0.7, 0.2, 0.05)
    assert found.standing is Standing.UNKNOWN
    assert found.needed_s is not None
    assert 60.0 < found.needed_s < 300.0


def test_what_no_time_tells_is_said_so() -> None:
    found = spread(0.09, 0.11, 0.1, 0.12, 0.08, 0.1)
    assert found.needed_s == inf
    assert "waiting is of no use" in comparison_as_text(found)
    assert json.loads(comparison_as_json(found))["needed_s"] is None


def test_pairs_that_we_spoilt_are_counted() -> None:
    found = compared(*SAME, pair(99, bad=900, ours=True))
    assert (found.standing, found.left_out) == (Standing.NO_WORSE, 1)
    assert "1 pairs are left out, since an internal error of the prober ended a run" in comparison_as_text(found)


def test_a_document_has_every_aspect_with_its_interval() -> None:
    document = json.loads(comparison_as_json(compared(*SAME)))
    assert document["standing"] == "no worse"
    row = next(each for each in document["aspects"] if each["aspect"] == "order")
    assert row["low"] < row["difference"] == 0.0 < row["high"] <= row["margin"]
    assert row["pairs"] == 20


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1s"), (60.0, "1m"), (119.5, "2m"), (121.0, "3m"), (7300.0, "2h2m")])
def test_durations_may_be_written_behind_for(seconds: float, text: str) -> None:
    assert rounded_up(seconds) == text
