"""The soak: what it calls broken, what a trouble excuses, and when troubles come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from benchmarks.soak.samples import READ, Labels, Occupied, Sample
from benchmarks.soak.setting import LOAD_PER_S, configured, configured_for_load
from benchmarks.soak.troubles import AFTER_S, BACK, FORWARD, STEP_S, Spell, SteppedClock, Timetable, Trouble
from benchmarks.soak.violations import Soak
from prober.config.loading import load
from prober.embedded.catalogue import CATALOGUE
from prober.probes.catalogue import ProbeName

EVERY_S = 10.0
BEGAN_AT = 1_700_000_000.0
SERVICE = Occupied(300.0, 60, 12, 10.0, 0.0)
FINDING = {
    "kind": "ORDER_GAP",
    "key": "ordering-2",
    "target": "soak",
    "run_id": "ordering-1",
    "evidence": {"lines": []},
    "unproven_because": "",
    "found_at": "2023-11-14T22:15:30Z",  # 130 s after the begin
}
RUN = {"run_id": "ordering-1", "target": "soak", "probe": "ordering", "verdict": "PASS", "reason": "", "duration_s": 4.0}


def sample(t: float, changed: Mapping[str, Mapping[Labels, float]] | None = None, service: Occupied = SERVICE) -> Sample:
    """A moment in which nothing is wrong: each probe has passed once."""
    metrics: dict[str, Mapping[Labels, float]] = {name: {} for name in READ}
    metrics["probe_runs"] = {("soak", probe, "pass"): 1.0 for probe in ProbeName}
    metrics["probe_runs_expected"] = {("soak", probe): 1.0 for probe in ProbeName}
    metrics |= {name: {(): 0.0} for name in ("history_failures", "status_failures")}
    metrics |= {name: {(): 1.0} for name in ("status_store_up", "config_last_reload_successful")}
    return Sample(t, service, service, {0.1: 100.0, inf: 100.0}, metrics | dict(changed or {}))


def soak(last: Sample | None = None, spells: tuple[Spell, ...] = (), **reported: Any) -> Soak:
    """Half an hour in which nothing was wrong, until the last moment."""
    samples = [sample(number * EVERY_S) for number in range(180)]
    reported = {"runs": [RUN], "counted": Counter({("soak", "PASS"): 1})} | reported
    injected = {name: 1 for name, known in CATALOGUE.items() if known.benign}
    seen = Soak(
        load(None, {"ORDERING_PROBER_TARGETS__0__NAME": "soak"}).targets,
        BEGAN_AT,
        [*samples, last or sample(1800.0)],
        spells,
        injected=injected,
        **reported,
    )
    return seen


def trouble(**what: Any) -> Trouble:
    return replace(Trouble("a trouble", 60.0, nullcontext, lambda _, __: True), **what)


def spell(what: Trouble, began_t: float = 100.0, ended_t: float = 160.0) -> Spell:
    return Spell(what, began_t, ended_t, sample(began_t))


PLANTED = spell(trouble(name="swap_in_batch", planted="swap_in_batch:p=0.3,key=ordering-[024]"))


def test_where_nothing_is_wrong_nothing_is_broken() -> None:
    assert list(soak().broken()) == []
    assert list(soak(spells=(PLANTED,), findings=[FINDING]).broken()) == []


@pytest.mark.parametrize(
    ("spells", "changed", "words"),
    [
        ((), {}, "false alarm: ORDER_GAP on key ordering-2 of soak"),
        ((PLANTED,), {"key": "ordering-1"}, "false alarm"),
        ((PLANTED,), {"target": "load"}, "false alarm"),
        ((PLANTED,), {"kind": "STUCK"}, "false alarm"),
        ((PLANTED,), {"found_at": "2023-11-14T22:20:00Z"}, "false alarm"),
        ((PLANTED,), {"evidence": None}, "neither proven, nor said why not"),
        ((PLANTED,), {"evidence": None, "unproven_because": "no time"}, "swap_in_batch: no finding of it was proven"),
    ],
)
def test_only_what_was_planted_may_be_found_then_and_there_and_with_a_proof(
    spells: tuple[Spell, ...], changed: dict[str, Any], words: str
) -> None:
    assert any(words in line for line in soak(spells=spells, findings=[FINDING | changed]).broken())


@pytest.mark.parametrize(
    ("metric", "labels", "words"),
    [
        ("findings", ("STUCK", "liveness"), "STUCK: counted, and not in the store"),
        ("internal_errors", ("probe",), "1 x internal_errors of probe"),
        ("events_dropped", ("history",), "1 x events_dropped of history"),
        ("scheduler_skips", ("soak", "ordering", "overlap"), "ordering on soak: 1 runs skipped, overlap; 0 of them"),
        ("scheduler_skips", ("soak", "ordering", "misfire"), "1 runs skipped, misfire"),
        ("probe_runs_expected", ("soak", "ordering"), "ordering on soak: 3 runs were due, 1 ended or were skipped"),
    ],
)
def test_what_failed_or_did_not_happen_is_reported(metric: str, labels: Labels, words: str) -> None:
    good = sample(1800.0).metrics[metric]
    changed = {metric: {**good, labels: 3.0 if metric == "probe_runs_expected" else 1.0}}
    assert any(words in line for line in soak(sample(1800.0, changed)).broken())


def test_a_long_run_explains_the_runs_that_did_not_begin_meanwhile() -> None:
    skips: dict[str, dict[Labels, float]] = {"scheduler_skips": {("soak", "ordering", "overlap"): 2.0}}
    assert not list(soak(sample(1800.0, skips), runs=[RUN | {"duration_s": 25.0}]).unexplained_skips())
    assert list(soak(sample(1800.0, skips), runs=[RUN | {"duration_s": 15.0}]).unexplained_skips())


@pytest.mark.parametrize(
    ("ended_t", "excuses", "is_excused"),
    [
        (1790.0, {"status_failures"}, True),
        (1790.0, {"history_failures"}, False),
        (1780.0 - AFTER_S, {"status_failures"}, False),
    ],
)
def test_a_trouble_excuses_what_it_causes_and_not_for_long(ended_t: float, excuses: set[str], is_excused: bool) -> None:
    during = spell(trouble(excuses=frozenset(excuses)), 1600.0, ended_t)
    seen = soak(sample(1800.0, {"status_failures": {(): 2.0}}), (during,))
    assert list(seen.failures()) == ([] if is_excused else ["2 x status_failures"])


def test_a_trouble_that_never_shows_was_none() -> None:
    hidden = spell(trouble(name="the target hangs", shows=lambda _, __: False))
    assert list(soak(spells=(hidden,)).broken()) == ["the target hangs: it never showed"]


@pytest.mark.parametrize("name", ["status_store_up", "config_last_reload_successful"])
def test_the_service_must_be_well_in_the_end(name: str) -> None:
    assert list(soak(sample(1800.0, {name: {(): 0.0}})).broken()) == [f"{name} is not 1 in the end"]


def test_every_prober_must_be_well_in_the_end() -> None:
    last = replace(sample(1800.0), probers=2)
    assert len(list(soak(last).broken())) == 2


def test_what_the_metrics_counted_must_be_stored() -> None:
    seen = soak(counted=Counter({("soak", "PASS"): 2}))
    assert list(seen.lost_runs()) == ["('soak', 'PASS'): 2 runs counted, 1 in the store"]


def test_an_unknown_run_says_why() -> None:
    seen = soak(runs=[RUN | {"verdict": "UNKNOWN"}], counted=Counter({("soak", "UNKNOWN"): 1}))
    assert list(seen.lost_runs()) == ["ordering-1: not PASS, and no reason"]


@pytest.mark.parametrize(
    ("grown", "words"),
    [
        (replace(SERVICE, memory_mib=330.0), "the memory of the service grew by 10.0% after 600 s"),
        (replace(SERVICE, descriptors=100), "40 descriptors more at the end than at the beginning"),
        (replace(SERVICE, threads=40), "28 threads more at the end than at the beginning"),
    ],
)
def test_what_grows_is_reported_unless_a_trouble_explains_it(grown: Occupied, words: str) -> None:
    seen = soak()
    seen.samples = [replace(one, service=grown) if one.t >= 1200.0 else one for one in seen.samples]
    assert list(seen.broken()) == [words]
    seen.spells = (spell(trouble(), 1200.0, 1800.0),)
    assert list(seen.broken()) == []


def test_a_late_event_loop_is_reported_unless_others_had_the_processors() -> None:
    late = replace(sample(1800.0), lags={0.1: 90.0, 0.25: 100.0, inf: 100.0})
    assert list(soak(late).broken()) == ["the event loop was up to 0.25 s late in 99% of the cases"]
    assert list(soak(replace(late, service=replace(SERVICE, waited_s=300.0))).broken()) == []


def test_troubles_come_one_after_the_other_with_quiet_between_them() -> None:
    seen: list[str] = []

    @contextmanager
    def noted(name: str) -> Iterator[None]:
        seen.append(f"{name} on")
        yield
        seen.append(f"{name} off")

    both = [
        trouble(name=name, inflicted=lambda name=name: noted(name), lasts_s=lasts_s)
        for name, lasts_s in (("a", 30.0), ("b", 900.0))
    ]
    with Timetable(both, 600.0) as timetable:
        reported = {t: words for t in range(0, 600, 10) if (words := timetable.look(sample(float(t))))}
    assert reported == {120: "a: begins", 150: "a: ends", 360: "b: begins", 510: "b: ends"}
    assert seen == ["a on", "a off", "b on", "b off"]
    assert [(one.began_t, one.ended_t) for one in timetable.spells] == [(120.0, 150.0), (360.0, 510.0)]


def test_what_is_left_undone_ends_with_the_timetable() -> None:
    ended: list[str] = []

    @contextmanager
    def lasting() -> Iterator[None]:
        yield
        ended.append("over")

    with Timetable([trouble(inflicted=lasting)], 600.0) as timetable:
        timetable.look(sample(120.0))
    assert ended == ["over"]


def test_the_configurations_ask_for_all_probes_and_for_the_load(tmp_path: Path) -> None:
    file = tmp_path / "prober.yaml"
    file.write_text(str(configured_for_load("127.0.0.1:2")), encoding="utf-8")
    hot = load(file, {}).targets[0].probes
    assert set(hot) == {ProbeName.ORDERING}
    assert hot[ProbeName.ORDERING].rate == LOAD_PER_S * 20 // 15
    file.write_text(str(configured("127.0.0.1:1", tmp_path)), encoding="utf-8")
    assert load(file, {}).targets[0].probes == load(None, {}).targets[0].probes


def test_the_clock_goes_on_from_where_it_was_set() -> None:
    clock = SteppedClock(lambda: 7.0)
    clock.step(FORWARD, None)
    assert clock() == 7.0 + STEP_S
    clock.step(BACK, None)
    assert clock() == 7.0
