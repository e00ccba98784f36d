"""Incidents: one fault is one, however rarely it shows, until it had chances enough to show and did not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.runs.site import SiteKey
from prober.sinks.live.incidents import (
    HISTORY_MAX,
    MET_MAX,
    MET_MIN,
    QUIET_MAX_S,
    YOUNG_RUNS_MAX,
    Acknowledgement,
    Exemplar,
    Incident,
    after_run,
    closes_after,
    found_in,
    had_chance,
)
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

SITE = SiteKey("europe", "ordering", "wire")
GOOD, NOTHING = {Indicator.ORDER: SliCounts(100)}, dict[Indicator, SliCounts]()


def run(
    at: float, found: int = 0, kind: Kind = Kind.ORDER_GAP, status: Status = Status.VIOLATION, chance: bool = True
) -> RunResult:
    """A run of one second that began then and found so much."""
    checks = {Indicator.ORDER: SliCounts(100 - found, found)} if chance else NOTHING
    counts = {(kind, status): found} if found else {}
    return RunResult(f"run-{at:g}", "ordering", "europe", "wire", Verdict.UNKNOWN, "", at, 1.0, counts=counts, checks=checks)


class Site:
    """Runs of one site, one every ten seconds, and its incidents; those that are over in the order in which they began."""

    def __init__(self) -> None:
        self.at = 0.0
        self.open: dict[Kind, Incident] = {}
        self.over: list[Incident] = []

    def tell(self, result: RunResult, *, exemplar: Exemplar | None = None) -> None:
        shown = {} if exemplar is None else dict.fromkeys(found_in(result), exemplar)
        self.open |= after_run(self.open, SITE, result, result.started_at + 1.0, shown)
        self.over += [one for one in self.open.values() if one.closed_at is not None]
        self.open = {kind: one for kind, one in self.open.items() if one.closed_at is None}

    def ran(self, *found: int, chance: bool = True) -> Site:
        for count in found:
            self.at += 10.0
            self.tell(run(self.at, count, chance=chance))
        return self

    @property
    def gap(self) -> Incident:
        return self.open[Kind.ORDER_GAP]


class TestWhenItIsOver:
    @pytest.mark.parametrize(
        ("runs", "chances", "after"),
        [(1, 1, 60), (5, 5, 6), (100, 100, 4), (10_000, 10_000, MET_MIN + 1), (10, 100, 55), (1, 500, MET_MAX)],
    )
    def test_the_rarer_it_may_be_the_longer_it_takes(self, runs: int, chances: int, after: int) -> None:
        assert closes_after(runs, chances) == after

    @given(st.integers(1, 300), st.integers(0, 3_000))
    def test_what_is_still_there_at_the_rarest_would_have_shown(self, runs: int, others: int) -> None:
        after = closes_after(runs, runs + others)
        assert MET_MIN <= after <= MET_MAX
        assert after <= closes_after(runs, runs + others + 1)
        assert after >= min(MET_MAX, 3 * (runs + others) / runs)

    def test_a_lucky_run_closes_nothing(self) -> None:
        site = Site().ran(3, 3, 3, 0)
        assert (site.gap.runs, site.gap.met_in_a_row, site.gap.first_at) == (3, 1, 11.0)

    def test_it_is_over_after_so_many_chances_and_a_new_one_begins_anew(self) -> None:
        site = Site().ran(*[1] * 5, *[0] * 6)
        (over,) = site.over
        assert (over.closed_at, over.last_at, site.open) == (111.0, 51.0, {})
        assert site.ran(1).gap.first_at == 121.0
        assert site.gap.incident_id != over.incident_id

    def test_an_intermittent_fault_is_one_incident_with_its_true_begin(self) -> None:
        site = Site().ran(*([1] + [0] * 9) * 20)
        assert site.over == []
        assert (site.gap.first_at, site.gap.runs, site.gap.chances, site.gap.met_in_a_row) == (11.0, 20, 200, 9)

    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_runs_that_could_not_show_it_count_neither_way(self, verdict: Verdict) -> None:
        site = Site().ran(*[1] * 5).ran(*[0] * 500, chance=False)
        assert (site.gap.chances, site.gap.met_in_a_row) == (5, 0)

    def test_time_alone_closes_nothing_but_shortens_what_would_take_for_ever(self) -> None:
        site = Site().ran(1)
        site.at += QUIET_MAX_S
        assert site.ran(0, 0).gap.met_in_a_row == 2
        assert site.ran(0).open == {}

    @given(st.lists(st.sampled_from([0, 1, None]), max_size=150))
    def test_the_numbers_agree_with_the_runs(self, runs: list[int | None]) -> None:
        site = Site()
        for found in runs:
            site.ran(found or 0, chance=found is not None)
        for one in (*site.over, *site.open.values()):
            assert one.runs == one.findings == one.bad
            assert one.decided == 100 * one.chances
            assert one.history == one.history.rstrip("0") + "0" * min(one.met_in_a_row, HISTORY_MAX)
            assert len(one.history) == min(one.chances, HISTORY_MAX)
            assert one.history.count("1") == one.runs or one.chances > HISTORY_MAX
        assert sum(one.runs for one in (*site.over, *site.open.values())) == sum(found or 0 for found in runs)


class TestWhatItKnows:
    def test_all_findings_count_and_the_worst_status(self) -> None:
        site = Site()
        site.tell(run(10.0, 40, Kind.STUCK, Status.LIVENESS))
        site.tell(run(20.0, 2, Kind.STUCK))
        assert (site.open[Kind.STUCK].findings, site.open[Kind.STUCK].status) == (42, Status.VIOLATION)

    def test_what_fails_no_run_begins_none(self) -> None:
        site = Site()
        site.tell(run(10.0, 40, status=Status.INDETERMINATE))
        assert site.open == {}

    def test_the_share_is_that_of_the_counted_things(self) -> None:
        assert Site().ran(3, 0, 0).gap.bad_share == 0.01

    def test_a_kind_that_nothing_counts_has_no_share_and_its_chances_are_runs_in_which_something_came(self) -> None:
        site = Site()
        site.tell(run(10.0, 1, Kind.PHANTOM))
        site.tell(run(20.0))
        site.tell(run(30.0, chance=False))
        phantom = site.open[Kind.PHANTOM]
        assert (phantom.bad_share, phantom.chances) == (None, 2)
        assert not had_chance(Kind.PHANTOM, run(1.0, chance=False))

    def test_runs_may_be_told_in_any_order(self) -> None:
        site = Site()
        site.tell(run(50.0, 1))
        site.tell(run(60.0))
        site.tell(run(30.0, 1))
        site.tell(run(40.0))
        gap = site.gap
        assert (gap.first_at, gap.last_at, gap.runs, gap.chances, gap.met_in_a_row) == (31.0, 51.0, 2, 4, 1)

    def test_a_finding_that_comes_after_its_incident_was_closed_belongs_to_it(self) -> None:
        over = Site().ran(*[1] * 5, *[0] * 6).over[0]
        late = after_run({over.kind: over}, SITE, run(45.0, 1), 46.0, {})[over.kind]
        assert (late.runs, late.closed_at, late.last_at) == (6, over.closed_at, 51.0)


class TestExemplar:
    def shown(self, *exemplars: Exemplar) -> Exemplar:
        site = Site()
        for number, exemplar in enumerate(exemplars, 1):
            site.tell(run(10.0 * number, 1), exemplar=exemplar)
        return site.gap.exemplar

    def test_a_proof_beats_none(self) -> None:
        assert self.shown(Exemplar("a", None), Exemplar("b", None)).finding_id == "a"
        assert self.shown(Exemplar("a", None), Exemplar("b", 40), Exemplar("c", None)).finding_id == "b"

    def test_a_smaller_one_beats_a_larger_one_while_it_is_young(self) -> None:
        assert self.shown(Exemplar("a", 40), Exemplar("b", 24), Exemplar("c", 30)).finding_id == "b"
        assert self.shown(*[Exemplar("a", 40)] * YOUNG_RUNS_MAX, Exemplar("b", 24)).finding_id == "a"


def test_an_acknowledgement_ends() -> None:
    gap = Site().ran(1).gap
    assert not gap.is_acknowledged(0.0)
    for until, then in ((None, True), (10.0, False)):
        known = replace(gap, acknowledged=Acknowledgement(1.0, "ada", "a known fault", until))
        assert (known.is_acknowledged(9.0), known.is_acknowledged(10.0)) == (True, then)
