"""The rows of a run's messages, from its events. Times are microseconds of a clock that began in 1970."""

from __future__ import annotations

from typing import Any

import pytest

from prober.core.events import (
    Acked,
    DeadLettered,
    Delivered,
    Event,
    FilterChanged,
    LeaseModified,
    Nacked,
    Opened,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
    Sought,
)
from prober.core.rules import Rules
from prober.sinks.history.messages import MessageRows
from prober.sinks.history.schema import MESSAGES

RUN, S, T, K = "ordering-1", "s", "t", "k"
END_US = 60_000_000


def rows(*events: Event, subscriptions: tuple[str, ...] = (S,), ended_us: int | None = END_US) -> list[dict[str, Any]]:
    run = MessageRows(RUN, dict.fromkeys(subscriptions, Rules()), 0.0)
    for event in events:
        run.add(event)
    return list(run.rows(ended_us))


def row(*events: Event, ended_us: int | None = END_US) -> dict[str, Any]:
    (only,) = rows(*events, ended_us=ended_us)
    return only


def published(at: float = 1.0, seq: int = 1, message_id: str = "m1") -> list[Event]:
    return [PublishInvoked(at, K, RUN, seq, size=64), Published(at + 0.5, K, RUN, seq, message_id)]


def delivered(at: float, session: str = "A", seq: int = 1, message_id: str = "m1", epoch: str = RUN) -> Delivered:
    return Delivered(at, S, K, session, epoch, seq, message_id)


def test_the_usual_life_of_a_message() -> None:
    run = MessageRows("ordering-1", {S: Rules()}, 1000.0)
    run.add(Opened(0.0, S, "A", "a"))
    run.add(PublishInvoked(1.0, K, RUN, 1, intended_t=0.75, size=64))
    run.add(Published(1.5, K, RUN, 1, "m1"), 0.25)
    run.add(delivered(2.0), 0.125)
    run.add(Acked(2.5, S, K, "A", "m1"))
    (only,) = run.rows(1_060_000_000)
    assert only == {
        "subscription": S,
        "key": K,
        "epoch": RUN,
        "seq": 1,
        "message_id": "m1",
        "own": True,
        "bytes": 64,
        "attempts": 1,
        "confirmed": 1,
        "rejected": 0,
        "unknown": 0,
        "deliveries": 1,
        "nacks": 0,
        "subscriber_changes": 0,
        "intended_at": 1_000_750_000,
        "published_at": 1_001_000_000,
        "confirmed_at": 1_001_500_000,
        "received_at": 1_002_000_000,
        "acked_at": 1_002_500_000,
        "waited_until": 1_002_500_000,
        "confirmed_lagged_us": 250_000,
        "received_lagged_us": 125_000,
        "outcome": "acked",
        "redeliveries": None,
    }
    shared = {"run_id", "process", "target", "environment", "region", "probe", "vantage", "topic"}
    assert {*only, *shared} == set(MESSAGES.column_names)


FAILED = PublishFailed(1.2, K, RUN, 1)
UNKNOWN = PublishUnknown(1.2, K, RUN, 1)
OUTCOMES: list[tuple[str, list[Event], int | None]] = [
    ("publish", [PublishInvoked(1.0, K, RUN, 1)], None),
    ("publish_failed", [PublishInvoked(1.0, K, RUN, 1), FAILED], None),
    ("publish_unknown", [PublishInvoked(1.0, K, RUN, 1), UNKNOWN], None),
    ("published", published(), END_US),
    ("delivered", [*published(), delivered(2.0), Nacked(2.1, S, K, "A", "m1")], END_US),
    ("delivered", [PublishInvoked(1.0, K, RUN, 1), UNKNOWN, delivered(2.0)], END_US),
    ("acked", [*published(), delivered(2.0), Acked(3.0, S, K, "A", "m1"), Acked(4.0, S, K, "A", "m1")], 3_000_000),
    ("dead_lettered", [*published(), delivered(2.0), DeadLettered(5.0, S, K, "m1")], 5_000_000),
    ("sought", [*published(), Sought(2.0, S, 1.0), delivered(2.5), Acked(3.0, S, K, "A", "m1")], 2_000_000),
    ("filter_changed", [*published(), FilterChanged(2.0, S, 1.0)], 2_000_000),
    ("published", [Sought(0.5, S, 1.0), *published(), Sought(2.0, "another", 1.0)], END_US),
]


