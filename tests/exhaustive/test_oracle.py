"""The oracle itself, on histories whose answer is obvious or proven in the specification's text."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest

from tests.exhaustive.histories import GRIDS, Arrival, growth
from tests.exhaustive.oracle import Ack, Limits, Publish, Receipt, Sent, record_legal, service_legal, step_legal


def run(text: str, gap: float = 0.1, delay_max: float = 1.0) -> list[Receipt]:
    """`A1 B2`: A receives position 1, then B receives position 2."""
    return [
        Receipt(word[0], int(word[1:]), 100 + gap * place, 100 + gap * place - delay_max) for place, word in enumerate(text.split())
    ]


@pytest.mark.parametrize("text", ["A1 A2 A3", "A1 A2 A3 A1 A2 A1 A2 A3 A4", "A1 A2 A3 A4 A2 A3 A4", "A1 A1 A1", "A1 A2 A1"])
def test_one_session_may_step_and_rewind(text: str) -> None:
    assert step_legal(run(text))


@pytest.mark.parametrize("text", ["A2", "A1 A3", "A1 A2 A3 A2 A4", "A1 A2 A3 A4 A2 A4 A3", "A1 A2 A1 A3"])
def test_one_session_may_not_skip(text: str) -> None:
    assert not step_legal(run(text))


def test_a_copy_under_way_explains_a_skip_only_within_the_delay_bound() -> None:
    assert step_legal(run("A1 A2 A3 A1 A3 B2"))
    assert not step_legal(run("A1 A2 A3 A1 A3 B2", gap=1.5))


def test_all_certain_is_the_order_of_arrival() -> None:
    certain = next(grid for grid in GRIDS if grid.name == "all certain")
    for positions, sessions in product(growth(4, 4), growth(4, 3)):
        arrival = Arrival(sessions, positions, certain)
        assert step_legal(arrival.receipts()) == all(
            position <= before + 1 for before, position in zip((0, *positions), positions, strict=False)
        )


BATCH = [Publish(1, 0, 1, "b1"), Publish(2, 0, 1, "b2")]
ONE_BY_ONE = [Publish(1, 0, 1, "b1"), Publish(2, 2, 3, "b2")]
RECORDS = {"a1": 1, "b1": 1, "a2": 2, "b2": 2}


@pytest.mark.parametrize("ids", ["a1 a2 b1 b2", "a1 b1 b2", "a2 b1 b2", "b1 a1 b2", "b1 b2 a1 a2", "a1 a2", "a2 a2 a1 b1"])
def test_shadows_of_a_batch_may_be_anywhere(ids: str) -> None:
    assert record_legal(RECORDS, BATCH, ids.split())


@pytest.mark.parametrize("ids", ["b2", "b2 b1", "a1 a2 b2 b1", "a1 a2 b1 a1 b1", "b1 b2 a1 b1 a1"])
def test_primaries_keep_their_order_and_duplicates_are_records_of_their_own(ids: str) -> None:
    assert not record_legal(RECORDS, BATCH, ids.split())


def test_nothing_precedes_what_had_completed_before_its_invocation() -> None:
    assert not record_legal(RECORDS, ONE_BY_ONE, ["a1", "a2", "b1", "b2"])
    assert record_legal(RECORDS, ONE_BY_ONE, ["b1", "b2", "a1", "a2"])


def legal(text: str, limits: Limits, gap: float, **ends: dict[int, float]) -> bool:
    """Whether the deliveries with these ends of their holds are: `acked={0: 100.05}`."""

    def end(name: str, place: int) -> float:
        return ends.get(name, {}).get(place, inf)

    receipts = run(text, gap)
    sent = [Sent(r, r.session, end("nacked", place), end("closed", place)) for place, r in enumerate(receipts)]
    acks = [Ack(receipts[place].session, receipts[place].position, t) for place, t in ends.get("acked", {}).items()]
    return service_legal(sent, acks, limits)


LIMITS = Limits(lease=60)
EXACTLY_ONCE = Limits(lease=60, exactly_once=True)


def test_nobody_is_sent_anything_above_what_another_holds() -> None:
    for limits in (LIMITS, EXACTLY_ONCE):
        assert not legal("A1 B2", limits, 2)
        assert legal("A1 B2", limits, 2, acked={0: 100.5})
        assert legal("A1 B1", limits, 70)
        assert legal("A1 B1", limits, 2, closed={0: 101.0})


def test_the_service_may_begin_again_at_the_lowest_that_is_held_or_below() -> None:
    assert legal("A1 A2 A3 B1", LIMITS, 2)
    assert legal("A1 A2 A3 B2", LIMITS, 2, acked={0: 100.5})
    assert legal("A1 A2 A3 B1", LIMITS, 2, acked={0: 100.5})
    assert not legal("A1 A2 A3 B3", LIMITS, 2, acked={0: 100.5})
    assert not legal("A1 A2 A3 B2", LIMITS, 2)


def test_with_exactly_once_delivery_it_may_not() -> None:
    assert not legal("A1 B1", EXACTLY_ONCE, 2)
    assert not legal("A1 A1", EXACTLY_ONCE, 2)
    assert legal("A1 A1", EXACTLY_ONCE, 2, nacked={0: 100.5})
    assert legal("A1 A1", EXACTLY_ONCE, 70)
    assert not legal("A1 A2 A1", EXACTLY_ONCE, 2, nacked={1: 102.5})
    assert legal("A1 A2 A1 A2", EXACTLY_ONCE, 2, nacked={0: 100.5})
    assert legal("A1 A2 A2", EXACTLY_ONCE, 2, nacked={1: 102.5})


def test_what_was_acknowledged_may_be_sent_again_and_lost() -> None:
    acked = {0: 100.5, 1: 102.5, 2: 104.5}
    assert legal("A1 A2 A3 A1 B4", LIMITS, 2, acked=acked, closed={3: 106.5})
    assert not legal("A1 A2 A3 A1 B4", LIMITS, 2, acked=acked)
    assert not legal("A1 A2 A3 A1 B4", LIMITS, 2, acked={0: 100.5, 2: 104.5}, closed={3: 106.5})
    assert not legal("A1 A2 A3 A1 B4", LIMITS, 2, acked=acked, closed={0: 102.5})


def test_nothing_is_lost_long_before_a_stream_closes_nor_after() -> None:
    acked = {0: 100.5, 1: 102.5, 2: 104.5}
    assert legal("A1 A2 A3 A1 B4", LIMITS, 2, acked=acked, closed={3: 107.9})
    assert not legal("A1 A2 A3 A1 B4", LIMITS, 2, acked=acked, closed={3: 108.1})
    half_open = Limits(lease=60, close_detection=3)
    assert legal("A1 A2 A3 A1 B4", half_open, 2, acked=acked, closed={3: 108.1})


def test_what_was_dropped_is_sent_again_before_anybody_else_goes_on() -> None:
    for limits in (LIMITS, EXACTLY_ONCE):
        assert not legal("A1 B2", limits, 70)
        assert not legal("A1 B2 B1", limits, 2, nacked={0: 100.5})
        assert legal("A1 A2 B1", limits, 2, nacked={0: 100.5})


def test_one_delivery_is_not_both_acknowledged_and_dropped() -> None:
    assert not legal("A1 B2 A1", Limits(lease=5, exactly_once=True), 3, acked={0: 100.5})
    assert legal("A1 B2 B1", LIMITS, 70, acked={0: 100.5})


def test_with_exactly_once_delivery_a_new_owner_may_restart_at_or_below_what_was_released() -> None:
    assert legal("A1 A2 A3 B2", EXACTLY_ONCE, 2, acked={0: 100.1}, nacked={1: 105.0})
    assert not legal("A1 A2 A3 B2", EXACTLY_ONCE, 2, acked={0: 100.1})
    assert not legal("A1 A2 A3 B2", EXACTLY_ONCE, 2, nacked={1: 105.0})
    assert not legal("A1 A2 A3 B3", EXACTLY_ONCE, 2, acked={0: 100.1}, nacked={1: 105.0})
    assert not legal("A1 A2 A3 B1", EXACTLY_ONCE, 2, nacked={1: 105.0})
    assert legal("A1 A2 A3 B1", EXACTLY_ONCE, 2, nacked={0: 105.0})


def test_a_late_acknowledgement_may_count_for_a_later_delivery() -> None:
    assert legal("A1 B1 C2", Limits(lease=4, ack_lag=1), 5, acked={0: 105.2})
    assert not legal("A1 B1 C2", Limits(lease=2, ack_lag=0.5), 3, acked={0: 101.0})
    assert legal("A1 B1 C2", Limits(lease=4, ack_lag=1, exactly_once=True), 5, acked={0: 105.2})


def test_a_rewind_of_the_owner_drops_what_lay_above() -> None:
    assert legal("A1 A2 A1 B2", LIMITS, 2, acked={2: 104.5})
    assert not legal("A1 A2 A1 B2", LIMITS, 2, acked={0: 100.5})


def test_push_sends_a_refused_message_again_before_anything_above_it() -> None:
    push = Limits(lease=60, one_session_per_owner=True, one_message_at_a_time=True)
    assert not legal("A1 B2", push, 2, nacked={0: 100.5})
    assert legal("A1 B1 C2", push, 2, nacked={0: 100.5}, acked={1: 102.5})


def test_messages_are_first_received_in_log_order() -> None:
    """Lemma 1: whatever the service does legally, with any acknowledgements, the n-th new message has position n."""
    for positions, sessions in product(product(range(1, 5), repeat=4), growth(4, 3)):
        new = list(dict.fromkeys(positions))
        if new == sorted(new):
            continue
        receipts = Arrival(sessions, positions, GRIDS[0]).receipts()
        if not step_legal(receipts):
            continue
        sent = [Sent(r, r.session, nacked=r.received) for r in receipts]
        acks = [Ack(r.session, r.position, r.received) for r in receipts]
        assert not service_legal(sent, acks, LIMITS), receipts
