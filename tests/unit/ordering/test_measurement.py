"""A recorded history is measured stream by stream: what comes in order, early, late or twice, and what cannot be measured at all."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from prober.core.events import Delivered, Ended, Event, PublishInvoked
from prober.ordering.measurement import MeasuredStream, OrderMeasurement, OrderReport, StreamName
from tests.notation import history

WAIT_S = 10.0
IDLE_S = 60.0


def measured(events: str | Iterable[Event], *, start_known: bool = True, streams_max: int = 100) -> OrderReport:
    measurement = OrderMeasurement(WAIT_S, IDLE_S, start_known=start_known, streams_max=streams_max)
    for event in history(events) if isinstance(events, str) else events:
        measurement.observe(event)
    return measurement.report()


def only(report: OrderReport) -> MeasuredStream:
    (stream,) = report.streams
    return stream


def counts(stream: MeasuredStream) -> tuple[int, ...]:
    """In order, early (of these overtook, waiting), late, duplicates, given up."""
    a = stream.arrivals
    return a.in_order, a.early, a.overtook, a.waiting, a.late, a.duplicates, a.gave_up


def delivered(t: float, seq: int, key: str = "k", epoch: str = "e1", subscription: str = "s") -> Delivered:
    return Delivered(t, subscription, key, "A", epoch, seq, f"m{seq}")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("P1,2,3 A<1@1 A<2@2 A<3@3 end @9", (3, 0, 0, 0, 0, 0, 0)),
        ("P1,2,3 A<1@1 A<3@2 A<2@3 end @9", (2, 1, 0, 0, 0, 0, 0)),
        ("P1,2,3 A<1@1 A<3@2 end @9", (1, 1, 0, 1, 0, 0, 0)),
        ("P1,2,3 A<1@1 A<3@2 end @30", (1, 1, 1, 0, 0, 0, 1)),
        ("P1,2,3 A<1@1 A<3@2 A<2@13 end @30", (1, 1, 1, 0, 1, 0, 1)),
        ("P1,2,3 A<1@1 A<1@2 A<2@3 A<1@4 end @9", (2, 0, 0, 0, 0, 2, 0)),
        ("P1,2,3,4 A<1@1 A<3@2 A<4@3 A<2@14 end @30", (1, 2, 1, 0, 1, 0, 1)),
    ],
)
def test_how_messages_came(script: str, expected: tuple[int, ...]) -> None:
    stream = only(measured(script))
    assert counts(stream) == expected
    a = stream.arrivals
    assert a.deliveries == a.in_order + a.early + a.late + a.duplicates
    assert a.deliveries == script.count("A<")


def test_reordering_counts_first_deliveries_and_knows_no_timeouts() -> None:
    reordering = only(measured("P1,2,3,4 A<1@1 A<3@2 A<4@3 A<3@4 A<2@50 A<2@51 end @60")).reordering
    assert (reordering.received, reordering.reordered, reordering.duplicates) == (4, 1, 2)
    assert (reordering.ratio, reordering.extent_max, reordering.late_max_s) == (0.25, 2, 48.0)
    assert reordering.n_reordered == {1: 1, 2: 1}


def test_a_message_published_twice_is_a_duplicate_and_not_reordered() -> None:
    stream = only(measured("P1,2,3 A<1@1 A<2@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<3@1.4 end @9"))
    assert counts(stream) == (3, 0, 0, 0, 0, 2, 0)
    assert stream.reordering.ratio == 0.0


def test_keys_epochs_and_subscriptions_are_streams_of_their_own_and_sessions_are_not() -> None:
    report = measured([delivered(1, 1), delivered(2, 1, key="l"), delivered(3, 1, epoch="e2"), delivered(4, 1, subscription="u")])
    assert {each.name for each in report.streams} == {
        StreamName("s", "k", "e1"), StreamName("s", "l", "e1"), StreamName("s", "k", "e2"), StreamName("u", "k", "e1"),
    }  # fmt: skip
    assert only(measured("P1,2 A<1@1 B<2@2 end @9")).arrivals.in_order == 2


def test_what_has_no_group_or_number_is_counted_and_not_verified() -> None:
    report = measured([delivered(1, 1), delivered(2, 5, key=""), delivered(3, 0), delivered(4, -7), delivered(5, 2)])
    assert (report.without_key, report.without_number) == (1, 2)
    assert counts(only(report)) == (2, 0, 0, 0, 0, 0, 0)


def test_a_number_that_was_never_published_does_not_make_the_others_late() -> None:
    report = measured("P1,2,3 A<1@1 A<q7(9000)@2 A<2@3 A<3@4 end @9")
    assert report.not_published == 1
    assert counts(only(report)) == (3, 0, 0, 0, 0, 0, 0)


def test_a_stream_begins_where_its_publishes_begin() -> None:
    excerpt: list[Event] = [
        PublishInvoked(0.0, "k", "e1", 5),
        delivered(1, 4),
        PublishInvoked(1.5, "k", "e1", 6),
        delivered(2, 5),
        delivered(3, 6),
    ]
    stream = only(measured(excerpt))
    assert (stream.arrivals.in_order, stream.arrivals.before_start, stream.arrivals.early) == (2, 1, 0)
    assert stream.reordering.received == 2


def test_a_stream_begins_with_1_where_no_publish_was_recorded() -> None:
    assert counts(only(measured([delivered(1, 2), delivered(2, 1)]))) == (1, 1, 0, 0, 0, 0, 0)


def test_a_stream_begins_with_whatever_comes_first_where_the_subscription_may_be_younger() -> None:
    stream = only(measured("P1,2,3,4 A<3@1 A<4@2 end @9", start_known=False))
    assert counts(stream) == (2, 0, 0, 0, 0, 0, 0)
    assert stream.reordering.missing == 0


def test_an_idle_stream_is_forgotten_and_begins_again() -> None:
    stream = only(measured([delivered(1, 1), delivered(2, 2), delivered(70, 3), Ended(75, True)]))
    assert stream.arrivals.forgotten == 1
    assert counts(stream) == (2, 1, 0, 1, 0, 0, 0)
    assert stream.reordering.ratio == 0.0


def test_no_more_streams_are_followed_than_there_is_room_for() -> None:
    events = [delivered(n, seq, key=f"k{n}") for n in range(5) for seq in (1, 2)]
    report = measured(events, streams_max=3)
    assert [each.name.key for each in report.streams] == ["k0", "k1", "k2"]
    assert report.not_followed == 4
    assert all(each.arrivals.forgotten == 0 for each in report.streams)


def test_the_stream_with_the_most_waits_gives_them_up_when_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prober.ordering.measurement.WAITING_MAX", 3)
    events = [delivered(1, seq, key=key) for key, seq in (("a", 3), ("b", 3), ("b", 5), ("b", 7))]
    arrivals = {each.name.key: each.arrivals for each in measured(events).streams}
    assert (arrivals["a"].gave_up_early, arrivals["a"].waiting) == (0, 1)
    assert (arrivals["b"].gave_up_early, arrivals["b"].waiting, arrivals["b"].released) == (4, 0, 3)


def test_time_never_goes_back() -> None:
    stream = only(measured([delivered(5, 1), delivered(4, 3), delivered(14.9, 2)]))
    assert counts(stream) == (2, 1, 0, 0, 0, 0, 0)


def test_timeouts_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="timeouts must be positive"):
        OrderMeasurement(0.0, IDLE_S)


def test_where_publishes_could_not_be_kept_the_beginning_is_unknown() -> None:
    published: list[Event] = [PublishInvoked(0.0, key, "e1", 1) for key in ("a", "b", "k")]
    assert only(measured([*published, delivered(1, 7)], streams_max=2)).arrivals.in_order == 1


def test_the_worst_stream_comes_first() -> None:
    orders = {"fine": (1, 2, 3, 4), "lost": (1, 2, 4, 5), "bad": (1, 3, 2, 4), "worse": (4, 3, 2, 1)}
    events = [delivered(t, seq, key=key) for key, numbers in orders.items() for t, seq in enumerate(numbers)]
    events = [*sorted(events, key=lambda event: event.t), delivered(30, 5, key="fine")]
    assert [each.name.key for each in measured(events).streams] == ["worse", "bad", "lost", "fine"]
