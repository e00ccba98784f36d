"""What a run has to have met to mean anything (section 7 of the specification): counted here, required by the probes.

A run in which nothing was redelivered says nothing about redelivery, whatever else it saw. So the situations that the promises are
about are counted, and a probe names the counters that must not be 0.
"""

from __future__ import annotations

from prober.core.counts import Counts
from prober.core.owed import Owed
from prober.core.positions import ACKED, LearnedLog
from prober.core.sessions import Arrival


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
