"""Sessions of a subscription, and what one key remembers of each."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf

import pytest

from prober.core import subscription as subscription_module
from prober.core.events import Closed, Opened
from prober.core.rules import Mode, Rules
from prober.core.sessions import ANCIENT, SPANS_KEPT, TRACKS_KEPT, Held, Session, Span, Track, take_over
from prober.core.subscription import Subscription
from tests.unit.core.cases import PULL, Case, case


@pytest.mark.parametrize(
    "one",
    [
        case("the name of a session is used again: the old one is over", "P1,2 A<1@1 open A of client A@2 A<1@2.5 B<2@9", "V:AFFINITY_SPLIT"),
        case("what the old one held is released", "P1,2,3 A<1,2@1 open A of client C@2 A<1@2.5", "I:AFFINITY_SPLIT"),
        case("used again by another subscriber: a move", "P1,2,3 A<1@1 A ack 1@1.1 open A of client C@2 A<2@20", "N:AFFINITY_MOVE"),
        case("nothing on the new one was sent before it opened", "P1,2,3,4 A<1,2,3@1 A ack 1,2,3@1.4 B<1@20 B ack 1@20.1 open A of client A@20.2 A<4@20.3", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT"),
        case("the old one is still what came before", "P1,2,3 A<1,2@1 open A of client A@2 A<3@2.5"),
        case("pull: the second response of a name is another batch", "P1,2,3 pull b@0.9 b<1,2@1 b ack 1,2@1.1 pull b@20 b<1,2,3@20.1", mode=PULL),
        case("a session closed twice", "P1,2 A<1@1 A ack 1@1.1 close A@1.2 close A@1.3 B<2@30"),
        case("a session closed that never opened", "close Z@0.5 P1,2 A<1,2@1"),
        case("answers on an unknown session", "P1,2 A<1@1 Z ack 1@1.1 Z nack 2@1.2 Z ackOK 1@1.3 Z modack 1 10s@1.4 A<2@2"),
        case("answers to an unknown message", "P1,2 A<1@1 A ack 9@1.1 A modack 9 10s@1.2 A ackOK 9@1.3 dlq m9@1.4 A<2@2"),
        case("a refusal of an unknown message may have released everything", "P1,2 A<1@1 A nack 9@1.1 B<1@8", "I:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_sessions(one: Case) -> None:
    one.check()


def subscription(mode: Mode = Mode.STREAMING) -> Subscription:
    return Subscription("s", 0, Rules(mode=mode))


def test_a_subscriber_is_there_while_a_stream_is_open() -> None:
    streams = subscription()
    assert streams.up_since_t == inf
    streams.opened(Opened(1.0, "s", "A", "a"))
    streams.opened(Opened(2.0, "s", "B", "b"))
    assert (streams.up_since_t, streams.open) == (1.0, 2)
    streams.closed(Closed(3.0, "s", "A"))
    assert (streams.up_since_t, streams.last_closed_t) == (1.0, 3.0)
    streams.closed(Closed(4.0, "s", "B"))
    assert (streams.up_since_t, streams.open) == (inf, 0)
    streams.opened(Opened(5.0, "s", "A", "a"))
    assert streams.up_since_t == 5.0


def test_for_pull_a_subscriber_is_there_from_the_first_pull_on() -> None:
    pulls = subscription(Mode.PULL)
    pulls.opened(Opened(1.0, "s", "b1", "x"))
    pulls.closed(Closed(2.0, "s", "b1"))
    pulls.opened(Opened(3.0, "s", "b2", "x"))
    assert pulls.up_since_t == 1.0


def test_a_stream_belongs_to_its_client_a_response_to_itself() -> None:
    streams, pulls = subscription(), subscription(Mode.PULL)
    for one in (streams, pulls):
        one.opened(Opened(1.0, "s", "A", "client"))
    assert streams.session("A", 2.0).subscriber == "client"
    assert pulls.session("A", 2.0).subscriber == "A"


def test_a_pull_began_when_it_was_sent() -> None:
    pulls = subscription(Mode.PULL)
    pulls.opened(Opened(5.0, "s", "b1", "b1", invoked_t=3.0))
    pulls.opened(Opened(5.0, "s", "b2", "b2", invoked_t=7.0))
    pulls.opened(Opened(5.0, "s", "b3", "b3"))
    assert [pulls.session(name, 6.0).opened_t for name in ("b1", "b2", "b3")] == [3.0, 5.0, 5.0]
    assert pulls.session("unknown", 6.0).opened_t == -inf


def test_when_nothing_else_can_deliver() -> None:
    streams = subscription()
    streams.opened(Opened(1.0, "s", "A", "a"))
    first = streams.session("A", 1.0)
    assert streams.is_alone(first)
    streams.opened(Opened(2.0, "s", "B", "b"))
    assert not streams.is_alone(first)
    streams.closed(Closed(3.0, "s", "A"))
    assert not streams.is_alone(first)
    assert streams.is_alone(streams.session("B", 3.0))
    streams.session("C", 4.0)
    streams.closed(Closed(5.0, "s", "C"))
    assert not streams.is_alone(streams.session("B", 6.0))  # there was one that nobody saw open
    pulls = subscription(Mode.PULL)
    pulls.opened(Opened(1.0, "s", "b", "b"))
    assert not pulls.is_alone(pulls.session("b", 1.0))


def test_after_a_hole_in_the_record_nobody_is_there() -> None:
    streams = subscription()
    streams.opened(Opened(1.0, "s", "A", "a"))
    streams.opened(Opened(1.0, "s", "B", "b"))
    streams.close_all(2.0)
    assert (streams.open, streams.up_since_t) == (0, inf)
    streams.opened(Opened(3.0, "s", "A", "a"))
    assert not streams.is_alone(streams.session("A", 3.0))


def test_unary_sessions_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_module, "SESSIONS_KEPT", 3)
    pulls, streams = subscription(Mode.PULL), subscription()
    for n in range(5):
        pulls.opened(Opened(float(n), "s", f"b{n}", ""))
        streams.opened(Opened(float(n), "s", f"b{n}", ""))
    assert (pulls.open, streams.open) == (3, 5)


def track() -> Track:
    return Track(Session("A", "a", 0.0))


def test_a_run_begins_where_the_next_one_did_not_come() -> None:
    one = track()
    for position, t in ((3, 1.0), (4, 2.0), (5, 3.0)):
        one.record(position, t, position, -inf)
    assert (one.last, one.last_t, one.run_start, one.run_start_t, one.highest) == (5, 3.0, 3, 1.0, 5)
    one.record(2, 4.0, 9, -inf)
    assert (one.last, one.run_start, one.run_start_t, one.highest) == (2, 2, 4.0, 5)
    one.record(ANCIENT, 5.0, 10, -inf)
    assert one.highest == 5


def test_the_past_seen_from_a_moment() -> None:
    one = track()
    for position, t in ((5, 1.0), (1, 2.0), (2, 3.0)):
        one.record(position, t, position, -inf)
    assert one.past(0.5) == (None, -inf, Span(1.0, 1.0, 5, 5))
    assert one.past(1.5) == (Span(1.0, 1.0, 5, 5), 1.0, Span(3.0, 3.0, 2, 2))
    assert one.past(3.0) == (Span(2.0, 2.0, 1, 1), 2.0, Span(3.0, 3.0, 2, 2))
    assert one.past(9.0) == (Span(3.0, 3.0, 2, 2), 3.0, None)


def test_what_was_certainly_followed_is_dropped() -> None:
    one = track()
    for position, t in ((5, 1.0), (1, 2.0), (2, 3.0)):
        one.record(position, t, position, 2.5)
    assert [span.position for span in one.spans] == [1, 2] or [span.position for span in one.spans] == [2]
    assert one.past(9.0).certain == Span(3.0, 3.0, 2, 2)


def test_too_many_deliveries_are_merged_towards_silence() -> None:
    one = track()
    for n in range(1, 3 * SPANS_KEPT):
        one.record(100 - n if n % 2 else 200 + n, float(n), n, -inf)
    assert len(one.spans) <= SPANS_KEPT
    past = one.past(0.5)
    assert past.uncertain is not None
    assert past.uncertain.position == 200 + 3 * SPANS_KEPT - 1 - 1 or past.uncertain.position >= 200
    assert one.past(10_000.0).certain == one.spans[-1]
    straddled = next(span for span in one.spans if span.first_t < span.last_t)
    inside = one.past((straddled.first_t + straddled.last_t) / 2)
    assert (inside.certain, inside.latest_certain_t) == (None, straddled.first_t)


def test_letting_go_leaves_a_doubt_until_the_lease_is_over() -> None:
    one = track()
    one.held = {1: Held(1, 10.0, 20.0), 2: Held(2, 11.0, 30.0), 3: Held(3, 12.0, 25.0)}
    assert (one.held_until_t, one.busy_until_t) == (30.0, 30.0)
    one.let_go(2, inf)
    assert (list(one.held), one.unsettled_until_t, one.busy_until_t) == ([1], 30.0, 30.0)
    one.let_go(0, 15.0)
    assert (one.held, one.held_until_t, one.unsettled_until_t) == ({}, -inf, 30.0)


def test_doubted_holds_are_not_certain() -> None:
    one = track()
    one.held = {1: Held(1, 10.0, 20.0)}
    one.doubt_all()
    assert one.held == {1: Held(1, -inf, 20.0)}


def test_sessions_that_are_over_are_taken_first() -> None:
    tracks = {f"S{n}": Track(Session(f"S{n}", "a", 0.0)) for n in range(4)}
    for name in ("S1", "S2"):
        tracks[name].session.closed_t = 5.0
    tracks["S2"].held = {1: Held(1, 8.0, 10.0)}
    assert [one.session.name for one in take_over(tracks, 6.0)] == ["S1"]
    assert [one.session.name for one in take_over(tracks, 10.0)] == ["S2"]
    assert take_over(tracks, 10.0) == []


def test_otherwise_the_oldest_are_taken() -> None:
    tracks = {f"S{n}": Track(Session(f"S{n}", "a", 0.0)) for n in range(TRACKS_KEPT)}
    assert [one.session.name for one in take_over(tracks, 6.0)] == [f"S{n}" for n in range(TRACKS_KEPT // 2)]
    assert len(tracks) == TRACKS_KEPT // 2
