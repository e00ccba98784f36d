"""Sessions of a subscription, and what one key remembers of each."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import pytest

from prober.core import subscription as subscription_module
from prober.core.events import Closed, Delivered, Opened
from prober.core.rules import Mode, Rules
from prober.core.sessions import (
    OWNERS_KEPT,
    PASTS_KEPT,
    SPANS_PER_DELAY,
    TRACKS_KEPT,
    Arrival,
    Held,
    Session,
    Span,
    Track,
    Tracks,
)
from prober.core.subscription import Subscription
from tests.unit.core.cases import PULL, Case, case


@pytest.mark.parametrize(
    "one",
    [
        case("the name of a session is used again: the old one is over", "P1,2 A<1@1 open A of client A@2 A<1@2.5 B<2@9", "V:AFFINITY_SPLIT"),
        case("what the old one held is released", "P1,2,3 A<1,2@1 open A of client C@2 A<1@2.5", "I:AFFINITY_SPLIT"),
        case("used again by another subscriber: a move", "P1,2,3 A<1@1 A ack 1@1.1 open A of client C@2 A<2@20", "N:AFFINITY_MOVE"),
        case("nothing on the new one was sent before it opened", "open A of client A open B of client B P1,2,3,4 A<1,2,3@1 A ack 1,2@1.4 B<1@20 B ack 1@20.1 open A of client A@20.2 A<4@20.3", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT"),
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
    assert streams.presence.since_t(0.0) == inf
    streams.opened(Opened(1.0, "s", "A", "a"))
    streams.opened(Opened(2.0, "s", "B", "b"))
    assert (streams.presence.since_t(0.0), streams.open) == (1.0, 2)
    streams.closed(Closed(3.0, "s", "A"))
    assert (streams.presence.since_t(0.0), streams.last_closed_t) == (1.0, 3.0)
    streams.closed(Closed(4.0, "s", "B"))
    assert (streams.presence.since_t(0.0), streams.open) == (inf, 0)
    streams.opened(Opened(5.0, "s", "A", "a"))
    assert streams.presence.since_t(0.0) == 5.0


def test_for_pull_a_subscriber_is_there_from_the_first_pull_on() -> None:
    pulls = subscription(Mode.PULL)
    pulls.opened(Opened(1.0, "s", "b1", "x"))
    pulls.closed(Closed(2.0, "s", "b1"))
    pulls.opened(Opened(3.0, "s", "b2", "x"))
    assert pulls.presence.since_t(0.0) == 1.0


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
    assert (streams.open, streams.presence.since_t(0.0)) == (0, inf)
    streams.opened(Opened(3.0, "s", "A", "a"))
    assert not streams.is_alone(streams.session("A", 3.0))


def test_unary_sessions_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_module, "SESSIONS_KEPT", 3)
    pulls, streams = subscription(Mode.PULL), subscription()
    for n in range(5):
        pulls.opened(Opened(float(n), "s", f"b{n}", ""))
        streams.opened(Opened(float(n), "s", f"b{n}", ""))
    assert (pulls.open, streams.open) == (3, 5)


def track(opened_t: float = 0.0) -> Track:
    return Track(Session("A", "a", opened_t))


def recorded(one: Track, *deliveries: tuple[int, float], delay_s: float = inf, eps: float = 0.0) -> Track:
    """Deliveries of positions at times, each by the event whose number is ten times the position."""
    for position, t in deliveries:
        one.record(position, t, 10 * position, delay_s, eps)
    return one


def shown(spans: Iterable[Span]) -> list[tuple[float, float, int, int]]:
    return [(span.first_t, span.last_t, span.position, span.number) for span in spans]


def held_until(certainly_t: float, perhaps_t: float) -> Held:
    return (1, 0.0, certainly_t, perhaps_t)


def test_a_run_begins_where_the_next_one_did_not_come() -> None:
    one = recorded(track(), (3, 1.0), (4, 2.0), (5, 3.0))
    assert (one.last, one.last_t, one.last_number, one.run_start, one.run_start_t) == (5, 3.0, 50, 3, 1.0)
    recorded(one, (2, 4.0))
    assert (one.last, one.run_start, one.run_start_t) == (2, 2, 4.0)


def test_what_was_delivered_close_together_is_one_span_of_the_highest() -> None:
    one = recorded(track(), (5, 1.0), (1, 1.1), (7, 1.2), (2, 1.5), delay_s=16.0)
    assert shown(one.past()) == [(1.0, 1.2, 7, 70), (1.5, 1.5, 2, 20)]
    recorded(one, (3, 2.1), (4, 2.2), delay_s=16.0)
    assert shown(one.past()) == [(1.0, 1.5, 7, 70), (2.1, 2.1, 3, 30), (2.2, 2.2, 4, 40)]


def test_what_was_followed_longer_ago_than_the_delay_is_dropped() -> None:
    one = recorded(track(), (9, 1.0), (1, 2.0), (2, 3.0), delay_s=1.0)
    assert [span.position for span in one.past()] == [9, 1, 2]  # 9 may have been sent after 1
    recorded(one, (3, 3.1), delay_s=1.0)
    assert [span.position for span in one.past()] == [1, 2, 3]
    recorded(one, (4, 4.1), delay_s=1.0)
    assert [span.position for span in one.past()] == [2, 3, 4]
    late = recorded(track(), (9, 1.0), (1, 2.0), (2, 3.0), (3, 3.1), delay_s=1.0, eps=0.5)
    assert [span.position for span in late.past()] == [9, 1, 2, 3]


def test_the_past_of_a_track_is_bounded_whatever_comes() -> None:
    one = track()
    for n in range(10_000):
        recorded(one, (n % 7 + 1, n / 100), delay_s=2.0)
        assert len(one.spans) <= 2 * SPANS_PER_DELAY + 2


def test_nothing_was_sent_before_its_session_opened() -> None:
    assert [span.sent_after_t for span in recorded(track(7.0), (1, 8.0), (2, 9.0)).past()] == [7.0, 7.0]


def test_a_distrusted_session_has_no_past_and_holds_nothing() -> None:
    one = recorded(track(), (1, 1.0), (2, 2.0))
    one.hold(2, held_until(60.0, 70.0), 4)
    one.distrust()
    assert (list(one.past()), one.last, one.run_start, one.held) == ([], 0, 0, {})
    recorded(one, (2, 3.0))
    assert (one.run_start, one.run_start_t) == (2, 3.0)


def test_a_lower_position_drops_what_is_held_above_it() -> None:
    one = track()
    for position in (1, 2, 3):
        one.hold(position, held_until(60.0 + position, 70.0 + position), 4)
    one.hold(2, held_until(80.0, 90.0), 4)
    assert list(one.held) == [1, 2]
    assert one.held[2] == held_until(80.0, 90.0)
    assert one.unsettled_until_t == 73.0  # what was dropped may still count, until the last of its leases is over


def test_no_more_than_a_window_is_held_for_certain() -> None:
    one = track()
    for position in (1, 2, 3):
        one.hold(position, held_until(60.0, 70.0 + position), 2)
    assert (list(one.held), one.unsettled_until_t, one.busy_until_t) == ([2, 3], 71.0, 73.0)


def test_the_lowest_held_is_found_past_what_has_run_out() -> None:
    one = track()
    for position, until_t in ((1, 10.0), (2, 30.0), (3, 20.0)):
        one.hold(position, held_until(until_t, until_t + 5.0), 4)
    assert one.lowest_held(5.0, 0) == 1
    assert one.lowest_held(10.0, 0) == 2
    assert one.lowest_held(10.0, 2) == 3  # beyond the window nothing can be told
    assert one.lowest_held(20.0, 2) == 0
    assert (one.held, one.unsettled_until_t) == ({}, 35.0)


def test_a_changed_lease_ends_early_for_certain_and_late_perhaps() -> None:
    one = track()
    one.hold(1, held_until(55.0, 65.0), 4)
    one.shorten(1, 20.0, 5.0)
    assert (one.held[1], one.busy_until_t) == (held_until(20.0, 65.0), 65.0)
    one.shorten(1, 100.0, 5.0)
    assert (one.held[1], one.busy_until_t) == (held_until(20.0, 105.0), 105.0)
    one.shorten(2, 200.0, 5.0)
    assert one.busy_until_t == 105.0  # it does not hold that one


def test_letting_go_settles_what_is_said_of_it_elsewhere() -> None:
    one = track()
    one.hold(1, held_until(55.0, 65.0), 4)
    assert one.let_go(1)
    assert not one.let_go(1)
    assert one.busy_until_t == -inf
    one.unsettle(16.0)
    one.unsettle(9.0)
    assert one.busy_until_t == 16.0


def test_a_doubted_hold_may_last_as_long_as_its_lease() -> None:
    one = track()
    one.hold(1, held_until(55.0, 65.0), 4)
    one.doubt(1)
    one.doubt(1)
    assert (one.held, one.busy_until_t) == ({}, 65.0)


# --- all sessions of a key ---------------------------------------------------------------------------------------------------


def session(name: str, subscriber: str = "", closed_t: float = inf) -> Session:
    one = Session(name, subscriber or name, 0.0)
    one.closed_t = closed_t
    return one


def arrival(one: Track) -> Arrival:
    return Arrival(Delivered(9.0, "s", "k", one.session.name, "e", 1, "m1"), 99, 4.0, one, 0)


def test_streams_that_are_closed_are_folded_away() -> None:
    tracks = Tracks(streaming=True)
    for one in (session("A", closed_t=5.0), session("B", closed_t=6.0), session("C")):
        recorded(tracks.of(one, 1.0), (1, 1.0), (2, 2.0)).hold(2, held_until(55.0, 65.0), 4)
    tracks.fold_closed(5.0)
    assert [one.session.name for one in tracks] == ["B", "C"]
    assert [shown(spans) for spans in tracks.past] == [[(1.0, 1.0, 1, 10), (2.0, 2.0, 2, 20)]]
    assert tracks.unsettled_until_t == 65.0  # its stream may look closed and not be
    assert tracks.find("A") is None


def test_unary_sessions_are_folded_away_when_nothing_of_them_is_held() -> None:
    tracks = Tracks(streaming=False)
    recorded(tracks.of(session("b1"), 1.0), (1, 1.0)).hold(1, held_until(55.0, 65.0), 4)
    recorded(tracks.of(session("b2"), 2.0), (2, 2.0))
    tracks.of(session("b3"), 3.0)
    assert [one.session.name for one in tracks] == ["b1", "b3"]
    tracks.of(session("b4"), 55.0)
    assert [one.session.name for one in tracks] == ["b4"]
    assert [shown(spans) for spans in tracks.past] == [[(2.0, 2.0, 2, 20)], [(1.0, 1.0, 1, 10)]]  # b3 delivered nothing


def test_a_name_that_is_used_again_is_another_session() -> None:
    tracks = Tracks(streaming=True)
    first = recorded(tracks.of(session("A", "old"), 1.0), (1, 1.0))
    second = tracks.of(session("A", "new"), 2.0)
    assert (second is not first, len(tracks), second.last) == (True, 1, 0)
    assert tracks.of(second.session, 3.0) is second


def test_the_oldest_of_too_many_open_streams_is_let_go() -> None:
    tracks = Tracks(streaming=True)
    for n in range(TRACKS_KEPT):
        recorded(tracks.of(session(f"S{n}"), 1.0), (n + 1, 1.0))
    assert (len(tracks), tracks.forgetful) == (TRACKS_KEPT, False)
    tracks.of(session("one more"), 2.0)
    assert (len(tracks), tracks.forgetful, tracks.find("S0")) == (TRACKS_KEPT, True, None)
    assert [span.position for spans in tracks.past for span in spans] == [1]


def test_the_pasts_of_streams_that_are_over_are_bounded_and_err_towards_silence() -> None:
    tracks = Tracks(streaming=True)
    for n in range(PASTS_KEPT + 2):
        one = session(f"S{n}", closed_t=100.0)
        recorded(tracks.of(one, 1.0), (50 - n, float(n)), (n + 1, n + 0.5))
        tracks.fold_closed(100.0)
    assert len(tracks.past) == PASTS_KEPT
    (oldest,) = tracks.past[0]
    assert (oldest.first_t, oldest.last_t, oldest.position, oldest.number) == (0.0, 2.5, 50, 500)
    assert oldest.sent_after_t == -inf
    tracks.forget_before(2.5)
    assert len(tracks.past) == PASTS_KEPT
    tracks.forget_before(2.6)
    assert len(tracks.past) == PASTS_KEPT - 1


def test_how_far_a_subscriber_had_come_outlives_its_sessions() -> None:
    tracks = Tracks(streaming=True)
    recorded(tracks.of(session("A1", "a", closed_t=3.0), 1.0), (4, 1.0))
    second = recorded(tracks.of(session("A2", "a"), 1.0), (7, 1.0))
    recorded(tracks.of(session("B", "b"), 1.0), (9, 1.0))
    tracks.fold_closed(3.0)
    just_now = arrival(second)
    recorded(second, (8, 9.0))
    assert sorted(tracks.lasts_of("a", just_now)) == [4, 7]  # before this delivery
    assert sorted(tracks.lasts_of("b", just_now)) == [0, 9]
    assert list(tracks.lasts_of("c", just_now)) == [0]
    assert [one.session.name for one in tracks.others(second)] == ["B"]


def test_subscribers_whose_sessions_are_over_are_forgotten_beyond_a_number() -> None:
    tracks = Tracks(streaming=True)
    for n in range(OWNERS_KEPT + 1):
        assert not tracks.forgetful
        recorded(tracks.of(session(f"S{n}", closed_t=2.0), 1.0), (n + 1, 1.0))
        tracks.fold_closed(2.0)
    assert tracks.forgetful
    last = arrival(tracks.of(session("last"), 3.0))
    assert list(tracks.lasts_of("S0", last)) == [0]
    assert list(tracks.lasts_of("S1", last)) == [2]


def test_giving_everything_back() -> None:
    tracks = Tracks(streaming=True)
    recorded(tracks.of(session("A", closed_t=2.0), 1.0), (1, 1.0))
    tracks.fold_closed(2.0)
    recorded(tracks.of(session("B"), 1.0), (1, 1.0))
    tracks.forget()
    assert (len(tracks), tracks.past, tracks.forgetful) == (0, [], True)
    fresh = Tracks(streaming=True)
    fresh.forget()
    assert not fresh.forgetful


def test_until_when_anything_counts_as_held() -> None:
    tracks = Tracks(streaming=True)
    assert tracks.busy_until_t == -inf
    tracks.of(session("A", closed_t=2.0), 1.0).hold(1, held_until(55.0, 65.0), 4)
    tracks.of(session("B"), 1.0).unsettle(40.0)
    tracks.fold_closed(2.0)
    assert (tracks.busy_until_t, tracks.unsettled_until_t) == (65.0, 65.0)
