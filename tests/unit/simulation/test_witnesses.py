"""What can be known from what is allowed, by what a run has on record."""

from __future__ import annotations

import pytest

from prober.core.events import Acked, Closed, Delivered, Event, LeaseModified, Opened, Published, Sought
from prober.core.rules import Mode, Rules
from prober.embedded.faults import Injection
from prober.simulation.witnesses import Witnesses

HERE, KEY = "projects/p/subscriptions/s", "k"


def got(t: float, session: str, seq: int) -> Delivered:
    return Delivered(t, HERE, KEY, session, "e", seq, f"m{seq}")


def acked(t: float, session: str, seq: int) -> Acked:
    return Acked(t, HERE, KEY, session, f"m{seq}")


def saw(
    fault: str,
    message_id: str,
    *events: Event,
    at: float = 1.5,
    where: str = HERE,
    mode: Mode = Mode.STREAMING,
    delay_s: float = 2.0,
) -> bool:
    """Whether the injection into a message was observed; deliveries of the service take `delay_s` at most, leases 10 s."""
    witnesses = Witnesses(
        {HERE: Rules(delivery_delay_max_s=delay_s, ack_deadline_s=10.0, close_detection_max_s=3.0, mode=mode)}, "e"
    )
    for event in (Opened(0.0, HERE, "A", "a"), Opened(0.0, HERE, "B", "b"), *events):
        witnesses.event(event)
    return witnesses.saw(Injection(at, fault, 1, where, KEY, message_id), at)


@pytest.mark.parametrize("fault", ["never_redeliver", "resume_past_unacked"])
def test_what_was_acknowledged_need_not_be_redelivered(fault: str) -> None:
    assert saw(fault, "m1", got(1, "A", 1), acked(1.1, "A", 2))
    assert not saw(fault, "m1", got(1, "A", 1), acked(1.1, "A", 1))
    assert not saw(fault, "m1", got(1, "A", 1), acked(9.0, "A", 1))  # it was under way, or was redelivered nevertheless


@pytest.mark.parametrize("fault", ["split_holder", "overlap_pull", "overlap_push"])
def test_a_second_holder_shows_beside_the_first(fault: str) -> None:
    assert saw(fault, "m2", got(1, "A", 1), got(2, "B", 2))
    assert not saw(fault, "m2", got(1, "A", 1), got(2, "A", 2))
    assert not saw(fault, "m2", got(1, "A", 1), acked(1.9, "A", 1), got(2, "B", 2))
    assert not saw(fault, "m2", got(2, "B", 2))
    assert not saw(fault, "m2", got(1, "A", 1), at=2.5)


def test_what_may_have_expired_is_not_held() -> None:
    assert saw("split_holder", "m2", got(1, "A", 1), got(8.9, "B", 2))
    assert not saw("split_holder", "m2", got(1, "A", 1), got(9.1, "B", 2))
    assert not saw("split_holder", "m2", got(1, "A", 1), LeaseModified(1.2, HERE, KEY, "A", "m1", 1), got(2, "B", 2))


@pytest.mark.parametrize("session", ["A", "B"])
def test_a_stream_that_ends_soon_after_may_have_been_dead(session: str) -> None:
    assert not saw("split_holder", "m2", got(1, "A", 1), got(2, "B", 2), Closed(4.9, HERE, session))
    assert saw("split_holder", "m2", got(1, "A", 1), got(2, "B", 2), Closed(5.1, HERE, session))
    assert saw("overlap_pull", "m2", got(1, "A", 1), got(2, "B", 2), Closed(2.1, HERE, session), mode=Mode.PULL)


def test_who_goes_on_with_what_came_before_has_redelivered_it_all() -> None:
    before = (got(1, "A", 1), got(1, "A", 2), got(1, "A", 3))
    assert not saw("redeliver_single", "m1", *before, got(2, "A", 1), got(9, "A", 2), got(9, "A", 3), got(9, "A", 4))
    assert saw("redeliver_single", "m1", *before, got(2, "A", 1), got(2, "A", 4), got(9, "A", 2), got(9, "A", 3))
    assert saw("redeliver_single", "m1", *before, got(2, "A", 1), got(9, "A", 3), got(9, "A", 2))
    assert saw("redeliver_single", "m1", *before, got(2, "A", 1), got(2, "A", 2))
    assert not saw("redeliver_single", "m3", *before, got(2, "A", 3))