@pytest.mark.parametrize(("outcome", "events", "waited_until"), OUTCOMES)
def test_the_outcome_says_what_ended_the_wait(outcome: str, events: list[Event], waited_until: int | None) -> None:
    found = row(*events)
    assert (found["outcome"], found["waited_until"]) == (outcome, waited_until)


def test_a_wait_that_goes_on_when_the_run_is_cut_short_has_no_end() -> None:
    assert row(*published(), ended_us=None)["waited_until"] is None
    assert row(*published(), delivered(2.0), Acked(3.0, S, K, "A", "m1"), ended_us=None)["waited_until"] == 3_000_000


def test_publishes_are_counted_by_how_they_ended() -> None:
    again: list[Event] = [
        PublishInvoked(2.0, K, RUN, 1, generation=1, intended_t=0.5),
        Published(2.5, K, RUN, 1, "b", generation=1),
    ]
    more: list[Event] = [PublishInvoked(3.0, K, RUN, 1, generation=2), PublishFailed(3.1, K, RUN, 1, generation=2)]
    found = row(PublishInvoked(1.0, K, RUN, 1), UNKNOWN, *again, *more)
    assert [found[name] for name in ("attempts", "confirmed", "rejected", "unknown")] == [3, 1, 1, 1]
    assert (found["intended_at"], found["published_at"], found["confirmed_at"]) == (500_000, 1_000_000, 2_500_000)


def test_the_wait_is_that_of_the_confirmed_record() -> None:
    again: list[Event] = [PublishInvoked(2.0, K, RUN, 1, generation=1), Published(2.5, K, RUN, 1, "b", generation=1)]
    copies: list[Event] = [
        delivered(3.0, message_id="a"),
        Acked(3.1, S, K, "A", "a"),
        delivered(4.0, message_id="b"),
        Nacked(4.1, S, K, "A", "b"),
    ]
    found = row(PublishInvoked(1.0, K, RUN, 1), UNKNOWN, *again, *copies)
    assert (found["message_id"], found["acked_at"], found["nacks"], found["deliveries"]) == ("b", None, 1, 2)
    assert found["redeliveries"] == [{"received_at": 4_000_000, "due_at": None, "lagged_us": None}]


def test_a_message_waits_for_all_its_confirmed_records() -> None:
    twice: list[Event] = [
        *published(message_id="a"),
        PublishInvoked(1.1, K, RUN, 1, generation=1),
        Published(1.6, K, RUN, 1, "b", generation=1),
    ]
    first: list[Event] = [delivered(2.0, message_id="a"), Acked(2.1, S, K, "A", "a")]
    found = row(*twice, *first, delivered(3.0, message_id="b"), Acked(3.1, S, K, "A", "b"))
    assert (found["acked_at"], found["waited_until"], found["outcome"]) == (2_100_000, 3_100_000, "acked")
    found = row(*twice, *first)
    assert (found["acked_at"], found["waited_until"], found["outcome"]) == (2_100_000, END_US, "delivered")


def test_a_message_belongs_to_every_subscription_of_the_run() -> None:
    found = rows(*published(), delivered(2.0), subscriptions=(S, T))
    assert [(one["subscription"], one["outcome"]) for one in found] == [(S, "delivered"), (T, "published")]


def test_what_the_filter_of_a_subscription_excludes_belongs_to_it_only_once_delivered() -> None:
    run = MessageRows(RUN, {T: Rules(filter_every=2)}, 0.0)
    leaked = Delivered(4.0, T, K, "A", RUN, 3, "m3")
    for event in (*published(), *published(2.0, 2, "m2"), *published(3.0, 3, "m3"), leaked):
        run.add(event)
    assert [(one["seq"], one["attempts"], one["outcome"]) for one in run.rows(END_US)] == [(2, 1, "published"), (3, 0, "delivered")]


