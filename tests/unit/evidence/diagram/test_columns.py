"""Who has a column, and how messages and sessions are called in it."""

from __future__ import annotations

from prober.core.events import Event
from prober.core.rules import Mode
from prober.evidence.diagram.columns import Columns, short
from tests.notation import history


def columns(events: list[Event], *marked: int, mode: Mode = Mode.STREAMING, subscribers_max: int = 4) -> Columns:
    return Columns(enumerate(events, 1), [], mode, subscribers_max, marked)


def test_a_name_that_is_too_long_is_shown_by_its_end() -> None:
    assert short("m1") == "m1"
    assert short("10212345678901234") == "..78901234"


def test_roles_are_those_of_the_mode() -> None:
    events = history("P1,2,3 r1<1@1 r2<2@2 r3<3@3", Mode.PUSH)
    assert [(one.role, one.name) for one in columns(events, mode=Mode.PUSH, subscribers_max=2).all] == [
        ("", "publisher"),
        ("", "Pub/Sub"),
        ("push request", "r1"),
        ("push requests", "2 more"),
    ]


def test_an_id_is_named_as_its_message_is() -> None:
    """With its epoch, as wherever the message occurs."""
    named = columns(history("P1@0 ok1=a1@0.1 P1[e2]@0.2 ok1=b1@0.3 A<a1(1)@1"))
    assert [named.named(message_id) for message_id in ("a1", "b1", "unheard-of")] == ["e1:1", "e2:1", "unheard-of"]


def test_an_id_is_needed_where_a_number_is_not_enough() -> None:
    named = columns(history("A<a1(1)@1 A<b1(1)@2 A<a2(2)@3 A<x(3)@4 A<x(4)@5"))
    assert [named.record(message_id) for message_id in ("a1", "b1", "a2", "x", "unheard-of")] == ["a1", "b1", "", "x", ""]


def test_nobody_is_where_nothing_was_received() -> None:
    assert columns(history("P1")).any_of("s") is None
    assert columns(history("P1 A<1@2")).any_of("s") == 2
