"""Flow control: what uses up that of a stream, and until when."""

from __future__ import annotations

from math import inf

from prober.core.flow import Flow


def test_flow_control_is_used_up_by_a_number_of_messages() -> None:
    flow = Flow(2, inf)
    flow.take(1, 100.0, 60.0)
    assert flow.used_up_until_t() == -inf
    flow.take(2, 100.0, 50.0)
    assert flow.used_up_until_t() == 60.0
    flow.extend(2, 90.0)
    assert flow.used_up_until_t() == 90.0
    flow.release(1, 15.0)
    assert flow.used_up_until_t() == 15.0  # until the acknowledgement is certainly applied
    flow.release(2, 20.0)
    assert flow.used_up_until_t() == 15.0  # there was room already


def test_flow_control_is_used_up_by_what_is_extended_though_acknowledged() -> None:
    flow = Flow(2, inf)
    flow.take(1, 100.0, 60.0)
    flow.release(1, 5.0)
    flow.take(2, 100.0, 60.0)
    flow.extend(1, 90.0)
    assert flow.used_up_until_t() == 90.0
    flow.take(3, 100.0, 70.0)  # so the first had been given back
    assert flow.used_up_until_t() == 90.0
    flow.release(3, 8.0)
    assert flow.used_up_until_t() == 8.0


def test_flow_control_is_used_up_by_a_number_of_bytes() -> None:
    flow = Flow(inf, 1000)
    flow.take(1, 400.0, 60.0)
    flow.take(2, 600.0, 60.0)
    assert flow.used_up_until_t() == 60.0
    flow.release(2, 15.0)
    flow.take(3, 500.0, 70.0)
    assert flow.used_up_until_t() == -inf  # a delivery shows that there was room


def test_a_message_that_comes_again_counts_once() -> None:
    flow = Flow(2, 1000)
    flow.take(1, 400.0, 60.0)
    flow.take(1, 400.0, 90.0)
    assert flow.used_up_until_t() == -inf
    flow.take(2, 400.0, 80.0)
    assert flow.used_up_until_t() == 90.0


def test_an_unknown_size_is_taken_as_unlimited() -> None:
    flow = Flow(inf, 1000)
    flow.take(1, inf, 60.0)
    flow.take(2, 400.0, 60.0)
    assert flow.used_up_until_t() == 60.0
    flow.release(1, 15.0)
    flow.take(3, 500.0, 70.0)
    assert flow.used_up_until_t() == -inf
    flow.take(4, 100.0, 70.0)
    assert flow.used_up_until_t() == 70.0


def test_an_answer_to_what_is_not_outstanding_makes_no_room() -> None:
    flow = Flow(1, inf)
    flow.release(7, 15.0)
    assert flow.used_up_until_t() == -inf
    flow.take(1, 100.0, 60.0)
    flow.release(1, 15.0)
    flow.release(1, 99.0)
    assert flow.used_up_until_t() == 15.0
