"""Every deliberate bug still applies to the checker as it is, so that `make mutants` proves what it says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.catalogue import CANARY, IDENTITY, MUTANTS, repeated_names
from tests.mutants.mutant import Mutant, Removes

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", [IDENTITY, CANARY, *MUTANTS], ids=lambda mutant: mutant.name)
def test_the_mutant_applies(mutant: Mutant) -> None:
    source = mutant.path(ROOT).read_text()
    mutated = mutant.apply(source)
    ast.parse(mutated)
    assert (mutated == source) is (mutant.removes is Removes.NOTHING)
    assert mutant.breaks.endswith(".")


def test_names_are_unique() -> None:
    assert repeated_names() == []


def test_text_that_is_not_there_once_is_an_error() -> None:
    for source in ("nothing of it", CANARY.before * 2):
        with pytest.raises(ValueError, match=r"mutant canary: its text occurs [02] times in verifier\.py, not once"):
            CANARY.apply(source)
