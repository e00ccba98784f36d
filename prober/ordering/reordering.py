"""How much a stream was reordered: the metrics of RFC 4737, "Packet Reordering Metrics", computed while the messages arrive.

Each message of the stream carries a sequence number s that its source counted up. s[1], s[2], ..., s[L] are the numbers in order
of arrival, i and j are arrival positions, and the RFC's packets are our messages. The definitions, with their sections:

* Reordered (3.3). NextExp starts at the first number of the stream. An arrival with s >= NextExp is *in order* and sets NextExp
  to s + 1; one with s < NextExp is *reordered* and changes nothing. NextExp never decreases. When the start of the stream is not
  known, the first arrival is in order and sets NextExp (3.6).
* Sequence discontinuity (3.4). An in-order arrival with s > NextExp; its size is s - NextExp, the number of messages now missing.
* Reordered ratio (4.1.3). R = number of reordered messages / L, as a fraction.
* Reordering extent (4.2.3). For reordered s[i], e = i - j for the smallest j < i with s[j] > s[i]: the distance back to the
  earliest arrival that overtook it. Undefined (None) for an in-order message.
* Late time (4.3.3). LateTime(s[i]) = DstTime(i) - DstTime(i - e), in seconds, if arrival times are given.
* Reordering discontinuity and gap (4.5). The arrival j that gives a reordered message its extent is its reordering discontinuity.
  When the first reordered message points to j', and j is the nearest reordering discontinuity before j' found so far, then the
  gap of j' is j' - j, in messages; without such a j it is 0. Gaps are fixed as they are found: an older discontinuity that is
  found later changes none.
* Reordering-free runs (4.6.3). The number r of in-order arrivals between reordered ones. x runs (one per reordered message), a
  in-order arrivals, p = x + a = L arrivals, q the sum of r * r over the runs; the run at the end of the stream is not counted.
  a/x is the average run, and (q/a) / (a/x) is 1 when all runs have the same length.
* n-reordering (5.3). s[i] is n-reordered, n < i, iff s[j] > s[i] for all of the n arrivals j = i-n ... i-1 just before it; so it
  is n'-reordered for each smaller n' too. The degree of n-reordering is m/l, m being the number of n-reordered messages. A
  reordered message need not be n-reordered for any n (the one just before it may have been reordered even further), but if it is
  n-reordered, its extent is at least n.

Not computed: the byte offset (4.4), because the messages of a probe have equal sizes, and the RFC calls bytes needless then (3.5).

Duplicates are noted, and only the first copy takes part (3.6, 4.1.3): further copies get no arrival position and are not in L.
Section 5 would allow duplicates in its sample; here all metrics share the one sample without them. Losses do not matter: they
only leave NextExp's jump behind, and never make a later message reordered (section 6).

Memory. The RFC discusses what to store in section 6. Two of its suggestions make the extent exact without a history window: the
missing numbers tell first copies from duplicates, and only the arrivals that made a discontinuity are saved, with their
positions. A missing number arriving late belongs to the discontinuity that passed over it, and that arrival is the j of its
extent, for all before it are smaller. So each gap in the numbers remembers its discontinuity, and that is all. Messages lost for
good stay missing, hence the gaps are bounded by `gaps`; when there are more, the lowest is forgotten. An arrival at
or below a forgotten gap can be a first copy or a duplicate: it is UNDECIDED, counted, and takes no part, and `Summary.ratio_max`
says how large the ratio could be. n-reordering looks back at no more than `n_max` arrivals (as the RFC's Appendix A does):
degrees up to `n_max` are exact, larger ones are not reported.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from prober.core.gaps import Gap, Gaps


class ArrivalKind(StrEnum):
    """The class of an arrival. Only IN_ORDER and REORDERED take part in the metrics."""

    IN_ORDER = "in_order"
    REORDERED = "reordered"
    DUPLICATE = "duplicate"
    UNDECIDED = "undecided"
    BEFORE_START = "before_start"


@dataclass(frozen=True, slots=True)
class MeasuredArrival:
    """One measured arrival.

    i       arrival position from 1; None if it takes no part.
    extent  reordering extent in messages; None unless reordered.
    n       the largest n <= n_max for which it is n-reordered, 0 for none.
    gap     reordering gap in messages, if this is the first message that points to its discontinuity; None otherwise, and if
            the discontinuities before it were forgotten.
    """

    seq: int
    kind: ArrivalKind
    i: int | None = None
    extent: int | None = None
    n: int = 0
    gap: int | None = None


@dataclass(frozen=True, slots=True)
class FreeRuns:
    """Reordering-free runs: the RFC's counters x, a, p and q."""

    x: int = 0
    a: int = 0
    p: int = 0
    q: int = 0

    @property
    def average(self) -> float | None:
        """The average run length a / x; None without a finished run."""
        return self.a / self.x if self.x else None

    @property
    def variation(self) -> float | None:
        """(q/a) / (a/x): 1 when all runs have the same length, more when they vary; None when undefined."""
        return self.q * self.x / self.a**2 if self.a and self.x else None


