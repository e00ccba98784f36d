"""How often what was seen: one number for each thing that is counted, all keys and subscriptions together.

A run in which nothing was redelivered says nothing about redelivery, whatever else it saw. So the situations that the promises are
about are counted, and a probe names the counters that must not be 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prober.core.findings import Status
from prober.core.positions import ACKED, LearnedLog
from prober.core.sessions import Arrival

if TYPE_CHECKING:
    from prober.core.owed import Owed

NAMES: Final = (
    "acks",
    "affinity_moves_outstanding_no",
    "affinity_moves_outstanding_unknown",
    "affinity_moves_outstanding_yes",
    "dead_lettered",
    "deliveries_among_several",
    "deliveries_first",
    "deliveries_foreign",
    "deliveries_redelivery",
    "deliveries_unplaced",
    "early_redeliveries",
    "interruptions",
    "keys",
    "lease_expiries",
    "nacks",
    "publisher_duplicates",
    "publishes_abandoned",
    "publishes_confirmed",
    "publishes_invoked",
    "publishes_rejected",
    "publishes_unknown",
    "pulls_concurrent",
    "redeliveries_of_acked",
    "rewinds",
    "rewinds_inside_a_run",
    "rewinds_to_acked",
    "seeks",
    "service_duplicates",
    "sessions_closed",
)
"""What is counted, but for the findings."""


class Counts:
    """Plain attributes, since several are counted with every event; `by_name` is what others read.

    keys        how many there were, known at the end.
    findings    by their status, named `findings_violation` and so on.
    """

    __slots__ = (*NAMES, "findings")

    def __init__(self) -> None:
        self.findings = dict.fromkeys(Status, 0)
        self.keys = self.interruptions = self.seeks = self.sessions_closed = self.pulls_concurrent = 0
        self.publishes_invoked = self.publishes_confirmed = 0
        self.publishes_rejected = self.publishes_unknown = self.publishes_abandoned = 0
        self.deliveries_first = self.deliveries_redelivery = self.deliveries_foreign = self.deliveries_unplaced = 0
        self.deliveries_among_several = self.redeliveries_of_acked = self.lease_expiries = 0
        self.acks = self.nacks = self.dead_lettered = 0
        self.rewinds = self.rewinds_inside_a_run = self.rewinds_to_acked = self.early_redeliveries = 0
        self.affinity_moves_outstanding_no = self.affinity_moves_outstanding_yes = self.affinity_moves_outstanding_unknown = 0
        self.publisher_duplicates = self.service_duplicates = 0

    def by_name(self) -> Counter[str]:
        """Everything that was counted at least once."""
        return Counter({name: count for name, count in self._named() if count})

    def _named(self) -> Iterator[tuple[str, int]]:
        for name in NAMES:
            yield name, getattr(self, name)
        for status, count in self.findings.items():
            yield f"findings_{status}", count


def count_redelivery(counts: Counts, log: LearnedLog, arrival: Arrival, owed: Owed | None) -> None:
    """A message came again; `owed` is what was owed for it before that."""
    counts.deliveries_redelivery += 1
    counts.redeliveries_of_acked += bool(log.flags(arrival.position) & ACKED)
    counts.lease_expiries += owed is not None and not owed.refused and owed.due_t <= arrival.t


def count_rewind(counts: Counts, log: LearnedLog, arrival: Arrival, *, inside_a_run: bool) -> None:
    """The service started again from a message that it had sent before, `inside_a_run` if an earlier run was not finished."""
    counts.rewinds += 1
    counts.rewinds_to_acked += bool(log.flags(arrival.position) & ACKED)
    counts.rewinds_inside_a_run += inside_a_run
