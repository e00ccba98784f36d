"""The bugs that a simulated service can be given (section 9.2 of the specification), and the occasion that each needs."""

from __future__ import annotations

from enum import StrEnum

from prober.core.rules import Mode


class Fault(StrEnum):
    """What a service does wrong. Losing track of what is held is none: everything from the lowest held message on comes again."""

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
        Fault.PHANTOM,
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
    ),
    Mode.PUSH: (Fault.OVERLAP, Fault.PAST_NACK, Fault.BATCH_SWAP, Fault.LOST_WRITE, Fault.NO_REDELIVER),
}
