"""The facts of a deadline that passed: what did not come, and since when it was owed (`liveness` says whether)."""

from __future__ import annotations

from collections.abc import Sequence

from prober.core.collector import SEQS_SHOWN
from prober.core.epoch_order import EpochOrder, Overtaken
from prober.core.findings import Fact
from prober.core.order import OrderCheck
from prober.core.owed import Run
from prober.core.positions import LearnedLog
from prober.core.publications import Publication


def of_run(log: LearnedLog, orders: OrderCheck, run: Run, since_t: float, deadline_t: float) -> dict[str, Fact]:
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
