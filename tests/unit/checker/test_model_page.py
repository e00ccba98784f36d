"""Every trace of docs/model.md has the outcome that the page states; none is left out here."""

from __future__ import annotations

import pytest

from prober.core.findings import FAILING, Kind, Status
from tests.notation import history
from tests.unit.checker.judged import judged
from tests.unit.core.test_model_page import Example, examples


@pytest.mark.parametrize("example", list(examples()), ids=lambda one: f"{one.rule}: {one.outcome}")
def test_a_trace_has_the_outcome_of_the_page(example: Example) -> None:
    certainty, _, kind = example.outcome.partition(" ")
    findings, _ = judged(example.rules, history(example.trace, example.rules.mode))
    violated = {one.kind for one in findings if one.status in FAILING}
    doubtful = {one.kind for one in findings if one.status is Status.INDETERMINATE}
    if certainty == "violation":
        assert Kind(kind) in violated
        return
    assert violated == set()
    if certainty == "inconclusive":
        assert Kind(kind) in doubtful
    if certainty == "ok":
        assert doubtful == set()
