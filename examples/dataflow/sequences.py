"""What sequence numbers say about the messages of a key. Plain functions of the standard library; the pipeline uses them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """A message: its ordering key, the publisher's number, its id, and its publish time in seconds since 1970."""

    key: str
    number: int
    message_id: str
    publish_time: float


class Seen(NamedTuple):
    """Counts about the messages of a key, in the order in which they were processed.

    distinct  different numbers.
    again     messages whose number was there before: redelivered, or published more than once.
    late      messages that were processed after a higher number, without those that were there before.
    missing   numbers between the lowest and the highest that are not there: in another window, not published, or lost.
    """

    distinct: int
    again: int
    late: int
    missing: int


def in_order(rows: Iterable[Row]) -> tuple[list[Row], Seen]:
    """The messages of one key, of which there is one at least, in the order of their numbers, each number once; and what was seen."""
    by_number: dict[int, Row] = {}
    highest, again, late = None, 0, 0
    for row in rows:
        if row.number in by_number:
            again += 1
            continue
        late += highest is not None and row.number < highest
        highest = row.number if highest is None else max(highest, row.number)
        by_number[row.number] = row
    numbers = sorted(by_number)
    missing = numbers[-1] - numbers[0] + 1 - len(numbers)
    return [by_number[number] for number in numbers], Seen(len(numbers), again, late, missing)
