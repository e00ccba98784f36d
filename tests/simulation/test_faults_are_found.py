"""Each bug of a simulated service is found. A service without one is never accused: that is in tests/property/test_legal_service.py.

A run counts when the bug made a difference to what the service did. That is not always a difference to what can be seen: a publisher's
duplicate left out looks like one that was never stored, a message "not sent again" whose acknowledgement was merely lost looks like one
whose acknowledgement arrived, a key that is split while it is sent again looks like one that moved while copies were under way, and what
was left out of a run that a broken stream carried may have been lost with it. Hence a share of the runs, which is counted at night.
"""

from __future__ import annotations

import pytest

from prober.core.findings import Kind
from prober.core.rules import Mode
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.matrix import row

SEEDS = range(60)

FOUND: dict[tuple[Mode, Fault], tuple[float, Kind]] = {
    (Mode.STREAMING, Fault.SKIP_FIRST): (0.89, Kind.ORDER_GAP),
    (Mode.STREAMING, Fault.SWAP_FIRST): (0.87, Kind.ORDER_INVERSION),
    (Mode.STREAMING, Fault.BATCH_SWAP): (0.89, Kind.ORDER_INVERSION),
    (Mode.STREAMING, Fault.LOST_WRITE): (0.92, Kind.LOST_OVERTAKEN),
    (Mode.STREAMING, Fault.REDELIVER_UNACKED_ONLY): (0.49, Kind.REDELIVERY_SKIP),
    (Mode.STREAMING, Fault.REDELIVER_SINGLE): (0.61, Kind.REDELIVERY_SKIP),
    (Mode.STREAMING, Fault.REORDER_RUN): (0.68, Kind.REDELIVERY_SKIP),
    (Mode.STREAMING, Fault.DUP_ALONE): (0.72, Kind.REDELIVERY_SKIP),
    (Mode.STREAMING, Fault.RESUME_PAST): (0.59, Kind.UNACKED_STALL),
    (Mode.STREAMING, Fault.STALL_RUN): (0.89, Kind.REDELIVERY_STALL),
    (Mode.STREAMING, Fault.NO_REDELIVER): (0.66, Kind.UNACKED_STALL),
    (Mode.STREAMING, Fault.SPLIT): (0.53, Kind.AFFINITY_SPLIT),
    (Mode.STREAMING, Fault.SPLIT_RACING): (0.38, Kind.AFFINITY_SPLIT),
    (Mode.STREAMING, Fault.RESUME_ELSEWHERE): (0.65, Kind.AFFINITY_SPLIT),
    (Mode.STREAMING, Fault.PHANTOM): (0.92, Kind.PHANTOM),
    (Mode.STREAMING, Fault.PHANTOM_THEN_SWAP): (0.87, Kind.ORDER_INVERSION),
    (Mode.STREAMING, Fault.WRONG_KEY): (0.92, Kind.ID_CONFLICT),
    (Mode.STREAMING, Fault.LOST_TAIL): (0.90, Kind.LOST_OVERTAKEN),
    (Mode.STREAMING, Fault.NEVER_AGAIN): (0.80, Kind.UNACKED_STALL),
    (Mode.STREAMING, Fault.ID_SWAP): (0.92, Kind.ID_CONFLICT),
    (Mode.STREAMING, Fault.REGION_SWAP): (0.87, Kind.ORDER_INVERSION),
    (Mode.STREAMING, Fault.EOD_WHILE_HELD): (0.42, Kind.EOD_REDELIVERY_WHILE_OUTSTANDING),
    (Mode.STREAMING, Fault.EOD_SKIP): (0.93, Kind.REDELIVERY_SKIP),
    (Mode.STREAMING, Fault.EOD_AFTER_ACK): (0.78, Kind.EOD_REDELIVERY_AFTER_ACK),
    (Mode.PULL, Fault.HOLE): (0.82, Kind.ORDER_GAP),
    (Mode.PULL, Fault.BATCH_REVERSE): (0.90, Kind.PULL_BATCH_ORDER),
    (Mode.PULL, Fault.OVERLAP): (0.76, Kind.PULL_OVERLAP),
    (Mode.PULL, Fault.REDELIVER_UNACKED_ONLY): (0.41, Kind.PULL_BATCH_ORDER),
    (Mode.PULL, Fault.BATCH_SWAP): (0.95, Kind.ORDER_INVERSION),
    (Mode.PULL, Fault.LOST_WRITE): (0.92, Kind.STUCK),
    (Mode.PULL, Fault.NO_REDELIVER): (0.72, Kind.UNACKED_STALL),
    (Mode.PULL, Fault.STALL_RUN): (0.94, Kind.REDELIVERY_STALL),
    (Mode.PULL, Fault.RESUME_ELSEWHERE): (0.83, Kind.PULL_OVERLAP),
    (Mode.PULL, Fault.WRONG_KEY): (0.92, Kind.ID_CONFLICT),
    (Mode.PULL, Fault.LOST_TAIL): (0.91, Kind.LOST_OVERTAKEN),
    (Mode.PULL, Fault.NEVER_AGAIN): (0.83, Kind.UNACKED_STALL),
    (Mode.PULL, Fault.ID_SWAP): (0.92, Kind.ID_CONFLICT),
    (Mode.PULL, Fault.REGION_SWAP): (0.95, Kind.ORDER_INVERSION),
    (Mode.PULL, Fault.EOD_WHILE_HELD): (0.57, Kind.EOD_REDELIVERY_WHILE_OUTSTANDING),
    (Mode.PULL, Fault.EOD_SKIP): (0.95, Kind.PULL_BATCH_ORDER),
    (Mode.PULL, Fault.EOD_AFTER_ACK): (0.90, Kind.EOD_REDELIVERY_AFTER_ACK),
    (Mode.PUSH, Fault.OVERLAP): (0.84, Kind.PUSH_OVERLAP),
    (Mode.PUSH, Fault.PAST_NACK): (0.86, Kind.PUSH_ADVANCE_PAST_NACK),
    (Mode.PUSH, Fault.BATCH_SWAP): (0.88, Kind.ORDER_GAP),
    (Mode.PUSH, Fault.LOST_WRITE): (0.92, Kind.LOST_OVERTAKEN),
    (Mode.PUSH, Fault.NO_REDELIVER): (0.81, Kind.UNACKED_STALL),
    (Mode.PUSH, Fault.WRONG_KEY): (0.92, Kind.ID_CONFLICT),
    (Mode.PUSH, Fault.LOST_TAIL): (0.92, Kind.LOST_OVERTAKEN),
    (Mode.PUSH, Fault.NEVER_AGAIN): (0.81, Kind.UNACKED_STALL),
    (Mode.PUSH, Fault.ID_SWAP): (0.92, Kind.ID_CONFLICT),
    (Mode.PUSH, Fault.REGION_SWAP): (0.84, Kind.ORDER_INVERSION),
}
"""The share of the runs with a finding, measured over 200 seeds, minus a margin for 60 (2.3 standard deviations of a share); and what a
bug must be called at least once, or it is found by accident."""


@pytest.mark.parametrize(("mode", "fault"), FOUND, ids=lambda value: str(value))
def test_a_bug_is_found_by_its_name(mode: Mode, fault: Fault) -> None:
    _, name = FOUND[mode, fault]
    assert any(row(mode, fault, [seed]).by_kind[name] for seed in SEEDS)


@pytest.mark.nightly  # four minutes: sixty runs of each
@pytest.mark.parametrize(("mode", "fault"), FOUND, ids=lambda value: str(value))
def test_a_bug_is_found_as_often_as_it_was(mode: Mode, fault: Fault) -> None:
    floor, _ = FOUND[mode, fault]
    result = row(mode, fault, SEEDS)
    assert result.fired >= 15, "the bug hardly ever had the occasion"
    assert result.share >= floor, f"{result.share:.0%}, missed seeds {result.missed}"


def test_every_bug_is_looked_for() -> None:
    assert sorted(FOUND) == sorted((mode, fault) for mode in Mode for fault in FAULTS[mode])
