"""Sets of times, as spans in ascending order that do not touch each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeAlias

Spans: TypeAlias = list[tuple[float, float]]
"""Spans, each from its first time to its last, in seconds."""


def union(spans: Iterable[tuple[float, float]]) -> Spans:
    """Return the union of spans in any order."""
    found: Spans = []
    for start, stop in sorted(spans):
        if stop <= start:
            continue
        if found and start <= found[-1][1]:
            if stop > found[-1][1]:
                found[-1] = found[-1][0], stop
        else:
            found.append((start, stop))
    return found


def minus(spans: Sequence[tuple[float, float]], others: Iterable[tuple[float, float]]) -> Spans:
    """Return the spans without the others, which may be in any order."""
    taken = union(others)
    left: Spans = []
    index = 0
    for start, stop in spans:
        while index < len(taken) and taken[index][1] <= start:
            index += 1
        at, other = start, index
        while other < len(taken) and taken[other][0] < stop:
            if taken[other][0] > at:
                left.append((at, taken[other][0]))
            at = max(at, taken[other][1])
            other += 1
        if at < stop:
            left.append((at, stop))
    return left


def both(spans: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> Spans:
    """Return the intersection of both sets."""
    return minus(spans, minus(spans, others))


def length(spans: Iterable[tuple[float, float]], since_t: float = -inf) -> float:
    """Return the total length of the spans from a time on, in seconds."""
    return sum(stop - max(start, since_t) for start, stop in spans if stop > since_t)


def reaches(spans: Iterable[tuple[float, float]], since_t: float, seconds: float) -> float:
    """Return the time at which the spans after `since_t` add up to more than `seconds`; infinite if they never do."""
    for start, stop in spans:
        if stop <= since_t:
            continue
        start = max(start, since_t)
        if stop - start > seconds:
            return start + seconds
        seconds -= stop - start
    return inf
