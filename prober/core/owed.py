"""What `liveness` keeps of a key: redeliveries that are owed, and the run that has to be finished."""

from __future__ import annotations

from typing import NamedTuple


class Owed:
    """A delivered, never acknowledged position: from `due_t` on it has to come again; `number` is its latest delivery.

    `lease_end_t` is when its lease ends at the latest; a refusal makes it due before.
    """

    __slots__ = ("due_t", "lease_end_t", "number", "refused")

    def __init__(self, due_t: float, number: int) -> None:
        self.due_t = due_t
        self.number = number
        self.lease_end_t = due_t
        self.refused = False


class Run(NamedTuple):
    """A redelivery run that has to reach `target` and has come to `reached`: begun at `start` by event `number` at `t`."""

    target: int
    reached: int
    number: int
    t: float
    start: int