@dataclass(frozen=True, slots=True)
class Summary:
    """The sample so far.

    received        L: arrivals in order or reordered.
    duplicates, undecided, before_start     arrivals that take no part.
    missing         numbers passed over and not received, in the gaps still remembered: in flight or lost.
    late_max_s      the largest late time; None without any.
    extents         extent -> number of messages, for extents up to `extent_bins`; `extents_beyond` counts the larger ones.
    n_reordered     n -> number of n-reordered messages, without the n that have none.
    reordering_gaps reordering gap -> number of discontinuities, likewise; 0 is a discontinuity with none before it.
    """

    received: int
    reordered: int
    duplicates: int
    undecided: int
    before_start: int
    discontinuities: int
    missing: int
    extents: Mapping[int, int]
    extents_beyond: int
    extent_max: int
    late_max_s: float | None
    n_reordered: Mapping[int, int]
    reordering_gaps: Mapping[int, int]
    reordering_gaps_beyond: int
    runs: FreeRuns

    @property
    def ratio(self) -> float:
        """The reordered ratio R, 0 without arrivals. A lower bound if `undecided` is not 0."""
        return self.reordered / self.received if self.received else 0.0

    @property
    def ratio_max(self) -> float:
        """The value of R if all undecided arrivals were first copies, and so reordered."""
        received = self.received + self.undecided
        return (self.reordered + self.undecided) / received if received else 0.0

    def degree(self, n: int) -> float:
        """Return the degree of n-reordering, exact for 1 <= n <= n_max; for n = 1 that of monotonic reordering."""
        return self.n_reordered.get(n, 0) / self.received if self.received else 0.0


@dataclass(frozen=True, slots=True)
class _Jump:
    """The arrival that passed over a gap: its position and time."""

    i: int
    t: float | None


class _Histogram:
    """Counts per value up to `bins`, and the number of larger values."""

    def __init__(self, bins: int) -> None:
        self.counts: Counter[int] = Counter()
        self.beyond = 0
        self._bins = bins

    def add(self, value: int) -> None:
        if value <= self._bins:
            self.counts[value] += 1
        else:
            self.beyond += 1


class _LookBack:
    """The number of arrivals just before each one that all have larger numbers, looking back at no more than `n_max`."""

    def __init__(self, n_max: int) -> None:
        self._n_max = n_max
        self._rising: deque[tuple[int, int]] = deque()  # (position, number) of arrivals that no later one undercut

    def larger_before(self, i: int, seq: int) -> int:
        """Return the number for the arrival at position i; call once for each position, in order."""
        rising = self._rising
        while rising and rising[-1][1] > seq:
            rising.pop()
        while rising and rising[0][0] < i - self._n_max:
            rising.popleft()
        n = i - 1 - rising[-1][0] if rising else min(i - 1, self._n_max)
        rising.append((i, seq))
        return n


