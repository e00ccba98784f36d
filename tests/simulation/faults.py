"""The bugs that a simulated service can be given (section 9.2 of the specification), and the occasion that each needs."""

from __future__ import annotations

from enum import StrEnum

from prober.core.findings import Kind
from prober.core.rules import Mode


class Fault(StrEnum):
    """What a service does wrong. Losing track of what is held is none: everything from the lowest held message on is redelivered."""

    SKIP_FIRST = "skip_first"
    SWAP_FIRST = "swap_first"
    BATCH_SWAP = "batch_swap"
    LOST_WRITE = "lost_write"
    REDELIVER_UNACKED_ONLY = "redeliver_unacked_only"
    REDELIVER_SINGLE = "redeliver_single"
    REORDER_RUN = "reorder_run"
    DUP_ALONE = "dup_alone"
    RESUME_PAST = "resume_past"
    STALL_RUN = "stall_run"
    NO_REDELIVER = "no_redeliver"
    SPLIT = "split"
    PHANTOM = "phantom"
    HOLE = "hole"
    BATCH_REVERSE = "batch_reverse"
    OVERLAP = "overlap"
    PAST_NACK = "past_nack"
    WRONG_KEY = "wrong_key"
    LOST_TAIL = "lost_tail"
    NEVER_AGAIN = "never_again"
    ID_SWAP = "id_swap"
    PHANTOM_THEN_SWAP = "phantom_then_swap"
    SPLIT_RACING = "split_racing"
    RESUME_ELSEWHERE = "resume_elsewhere"
    REGION_SWAP = "region_swap"
    EOD_WHILE_HELD = "eod_while_held"
    EOD_SKIP = "eod_skip"
    EOD_AFTER_ACK = "eod_after_ack"


ANYWHERE = (Fault.WRONG_KEY, Fault.LOST_TAIL, Fault.NEVER_AGAIN, Fault.ID_SWAP, Fault.REGION_SWAP)
EXACTLY_ONCE = (Fault.EOD_WHILE_HELD, Fault.EOD_SKIP, Fault.EOD_AFTER_ACK)

FAULTS: dict[Mode, tuple[Fault, ...]] = {
    Mode.STREAMING: (
        Fault.SKIP_FIRST,
        Fault.SWAP_FIRST,
        Fault.BATCH_SWAP,
        Fault.LOST_WRITE,
        Fault.REDELIVER_UNACKED_ONLY,
        Fault.REDELIVER_SINGLE,
        Fault.REORDER_RUN,
        Fault.DUP_ALONE,
        Fault.RESUME_PAST,
        Fault.STALL_RUN,
        Fault.NO_REDELIVER,
        Fault.SPLIT,
        Fault.SPLIT_RACING,
        Fault.RESUME_ELSEWHERE,
        Fault.PHANTOM,
        Fault.PHANTOM_THEN_SWAP,
        *ANYWHERE,
        *EXACTLY_ONCE,
    ),
    Mode.PULL: (
        Fault.HOLE,
        Fault.BATCH_REVERSE,
        Fault.OVERLAP,
        Fault.REDELIVER_UNACKED_ONLY,
        Fault.BATCH_SWAP,
        Fault.LOST_WRITE,
        Fault.NO_REDELIVER,
        Fault.STALL_RUN,
        Fault.RESUME_ELSEWHERE,
        *ANYWHERE,
        *EXACTLY_ONCE,
    ),
    Mode.PUSH: (Fault.OVERLAP, Fault.PAST_NACK, Fault.BATCH_SWAP, Fault.LOST_WRITE, Fault.NO_REDELIVER, *ANYWHERE),
}

MUST_BE: dict[Fault, frozenset[Kind]] = {
    Fault.WRONG_KEY: frozenset({Kind.ID_CONFLICT}),
    Fault.ID_SWAP: frozenset({Kind.ID_CONFLICT}),
    Fault.PHANTOM_THEN_SWAP: frozenset({Kind.ORDER_INVERSION, Kind.ORDER_GAP, Kind.REALTIME_INVERSION}),
    Fault.EOD_WHILE_HELD: frozenset({Kind.EOD_REDELIVERY_WHILE_OUTSTANDING}),
    Fault.EOD_AFTER_ACK: frozenset({Kind.EOD_REDELIVERY_AFTER_ACK}),
}
"""Faults that have to be called by their names: without those, something else would pass for finding them."""
