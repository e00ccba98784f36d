"""Columns of a ring of positions: arrays whose length is a power of two, in which a position has the slot of its last bits."""

from __future__ import annotations

from array import array
from typing import TypeVar

N = TypeVar("N", int, float)


def moved(column: array[N], kept: range, slots: int) -> array[N]:
    """A column of twice as many slots or more, with the same at the positions that are kept; both are rings."""
    old, start, at = len(column), kept.start & (len(column) - 1), kept.start & (slots - 1)
    ahead = min(old - start, len(kept))
    rows = column[start : start + ahead] + column[: len(kept) - ahead]
    wider = column[:0]
    wider.frombytes(bytes(column.itemsize * slots))
    fitting = min(slots - at, len(rows))
    wider[at : at + fitting] = rows[:fitting]
    wider[: len(rows) - fitting] = rows[fitting:]
    return wider
