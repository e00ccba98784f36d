"""Orders of sends found by `search`: their costs, and the assumptions and breaches of the best order (docs/model.md, 14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from prober.core.excuses import EARLIER_SEND, NO_ORDER
from prober.core.findings import Kind
from prober.core.model import Problem


class Step(NamedTuple):
    """A send of an explanation: the delivery `item`. Not `placed`: it was sent before all remembered deliveries."""

    item: int
    problems: tuple[Problem, ...]
    placed: bool


class Explanation(NamedTuple):
    """The best order of sends. `gave_up`: the search ended early, and this is the order of arrival."""

    steps: tuple[Step, ...]
    gave_up: bool

    @property
    def breaches(self) -> list[int]:
        """The deliveries at which the order has a breach."""
        return [step.item for step in self.steps if any(not problem.doubt for problem in step.problems)]

    @property
    def is_breach(self) -> bool:
        """Whether the order has a breach."""
        return bool(self.breaches)


def priority(cost: Cost, depth: int, *, ahead: bool) -> tuple[int, int, int, int]:
    """Return the priority of a situation in the queue: the lowest is examined first."""
    if ahead:
        return cost.breaches, cost.strength, -depth, cost.assumptions
    return cost.breaches, cost.strength, cost.assumptions, -depth


def reasoned(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of the best explanation, each problem with the assumptions or facts of the whole order of sends."""
    if not any(step.problems for step in steps):
        return steps
    assumed = [problem.doubt for step in steps for problem in step.problems if problem.doubt]
    besides = *dict.fromkeys(assumed), *(() if all(step.placed for step in steps) else (EARLIER_SEND,))
    return tuple(
        step._replace(problems=tuple(replace(one, besides=besides if one.doubt else (NO_ORDER,)) for one in step.problems))
        for step in steps
    )


# --- the cost of an explanation: the order of blame (docs/model.md, section 14) -----------------------------------------------


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
    """The cost of sends; costs compare from left to right.

    The best explanation has the fewest breaches. Among explanations with equally few it breaks the weakest guarantee, and among these it
    needs the fewest assumptions.
    """

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