@pytest.mark.parametrize("fault", ["redeliver_single", "redeliver_unacked_only"])
def test_what_was_acknowledged_may_have_gone_with_a_stream_that_broke(fault: str) -> None:
    before = (got(1, "A", 1), got(1, "A", 2), got(1, "A", 3), acked(1.1, "A", 2))
    skips = (*before, got(2, "A", 1), got(3, "A", 3))
    assert saw(fault, "m1", *skips)
    assert not saw(fault, "m1", *skips[:-1], Closed(2.5, HERE, "B"), skips[-1])
    assert saw(fault, "m1", *skips, Closed(3.5, HERE, "B"))
    assert saw(fault, "m1", Closed(1.4, HERE, "B"), *skips)
    assert not saw(fault, "m1", *before, acked(1.2, "A", 3), got(2, "A", 1), Closed(2.5, HERE, "A"), got(3, "B", 4))
    assert saw(fault, "m1", *before, got(2, "A", 1), Closed(2.5, HERE, "A"), got(3, "B", 4))  # 3 was not acknowledged
    assert saw(fault, "m1", *skips[:-1], Closed(2.5, HERE, "B"), skips[-1], mode=Mode.PULL)
    assert not saw(fault, "m1", *skips[:-1], Closed(2.5, HERE, "B", lost=True), skips[-1], mode=Mode.PULL)


@pytest.mark.parametrize("fault", ["redeliver_single", "redeliver_unacked_only", "stall_run"])
def test_what_came_elsewhere_may_have_been_sent_after_what_is_redelivered(fault: str) -> None:
    slow = (got(1, "A", 1), got(1, "A", 2), acked(1.1, "A", 2), got(2, "B", 1), acked(2.1, "B", 1))  # 1 on B, then 1 and 2 on A
    assert not saw(fault, "m1", *slow)
    assert saw(fault, "m1", *slow, at=1.5, delay_s=0.5)
    assert saw(fault, "m1", *slow[:-2], Opened(1.5, HERE, "C", "c"), got(2, "C", 1), acked(2.1, "C", 1))
    assert saw(fault, "m1", *slow[:-2], got(2, "A", 1), acked(2.1, "A", 1))


@pytest.mark.parametrize("fault", ["redeliver_single", "redeliver_unacked_only"])
def test_what_was_under_way_when_a_redelivery_began_is_before_it(fault: str) -> None:
    begin = (got(1, "A", 1), got(1, "A", 2), got(1.6, "A", 3), got(1.7, "A", 1))
    assert not saw(fault, "m1", *begin, got(1.7, "A", 2), got(1.7, "A", 3))
    assert saw(fault, "m1", *begin, got(1.7, "A", 3), got(1.7, "A", 2))
    assert saw(fault, "m1", *begin)


def test_a_key_that_fell_silent_is_missed_by_what_is_pending() -> None:
    done = (got(1, "A", 1), got(1, "A", 2), acked(1.1, "A", 2), got(2, "B", 1), acked(2.1, "B", 1))
    assert not saw("stall_run", "m1", *done)
    assert saw("stall_run", "m1", *done[:-1])
    assert saw("stall_run", "m1", *done, Published(0.5, KEY, "e", 3, "m3"))
    assert not saw("stall_run", "m1", *done, Published(0.5, KEY, "e", 2, "m2"))


def stalled(*events: Event, mode: Mode = Mode.STREAMING) -> bool:
    return saw("stall_all", "", Published(0.5, KEY, "e", 1, "m1"), *events, where="", mode=mode)


def test_who_received_everything_misses_nothing_when_all_falls_silent() -> None:
    done = (got(1, "A", 1), acked(1.1, "A", 1))
    assert not stalled(*done)
    assert stalled(*done[:-1])
    assert stalled()
    assert stalled(*done, Published(1.5, KEY, "e", 2, "m2"))
    assert stalled(*done, Sought(2.0, HERE, 1.0))


def test_what_was_never_pushed_may_be_due_to_the_endpoint() -> None:
    assert not stalled(mode=Mode.PUSH)
    assert stalled(got(1, "A", 1), mode=Mode.PUSH)


@pytest.mark.parametrize("fault", ["forget_holds", "lease_short"])
def test_what_is_redelivered_shows_while_it_is_held(fault: str) -> None:
    assert saw(fault, "m1", got(1, "A", 1), got(2, "B", 1))
    assert saw(fault, "m1", got(1, "A", 1), got(2, "A", 1))
    assert not saw(fault, "m1", got(1, "A", 1), acked(1.4, "A", 1), got(2, "B", 1))
    assert not saw(fault, "m1", got(1, "A", 1), got(9.1, "B", 1))
    assert not saw(fault, "m1", got(1, "A", 1))


def test_what_is_left_of_an_earlier_run_is_nobodys() -> None:
    assert not saw("hole", "m1", Delivered(2.0, HERE, KEY, "A", "earlier", 1, "m1"))


def test_others_show_whenever_they_strike_and_so_does_what_is_no_message_of_a_subscription() -> None:
    assert saw("hole", "m1")
    assert saw("never_redeliver", "m1", acked(1, "A", 1), where="projects/p/topics/t")
