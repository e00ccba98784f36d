"""The metrics of RFC 4737: its own examples, then the definitions by brute force on arbitrary arrivals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.ordering.reordering import ArrivalKind, FreeRuns, MeasuredArrival, ReorderMeter, Summary


def measure(arrivals: str, meter: ReorderMeter | None = None) -> tuple[list[MeasuredArrival], Summary]:
    """Arrivals as sequence numbers in order of arrival, each with its arrival time in milliseconds if it matters: `1 2@88 3`."""
    meter = meter or ReorderMeter()
    verified = []
    for token in arrivals.split():
        seq, _, ms = token.partition("@")
        verified.append(meter.observe(int(seq), float(ms) / 1000 if ms else None))
    return verified, meter.summary()


def reordered(arrivals: list[MeasuredArrival]) -> str:
    """The reordered messages as `seq:extent`, with `n` appended if it is n-reordered."""
    words = []
    for arrival in arrivals:
        if arrival.kind is ArrivalKind.REORDERED:
            n = f"n{arrival.n}" if arrival.n else ""
            words.append(f"{arrival.seq}:{arrival.extent}{n}")
    return " ".join(words)


def followed(arrivals: str, meter: ReorderMeter | None = None) -> tuple[str, str]:
    """NextExp before each arrival; and the largest late time in ms, whenever it has grown."""
    meter = meter or ReorderMeter()
    expected, late = [], [meter.summary().late_max_s]
    for token in arrivals.split():
        expected.append(str(meter._next_expected))
        _, summary = measure(token, meter)
        if summary.late_max_s != late[-1]:
            late.append(summary.late_max_s)
    return " ".join(expected), " ".join(f"{1000 * each:.0f}" for each in late if each is not None)


# The tables give arrival times in ms (DstTime) and the value of NextExp before each arrival.
TABLE_1 = "1@68 2@88 3@108 5@148 6@168 7@188 8@208 4@210 9@228 10@248"
TABLE_2 = "1@68 2@88 3@108 4@128 7@188 5@189 6@190 8@208 9@228 10@248"
TABLE_3 = "1@68 2@88 3@108 7@188 8@208 9@228 10@248 4@250 5@252 6@256 11@268"
TABLE_4 = "1 2 3 6 7 4 5 8 9 10 12 13 11 14 15 16"


@pytest.mark.parametrize(
    ("section", "arrivals", "next_expected", "expected", "late_ms"),
    [
        ("1", "1 2 4 5 3", "1 2 3 5 6", "3:2n2", ""),
        ("4.3.4", "1 10 5", "1 2 11", "5:1n1", ""),
        ("5.3", "1 2 3 7 8 9 4 5 6", "1 2 3 4 8 9 10 10 10", "4:3n3 5:4 6:5", ""),
        ("7.1, table 1", TABLE_1, "1 2 3 4 6 7 8 9 9 10", "4:4n4", "62"),
        ("7.2, table 2", TABLE_2, "1 2 3 4 5 8 8 8 9 10", "5:1n1 6:2", "1 2"),
        ("7.3, table 3", TABLE_3, "1 2 3 4 8 9 10 11 11 11 11", "4:4n4 5:5 6:6", "62 64 68"),
        ("7.4, table 4", TABLE_4, "1 2 3 4 7 8 8 8 9 10 11 13 14 14 15 16", "4:2n2 5:3 11:2n2", ""),
    ],
)
def test_the_examples_of_the_rfc(section: str, arrivals: str, next_expected: str, expected: str, late_ms: str) -> None:
    verified, _ = measure(arrivals)
    assert reordered(verified) == expected, section
    assert followed(arrivals) == (next_expected, late_ms), section


def test_table_3_as_a_histogram() -> None:
    _, summary = measure(TABLE_3)
    assert summary.extents == {4: 1, 5: 1, 6: 1}
    assert (summary.ratio, summary.extent_max) == (3 / 11, 6)
    assert summary.late_max_s == pytest.approx(0.068)
    assert [summary.degree(n) for n in (1, 2, 3, 4, 5)] == [1 / 11, 1 / 11, 1 / 11, 1 / 11, 0]


def test_table_4_has_two_discontinuities_seven_apart_and_runs_of_5_0_and_5() -> None:
    verified, summary = measure(TABLE_4)
    assert [(arrival.seq, arrival.gap) for arrival in verified if arrival.gap is not None] == [(4, 0), (11, 7)]
    assert summary.reordering_gaps == {0: 1, 7: 1}
    assert (summary.discontinuities, summary.missing) == (2, 0)
    assert summary.runs == FreeRuns(x=3, a=13, p=16, q=5 * 5 + 0 + 5 * 5)


@pytest.mark.parametrize(
    ("runs", "q", "variation"),
    [((11, 11, 11), 363, 1.0), ((1, 1, 31), 963, 2.65)],
)
def test_the_runs_of_section_4_6_4(runs: tuple[int, ...], q: int, variation: float) -> None:
    arrivals: list[int] = []
    for run in runs:  # a run that ends with the message skipped just before its last one
        start = max(arrivals, default=0)
        arrivals += [*range(start + 1, start + run), start + run + 1, start + run]
    _, summary = measure(" ".join(map(str, arrivals)))
    assert summary.runs == FreeRuns(x=3, a=33, p=36, q=q)
    assert summary.runs.average == 11
    assert summary.runs.variation == pytest.approx(variation, abs=0.005)


@pytest.mark.parametrize(
    ("arrivals", "percent"),
    [
        ("1 2 3 4 5 6 7 8 9 10", ""),
        ("1 3 4 5 6 7 8 9 10", ""),
        ("0 1000 2000 3000 4000 5000 6000 7000 8000 9000", ""),
        ("1 2 4 3 5 6 7 8 9 10", "10"),
        ("1 2 4 3 5 6 8 7 9 10", "20"),
        ("1 2 4 5 3 6 7 8 9 10", "10 10"),
        ("1 2 4 5 6 3 7 8 9 10", "10 10 10"),
        ("1 2 3 4 8 5 6 7 9 10", "10"),
        ("10 9 8 7 6 5 4 3 2 1", "90 80 70 60 50 40 30 20 10"),
    ],
)
def test_the_degrees_of_the_draft_that_section_5_came_from(arrivals: str, percent: str) -> None:
    """draft-shalunov-reordering-definition-02, section 4: the degrees of 1-, 2-, 3-... reordering."""
    _, summary = measure(arrivals, ReorderMeter(first=0))
    degrees = [summary.degree(n) for n in range(1, len(summary.n_reordered) + 1)]
    assert degrees == pytest.approx([float(each) / 100 for each in percent.split()])


@pytest.mark.parametrize(
    ("arrivals", "orders"),
    [
        ("1 2 2 3 3 1", "in_order in_order duplicate in_order duplicate duplicate"),
        ("1 3 2 2 3", "in_order in_order reordered duplicate duplicate"),
        ("1 0 2", "in_order before_start in_order"),
        ("5 3 3 5 4", "in_order reordered duplicate duplicate reordered"),
    ],
)
def test_duplicates_are_noted_and_take_no_part(arrivals: str, orders: str) -> None:
    verified, summary = measure(arrivals)
    assert " ".join(arrival.kind for arrival in verified) == orders
    assert summary.received == sum(arrival.i is not None for arrival in verified)


def test_an_unknown_start_makes_the_first_arrival_in_order_without_a_discontinuity() -> None:
    verified, summary = measure("5 3 7 3 6", ReorderMeter(first=None))
    assert followed("5 3 7 3 6", ReorderMeter(first=None)) == ("None 6 6 8 8", "")
    assert reordered(verified) == "3:1n1 6:1n1"
    assert (summary.discontinuities, summary.missing, summary.duplicates) == (1, 0, 1)


def test_below_a_forgotten_gap_nothing_can_be_known() -> None:
    # The gaps 2, 4 and 6 are one too many: 2 is forgotten, so neither it nor a copy of 1 can be verified.
    verified, summary = measure("1 3 5 7 2 1 4", ReorderMeter(gaps=2))
    assert [str(arrival.kind) for arrival in verified[4:]] == ["undecided", "undecided", "reordered"]
    assert (summary.undecided, summary.missing) == (2, 1)
    assert (summary.ratio, summary.ratio_max) == (1 / 5, 3 / 7)


def test_reordering_gaps_are_fixed_as_they_are_found() -> None:
    verified, _ = measure("2 1 4 3 7 9 8 5")  # the discontinuities are at 1, 3, 6 and then, between two, at 5
    assert [arrival.gap for arrival in verified if arrival.extent] == [0, 2, 3, 2]


@pytest.mark.parametrize(
    ("arrivals", "gaps"),
    [
        ("2 4 3 6 5 8 7 1", "3:0 5:2 7:2 1:None"),  # what lies before the discontinuity of 1 is forgotten
        ("3 2 5 4 7 6 1", "2:0 4:2 6:2 1:None"),  # and here, that 2 pointed to it already
        ("2 1 4 6 5 8 7 3", "1:0 5:3 7:2 3:2"),  # but not here
    ],
)
def test_reordering_gaps_with_two_discontinuities_remembered(arrivals: str, gaps: str) -> None:
    verified, _ = measure(arrivals, ReorderMeter(gaps=2))
    assert " ".join(f"{arrival.seq}:{arrival.gap}" for arrival in verified if arrival.extent) == gaps


def test_large_extents_share_a_bin() -> None:
    _, summary = measure("3 4 5 2 1", ReorderMeter(extent_bins=3))
    assert (summary.extents, summary.extents_beyond, summary.extent_max) == ({3: 1}, 1, 4)


def test_without_arrivals_nothing_is_reordered() -> None:
    _, summary = measure("")
    assert (summary.ratio, summary.ratio_max, summary.degree(1), summary.late_max_s) == (0, 0, 0, None)
    assert (summary.runs.average, summary.runs.variation) == (None, None)


@pytest.mark.parametrize("bound", ["n_max", "gaps", "extent_bins"])
def test_bounds_of_nothing_are_refused(bound: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ReorderMeter(1, **{bound: 0})


# The definitions, word by word, on the whole sample.


@dataclass(frozen=True)
class Sample:
    """First copies in order of arrival, positions from 1 as in the RFC (index 0 is unused)."""

    s: list[int]

    @classmethod
    def of(cls, arrivals: list[int]) -> Sample:
        return cls([0, *dict.fromkeys(arrivals)])

    @property
    def positions(self) -> range:
        return range(1, len(self.s))

    def is_reordered(self, i: int) -> bool:
        return self.s[i] < max(self.s[1:i], default=0) + 1

    def extent(self, i: int) -> int | None:
        return next((i - j for j in range(1, i) if self.s[j] > self.s[i]), None)

    def is_n_reordered(self, i: int, n: int) -> bool:
        return n < i and all(self.s[j] > self.s[i] for j in range(i - n, i))

    def n(self, i: int, n_max: int) -> int:
        return max((n for n in range(1, n_max + 1) if self.is_n_reordered(i, n)), default=0)

    def gaps(self) -> list[int]:
        found: set[int] = set()
        gaps = []
        for i in self.positions:
            j = i - (self.extent(i) or 0)
            if j < i and j not in found:
                before = max((each for each in found if each < j), default=None)
                gaps.append(0 if before is None else j - before)
                found.add(j)
        return gaps


ARRIVALS = st.lists(st.integers(1, 25), max_size=40) | st.permutations(range(1, 20)).map(list)


def observed(arrivals: list[int], meter: ReorderMeter) -> tuple[list[MeasuredArrival], Summary]:
    verified = [meter.observe(seq, float(at)) for at, seq in enumerate(arrivals)]
    return [arrival for arrival in verified if arrival.i is not None], meter.summary()


@given(arrivals=ARRIVALS, n_max=st.integers(1, 30), first=st.sampled_from([1, None]))
def test_streaming_agrees_with_the_definitions(arrivals: list[int], n_max: int, first: int | None) -> None:
    sample = Sample.of(arrivals)
    verified, _ = observed(arrivals, ReorderMeter(first, n_max=n_max))
    assert [arrival.seq for arrival in verified] == sample.s[1:]
    assert [arrival.i for arrival in verified] == list(sample.positions)
    assert [arrival.kind is ArrivalKind.REORDERED for arrival in verified] == [sample.is_reordered(i) for i in sample.positions]
    assert [arrival.extent for arrival in verified] == [sample.extent(i) for i in sample.positions]
    assert [arrival.n for arrival in verified] == [sample.n(i, n_max) for i in sample.positions]
    assert [arrival.gap for arrival in verified if arrival.gap is not None] == sample.gaps()


@given(arrivals=ARRIVALS)
def test_the_summary_adds_up_the_definitions(arrivals: list[int]) -> None:
    sample = Sample.of(arrivals)
    _, summary = observed(arrivals, ReorderMeter(1))
    received = len(sample.positions)
    count = sum(map(sample.is_reordered, sample.positions))
    assert (summary.received, summary.reordered, summary.duplicates) == (received, count, len(arrivals) - received)
    assert summary.ratio == summary.ratio_max == (count / received if received else 0)
    assert summary.extents == Counter(e for i in sample.positions if (e := sample.extent(i)))
    assert summary.extent_max == max(summary.extents, default=0)
    for n in range(1, 30):
        assert summary.degree(n) * received == pytest.approx(sum(sample.is_n_reordered(i, n) for i in sample.positions))
    assert summary.missing == max(arrivals, default=0) - received
    assert summary.reordering_gaps == Counter(sample.gaps())
    assert summary.runs.p == summary.runs.x + summary.runs.a == received


@given(arrivals=ARRIVALS)
def test_late_time_looks_back_as_far_as_the_extent(arrivals: list[int]) -> None:
    times: dict[int, float] = {}
    for at, seq in enumerate(arrivals):
        times.setdefault(seq, float(at))
    verified, summary = observed(arrivals, ReorderMeter())
    late_s = []
    for arrival in verified:
        if arrival.extent is not None and arrival.i is not None:
            overtaker = verified[arrival.i - arrival.extent - 1]
            late_s.append(times[arrival.seq] - times[overtaker.seq])
    assert summary.late_max_s == max(late_s, default=None)


@given(arrivals=ARRIVALS)
def test_n_reordered_messages_are_reordered_with_an_extent_of_at_least_n(arrivals: list[int]) -> None:
    verified, summary = observed(arrivals, ReorderMeter())
    for arrival in verified:
        assert (arrival.extent is not None) == (arrival.kind is ArrivalKind.REORDERED)
        assert arrival.n <= (arrival.extent or 0)
    degrees = [summary.degree(n) for n in range(1, 30)]
    assert degrees == sorted(degrees, reverse=True)
    assert degrees[0] <= summary.ratio
    assert (degrees[0] == 0) == (summary.ratio == 0)


@given(arrivals=st.lists(st.integers(1, 10**9), unique=True))
def test_losses_alone_reorder_nothing(arrivals: list[int]) -> None:
    verified, summary = observed(sorted(arrivals), ReorderMeter(gaps=3))
    assert (summary.ratio, summary.ratio_max, summary.degree(1)) == (0, 0, 0)
    assert {arrival.kind for arrival in verified} <= {ArrivalKind.IN_ORDER}


@given(arrivals=ARRIVALS)
def test_duplicates_change_nothing_but_their_number(arrivals: list[int]) -> None:
    once, without = observed(list(dict.fromkeys(arrivals)), ReorderMeter())
    again, summary = observed(arrivals, ReorderMeter())
    assert replace(summary, duplicates=0, late_max_s=None) == replace(without, late_max_s=None)
    assert again == once


@given(arrivals=ARRIVALS, gaps=st.integers(1, 4), n_max=st.integers(1, 3))
def test_with_little_memory_every_arrival_is_accounted_for_and_the_ratio_is_bracketed(
    arrivals: list[int], gaps: int, n_max: int
) -> None:
    _, small = observed(arrivals, ReorderMeter(gaps=gaps, n_max=n_max, extent_bins=2))
    _, full = observed(arrivals, ReorderMeter())
    assert small.received + small.duplicates + small.undecided == len(arrivals)
    assert small.ratio <= full.ratio <= small.ratio_max
    assert sum(small.extents.values()) + small.extents_beyond == small.reordered
    assert len(small.extents) <= 2
    assert len(small.n_reordered) <= n_max
