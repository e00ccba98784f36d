"""Every trace of docs/model.md has the outcome that the page states; none is left out here."""

from __future__ import annotations

import pytest

from tests.notation import history
from tests.unit.checker.judged import judged
from tests.unit.core.test_model_page import Example, examples, verify_outcome


@pytest.mark.parametrize("example", list(examples()), ids=lambda one: f"{one.rule}: {one.outcome}")
def test_a_trace_has_the_outcome_of_the_page(example: Example) -> None:
    verify_outcome(example, judged(example.rules, history(example.trace, example.rules.mode))[0])
