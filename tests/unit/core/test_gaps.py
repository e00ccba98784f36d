"""Gaps against a plain set of missing numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prober.core.gaps import Gap, Gaps


def test_a_gap_shrinks_splits_and_goes() -> None:
    gaps: Gaps[str] = Gaps(limit=10)
    gaps.add(3, 7, "a")
    gaps.fill(3)
    assert list(gaps) == [Gap(4, 7, "a")]
    gaps.fill(5)
    assert list(gaps) == [Gap(4, 4, "a"), Gap(6, 7, "a")]
    gaps.fill(4)
    gaps.fill(7)
    gaps.fill(6)
    assert list(gaps) == []


def test_a_gap_keeps_its_mark() -> None:
    gaps: Gaps[str] = Gaps(limit=10)
    gaps.add(3, 7, "a")
    gaps.add(9, 9, "b")
    gaps.fill(5)
    assert [gap.mark for number in (4, 6, 9) if (gap := gaps.find(number))] == ["a", "a", "b"]
    assert [number for number in range(12) if gaps.find(number)] == [3, 4, 6, 7, 9]


def test_the_lowest_gaps_are_forgotten_first() -> None:
    gaps: Gaps[None] = Gaps(limit=2)
    for first in (1, 11, 21):
        gaps.add(first, first + 4, None)
    assert list(gaps) == [Gap(11, 15, None), Gap(21, 25, None)]
    assert gaps.known_from == 6
    gaps.fill(13)
    assert list(gaps) == [Gap(14, 15, None), Gap(21, 25, None)]
    assert gaps.known_from == 13


@given(jumps=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=12), limit=st.integers(1, 6), data=st.data())
def test_gaps_are_a_bounded_set(jumps: list[tuple[int, int]], limit: int, data: st.DataObject) -> None:
    gaps: Gaps[None] = Gaps(limit)
    missing: set[int] = set()
    top = 0
    for skip, size in jumps:
        gaps.add(top + skip, top + skip + size - 1, None)
        missing.update(range(top + skip, top + skip + size))
        top += skip + size
        known = sorted(number for number in missing if number >= gaps.known_from)
        number = data.draw(st.sampled_from([0, *known]))
        if number:
            gaps.fill(number)
            missing.remove(number)
        assert len(gaps) <= limit
        found = {number for number in range(top + 2) if gaps.find(number)}
        assert found == {number for number in missing if number >= gaps.known_from}
