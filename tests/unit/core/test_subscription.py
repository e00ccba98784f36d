"""What all keys of a subscription share: who waits, what may have been lost, who races, what may delay a key."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from prober.core import losses as losses_module
from prober.core.events import LONG_AGO, Closed, Opened
from prober.core.rules import Mode, Rules
from prober.core.subscription import Subscription


def subscription(mode: Mode = Mode.STREAMING, **rules: Any) -> Subscription:
    return Subscription("s", 0, Rules(mode=mode, **{"close_detection_max_s": 3.0, "delivery_delay_max_s": 1.0} | rules))


def stream(name: str, t: float, subscriber: str = "", limit: int | None = None) -> Opened:
    return Opened(t, "s", name, subscriber or name, max_outstanding_messages=limit)


def pull(name: str, t: float) -> Opened:
    return Opened(t, "s", name, name)


def waits(one: Subscription) -> bool:
    """Whether somebody waits now."""
    return one.waiting.running


# --- what may have been lost -------------------------------------------------------------------------------------------------


def test_what_was_sent_into_a_stream_that_was_dead_already_is_lost() -> None:
    streams = subscription()
    streams.opened(stream("A", 10.0))
    assert not streams.may_have_lost(LONG_AGO, inf)
    streams.closed(Closed(100.0, "s", "A"))
    assert streams.losses.count == 1
    between = [(90.0, 95.9), (90.0, 96.0), (98.0, 99.0), (100.0, 200.0), (100.1, 200.0)]
    assert [streams.may_have_lost(*times) for times in between] == [False, True, True, True, False]


def test_nothing_was_sent_before_the_stream_opened() -> None:
    streams = subscription()
    streams.opened(stream("A", 98.0))
    streams.closed(Closed(100.0, "s", "A"))
    assert [streams.may_have_lost(0.0, t) for t in (97.9, 98.0)] == [False, True]


def test_clocks_may_differ_about_a_loss() -> None:
    streams = subscription(clock_error_s=0.5)
    streams.opened(stream("A", 98.0))
    streams.closed(Closed(100.0, "s", "A"))
    between = [(90.0, 97.4), (90.0, 97.5), (100.5, 110.0), (100.6, 110.0)]
    assert [streams.may_have_lost(*times) for times in between] == [False, True, True, False]


def test_a_pull_that_ended_without_its_answer_was_lost() -> None:
    pulls = subscription(Mode.PULL)
    for name, t, lost in (("b1", 1.0, False), ("b2", 10.0, True)):
        pulls.opened(pull(name, t))
        pulls.closed(Closed(t + 5.0, "s", name, lost=lost))
    assert (pulls.losses.count, pulls.lost_until_t) == (1, 15.0 + 60.0 + 1.0)
    assert [pulls.may_have_lost(t, t) for t in (3.0, 9.9, 10.0, 15.0, 15.1)] == [False, False, True, True, False]


def test_a_pull_that_was_answered_lost_nothing() -> None:
    pulls = subscription(Mode.PULL)
    pulls.opened(pull("b1", 1.0))
    pulls.session("b1", 2.0)
    pulls.closed(Closed(3.0, "s", "b1", lost=True))
    assert (pulls.losses.count, pulls.lost_until_t) == (0, LONG_AGO)


def test_a_push_request_that_ends_is_no_loss() -> None:
    requests = subscription(Mode.PUSH)
    requests.opened(pull("r1", 1.0))
    requests.closed(Closed(3.0, "s", "r1", lost=True))
    assert requests.losses.count == 0


def test_of_too_many_losses_the_oldest_cover_what_is_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses_module, "LOSSES_KEPT", 2)
    pulls = subscription(Mode.PULL)
    for t in (10.0, 20.0, 30.0, 40.0):
        pulls.opened(pull(f"b{t}", t))
        pulls.closed(Closed(t + 1.0, "s", f"b{t}", lost=True))
    assert (pulls.losses.count, len(pulls.losses._kept)) == (4, 2)
    assert [pulls.may_have_lost(t, t) for t in (9.0, 15.0, 25.0, 35.0, 40.5)] == [False, True, True, False, True]


def test_for_how_long_a_loss_may_still_show() -> None:
    streams, pulls = subscription(), subscription(Mode.PULL)
    assert [streams.loss_may_show(10.0, now) for now in (14.0, 14.1)] == [True, False]
    pulls.opened(pull("b1", 5.0))
    pulls.opened(pull("b2", 20.0))
    assert [pulls.loss_may_show(t, 1000.0) for t in (4.9, 5.0)] == [False, True]
    pulls.session("b1", 30.0)
    assert [pulls.loss_may_show(t, 1000.0) for t in (5.0, 20.0)] == [False, True]
    pulls.closed(Closed(40.0, "s", "b2"))
    assert not pulls.loss_may_show(20.0, 1000.0)


def test_a_hole_in_the_record_loses_what_was_open() -> None:
    streams = subscription()
    streams.opened(stream("A", 10.0))
    streams.close_all(50.0)
    assert (streams.holed, streams.complete, streams.losses.count) == (True, False, 1)
    assert streams.session("A", 51.0).unseen


# --- who waits ---------------------------------------------------------------------------------------------------------------


def test_a_pull_waits_until_it_is_answered_or_over() -> None:
    pulls = subscription(Mode.PULL)
    assert not waits(pulls)
    pulls.opened(pull("b1", 1.0))
    pulls.opened(pull("b2", 2.0))
    pulls.session("b1", 5.0)
    assert waits(pulls)
    pulls.closed(Closed(8.0, "s", "b2"))
    assert not waits(pulls)
    pulls.session("b1", 9.0)  # more of the same answer
    pulls.closed(Closed(10.0, "s", "b1"))
    assert not waits(pulls)
    pulls.opened(pull("b3", 20.0))
    assert pulls.waiting.reaches(1.0, 10.0) == 23.0


def test_streams_wait_while_one_is_open() -> None:
    streams = subscription()
    streams.opened(stream("A", 1.0))
    streams.opened(stream("B", 2.0))
    streams.closed(Closed(5.0, "s", "A"))
    assert waits(streams)
    streams.closed(Closed(8.0, "s", "B"))
    assert not waits(streams)
    streams.opened(stream("A", 20.0))
    assert streams.waiting.reaches(1.0, 10.0) == 23.0


def test_streams_whose_flow_control_is_used_up_do_not_wait() -> None:
    streams = subscription()
    streams.opened(stream("A", 1.0, limit=1))
    flow = streams.session("A", 1.0).flow
    assert flow is not None
    flow.take(7, 100.0, 70.0)
    streams.flow_changed(5.0)
    assert (waits(streams), streams.used_up_until_t("A")) == (False, 70.0)
    flow.release(7, 20.0)
    streams.flow_changed(9.0)
    assert not waits(streams)  # until the acknowledgement is certainly applied
    streams.flow_changed(30.0)
    assert waits(streams)
    assert streams.waiting.reaches(20.0, 100.0) == 120.0


def test_one_stream_with_room_is_enough_for_those_that_wait() -> None:
    streams = subscription()
    streams.opened(stream("A", 1.0, "client", limit=1))
    streams.opened(stream("B", 1.0, "client"))
    flow = streams.session("A", 1.0).flow
    assert flow is not None
    flow.take(7, 100.0, 70.0)
    streams.flow_changed(5.0)
    assert (waits(streams), streams.used_up_until_t("client")) == (True, LONG_AGO)
    streams.closed(Closed(8.0, "s", "B"))
    assert (waits(streams), streams.used_up_until_t("client")) == (False, 70.0)


@pytest.mark.parametrize("limit", [None, 0, -1])
def test_no_limit_is_no_flow_control(limit: int | None) -> None:
    streams = subscription()
    streams.opened(stream("A", 1.0, limit=limit))
    assert streams.session("A", 1.0).flow is None


# --- who races ---------------------------------------------------------------------------------------------------------------


def test_streams_of_one_subscriber_race() -> None:
    streams = subscription()
    streams.opened(stream("A1", 1.0, "a"))
    assert (streams.racing, streams.race_s(streams.session("A1", 1.0))) == (False, 0.0)
    streams.opened(stream("B", 1.0, "b"))
    racing = [streams.racing]
    streams.opened(stream("A2", 1.0, "a"))
    assert [*racing, streams.racing] == [False, True]
    assert [streams.race_s(streams.session(name, 2.0)) for name in ("A1", "A2", "B")] == [1.0, 1.0, 0.0]
    streams.closed(Closed(3.0, "s", "A1"))
    assert streams.race_s(streams.session("A2", 4.0)) == 0.0


def test_recorders_whose_clocks_differ_race() -> None:
    streams, pulls = subscription(clock_error_s=0.3), subscription(Mode.PULL, clock_error_s=0.3)
    streams.opened(stream("A1", 1.0, "a"))
    pulls.opened(pull("b", 1.0))
    assert (streams.racing, pulls.racing) == (True, True)
    assert (streams.race_s(streams.session("A1", 1.0)), pulls.race_s(pulls.session("b", 1.0))) == (0.3, 0.3)
    assert not streams.is_alone(streams.session("A1", 1.0))
    streams.opened(stream("A2", 1.0, "a"))
    assert streams.race_s(streams.session("A1", 1.0)) == 1.3


# --- control operations ------------------------------------------------------------------------------------------------------


def test_of_several_operations_the_one_that_settles_last_counts() -> None:
    streams = subscription()
    streams.settle(50.0, "a seek")
    streams.settle(20.0, "a change of the filter")
    assert (streams.settles_until_t, streams.settling) == (50.0, "a seek")
    streams.settle(60.0, "a hole")
    assert (streams.settles_until_t, streams.settling) == (60.0, "a hole")
