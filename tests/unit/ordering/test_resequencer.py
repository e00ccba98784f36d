"""The resequencer by example, one line a case. Its guarantees on arbitrary arrivals are in tests/property."""

from __future__ import annotations

from dataclasses import fields
from math import inf

import pytest

from prober.ordering.resequencer import Arrivals, Resequencer

WAIT_S, IDLE_S = 10.0, 30.0


def counts_of(script: str, resequencer: Resequencer) -> str:
    """The counts, without those that are 0, after the arrivals of a line: `3` is a number, `@5` lets time pass to 5."""
    now = 0.0
    for token in script.split():
        if token.startswith("@"):
            now = float(token[1:])
            resequencer.advance(now)
        else:
            resequencer.arrive(int(token), now)
    found = {each.name: getattr(resequencer.arrivals, each.name) for each in fields(Arrivals) if each.name != "deliveries"}
    return " ".join(f"{name}={count}" for name, count in found.items() if count)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        # in order, early
        ("1 2 3", "released=3"),
        ("1 3 2", "early=1 released=3"),
        ("3 2 1", "early=2 released=3"),
        ("1 4 6 2 3 5", "early=2 released=6"),
        # gave up waiting: at the deadline, not before
        ("1 3 @9.9", "early=1 released=1"),
        ("1 3 @10", "early=1 overtook=1 gave_up=1 released=2"),
        ("1 4 5 @10 6", "early=2 overtook=1 gave_up=2 released=4"),
        ("1 3 @5 5 @10", "early=2 overtook=1 gave_up=1 released=2"),
        ("1 3 @5 5 @15", "early=2 overtook=2 gave_up=2 released=3"),
        ("1 3 @5 4 @10", "early=2 overtook=1 gave_up=1 released=3"),
        ("1 3 5 7 @10", "early=3 overtook=3 gave_up=3 released=4"),
        # a wait counts from its own arrival; what is below goes first even if it came later
        ("1 7 @5 3 4 @10", "early=3 overtook=2 gave_up=3 released=4"),
        ("1 7 @5 9 @10 @14.9 8 @15", "early=2 overtook=1 gave_up=5 released=4"),
        ("1 3 @10 2", "early=1 overtook=1 late=1 gave_up=1 released=2"),
        # an arrival at the deadline comes too late, and one just before it in time
        ("1 3 @9.9 2", "early=1 released=3"),
        # late, duplicate and before the start are distinguished
        ("1 2 1", "duplicates=1 released=2"),
        ("1 3 3 2 3", "early=1 duplicates=2 released=3"),
        ("1 5 @10 3 3 2 4 1 5", "early=1 overtook=1 late=3 duplicates=3 gave_up=3 released=2"),
        ("0 1 -1", "before_start=2 released=1"),
        # idle: 30 s after the last arrival or release, never while something waits
        ("1 @29.9", "released=1"),
        ("1 @30", "forgotten=1 released=1"),
        ("1 @30 1", "forgotten=1 released=2"),
        ("1 @30 2", "early=1 forgotten=1 released=1"),
        ("1 @20 1 @49.9", "duplicates=1 released=1"),
        ("1 @20 1 @50", "duplicates=1 forgotten=1 released=1"),
        ("1 @29 3 @38.9", "early=1 released=1"),
        ("1 @29 3 @39 @68.9", "early=1 overtook=1 gave_up=1 released=2"),
        ("1 @29 3 @39 @69", "early=1 overtook=1 gave_up=1 forgotten=1 released=2"),
        ("1 3 @100 2", "early=2 overtook=1 gave_up=1 forgotten=1 released=2"),
        # Neil Kolban's walk through EnforceOrder: 1 and 2 pass, 4 waits, a second 2 is skipped, 4 overtakes the lost 3
        ("1 2 4 2 @10", "early=1 overtook=1 duplicates=1 gave_up=1 released=3"),
        # a jump to a far number costs no memory
        (f"{10**18} @10 {10**17} 7 7", f"early=1 overtook=1 late=2 duplicates=1 gave_up={10**18 - 1} released=1"),
    ],
)
def test_what_becomes_of_the_arrivals(script: str, expected: str) -> None:
    assert counts_of(script, Resequencer(1, WAIT_S, IDLE_S)) == expected


@pytest.mark.parametrize(
    ("script", "first", "expected"),
    [
        ("5 6", 5, "released=2"),
        ("4 0 1", 0, "early=1 released=2"),
        ("-2 -3 -1", -2, "before_start=1 released=2"),
        ("-1 @10 -2", -2, "early=1 overtook=1 late=1 gave_up=1 released=1"),
    ],
)
def test_the_first_number(script: str, first: int, expected: str) -> None:
    assert counts_of(script, Resequencer(first, WAIT_S, IDLE_S)) == expected


@pytest.mark.parametrize(
    ("script", "waiting_max", "gaps_max", "expected"),
    [
        # one wait too many: the missing ones before its lowest are given up
        ("1 4 6 8", 2, 9, "early=3 overtook=1 gave_up_early=2 released=2"),
        ("1 6 8 3", 2, 9, "early=3 overtook=1 gave_up_early=1 released=2"),
        # one remembered gap too many: below it late and duplicate cannot be distinguished
        ("3 5 7 1 3 4", 1, 1, "early=3 overtook=2 late=1 duplicates=1 late_or_duplicate=1 gave_up_early=3 released=2"),
    ],
)
def test_at_a_bound_patience_ends_and_no_message_is_lost(script: str, waiting_max: int, gaps_max: int, expected: str) -> None:
    assert counts_of(script, Resequencer(1, WAIT_S, IDLE_S, waiting_max=waiting_max, gaps_max=gaps_max)) == expected


def test_without_timeouts_all_waits_last() -> None:
    resequencer = Resequencer(1, inf, inf)
    assert counts_of("1 3", resequencer) == "early=1 released=1"
    resequencer.advance(inf)
    assert counts_of("", resequencer) == "early=1 released=1"
