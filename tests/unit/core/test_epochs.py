"""Several writers, restarted writers, writers that nobody knows, and checkers that start in the middle."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from typing import Any

import pytest

from prober.core.events import Acked, Delivered, Event
from prober.core.group import EPOCHS_KEPT
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, case, observe, pending, words
from tests.verification import verify

ADOPTED: dict[str, Any] = {"subscription_predates_first_publish": False}
UNCONFIRMED = "open A1 of client A@5 open A2 of client A@5 P1@0 P2@0.1 P2'gen1@4 P3@4.1 A1<1@6 A2<3@6.1"
CONFIRMED = "ok1=m1@7 ok2=m2@7 ok3=m3@7 P4@10 ok4=m4@10.1 A1<4@11"


@pytest.mark.parametrize(
    "one",
    [
        case("a restarted writer behind the old backlog", "P1,2 A<1@1 P1[e2]@5 ok1=f1@5.1 A<2@6 A<f1(1)@6.1"),
        case("a restarted writer before the old backlog", "P1,2 A<1@1 P1[e2]@5 ok1=f1@5.1 A<f1(1)@6.1 A<2@6.2", "V:REALTIME_INVERSION"),
        case("what the old writer left in flight may come later", "P1 P2@0.2 A<1@1 P1[e2]@5 ok1=f1@5.1 A<f1(1)@6.1 A<2@6.2"),
        case("two writers at once, in any order", "P1@0 ok1=m1@5.5 P1[e2]@0.1 ok1=f1@5.6 A<f1(1)@6 A<1@6.1"),
        case("two writers at once, whatever their numbers", "P1@0 P2[e2]@0.1 ok2=f2@5.5 ok1=m1@5.6 A<f2(2)@6 A<1@6.1"),
        case("numbering begins anew", "P1,2,3 A<1,2,3@1 P1[e2]@5 ok1=f1@5.1 P2[e2]@5.2 ok2=f2@5.3 A<f1(1)@6 A<f2(2)@6.1"),
        case("a hole in the second writer's numbers", "P1,2,3 A<1,2,3@1 P1[e2]@5 ok1=f1@5.1 P2[e2]@5.2 ok2=f2@5.3 A<f2(2)@6.1", "V:ORDER_GAP"),
        case("an inversion within the second writer", "P1 A<1@1 P1[e2]@5 P2[e2]@5 ok1=f1@5.1 ok2=f2@5.1 A<f2(2)@6 A<f1(1)@6.1", "V:ORDER_GAP V:ORDER_INVERSION"),
        case("runs go across epochs", "P1,2 A<1,2@1 P1[e2]@5 ok1=f1@5.1 A<f1(1)@6 A<1@7 A<f1(1)@7.1", "V:REDELIVERY_SKIP"),
        case("each epoch is stuck by itself", "P1,2 A<1@1 A ack 1@1.1 P1[e2]@5 ok1=f1@5.1 end @500", "L:STUCK@121"),
        case("nothing is known of the epoch", "P1 A<1@1 A<7[e9]@2 A<7[e9]@3"),
        case("a foreign message is movement", "P1,2 A<1@1 A ack 1@1.1 A<7[e9]@100 A ack 7@100.1 end @200"),
        case("a foreign message in between", "P1,2,3 A<1@1 A<7[e9]@1.1 A<2,3@1.2 A<1@2 A<7[e9]@2.1 A<2,3@2.2"),
        case("outcomes alone do not make an epoch known", "ok7=m7@0.1 A<7@1 A<9@1.1"),
        case("known from its first publish on", "P1 A<1@1 A<7[e9]@2 P1[e9]@3 ok1=n1@3.1 A<n1(1)@4 A<n7(7)[e9]@5", "V:PHANTOM@5"),
    ],
)  # fmt: skip
def test_epochs(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("the first one seen is the baseline", "P1,2,3,4 A<3@1 A<4@1.1", **ADOPTED),
        case("strictly, it is not", "P1,2,3,4 A<3@1 A<4@1.1", "V:ORDER_GAP"),
        case("a hole above the baseline", "P1,2,3,4,5 A<3@1 A<5@1.1", "V:ORDER_GAP", **ADOPTED),
        case("an inversion above the baseline", "P1@0 P2@0 P3@0 P4@0 ok1=m1@0.1 ok2=m2@0.1 ok3=m3@0.1 ok4=m4@0.1 A<2@1 A<4@1.1 A<3@1.2", "V:ORDER_GAP V:ORDER_INVERSION", **ADOPTED),
        case("a rewind to before the baseline", "P1,2,3,4 A<3@1 A<2@1.1 A<3@1.2 A<4@1.3", **ADOPTED),
        case("nothing is reported before the baseline is known", "open A of client A P1,2 end @500", **ADOPTED),
        case("nothing is pending below the baseline", "P1,2,3 A<3@1 A ack 3@1.1 end @500", **ADOPTED),
        case("what is above it is pending", "P1,2,3 A<2@1 A ack 2@1.1 end @500", "L:STUCK", **ADOPTED),
        case("nothing is confirmed yet, runs are verified", "P1@0 P2@0 P3@0 A<1,2,3@1 A<1@2 A<3@2.1", "V:REDELIVERY_SKIP", **ADOPTED),
        case("a message of unknown outcome is seen first", "P1,2 P3@0.5 info3@0.6 P4@0.7 ok4=m4@0.75 A<3@1 A<2,3,4@1.1", **ADOPTED),
        case("a rewind to another epoch's", "P1,2 P1[e2]@5 ok1=f1@5.1 P2[e2]@5.2 ok2=f2@5.3 A<f1(1)@6 A<2@6.1 A<f1(1)@6.2 A<f2(2)@6.3", **ADOPTED),
        case("a baseline for each epoch", "P1,2 A<2@1 P1[e2]@5 ok1=f1@5.1 P2[e2]@5.2 ok2=f2@5.3 A<f2(2)@6", "V:ORDER_GAP", **ADOPTED),
        case("known by an unconfirmed message only", "P1@0 P2@0 P3@0 A<3@0.1 ok3=m3@0.2 ok2=m2@0.3", **ADOPTED),
        # one attempt of 2 is never answered, so the publisher's record of it stays open
        case("what came before it was known is redelivered", f"{UNCONFIRMED} A1<2@6.2 {CONFIRMED} A1<2,3,4@20", delivery_delay_max_s=0.6, **ADOPTED),
        case("what never came comes late", f"{UNCONFIRMED} {CONFIRMED} A1<2,3,4@20", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION", delivery_delay_max_s=0.6, **ADOPTED),
        case("after a rewind to before it a skip is one", "P1,2,3,4,5 A<3@1 A<1,2,3,4@1.1 A<3@2 A<5@2.1", "V:REDELIVERY_SKIP", **ADOPTED),
    ],
)  # fmt: skip
def test_adopted_baselines(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("open A of client A P1@60 ok1=m1@60.1 end @7200", True),
        ("open A of client A@60 P1@60 ok1=m1@60.1 end @7200", False),
        ("P1@60 ok1=m1@60.1 open A of client A@61 end @7200", False),
        ("P1@60 ok1=m1@60.1 open A of client A@61 P2@62 ok2=m2@62.1 end @7200", True),
        ("open A of client A P1@60 ok1=m1@60.1 P2@60.2 ok2=m2@60.3 A<2@61 A ack 2@61.1 end @7200", False),
        ("P1@60 ok1=m1@60.1 end @7200", False),
    ],
)  # fmt: skip
def test_what_is_published_when_a_subscription_is_there_is_pending(line: str, expected: bool) -> None:
    """Before anything has come, since when it had to is not known."""
    assert pending(line, **ADOPTED) is expected


def test_it_may_be_there_later_by_another_clock() -> None:
    line = "open A of client A@60 P1@61 ok1=m1@61.1 end @7200"
    assert [pending(line, clock_error_s=error_s, **ADOPTED) for error_s in (0.5, 1)] == [True, False]


def test_foreign_messages_are_counted() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("P1 A<1@1 A<7[e9]@2 A<7[e9]@3"))
    assert verifier.counters["deliveries_foreign"] == 2
    assert verifier.counters["deliveries_first"] == 1


def many_epochs(count: int) -> list[Event]:
    """One message of each epoch, one second apart."""
    events: list[Event] = []
    for n in range(count):
        events += history(f"P1[x{n}]@{n} ok1=x{n}m1@{n}.1")
        events.append(Delivered(n + 0.2, "s", "k", "A", f"x{n}", 1, f"x{n}m1"))
        events.append(Acked(n + 0.3, "s", "k", "A", f"x{n}m1"))
    return events


def test_a_long_list_of_epochs_is_verified_to_its_end() -> None:
    """The oldest epochs become foreign, the newest are verified as ever."""
    count = 5 * EPOCHS_KEPT
    events = many_epochs(count)
    assert words(verify(Rules(), events)) == set()
    again = [Delivered(count + t, "s", "k", "A", f"x{n}", 1, f"x{n}m1") for t, n in ((1.0, count - 3), (2.0, count - 1))]
    assert words(verify(Rules(), [*events, *again])) == {"V:REDELIVERY_SKIP"}
    oldest = Delivered(count + 1.0, "s", "k", "A", "x0", 1, "x0m1")
    verifier = Verifier(Rules())
    assert words(observe(verifier, [*events, oldest])) == set()
    assert verifier.counters["deliveries_foreign"] == 1
