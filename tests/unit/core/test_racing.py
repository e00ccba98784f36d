"""What was put back, in which order it is let through again, and what that does to verdicts on streams that race."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from collections.abc import Iterable

import pytest

from prober.core.events import Acked, Closed, Event, Opened
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, case, observe, say, words

TWO = "open A1 of client A open A2 of client A"


@pytest.mark.parametrize(
    "one",
    [
        case("the old stream is read while the new one delivers", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@1.2"),
        case("its messages come just within the delay", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@6.1"),
        case("they come later", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A1<2@6.2", "V:ORDER_GAP@1.1 V:ORDER_INVERSION@6.2 V:REALTIME_INVERSION@6.2"),
        case("they never come", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1", "V:ORDER_GAP@1.1"),
        case("they come on the same stream", f"{TWO} P1,2,3 A1<1@1 A2<3@1.1 A2<2@1.2", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION"),
        case("a stream of another client does not race", "open A of client A open B of client B P1,2,3 A<1@1 A ack 1@1.1 B<3@20 B ack 3@20.05 A<2@40", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION"),
        case("its second stream has closed", f"{TWO} P1,2,3 A1<1@1 close A1@1.05 A2<3@1.1 A2<2@1.2", "I:ORDER_GAP"),
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
