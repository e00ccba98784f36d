"""What was put back, in which order it is let through again, and what that does to verdicts on streams that race."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest

from prober.core import racing
from prober.core.events import LONG_AGO, Acked, DeadLettered, Delivered
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


def published_as(event: Delivered) -> float:
    """Numbers were published in their order, the second epoch after the first."""
    return 1000.0 * int(event.epoch[1:]) + event.seq


def awaits(first: Delivered, other: Delivered) -> bool:
    """What stands first waits for what has the number before."""
    return other.seq == first.seq - 1


def let_through(waiting: PutBack, now: float, waits: Callable[[Delivered], bool] = all_wait) -> list[tuple[str, int]]:
    """What is let through, by session and event number."""
    passed = []
    while waiting and (ready := waiting.next(now, waits, published_as, awaits)) is not None:
        event, number, _ = ready
        passed.append(("" if isinstance(event, DeadLettered) else event.session, number))
    return passed


def test_nothing_waits() -> None:
    waiting = PutBack()
    assert not waiting
    assert (waiting.due_t, waiting.latest_due_t) == (inf, LONG_AGO)
    assert not waiting.follows(delivery("A", 1), 1)
    assert let_through(waiting, inf) == []


def test_what_comes_on_the_same_session_waits_behind_it() -> None:
    waiting = put_back(("A", 2, 6.0))
    assert waiting.follows(acknowledgement("A", 2), 3)
    assert waiting.follows(delivery("A", 3), 4)
    assert not waiting.follows(delivery("B", 1), 5)
    assert (waiting.due_t, waiting.latest_due_t) == (6.0, 6.0)
    assert let_through(waiting, 6.0) == []
    assert let_through(waiting, 6.1) == [("A", 2), ("A", 3), ("A", 4)]
    assert not waiting


def test_what_need_not_wait_goes_on_at_once_with_all_that_follows() -> None:
    waiting = put_back(("A", 2, 6.0))
    waiting.follows(acknowledgement("A", 2), 3)
    assert let_through(waiting, LONG_AGO, none_waits) == [("A", 2), ("A", 3)]


def test_an_answer_waits_for_its_delivery_and_no_longer() -> None:
    waiting = put_back(("A", 2, 6.0))
    waiting.follows(acknowledgement("A", 2), 3)
    waiting.follows(delivery("A", 4), 5)
    assert let_through(waiting, LONG_AGO, lambda event: event.seq > 2) == [("A", 2), ("A", 3)]
    assert let_through(waiting, 6.0, lambda event: event.seq > 2) == []
    assert waiting.first("A").seq == 4


def test_what_is_due_gives_way_to_lower_numbers_on_other_sessions() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 3, 7.0), ("C", 4, 8.0))
    assert (waiting.due_t, waiting.latest_due_t) == (6.0, 8.0)
    assert let_through(waiting, 6.5) == [("B", 3), ("C", 4), ("A", 5)]


def test_a_lower_number_that_was_published_later_is_no_matter() -> None:
    waiting = put_back(("A", 5, 6.0))
    waiting.put(delivery("B", 1, "e2"), 1, 9.0)
    assert let_through(waiting, 6.5) == [("A", 5)]


def test_what_went_on_in_certain_order_is_told_from_what_was_only_due() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 3, 7.0))
    assert waiting.next(6.5, all_wait, published_as, awaits) == (delivery("B", 3), 3, False)
    assert waiting.next(6.5, none_waits, published_as, awaits) == (delivery("A", 5), 5, True)


def test_when_no_race_explains_it_any_more_it_goes_on() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 7, 7.0))
    waiting.let_go("A")
    assert let_through(waiting, LONG_AGO) == [("A", 5)]
    assert waiting.first("B").seq == 7


def test_what_it_waited_for_may_come_behind_it() -> None:
    """So it waits until it is due; then its order is certain, unless the other message waits elsewhere as well."""
    for elsewhere, proven in ((False, True), (True, False)):
        waiting = put_back(("A", 5, 6.0))
        waiting.follows(delivery("A", 4), 9)
        if elsewhere:
            waiting.put(delivery("B", 4), 10, 6.0)
        assert let_through(waiting, LONG_AGO) == []
        first = waiting.next(6.5, all_wait, published_as, awaits)
        assert first is not None
        assert first[2] is proven


def test_that_a_message_left_waits_behind_it() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 7, 7.0))
    assert waiting.leaves(DeadLettered(1.2, "s", "k", "m5"), 8)
    assert not waiting.leaves(DeadLettered(1.2, "s", "k", "m6"), 9)
    assert let_through(waiting, 6.5) == [("A", 5), ("", 8)]


def test_how_often_a_message_waits() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 5, 7.0))
    waiting.follows(acknowledgement("A", 5), 8)
    waiting.follows(delivery("A", 6), 9)
    assert [waiting.times(f"m{seq}") for seq in (4, 5, 6)] == [0, 2, 1]


def test_at_the_end_everything_is_let_through() -> None:
    waiting = put_back(("A", 5, 6.0), ("B", 3, inf))
    waiting.follows(delivery("A", 6), 9)
    assert [number for _, number in let_through(waiting, inf)] == [3, 5, 9]


def test_of_too_many_the_first_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "PUT_BACK_MAX", 2)
    waiting = put_back(("A", 5, 60.0))
    for seq in (6, 7):
        waiting.follows(delivery("A", seq), seq)
    assert let_through(waiting, LONG_AGO) == [("A", 5)]


TWO = "open A1 of client A open A2 of client A"


@pytest.mark.parametrize(
    "one",
    [
        case("the old stream is read while the new one delivers", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@1.2"),
        case("its messages come just within the delay", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@6.1"),
        case("they come later", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@6.2", "V:ORDER_GAP@1.1 I:ORDER_INVERSION@6.2 I:REALTIME_INVERSION@6.2"),
        case("they never come", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1", "V:ORDER_GAP@1.1"),
        case("they come on the same stream", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A2<2@1.2", "V:ORDER_INVERSION V:REALTIME_INVERSION"),
        case("a stream of another client does not race", "open A of client A open B of client B P1,2,3 A<1@1 A ack 1@1.1 B<3@20 B ack 3@20.05 A<2@40", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION"),
        case("a single stream does not race", "P1,2,3 A<1@1 A<3@1.1", "V:ORDER_GAP@1.1"),
        case("its second stream has closed", f"{TWO} P1,2,3 A1<1@1 close A1@1.05 A2<3@1.1 A2<2@1.2", "V:ORDER_INVERSION V:REALTIME_INVERSION"),
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
    verifier = Verifier(Rules())
    assert observe(verifier, history(f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1 ack 1@1.2 A1 ack 1@6.1")) == []
    later = [event for event in history("A1 ack 1@6.2") if isinstance(event, Acked)]
    assert words(observe(verifier, later), times=True) == {"V:ORDER_GAP@1.1"}


def test_a_copy_on_another_stream_may_have_been_sent_first() -> None:
    """A2 was sent 1; then A1 was sent 2 and, by a rewind, 1 again."""
    assert say(f"{TWO} P1,2 A1<2@1 A1<1@1.1 A2<1@1.2") == set()
