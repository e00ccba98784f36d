"""What `liveness` keeps of a key: redeliveries that are owed, and the run that has to be finished."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from prober.core.events import LONG_AGO

TOPS_KEPT: Final = 32
"""Tops remembered; beyond that the oldest are forgotten."""

Top: TypeAlias = tuple[int, float]
"""A position from which the key was rewound, and when that had been delivered."""


def with_top(tops: tuple[Top, ...], left: int, t: float) -> tuple[Top, ...]:
    """The tops of a key that is rewound from `left`: those above it, for it has not come as far again, and that one."""
    return (*(top for top in tops if top[0] > left), (left, t))[-TOPS_KEPT:]


def passed_t(tops: tuple[Top, ...], position: int) -> float:
    """When the key was last above a position before a rewind, long ago if that is not known."""
    return max((t for top, t in tops if top > position), default=LONG_AGO)


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
