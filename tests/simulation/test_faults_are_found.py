"""Each bug of a service is found often enough. A service without one is never accused: that is in tests/property/test_legal_service.py.

A run counts when the bug made a difference to what the service did. That is not always a difference to what can be seen: a publisher's
duplicate left out looks like one that was never stored, a message "not sent again" whose acknowledgement was merely lost looks like one
whose acknowledgement arrived, a key that is split while it is sent again looks like one that moved while copies were under way, and what
was left out of a run that a broken stream carried may have been lost with it. Hence the floors: what was measured over 200 seeds, minus a
margin for 60 (2.3 standard deviations of a share).
"""

from __future__ import annotations

import pytest

from prober.core.findings import Kind
from prober.core.rules import Mode
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.matrix import row

SEEDS = range(60)

FLOORS: dict[tuple[Mode, Fault], float] = {
    (Mode.STREAMING, Fault.SKIP_FIRST): 0.89,
    (Mode.STREAMING, Fault.SWAP_FIRST): 0.87,
    (Mode.STREAMING, Fault.BATCH_SWAP): 0.89,
    (Mode.STREAMING, Fault.LOST_WRITE): 0.92,
    (Mode.STREAMING, Fault.REDELIVER_UNACKED_ONLY): 0.49,
    (Mode.STREAMING, Fault.REDELIVER_SINGLE): 0.61,
    (Mode.STREAMING, Fault.REORDER_RUN): 0.68,
    (Mode.STREAMING, Fault.DUP_ALONE): 0.72,
    (Mode.STREAMING, Fault.RESUME_PAST): 0.59,
    (Mode.STREAMING, Fault.STALL_RUN): 0.89,
    (Mode.STREAMING, Fault.NO_REDELIVER): 0.66,
    (Mode.STREAMING, Fault.SPLIT): 0.53,
    (Mode.STREAMING, Fault.SPLIT_RACING): 0.38,
    (Mode.STREAMING, Fault.RESUME_ELSEWHERE): 0.65,
    (Mode.STREAMING, Fault.PHANTOM): 0.92,
    (Mode.STREAMING, Fault.PHANTOM_THEN_SWAP): 0.87,
    (Mode.STREAMING, Fault.WRONG_KEY): 0.92,
    (Mode.STREAMING, Fault.LOST_TAIL): 0.90,
    (Mode.STREAMING, Fault.NEVER_AGAIN): 0.80,
    (Mode.STREAMING, Fault.ID_SWAP): 0.92,
    (Mode.STREAMING, Fault.REGION_SWAP): 0.87,
    (Mode.STREAMING, Fault.EOD_WHILE_HELD): 0.42,
    (Mode.STREAMING, Fault.EOD_SKIP): 0.93,
    (Mode.STREAMING, Fault.EOD_AFTER_ACK): 0.78,
    (Mode.PULL, Fault.HOLE): 0.82,
    (Mode.PULL, Fault.BATCH_REVERSE): 0.90,
    (Mode.PULL, Fault.OVERLAP): 0.76,
    (Mode.PULL, Fault.REDELIVER_UNACKED_ONLY): 0.41,
    (Mode.PULL, Fault.BATCH_SWAP): 0.95,
    (Mode.PULL, Fault.LOST_WRITE): 0.92,
    (Mode.PULL, Fault.NO_REDELIVER): 0.72,
    (Mode.PULL, Fault.STALL_RUN): 0.94,
    (Mode.PULL, Fault.RESUME_ELSEWHERE): 0.83,
    (Mode.PULL, Fault.WRONG_KEY): 0.92,
    (Mode.PULL, Fault.LOST_TAIL): 0.91,
    (Mode.PULL, Fault.NEVER_AGAIN): 0.83,
    (Mode.PULL, Fault.ID_SWAP): 0.92,
    (Mode.PULL, Fault.REGION_SWAP): 0.95,
    (Mode.PULL, Fault.EOD_WHILE_HELD): 0.57,
    (Mode.PULL, Fault.EOD_SKIP): 0.95,
    (Mode.PULL, Fault.EOD_AFTER_ACK): 0.90,
    (Mode.PUSH, Fault.OVERLAP): 0.84,
    (Mode.PUSH, Fault.PAST_NACK): 0.86,
    (Mode.PUSH, Fault.BATCH_SWAP): 0.88,
    (Mode.PUSH, Fault.LOST_WRITE): 0.92,
    (Mode.PUSH, Fault.NO_REDELIVER): 0.81,
    (Mode.PUSH, Fault.WRONG_KEY): 0.92,
    (Mode.PUSH, Fault.LOST_TAIL): 0.92,
    (Mode.PUSH, Fault.NEVER_AGAIN): 0.81,
    (Mode.PUSH, Fault.ID_SWAP): 0.92,
    (Mode.PUSH, Fault.REGION_SWAP): 0.84,
}

