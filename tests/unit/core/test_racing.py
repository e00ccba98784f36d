"""What was put back, in which order it is let through again, and what that does to verdicts on streams that race."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

import pytest

from prober.core import racing
from prober.core.events import LONG_AGO, Acked, Closed, DeadLettered, Delivered, Event, Opened
from prober.core.findings import Finding
from prober.core.racing import PutBack
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, case, observe, say, words


def delivery(session: str, seq: int, epoch: str = "e1") -> Delivered:
    return Delivered(1.0, "s", "k", session, epoch, seq, f"m{seq}")


def acknowledgement(session: str, seq: int) -> Acked:
    return Acked(1.1, "s", "k", session, f"m{seq}")


def put_back(*firsts: tuple[str, int, float]) -> PutBack:
    """Deliveries by session, sequence number, and when they are let through in any case."""
    waiting = PutBack()
    for session, seq, due_t in firsts:
        waiting.put(delivery(session, seq), seq, due_t)
    return waiting


def all_wait(_: Delivered) -> bool:
    return True


def none_waits(_: Delivered) -> bool:
    return False


def precedes(one: Delivered, other: Delivered) -> bool:
    """Numbers come in their order within an epoch, and epochs may come in any."""
    return one.epoch == other.epoch and one.seq < other.seq


def awaits(first: Delivered, other: Delivered) -> bool:
    """What stands first waits for what has the number before."""
    return other.seq == first.seq - 1


def let_through(waiting: PutBack, now: float, waits: Callable[[Delivered], bool] = all_wait) -> list[tuple[str, int]]:
    """What is let through, by session and event number."""
    passed = []
    while waiting and (ready := waiting.next(now, waits, precedes)) is not None:
        event, number, _ = ready
        passed.append(("" if isinstance(event, DeadLettered) else event.session, number))
    return passed


def test_nothing_waits() -> None:
    waiting = PutBack()
    assert not waiting
    assert (waiting.due_t, waiting.latest_due_t) == (inf, LONG_AGO)
    assert not waiting.waits_on("A")
    assert let_through(waiting, inf) == []


def test_what_comes_on_the_same_session_waits_behind_it() -> None:
    waiting = put_back(("A", 2, 6.0))
    waiting.put(acknowledgement("A", 2), 3, LONG_AGO)
    waiting.put(delivery("A", 3), 4, 5.0)
    assert (waiting.waits_on("A"), waiting.waits_on("B")) == (True, False)
    assert (waiting.due_t, waiting.latest_due_t) == (6.0, 6.0)
    assert let_through(waiting, 6.0) == []
    assert let_through(waiting, 6.1) == [("A", 2), ("A", 3), ("A", 4)]
    assert not waiting


def test_what_need_not_wait_goes_on_at_once_with_all_that_follows() -> None:
    waiting = put_back(("A", 2, 6.0))
    waiting.put(acknowledgement("A", 2), 3, LONG_AGO)
    assert let_through(waiting, LONG_AGO, none_waits) == [("A", 2), ("A", 3)]


def test_an_answer_waits_for_its_delivery_and_no_longer() -> None:
    waiting = put_back(("A", 2, 6.0))
    waiting.put(acknowledgement("A", 2), 3, LONG_AGO)
    waiting.put(delivery("A", 4), 5, LONG_AGO)
    assert let_through(waiting, LONG_AGO, lambda event: event.seq > 2) == [("A", 2), ("A", 3)]
    assert let_through(waiting, 6.0, lambda event: event.seq > 2) == []
    assert waiting


def test_what_is_due_lets_lower_numbers_on_other_sessions_go_first_when_they_are_due_too() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 3, 7.0), ("C", 4, 8.0))
    assert (waiting.due_t, waiting.latest_due_t) == (6.0, 8.0)
    assert let_through(waiting, 6.5) == []
    assert waiting.due_t == 7.0
    assert let_through(waiting, 7.5) == [("B", 3)]
    assert waiting.due_t == 8.0
    assert let_through(waiting, 8.5) == [("C", 4), ("A", 5)]


def test_a_lower_number_that_was_published_later_is_no_matter() -> None:
    waiting = put_back(("A", 5, 6.0))
    waiting.put(delivery("B", 1, "e2"), 1, 9.0)
    assert let_through(waiting, 6.5) == [("A", 5)]


def test_what_waited_long_enough_is_as_certain_as_what_need_not_wait() -> None:
    """Also if what it waited for is behind it: a copy may have come on another session until then."""
    waiting = put_back(("A", 5, 6.0))
    waiting.put(delivery("A", 4), 9, LONG_AGO)
    assert let_through(waiting, LONG_AGO) == []
    assert waiting.next(6.5, all_wait, precedes) == (delivery("A", 5), 5, True)


def test_what_follows_has_a_time_of_its_own() -> None:
    waiting = put_back(("A", 5, 6.0))
    waiting.put(delivery("A", 6), 9, 9.0)
    assert let_through(waiting, 6.5) == [("A", 5)]
    assert waiting.due_t == 9.0


def test_what_is_given_up_is_not_certain() -> None:
    waiting = put_back(("A", 5, 6.0))
    waiting.give_up()
    assert waiting.next(6.5, all_wait, precedes) == (delivery("A", 5), 5, False)


def test_that_a_message_left_waits_behind_it() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 7, 7.0))
    assert waiting.leaves(DeadLettered(1.2, "s", "k", "m5"), 8)
    assert not waiting.leaves(DeadLettered(1.2, "s", "k", "m6"), 9)
    assert let_through(waiting, 6.5) == [("A", 5), ("", 8)]


def test_at_the_end_everything_is_let_through() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 3, inf))
    waiting.put(delivery("A", 6), 9, LONG_AGO)
    assert [number for _, number in let_through(waiting, inf)] == [3, 5, 9]


def test_of_too_many_the_first_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "PUT_BACK_MAX", 2)
    waiting = put_back(("A", 5, 60.0))
    for seq in (6, 7):
        waiting.put(delivery("A", seq), seq, LONG_AGO)
    assert let_through(waiting, LONG_AGO) == [("A", 5)]


TWO = "open A1 of client A open A2 of client A"


@pytest.mark.parametrize(
    "one",
    [
        case("the old stream is read while the new one delivers", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@1.2"),
        case("its messages come just within the delay", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@6.1"),
        case("they come later", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@6.2", "V:ORDER_GAP@1.1 V:ORDER_INVERSION@6.2 V:REALTIME_INVERSION@6.2"),
        case("they never come", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1", "V:ORDER_GAP@1.1"),
        case("they come on the same stream", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A2<2@1.2", "V:ORDER_INVERSION V:REALTIME_INVERSION"),
        case("a stream of another client does not race", "open A of client A open B of client B P1,2,3 A<1@1 A ack 1@1.1 B<3@20 B ack 3@20.05 A<2@40", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION"),
        case("a single stream does not race", "P1,2,3 A<1@1 A<3@1.1", "V:ORDER_GAP@1.1"),
        case("its second stream has closed", f"{TWO} P1,2,3 A1<1@1 close A1@1.05 A2<3@1.1 A2<2@1.2", "I:ORDER_INVERSION I:REALTIME_INVERSION"),
        case("answers wait with their deliveries", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A2 ack 3@1.15 A1<2@1.2 A1 ack 1,2@1.3 end @500"),
        case("three streams", f"{TWO} open A3 of client A P1,2,3,4 A1<1@1 A3<4@1.1 A2<3@1.2 A1<2@1.3"),
        case("the lost tail of another epoch may come late", f"{TWO} P1 P1[e2]@5 ok1=f1@5.1 A1<f1(1)@6 A2<1@6.1"),
        case("clocks differ", "open A of client A open B of client B P1,2,3 A<1@1 A ack 1@1.1 B<3@20 A<2@20.1 A ack 2@20.15", "I:AFFINITY_SPLIT", clock_error_s=0.3),
        case("clocks differ, and both hold", "open A of client A open B of client B P1,2,3 A<1@1 A ack 1@1.1 B<3@20 A<2@20.1", "V:AFFINITY_SPLIT", clock_error_s=0.3),
    ],
)  # fmt: skip
def test_sessions_that_race(one: Case) -> None:
    one.check()


def test_what_was_put_back_is_decided_when_its_time_is_over() -> None:
    """A stream of the same subscriber may turn out to be dead: that shows within `close_detection_max_s` and the delay."""
    verifier = Verifier(Rules())
    assert observe(verifier, history(f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1 ack 1@1.2 A1 ack 1@36.1")) == []
    later = [event for event in history("A1 ack 1@36.2") if isinstance(event, Acked)]
    assert words(observe(verifier, later), times=True) == {"V:ORDER_GAP@1.1"}


def accused(found: Iterable[Finding]) -> set[str]:
    return {word for word in words(found) if not word.startswith("I:")}


def without_the_opening_of(session: str, line: str) -> list[Event]:
    return [event for event in history(line) if not (isinstance(event, Opened) and event.session == session)]


@pytest.mark.parametrize(
    "line",
    [
        "open A of client A P1@0 P2@0.1 A<2@1 old<1@1.1 ok1=m1@1.3 ok2=m2@1.4",
        "open A of client A open C1 of client C open C2 of client C P1,2 A<2@1 old<1@1.5",
    ],
    ids=["alone", "beside a client with two"],
)
def test_a_stream_that_was_open_before_the_record_may_have_been_read_beside(line: str) -> None:
    """Nobody waited for what it brings when 2 came: only then it turns out that it is there."""
    verifier = Verifier(Rules())
    assert accused(observe(verifier, without_the_opening_of("old", line))) == set()
    assert accused(verifier.finish()) == set()


def test_a_record_that_begins_with_the_end_of_a_stream_began_late() -> None:
    """Others may have been open as well."""
    verifier = Verifier(Rules())
    line = "open A of client A P1,2,3 A<1@1 A<3@1.1 old<2@1.2"
    assert accused(observe(verifier, [Closed(0.0, "s", "gone"), *without_the_opening_of("old", line)])) == set()
    assert accused(verifier.finish()) == set()


def test_a_copy_on_another_stream_may_have_been_sent_first() -> None:
    """A2 was sent 1; then A1 was sent 2 and, by a rewind, 1 again."""
    assert say(f"{TWO} P1,2 A1<2@1 A1<1@1.1 A2<1@1.2") == set()
