"""Steps that repeat have one row, and what matters to the finding keeps its own."""

from __future__ import annotations

from collections.abc import Sequence

from prober.core.events import Delivered, Event, Published, PublishInvoked
from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Rules
from prober.evidence.diagram.rows import Arrow, Diagram, diagram_of
from prober.evidence.diagram.text import collapsed


def diagram(events: Sequence[Event], *witnesses: int) -> Diagram:
    finding = Finding(Kind.ORDER_GAP, Status.VIOLATION, "s", "k", 1.0, witnesses, {})
    numbered = list(enumerate(events, 1))
    return collapsed(diagram_of(numbered, finding, Rules(), opened=(), subscribers_max=4, rows_max=200))


def steps(drawn: Diagram) -> list[tuple[str, str, int]]:
    return [(row.shape.verb or row.shape.sort, row.shape.message, row.events) for row in drawn.rows if isinstance(row.shape, Arrow)]


def publish(first: int, last: int, epoch: str = "e") -> list[Event]:
    return [PublishInvoked(number / 10, "k", epoch, number) for number in range(first, last + 1)]


def test_steps_with_the_next_message_have_one_row() -> None:
    drawn = diagram([*publish(61, 80), *publish(90, 92), Delivered(10.0, "s", "k", "A", "e", 61, "m61")], 24)
    assert steps(drawn)[0] == ("publish", "61-80", 20)
    assert steps(drawn)[1:] == [("publish", "90", 1), ("publish", "91", 1), ("publish", "92", 1), ("delivery", "61", 1)]
    (first, *_) = drawn.rows
    assert isinstance(first.shape, Arrow)
    assert (first.shape.details, first.number, first.t) == (("x20",), 1, 6.1)


def test_a_witness_keeps_its_row() -> None:
    assert steps(diagram(publish(1, 12), 6, 12)) == [
        ("publish", "1-5", 5),
        ("publish", "6", 1),
        ("publish", "7-11", 5),
        ("publish", "12", 1),
    ]


def test_steps_by_turns_have_one_row_each() -> None:
    turns: list[Event] = []
    for number in range(1, 11):
        turns += [PublishInvoked(number / 10, "k", "e", number), Published(number / 10 + 0.05, "k", "e", number, f"m{number}")]
    assert steps(diagram([*turns, *publish(30, 30)], 21))[:2] == [("publish", "1-10", 10), ("confirmed", "1-10", 10)]


def test_messages_of_another_epoch_are_other_messages() -> None:
    drawn = diagram([*publish(1, 4, "e1"), *publish(1, 4, "e2"), *publish(9, 9, "e2")], 9)
    assert steps(drawn) == [("publish", "e1:1-e1:4", 4), ("publish", "e2:1-e2:4", 4), ("publish", "e2:9", 1)]


def test_a_bar_spans_the_rows_that_are_left() -> None:
    deliveries: list[Event] = [Delivered(float(number), "s", "k", "A", "e", number, f"m{number}") for number in range(1, 10)]
    drawn = diagram([*deliveries, *publish(30, 30)], 10)
    assert all(0 <= bar.first <= bar.last < len(drawn.rows) for bar in drawn.bars)