# What a bug must be called at least once, or it is found by accident.
NAMES: dict[tuple[Mode, Fault], Kind] = {
    (Mode.STREAMING, Fault.SKIP_FIRST): Kind.ORDER_GAP,
    (Mode.STREAMING, Fault.SWAP_FIRST): Kind.ORDER_INVERSION,
    (Mode.STREAMING, Fault.BATCH_SWAP): Kind.ORDER_INVERSION,
    (Mode.STREAMING, Fault.LOST_WRITE): Kind.LOST_OVERTAKEN,
    (Mode.STREAMING, Fault.REDELIVER_UNACKED_ONLY): Kind.REDELIVERY_SKIP,
    (Mode.STREAMING, Fault.REDELIVER_SINGLE): Kind.REDELIVERY_SKIP,
    (Mode.STREAMING, Fault.REORDER_RUN): Kind.REDELIVERY_SKIP,
    (Mode.STREAMING, Fault.DUP_ALONE): Kind.REDELIVERY_SKIP,
    (Mode.STREAMING, Fault.RESUME_PAST): Kind.UNACKED_STALL,
    (Mode.STREAMING, Fault.STALL_RUN): Kind.REDELIVERY_STALL,
    (Mode.STREAMING, Fault.NO_REDELIVER): Kind.UNACKED_STALL,
    (Mode.STREAMING, Fault.SPLIT): Kind.AFFINITY_SPLIT,
    (Mode.STREAMING, Fault.SPLIT_RACING): Kind.AFFINITY_SPLIT,
    (Mode.STREAMING, Fault.RESUME_ELSEWHERE): Kind.AFFINITY_SPLIT,
    (Mode.STREAMING, Fault.PHANTOM): Kind.PHANTOM,
    (Mode.STREAMING, Fault.PHANTOM_THEN_SWAP): Kind.ORDER_INVERSION,
    (Mode.STREAMING, Fault.WRONG_KEY): Kind.ID_CONFLICT,
    (Mode.STREAMING, Fault.LOST_TAIL): Kind.LOST_OVERTAKEN,
    (Mode.STREAMING, Fault.NEVER_AGAIN): Kind.UNACKED_STALL,
    (Mode.STREAMING, Fault.ID_SWAP): Kind.ID_CONFLICT,
    (Mode.STREAMING, Fault.REGION_SWAP): Kind.ORDER_INVERSION,
    (Mode.STREAMING, Fault.EOD_WHILE_HELD): Kind.EOD_REDELIVERY_WHILE_OUTSTANDING,
    (Mode.STREAMING, Fault.EOD_SKIP): Kind.REDELIVERY_SKIP,
    (Mode.STREAMING, Fault.EOD_AFTER_ACK): Kind.EOD_REDELIVERY_AFTER_ACK,
    (Mode.PULL, Fault.HOLE): Kind.ORDER_GAP,
    (Mode.PULL, Fault.BATCH_REVERSE): Kind.PULL_BATCH_ORDER,
    (Mode.PULL, Fault.OVERLAP): Kind.PULL_OVERLAP,
    (Mode.PULL, Fault.REDELIVER_UNACKED_ONLY): Kind.PULL_BATCH_ORDER,
    (Mode.PULL, Fault.BATCH_SWAP): Kind.ORDER_INVERSION,
    (Mode.PULL, Fault.LOST_WRITE): Kind.STUCK,
    (Mode.PULL, Fault.NO_REDELIVER): Kind.UNACKED_STALL,
    (Mode.PULL, Fault.STALL_RUN): Kind.REDELIVERY_STALL,
    (Mode.PULL, Fault.RESUME_ELSEWHERE): Kind.PULL_OVERLAP,
    (Mode.PULL, Fault.WRONG_KEY): Kind.ID_CONFLICT,
    (Mode.PULL, Fault.LOST_TAIL): Kind.LOST_OVERTAKEN,
    (Mode.PULL, Fault.NEVER_AGAIN): Kind.UNACKED_STALL,
    (Mode.PULL, Fault.ID_SWAP): Kind.ID_CONFLICT,
    (Mode.PULL, Fault.REGION_SWAP): Kind.ORDER_INVERSION,
    (Mode.PULL, Fault.EOD_WHILE_HELD): Kind.EOD_REDELIVERY_WHILE_OUTSTANDING,
    (Mode.PULL, Fault.EOD_SKIP): Kind.PULL_BATCH_ORDER,
    (Mode.PULL, Fault.EOD_AFTER_ACK): Kind.EOD_REDELIVERY_AFTER_ACK,
    (Mode.PUSH, Fault.OVERLAP): Kind.PUSH_OVERLAP,
    (Mode.PUSH, Fault.PAST_NACK): Kind.PUSH_ADVANCE_PAST_NACK,
    (Mode.PUSH, Fault.BATCH_SWAP): Kind.ORDER_GAP,
    (Mode.PUSH, Fault.LOST_WRITE): Kind.LOST_OVERTAKEN,
    (Mode.PUSH, Fault.NO_REDELIVER): Kind.UNACKED_STALL,
    (Mode.PUSH, Fault.WRONG_KEY): Kind.ID_CONFLICT,
    (Mode.PUSH, Fault.LOST_TAIL): Kind.LOST_OVERTAKEN,
    (Mode.PUSH, Fault.NEVER_AGAIN): Kind.UNACKED_STALL,
    (Mode.PUSH, Fault.ID_SWAP): Kind.ID_CONFLICT,
    (Mode.PUSH, Fault.REGION_SWAP): Kind.ORDER_INVERSION,
}


@pytest.mark.parametrize(("mode", "fault"), FLOORS, ids=lambda value: str(value))
def test_a_bug_is_found(mode: Mode, fault: Fault) -> None:
    result = row(mode, fault, SEEDS)
    assert result.fired >= 15, "the bug hardly ever had the occasion"
    assert result.share >= FLOORS[mode, fault], f"{result.share:.0%}, missed seeds {result.missed}"
    assert result.by_kind[NAMES[mode, fault]]


def test_every_bug_has_a_floor_and_a_name() -> None:
    catalogue = [(mode, fault) for mode in Mode for fault in FAULTS[mode]]
    assert sorted(FLOORS) == sorted(NAMES) == sorted(catalogue)
