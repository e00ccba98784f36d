"""Measurements of probes: delays while a key is held, where a backlog begins, an ordered beside an unordered subscription."""

from __future__ import annotations

import random

import pytest

from prober.probes.control_group import IN_TIME_S, Answer, Burst, Pairs, RequestPairs
from prober.probes.hot_key import RampStep, figures_of
from prober.probes.isolation import Receipt, delays_s
from prober.slo.figures import Figure


def receipts(*latencies_s: float) -> list[Receipt]:
    return [Receipt(float(number), number + latency_s) for number, latency_s in enumerate(latencies_s)]


# ------------------------------------------------------------------------------------------------------------ isolation


def test_what_takes_no_longer_than_before_and_after_was_not_delayed() -> None:
    assert delays_s(receipts(0.2, 0.1, 0.0), receipts(0.2)) == [0.0, 0.0, 0.0]


def test_what_waits_for_the_held_key_was_delayed_by_what_is_more_than_usual() -> None:
    assert delays_s(receipts(3.1, 2.1), receipts(*[0.1] * 9, 5.0)) == pytest.approx([3.0, 2.0])


def test_jitter_alike_before_and_during_is_no_delay_to_speak_of() -> None:
    dice = random.Random(7)
    usual, held = ([dice.uniform(0.0, 0.5) for _ in range(count)] for count in (100, 50))
    assert max(delays_s(receipts(*held), receipts(*usual))) < 0.1


# -------------------------------------------------------------------------------------------------------------- hot key


def test_a_backlog_begins_where_more_waits_than_a_second_of_publishing() -> None:
    quiet = RampStep(4.0, 1000, 990, 0, 10)
    queueing = RampStep(4.0, 2000, 1400, 10, 610)
    worse = RampStep(4.0, 3000, 1400, 610, 2210)
    assert figures_of([quiet, queueing, worse]) == {
        Figure.BACKLOG_BEGINS: 500.0,
        Figure.HOT_KEY_PUBLISHED: 500.0,
        Figure.HOT_KEY_ACKNOWLEDGED: 350.0,
        Figure.HOT_KEY_BACKLOG_GROWTH: 150.0,
    }


def test_where_a_backlog_begins_is_unknown_if_none_did() -> None:
    figures = figures_of([RampStep(4.0, 1000, 990, 0, 10), RampStep(4.0, 2000, 1980, 10, 30)])
    assert Figure.BACKLOG_BEGINS not in figures
    assert figures[Figure.HOT_KEY_PUBLISHED] == 500.0
    assert figures_of([RampStep(4.0, 0, 0, 0, 0)]) == {}


def test_refusals_begin_at_the_load_of_the_first_step_that_met_one() -> None:
    steps = [RampStep(4.0, 1000, 1000, 0, 0), RampStep(4.0, 1500, 1500, 0, 0, 500), RampStep(4.0, 1000, 1000, 0, 0, 2000)]
    assert figures_of(steps)[Figure.REFUSALS_BEGIN] == 500.0
    assert Figure.REFUSALS_BEGIN not in figures_of(steps[:1])
    assert figures_of([RampStep(4.0, 0, 0, 0, 0, 4000)]) == {Figure.REFUSALS_BEGIN: 1000.0}


# -------------------------------------------------------------------------------------------------------- control group


def pairs(ordered: dict[int, float], unordered: dict[int, float], *bursts: tuple[int, ...]) -> Pairs:
    made = Pairs()
    made.bursts = [Burst(0.0, tuple(("k", seq) for seq in seqs)) for seqs in bursts]
    made.ordered = {("k", seq): t for seq, t in ordered.items()}
    made.unordered = {("k", seq): t for seq, t in unordered.items()}
    return made


def test_the_price_of_order_is_averaged_over_bursts() -> None:
    twins = pairs({1: 0.3, 2: 0.5, 3: 0.3}, {1: 0.1, 2: 0.1, 3: 0.2}, (1, 2), (3,))
    assert twins.complete
    latency = twins.latency()
    assert latency is not None
    assert latency.value == pytest.approx((0.3 + 0.1) / 2)
    assert latency.low < latency.value < latency.high


def test_what_came_on_one_only_is_no_pair_but_counts_for_availability() -> None:
    late = IN_TIME_S + 1
    twins = pairs({1: 0.1, 2: late, 4: 0.1}, {1: 0.1, 2: 0.1, 3: 0.1}, (1,), (2,), (3,), (4,))
    assert not twins.complete
    availability = twins.availability()
    assert availability is not None
    assert availability.value == pytest.approx((2 - 1) / 4)


def test_without_messages_nothing_is_said() -> None:
    assert Pairs().latency() is None
    assert Pairs().availability() is None


def test_the_price_of_a_key_is_of_pairs_that_were_confirmed_with_it_and_without() -> None:
    slow, quick, failed = Answer(True, 0.5), Answer(True, 0.1), Answer(False, 60.0)
    latency = RequestPairs([(slow, quick), (slow, quick), (failed, quick), (quick, failed)]).latency()
    assert latency is not None
    assert latency.value == pytest.approx(0.4)


def test_a_request_that_failed_with_and_without_a_key_is_no_price() -> None:
    well, failed = Answer(True, 0.1), Answer(False, 1.0)
    availability = RequestPairs([(failed, well), (failed, failed), (well, failed), (failed, well)]).availability()
    assert availability is not None
    assert availability.value == pytest.approx(0.25)
    assert (RequestPairs().latency(), RequestPairs().availability()) == (None, None)
