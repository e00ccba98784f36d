"""What `liveness` keeps of a key, and tells when a deadline has passed.

Kept are redeliveries that are owed, and the run that has to be finished; told is what did not come, and since when it was owed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from prober.core.collector import SEQS_SHOWN
from prober.core.epoch_order import EpochOrder, Overtaken
from prober.core.events import LONG_AGO
from prober.core.findings import Fact
from prober.core.order import OrderCheck
from prober.core.positions import LearnedLog
from prober.core.publications import Publication
from prober.core.splits import Acknowledgements

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


class RedeliveryRun(NamedTuple):
    """A redelivery run that has to reach `target` and has come to `reached`: begun at `start` by event `number` at `t`.

    `sent_after_t`: nothing of it was sent before that. `sought_t`: when a seek brought it back, long ago if none did; what was
    acknowledged since is not owed.
    """

    target: int
    reached: int
    number: int
    t: float
    start: int
    sent_after_t: float = LONG_AGO
    sought_t: float = LONG_AGO


def not_acknowledged(run: RedeliveryRun | None, log: LearnedLog, acks: Acknowledgements) -> RedeliveryRun | None:
    """What is left of a run, if a seek brought it back: what an acknowledgement may have ended since does not come again."""
    if run is None or run.sought_t == LONG_AGO:
        return run
    owed = [position for position in log.between(run.reached, run.target + 1) if not acks.may_end(position, run.sought_t)]
    return run._replace(target=owed[-1]) if owed else None


def of_run(log: LearnedLog, orders: OrderCheck, run: RedeliveryRun, since_t: float, deadline_t: float) -> dict[str, Fact]:
    """A run that did not come as far as it must: its target."""
    epoch = orders.epoch_name(log.epoch(run.target))
    return {"target": log.seq(run.target), "since_t": since_t, "seconds": deadline_t - since_t, "epoch": epoch}


def of_unacked(log: LearnedLog, orders: OrderCheck, overdue: Sequence[int], since_t: float, deadline_t: float) -> dict[str, Fact]:
    """Positions that were never acknowledged and did not come again; at least one."""
    shown = overdue[:SEQS_SHOWN]
    epochs = tuple(orders.epoch_name(log.epoch(position)) for position in shown)
    facts: dict[str, Fact] = {"seqs": tuple(map(log.seq, shown)), "count": len(overdue), "epoch": epochs[0]}
    if len(set(epochs)) > 1:
        facts["seqs_epochs"] = epochs
    return facts | {"since_t": since_t, "seconds": deadline_t - since_t}


def of_lost(order: EpochOrder, overtaken: Overtaken, deadline_t: float) -> dict[str, Fact]:
    """A message that another one overtook, and that did not come after it either."""
    by, since_t = overtaken.by, overtaken.t
    facts: dict[str, Fact] = {"seq": overtaken.publication.seq, "epoch": order.record.name, "by": by.seq, "by_epoch": by.epoch}
    return facts | {"since_t": since_t, "seconds": deadline_t - since_t}


def of_stuck(epoch: str, undelivered: Sequence[Publication], since_t: float, deadline_t: float) -> dict[str, Fact]:
    """Messages of one epoch that did not come: the first, and those of the others that were confirmed by the deadline."""
    first, *others = undelivered
    stuck = [first.seq, *(publication.seq for publication in others if publication.confirmed_t <= deadline_t)]
    facts: dict[str, Fact] = {"seqs": tuple(stuck[:SEQS_SHOWN]), "count": len(stuck), "epoch": epoch}
    return facts | {"since_t": since_t, "seconds": deadline_t - since_t}
