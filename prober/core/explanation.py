"""Orders of sends found by `search`: their costs, and the assumptions and breaches of the best order (docs/model.md, 14)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from prober.core.assumptions import Cost
from prober.core.excuses import EARLIER_SEND, NO_ORDER
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
