"""Every mutant, by name.

Bugs that change no verdict are not here, since no test can notice them:

* comparing in real time also a record that was delivered before its confirmation: the confirmation is later than every invocation so
  far, so that comparison finds nothing;
* retiring, after a hole in the record, the numbers published before it: such a message has no publish on record any more, and that
  alone keeps it from being placed;
* taking a rewind for a skip of nothing: nothing lies between;
* not noting a message beyond the window as the last of its stream: legal runs pass through all positions inside the window anyway;
* deciding, instead of doubting, at a seek what was on hold: the seek's own grace period makes it doubtful;
* not dropping what others hold when the key moves: the rewind that a legal move is has dropped it;
* keeping what a closed stream held: a split is only decided when its streams have proven to be alive.
"""

from __future__ import annotations

from collections import Counter

from tests.mutants import (
    of_amendments,
    of_holder,
    of_liveness,
    of_model_facts,
    of_model_liveness,
    of_model_send,
    of_order,
    of_redelivery,
)
from tests.mutants.mutant import Mutant, Removes

IDENTITY = Mutant(
    "identity",
    "verifier.py",
    "        decided, self._decided = self._decided, []\n        return decided\n\n    def _take",
    "        decided, self._decided = self._decided, []\n        return decided\n\n    def _take",
    "Nothing: the tests must pass on a copy.",
    Removes.NOTHING,
)
"""Must survive: what kills it is not a mutation, but a copy that does not work or tests that fail anyway."""

CANARY = Mutant(
    "canary",
    "verifier.py",
    "        decided, self._decided = self._decided, []\n        return decided\n\n    def _take",
    "        decided, self._decided = self._decided, []\n        return []\n\n    def _take",
    "Nothing is ever found.",
    Removes.RULE,
)
"""Must be killed: if it survives, the tests do not run on the mutated copy."""

MUTANTS: tuple[Mutant, ...] = (
    *of_order.MUTANTS,
    *of_redelivery.MUTANTS,
    *of_holder.MUTANTS,
    *of_liveness.MUTANTS,
    *of_amendments.MUTANTS,
    *of_model_send.MUTANTS,
    *of_model_facts.MUTANTS,
    *of_model_liveness.MUTANTS,
)
BY_NAME = {mutant.name: mutant for mutant in (IDENTITY, CANARY, *MUTANTS)}


def repeated_names() -> list[str]:
    """Names that more than one mutant has."""
    return [name for name, count in Counter(mutant.name for mutant in (IDENTITY, CANARY, *MUTANTS)).items() if count > 1]