class _Discontinuities:
    """The reordering discontinuities found so far, as arrival positions; at most `limit`, the earliest are forgotten first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[int] = []
        self._forgotten_to = 0

    def gap(self, j: int) -> int | None:
        """Return the reordering gap of j if j is new, else None."""
        at = bisect_left(self._found, j)
        if j <= self._forgotten_to or self._found[at : at + 1] == [j]:
            return None
        before = self._found[at - 1] if at else self._forgotten_to
        insort(self._found, j)
        if len(self._found) > self._limit:
            self._forgotten_to = self._found.pop(0)
        return j - before if before else 0


class ReorderMeter:
    """A meter of one stream: one source of ascending sequence numbers >= 0, such as one epoch of one key on one subscription.

    first        the first number of the stream: the start of NextExp. None if unknown: the first arrival sets NextExp.
    n_max        the largest n for n-reordering.
    gaps         the number of remembered gaps in the numbers.
    extent_bins  the largest extent, and reordering gap, with a separate count.

    Raises ValueError for a bound below 1.
    """

    def __init__(self, first: int | None = 1, *, n_max: int = 100, gaps: int = 1_000, extent_bins: int = 1_000) -> None:
        if min(n_max, gaps, extent_bins) < 1:
            raise ValueError("n_max, gaps and extent_bins must be at least 1")
        self._lowest = first or 0
        self._next_expected = first
        self._missing_from = first or 0
        self._gaps: Gaps[_Jump] = Gaps(gaps)
        self._look_back = _LookBack(n_max)
        self._discontinuities = _Discontinuities(gaps)
        self._kinds: Counter[ArrivalKind] = Counter()
        self._jumps = 0
        self._extents = _Histogram(extent_bins)
        self._reordering_gaps = _Histogram(extent_bins)
        self._extent_max = 0
        self._late_max_s: float | None = None
        self._n: Counter[int] = Counter()
        self._run = 0
        self._run_squares = 0

    def observe(self, seq: int, t: float | None = None) -> MeasuredArrival:
        """Measure the next arrival; `t` is its arrival time in seconds, for the late time only. Never raises."""
        arrival = self._measure(seq, t)
        self._kinds[arrival.kind] += 1
        return arrival

    def summary(self) -> Summary:
        """Return the metrics of all arrivals so far."""
        kinds, in_order, reordered = self._kinds, self._kinds[ArrivalKind.IN_ORDER], self._kinds[ArrivalKind.REORDERED]
        return Summary(
            received=in_order + reordered,
            reordered=reordered,
            duplicates=kinds[ArrivalKind.DUPLICATE],
            undecided=kinds[ArrivalKind.UNDECIDED],
            before_start=kinds[ArrivalKind.BEFORE_START],
            discontinuities=self._jumps,
            missing=sum(gap.last - gap.first + 1 for gap in self._gaps if gap.first >= self._missing_from),
            extents=dict(self._extents.counts),
            extents_beyond=self._extents.beyond,
            extent_max=self._extent_max,
            late_max_s=self._late_max_s,
            n_reordered=self._n_reordered(),
            reordering_gaps=dict(self._reordering_gaps.counts),
            reordering_gaps_beyond=self._reordering_gaps.beyond,
            runs=FreeRuns(x=reordered, a=in_order, p=in_order + reordered, q=self._run_squares),
        )

    def _measure(self, seq: int, t: float | None) -> MeasuredArrival:
        expected = self._next_expected
        if seq < self._lowest:
            return MeasuredArrival(seq, ArrivalKind.BEFORE_START)
        if expected is None or seq >= expected:
            return self._in_order(seq, t)
        if seq < self._gaps.known_from:
            return MeasuredArrival(seq, ArrivalKind.UNDECIDED)
        gap = self._gaps.find(seq)
        return MeasuredArrival(seq, ArrivalKind.DUPLICATE) if gap is None else self._reordered(seq, t, gap)

    def _position(self) -> int:
        return self._kinds[ArrivalKind.IN_ORDER] + self._kinds[ArrivalKind.REORDERED] + 1

    def _in_order(self, seq: int, t: float | None) -> MeasuredArrival:
        i, expected = self._position(), self._next_expected
        start = self._lowest if expected is None else expected
        if seq > start:
            self._gaps.add(start, seq - 1, _Jump(i, t))
        if expected is None:
            self._missing_from = seq  # earlier numbers are not known to be missing
        self._jumps += expected is not None and seq > expected
        self._next_expected = seq + 1
        self._look_back.larger_before(i, seq)
        self._run += 1
        return MeasuredArrival(seq, ArrivalKind.IN_ORDER, i)

    def _reordered(self, seq: int, t: float | None, gap: Gap[_Jump]) -> MeasuredArrival:
        i, j, jumped_at = self._position(), gap.mark.i, gap.mark.t
        self._gaps.fill(seq)
        extent = i - j
        self._extents.add(extent)
        self._extent_max = max(self._extent_max, extent)
        if t is not None and jumped_at is not None:
            late_s = t - jumped_at
            self._late_max_s = late_s if self._late_max_s is None else max(self._late_max_s, late_s)
        n = self._look_back.larger_before(i, seq)
        if n:
            self._n[n] += 1
        reordering_gap = self._discontinuities.gap(j)
        if reordering_gap is not None:
            self._reordering_gaps.add(reordering_gap)
        self._run_squares += self._run**2
        self._run = 0
        return MeasuredArrival(seq, ArrivalKind.REORDERED, i, extent, n, reordering_gap)

    def _n_reordered(self) -> dict[int, int]:
        """Return the n-reordered messages by n: those whose largest n is 5 are n-reordered for n = 1 ... 5."""
        counts: dict[int, int] = {}
        above = 0
        for n in range(max(self._n, default=0), 0, -1):
            above += self._n[n]
            counts[n] = above
        return counts
