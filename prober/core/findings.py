"""Findings of the checker: facts with their proof, separate from texts and from policy.

A finding states a fact about the service. Its witnesses are the numbers of the events that prove it, `explain` turns its `facts` into
sentences. Other modules decide the consequences of a finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from prober.core.events import fact


class Kind(StrEnum):
    """The anomalies by violated guarantee (docs/model.md, section 2)."""

    __hash__ = str.__hash__  # that of enumerations takes as long as three look-ups

    # order of first delivery
    ORDER_GAP = "ORDER_GAP"
    ORDER_INVERSION = "ORDER_INVERSION"
    REALTIME_INVERSION = "REALTIME_INVERSION"
    ORDER_DIVERGENCE = "ORDER_DIVERGENCE"
    # order of first delivery, where the publishes are not on record
    DELIVERED_OUT_OF_ORDER = "DELIVERED_OUT_OF_ORDER"
    PUBLISHED_OUT_OF_ORDER = "PUBLISHED_OUT_OF_ORDER"
    # redelivery
    REDELIVERY_SKIP = "REDELIVERY_SKIP"
    PULL_BATCH_ORDER = "PULL_BATCH_ORDER"
    PUSH_ADVANCE_PAST_NACK = "PUSH_ADVANCE_PAST_NACK"
    # one holder
    AFFINITY_SPLIT = "AFFINITY_SPLIT"
    PULL_OVERLAP = "PULL_OVERLAP"
    PUSH_OVERLAP = "PUSH_OVERLAP"
    AFFINITY_MOVE = "AFFINITY_MOVE"
    # liveness
    STUCK = "STUCK"
    LOST_OVERTAKEN = "LOST_OVERTAKEN"
    REDELIVERY_STALL = "REDELIVERY_STALL"
    UNACKED_STALL = "UNACKED_STALL"
    # integrity
    PHANTOM = "PHANTOM"
    GHOST = "GHOST"
    ID_CONFLICT = "ID_CONFLICT"
    FILTER_LEAK = "FILTER_LEAK"
    EOD_REDELIVERY_AFTER_ACK = "EOD_REDELIVERY_AFTER_ACK"
    EOD_REDELIVERY_WHILE_OUTSTANDING = "EOD_REDELIVERY_WHILE_OUTSTANDING"
    PUBLISHER_DUP = "PUBLISHER_DUP"
    LATE_DUP = "LATE_DUP"
    SERVICE_DUP = "SERVICE_DUP"


class Status(StrEnum):
    """The certainty of a finding. Only violation and liveness findings fail a run."""

    __hash__ = str.__hash__

    VIOLATION = "violation"
    LIVENESS = "liveness"
    INDETERMINATE = "indeterminate"
    INFO = "info"


FAILING = frozenset({Status.VIOLATION, Status.LIVENESS})
"""The statuses that fail a run, and count the affected events as bad."""

EPOCHS = "epochs"
"""The name of the fact with the number of epochs of a key, if there are several: texts then name the epoch of a message."""

Fact: TypeAlias = str | int | float | tuple[int, ...] | tuple[str, ...]
Facts: TypeAlias = Mapping[str, Fact]


@fact(frozen=True, slots=True)
class Finding:
    """One detected fact.

    t           the time of the event that proves it (liveness: of the missed deadline).
    witnesses   event numbers (the first event observed is 1), ascending: together they prove the finding.
    facts       named values for the explanation: sequence numbers, message ids, subscribers, times.
    doubt       why it is only indeterminate; empty otherwise.
    assumptions the bounds from `Rules` that the verdict relies on, by name, with their values.
    reasons     indeterminate: the assumptions of the best explanation, the doubt first. Violation and liveness: each alternative that was
                tried, as `not so: the fact that rules it out`. Empty if there are none.
    """

    kind: Kind
    status: Status
    subscription: str
    key: str
    t: float
    witnesses: tuple[int, ...]
    facts: Facts = field(default_factory=dict, hash=False)
    doubt: str = ""
    assumptions: Mapping[str, float] = field(default_factory=dict, hash=False)
    reasons: tuple[str, ...] = ()
