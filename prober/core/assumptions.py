"""The cost of an explanation: the order of blame (docs/model.md, section 14).

The best explanation has the fewest breaches. Among explanations with equally few it breaks the weakest guarantee, and among these it
needs the fewest assumptions.
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
"""The strength of each guarantee, the weakest first: N1, G2, G3 and G4, G1."""

UNPLACED: Final = 1
"""The cost of the assumption that a delivery was sent before all remembered ones."""


ASSUMPTION: Final = 10_000
"""The cost of an unobserved event: higher than that of any number of unplaced deliveries."""


class Cost(NamedTuple):
    """The cost of sends; costs compare from left to right."""

    breaches: int = 0
    strength: int = 0
    assumptions: int = 0

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        """Return the sum of both costs."""
        return Cost(self.breaches + other.breaches, self.strength + other.strength, self.assumptions + other.assumptions)

    def __sub__(self, other: Cost) -> Cost:
        """Return the difference of both costs."""
        return Cost(self.breaches - other.breaches, self.strength - other.strength, self.assumptions - other.assumptions)


def cost_of(problems: Iterable[Problem], *, placed: bool) -> Cost:
    """Return the cost of a send with these problems; not `placed`: it was sent before all remembered deliveries."""
    breaches = strength = 0
    assumptions = 0 if placed else UNPLACED
    for problem in problems:
        if problem.doubt:
            assumptions += ASSUMPTION
        else:
            breaches += max(1, len(problem.publications))
            strength += STRENGTH[problem.kind]
    return Cost(breaches, strength, assumptions)
