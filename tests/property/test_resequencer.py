"""Guarantees of the resequencer, on arbitrary arrivals of several groups with tight limits."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from prober.ordering.resequencer import (
    ArrivalOutcome,
    Completed,
    EpochBegan,
    EpochEnded,
    GaveUp,
    OrderRange,
    Output,
    Reason,
    Refused,
    Released,
    Resequencer,
    ResequencerLimits,
    Waiting,
)

WAIT, IDLE = 10.0, 30.0
SHORT = ResequencerLimits(wait_timeout_s=WAIT, idle_timeout_s=IDLE)


@dataclass
class Epoch:
    """What the outputs said about one epoch."""

    bounds: OrderRange
    released: list[int] = field(default_factory=list)
    waiting: dict[int, float] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)


class Ledger:
    """Follows the outputs and checks each against those before it."""

    def __init__(self, limits: ResequencerLimits) -> None:
        self.limits = limits
        self.open: dict[Hashable, tuple[int, Epoch]] = {}
        self.t = -inf
        self.epochs = 0
        self.released = 0
        self.refused = 0

    @property
    def waiting(self) -> int:
        return sum(len(epoch.waiting) for _, epoch in self.open.values())

    def follow(self, outputs: list[Output[int]]) -> None:
        for output in outputs:
            assert output.t >= self.t
            self.t = output.t
            if isinstance(output, EpochBegan):
                assert output.group not in self.open
                assert output.epoch == self.epochs + 1
                self.epochs += 1
                self.open[output.group] = (output.epoch, Epoch(output.bounds))
            number, epoch = self.open[output.group]
            assert output.epoch == number
            self.check(output, epoch)
        assert len(self.open) <= self.limits.groups
        assert self.waiting <= self.limits.waiting
        assert all(len(epoch.waiting) <= self.limits.waiting_per_group for _, epoch in self.open.values())

    def check(self, output: Output[int], epoch: Epoch) -> None:
        expected = max({epoch.bounds.initial - 1, *epoch.released}) + 1
        match output:
            case Waiting(order=order):
                assert order > expected == output.expected
                epoch.waiting[order] = output.t
            case GaveUp(first=first, last=last):
                assert (first, last + 1) == (expected, min(epoch.waiting))
                if output.reason is Reason.TIMEOUT:
                    assert output.t - min(epoch.waiting.values()) == self.limits.wait_timeout_s
                epoch.given_up.update(range(first, last + 1))
            case Released(order=order, outcome=outcome):
                self.released += 1
                assert 0 <= output.waited_s <= self.limits.wait_timeout_s
                assert output.waited_s == output.t - epoch.waiting.get(order, output.t)
                assert order == expected or (order > expected and outcome is ArrivalOutcome.OVERTOOK)
                assert set(range(expected, order)) <= epoch.given_up
                epoch.released.append(order)
                epoch.waiting.pop(order, None)
            case Refused(order=order, outcome=outcome):
                self.refused += 1
                self.check_refusal(order, outcome, epoch)
            case Completed():
                assert epoch.released[-1] == epoch.bounds.maximum
            case EpochEnded():
                assert not epoch.waiting
                assert output.expected == expected
                assert output.missing == len(epoch.given_up - epoch.late)
                del self.open[output.group]

    def check_refusal(self, order: int, outcome: ArrivalOutcome, epoch: Epoch) -> None:
        seen = {*epoch.released, *epoch.waiting, *epoch.late}
        facts = {
            ArrivalOutcome.LATE: order in epoch.given_up - epoch.late,
            ArrivalOutcome.DUPLICATE: order in seen,
            ArrivalOutcome.LATE_OR_DUPLICATE: order in seen | epoch.given_up,
            ArrivalOutcome.BEFORE_START: order < epoch.bounds.initial,
            ArrivalOutcome.ABOVE_MAXIMUM: epoch.bounds.maximum is not None and order > epoch.bounds.maximum,
        }
        assert facts[outcome]
        if outcome is ArrivalOutcome.LATE:
            epoch.late.add(order)


STEPS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 4, 10, 31]), st.sampled_from("abc"), st.integers(-1, 12) | st.none()), max_size=60
)
LIMITS = st.builds(
    ResequencerLimits,
    wait_timeout_s=st.sampled_from([3.0, WAIT, 50.0]),
    idle_timeout_s=st.sampled_from([2.0, IDLE]),
    bounds=st.builds(OrderRange, st.integers(-1, 2), st.sampled_from([None, 2, 9])),
    groups=st.integers(1, 3),
    waiting_per_group=st.integers(1, 5),
    waiting=st.integers(1, 8),
    gaps_per_group=st.integers(1, 4),
)


def run(steps: list[tuple[int, str, int | None]], resequencer: Resequencer[int]) -> list[list[Output[int]]]:
    """Each step lets time pass, then a message of a group arrives, if it has an order. Items count the steps."""
    now, outputs = 0.0, []
    for at, (pause, group, order) in enumerate(steps):
        now += pause
        outputs.append(resequencer.advance(now) if order is None else resequencer.arrive(now, group, order, at))
    return outputs


@given(steps=STEPS, limits=LIMITS)
def test_every_output_agrees_with_those_before_it(steps: list[tuple[int, str, int | None]], limits: ResequencerLimits) -> None:
    resequencer: Resequencer[int] = Resequencer(limits)
    ledger = Ledger(limits)
    now, arrivals = 0.0, 0
    for pause, group, order in steps:
        now += pause
        arrivals += order is not None
        ledger.follow(resequencer.advance(now) if order is None else resequencer.arrive(now, group, order, arrivals))
        assert (resequencer.waiting, resequencer.groups) == (ledger.waiting, len(ledger.open))
        assert ledger.released + ledger.refused + ledger.waiting == arrivals
    ledger.follow(resequencer.finish(now))
    assert (resequencer.waiting, resequencer.groups, len(ledger.open)) == (0, 0, 0)
    assert ledger.released + ledger.refused == arrivals


@given(steps=STEPS, limits=LIMITS)
def test_every_item_comes_out_once(steps: list[tuple[int, str, int | None]], limits: ResequencerLimits) -> None:
    resequencer: Resequencer[int] = Resequencer(limits)
    outputs = [*run(steps, resequencer), resequencer.finish(0.0)]
    out = [output.item for each in outputs for output in each if isinstance(output, Released | Refused)]
    assert sorted(out) == [at for at, (_, _, order) in enumerate(steps) if order is not None]


@given(steps=STEPS, limits=LIMITS, pauses=st.data())
def test_how_often_time_is_advanced_does_not_matter(
    steps: list[tuple[int, str, int | None]], limits: ResequencerLimits, pauses: st.DataObject
) -> None:
    seldom: Resequencer[int] = Resequencer(limits)
    often: Resequencer[int] = Resequencer(limits)
    once = [output for each in run(steps, seldom) for output in each]
    again: list[Output[int]] = []
    now = 0.0
    for at, (pause, group, order) in enumerate(steps):
        for part in sorted(pauses.draw(st.lists(st.floats(0, pause), max_size=3))):
            again += often.advance(now + part)
        now += pause
        again += often.advance(now)
        if order is not None:
            again += often.arrive(now, group, order, at)
    assert again == once


@given(order=st.permutations(range(1, 20)), data=st.data())
def test_any_permutation_within_the_waits_comes_out_sorted(order: list[int], data: st.DataObject) -> None:
    resequencer: Resequencer[int] = Resequencer(SHORT)
    times = sorted(data.draw(st.lists(st.floats(0, WAIT - 0.1), min_size=len(order), max_size=len(order))))
    out = [output for now, each in zip(times, order, strict=True) for output in resequencer.arrive(now, "g", each, each)]
    released = [output for output in out if isinstance(output, Released)]
    assert [output.item for output in released] == list(range(1, 20))
    assert {output.outcome for output in released} == {ArrivalOutcome.IN_ORDER}
    assert not any(isinstance(output, GaveUp | Refused) for output in out)


@given(steps=STEPS)
def test_groups_do_not_influence_each_other(steps: list[tuple[int, str, int | None]]) -> None:
    def tale(group: str, outputs: list[list[Output[int]]]) -> list[Output[int]]:
        return [replace(output, epoch=0) for each in outputs for output in each if output.group == group]

    together = run(steps, Resequencer(SHORT))
    for name in "abc":
        alone = run([(pause, group, order if group == name else None) for pause, group, order in steps], Resequencer(SHORT))
        assert tale(name, together) == tale(name, alone)


@given(steps=STEPS)
def test_a_group_is_not_forgotten_before_its_time(steps: list[tuple[int, str, int | None]]) -> None:
    active: dict[Hashable, float] = {}
    now = 0.0
    for (pause, group, order), outputs in zip(steps, run(steps, Resequencer(SHORT)), strict=True):
        now += pause
        for output in outputs:
            if isinstance(output, EpochEnded):
                assert output.t == active[output.group] + IDLE
            active[output.group] = output.t
        if order is not None:
            active[group] = now