def test_two_messages_with_one_id_are_two_messages() -> None:
    found = rows(*published(1.0, 1, "x"), *published(2.0, 2, "x"), delivered(3.0, message_id="x"))
    assert [(one["seq"], one["confirmed"], one["deliveries"]) for one in found] == [(1, 1, 1), (2, 1, 0)]


def test_messages_of_other_runs_are_not_its_own() -> None:
    found = row(Delivered(2.0, S, K, "A", "ordering-0", 7, "old", publish_time=1_500_000_999))
    assert (found["own"], found["epoch"], found["seq"], found["attempts"]) == (False, "ordering-0", 7, 0)
    assert (found["intended_at"], found["published_at"], found["received_at"]) == (2_000_000, 1_500_000, 2_000_000)


def test_in_a_stream_that_nobody_recorded_the_id_names_the_message() -> None:
    def seen(at: float, message_id: str) -> Delivered:
        return Delivered(at, S, K, "A", "orders", 3, message_id, publish_time=1_000_000_000, data_size=10)

    found = rows(seen(2.0, "x"), Acked(2.1, S, K, "A", "x"), seen(3.0, "x"), seen(4.0, "y"))
    assert [(one["epoch"], one["seq"], one["message_id"], one["bytes"]) for one in found] == [
        (None, None, "x", 10),
        (None, None, "y", 10),
    ]
    assert [(one["deliveries"], one["outcome"], one["published_at"]) for one in found] == [
        (2, "acked", 1_000_000),
        (1, "delivered", 1_000_000),
    ]


def test_what_made_a_redelivery_due() -> None:
    found = row(
        *published(),
        delivered(2.0),
        Nacked(3.0, S, K, "A", "m1"),
        delivered(4.0),
        LeaseModified(5.0, S, K, "A", "m1", 0.5),
        delivered(6.0),
        LeaseModified(6.5, S, K, "A", "m1", 60.0),
        delivered(7.0),  # before the lease ends
        Nacked(8.0, S, K, "A", "m1"),
        Acked(8.5, S, K, "A", "m1"),
        delivered(9.0),
        delivered(10.0),
    )
    due = [(one["received_at"], one["due_at"]) for one in found["redeliveries"]]
    assert due == [(4_000_000, 3_000_000), (6_000_000, 5_500_000), (7_000_000, None), (9_000_000, None), (10_000_000, None)]
    assert (found["deliveries"], found["nacks"]) == (6, 2)


def test_a_key_that_moves_to_another_subscriber() -> None:
    opened: list[Event] = [Opened(0.0, S, "A", "a"), Opened(0.0, S, "B", "a"), Opened(0.0, S, "C", "c")]
    found = rows(
        *opened,
        *published(1.0, 1, "m1"),
        *published(2.0, 2, "m2"),
        delivered(3.0, "A", 1, "m1"),
        delivered(4.0, "B", 2, "m2"),  # a stream of the same subscriber
        delivered(5.0, "C", 1, "m1"),
        delivered(6.0, "D", 2, "m2"),  # a session is its own subscriber unless it is known whose it is
        delivered(7.0, "D", 1, "m1"),
    )
    assert [one["subscriber_changes"] for one in found] == [1, 1]


def test_the_size_of_a_run_is_that_of_its_rows_and_redeliveries() -> None:
    run = MessageRows(RUN, dict.fromkeys((S, T), Rules()), 0.0)
    sizes = []
    for event in (*published(), delivered(2.0), delivered(3.0), Delivered(4.0, S, K, "A", "others", 1, "o")):
        run.add(event)
        sizes.append(run.size)
    assert sizes == [2, 2, 2, 3, 4]
    assert len(list(run.rows(END_US))) == 3
