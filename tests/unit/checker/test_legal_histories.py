"""Legal histories that an earlier version of the checker reported as violations, one line per case."""

from __future__ import annotations

from typing import Any

import pytest
from _pytest.mark import ParameterSet

from prober.core.findings import FAILING
from tests.unit.checker.judged import findings, words


def case(what: str, line: str, **rules: Any) -> ParameterSet:
    return pytest.param(line, rules, id=what)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        case("a number below the first recorded one", "P7,8 unknown5@0.5 P4'gen1@1 A<x6(6)@2".replace("unknown5", "info5")),
    ],
)
def test_a_legal_history_has_no_violation(line: str, rules: dict[str, Any]) -> None:
    assert words(one for one in findings(line, **rules) if one.status in FAILING) == []
