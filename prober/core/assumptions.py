"""The cost of an explanation: the order of blame (docs/model.md, section 14).

The best explanation has the fewest breaches; among these it breaks the weakest guarantee; among these it needs the fewest assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from prober.core.findings import Kind
from prober.core.model import Problem

STRENGTH: Final[Mapping[Kind, int]] = MappingProxyType(
    {
        Kind.AFFINITY_SPLIT: 10,
        Kind.REDELIVERY_SKIP: 11,
        Kind.PULL_BATCH_ORDER: 11,
        Kind.PUSH_ADVANCE_PAST_NACK: 12,
        Kind.PULL_OVERLAP: 12,
        Kind.PUSH_OVERLAP: 12,
        Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: 12,
        Kind.ORDER_GAP: 13,
    }
)
"""How strong a guarantee is, the weakest first: N1, G2, G3 and G4, G1."""

UNPLACED: Final = 1
"""The cost of taking a delivery for one that was sent before everything that is remembered."""


ASSUMPTION: Final = 10_000
"""The cost of an event that was not observed: more than any number of deliveries that are not placed."""


class Cost(NamedTuple):
    """Costs compare from left to right."""

    breaches: int = 0
    strength: int = 0
    assumptions: int = 0

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        """Both together."""
        return Cost(self.breaches + other.breaches, self.strength + other.strength, self.assumptions + other.assumptions)

    def __sub__(self, other: Cost) -> Cost:
        """The difference."""
        return Cost(self.breaches - other.breaches, self.strength - other.strength, self.assumptions - other.assumptions)


def cost_of(problems: Iterable[Problem], *, placed: bool) -> Cost:
    """The cost of a send."""
    breaches = strength = 0
    assumptions = 0 if placed else UNPLACED
    for problem in problems:
        if problem.doubt:
            assumptions += ASSUMPTION
        else:
            breaches += max(1, len(problem.publications))
            strength += STRENGTH[problem.kind]
    return Cost(breaches, strength, assumptions)
