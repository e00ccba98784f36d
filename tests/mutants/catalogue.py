"""Every mutant, by name."""

from __future__ import annotations

from collections import Counter

from tests.mutants import of_facts, of_liveness, of_send
from tests.mutants.mutant import Mutant, Removes

IDENTITY = Mutant(
    "identity",
    "verifier.py",
    "        decided, self._decided = self._decided, []\n        return decided\n\n    def _look",
    "        decided, self._decided = self._decided, []\n        return decided\n\n    def _look",
    "Nothing: the tests must pass on a copy.",
    Removes.NOTHING,
)
"""Must survive: what kills it is not a mutation, but a copy that does not work or tests that fail anyway."""

CANARY = Mutant(
    "canary",
    "verifier.py",
    "        decided, self._decided = self._decided, []\n        return decided\n\n    def _look",
    "        decided, self._decided = self._decided, []\n        return []\n\n    def _look",
    "Nothing is ever found.",
    Removes.RULE,
)
"""Must be killed: if it survives, the tests do not run on the mutated copy."""

MUTANTS: tuple[Mutant, ...] = (*of_send.MUTANTS, *of_facts.MUTANTS, *of_liveness.MUTANTS)
BY_NAME = {mutant.name: mutant for mutant in (IDENTITY, CANARY, *MUTANTS)}


def repeated_names() -> list[str]:
    """Names that more than one mutant has."""
    return [name for name, count in Counter(mutant.name for mutant in (IDENTITY, CANARY, *MUTANTS)).items() if count > 1]
