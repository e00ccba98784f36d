"""A synthetic history is legal but for what is planted in it, and the same every time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.core.verifier import Verifier
from prober.sinks.history.arrow import schema_of
from prober.sinks.history.reader import HistoryReader, StoredRun
from prober.sinks.history.rejudge import rejudge
from prober.sinks.history.schema import EVENTS
from prober.sinks.history.store import HistoryError
from prober.sinks.history.synthesis.plan import Recipe
from prober.sinks.history.synthesize import make_history
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.unit.sinks.history.recording import event_of

MIDNIGHT = 1_767_571_200.0  # 2026-01-05
RECIPE = Recipe(MIDNIGHT, days=2, events=12_000, seed=3)

Found = set[tuple[str, str, str, str]]


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthetic")
    make_history(str(folder), RECIPE)
    return folder


@pytest.fixture(scope="module")
def truth(location: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((location / "truth.json").read_bytes())
    return content


@pytest.fixture(scope="module")
def rows(location: Path) -> list[dict[str, Any]]:
    """All events, by run in recorder order."""
    table = ds.dataset(location / "events", schema=schema_of(EVENTS), format="parquet").to_table()
    listed: list[dict[str, Any]] = table.sort_by([("run_id", "ascending"), ("number", "ascending")]).to_pylist()
    return listed


@pytest.fixture(scope="module")
def verifiers(rows: list[dict[str, Any]], runs: Mapping[str, StoredRun]) -> dict[str, tuple[Verifier, Counter[Any]]]:
    """Every run judged whole."""
    judged: dict[str, tuple[Verifier, Counter[Any]]] = {}
    for row in rows:
        run = runs[row["run_id"]]
        name = next(iter(run.rules))
        verifier, found = judged.setdefault(row["run_id"], (Verifier(run.rules[name], subscriptions=(name,)), Counter()))
        found.update((one.key, one.kind, one.status) for one in verifier.observe(event_of(row)))
    for verifier, found in judged.values():
        found.update((one.key, one.kind, one.status) for one in verifier.finish())
    return judged


@pytest.fixture(scope="module")
def runs(location: Path) -> Mapping[str, StoredRun]:
    return {run.run_id: run for run in HistoryReader(str(location)).runs()}


def planted(truth: dict[str, Any]) -> Found:
    return {(one["run_id"], one["key"], found["kind"], found["status"]) for one in truth["violations"] for found in one["findings"]}


# --- violations --------------------------------------------------------------------------------------------------------------


def test_the_checker_finds_what_was_planted_and_nothing_else(
    verifiers: dict[str, tuple[Verifier, Counter[Any]]], truth: dict[str, Any]
) -> None:
    found = {
        (run_id, key, kind, status)
        for run_id, (_, counts) in verifiers.items()
        for key, kind, status in counts
        if status is not Status.INFO
    }
    assert found == planted(truth)
    assert {kind for _, _, kind, _ in found} == {
        Kind.ORDER_GAP,
        Kind.ORDER_INVERSION,
        Kind.REALTIME_INVERSION,
        Kind.REDELIVERY_SKIP,
        Kind.PHANTOM,
        Kind.AFFINITY_SPLIT,
        Kind.STUCK,
        Kind.ID_CONFLICT,
    }


def test_the_history_says_so_too(location: Path, truth: dict[str, Any]) -> None:
    stored = HistoryReader(str(location)).findings()
    found = {(one.run_id, one.made.finding.key, *one.made.sort) for one in stored if one.made.finding.status is not Status.INFO}
    assert found == planted(truth)


def test_judging_the_hot_keys_again_finds_the_stalled_one(location: Path, truth: dict[str, Any]) -> None:
    reader = HistoryReader(str(location))
    verdicts = {key: [one.judgement.verdict for one in rejudge(reader, key)] for key in ("hot-stalled", "hot-consumer", "roaming")}
    assert verdicts == {"hot-stalled": [Verdict.FAIL], "hot-consumer": [Verdict.PASS], "roaming": [Verdict.PASS]}


def test_a_run_counts_what_the_checker_counts(
    verifiers: dict[str, tuple[Verifier, Counter[Any]]], runs: Mapping[str, StoredRun]
) -> None:
    for run_id, (verifier, found) in verifiers.items():
        result = runs[run_id].result
        assert result is not None
        if result.verdict is Verdict.UNKNOWN:
            continue
        assert _but_chances(result.counters) == _but_chances(verifier.counters)
        assert (result.verdict is Verdict.FAIL) == any(status in (Status.VIOLATION, Status.LIVENESS) for _, _, status in found)


def _but_chances(counters: Mapping[str, int]) -> dict[str, int]:
    """Made-up traffic that no checker saw says nothing of the chances to see a promise broken."""
    return {name: count for name, count in counters.items() if count and not name.startswith("chances_")}


# --- hot keys ----------------------------------------------------------------------------------------------------------------


def test_hot_keys_are_hot(rows: list[dict[str, Any]], truth: dict[str, Any]) -> None:
    hot = {(one["target"], one["date"], one["class"]): one for one in truth["hot_keys"]}
    assert set(hot) == {
        *(("target-0", "2026-01-06", name) for name in ("throughput-bound", "consumer-bound", "skewed", "stalled")),
        ("target-1", "2026-01-05", "skewed"),
        ("target-1", "2026-01-06", "skewed"),
    }
    published: Counter[tuple[str, str, str]] = Counter()
    size: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        if row["event"] == "publish" and row["probe"] == "traffic":
            name = row["target"], f"{row['time']:%Y-%m-%d}", row["key"]
            published[name] += 1
            size[name] += row["message_bytes"]
    totals = Counter({name[:2]: 0 for name in published})
    for name, count in published.items():
        totals[name[:2]] += count
    for (target, date, _), one in hot.items():
        name = target, date, one["key"]
        assert published[name] == one["messages"]
        assert published[name] / totals[target, date] == pytest.approx(one["share"], abs=0.02)
        assert size[name] == pytest.approx(one["bytes_per_s"] * published[name] / one["messages_per_s"])
    assert 0.8e6 < hot["target-0", "2026-01-06", "throughput-bound"]["bytes_per_s"] <= 1e6


def test_the_backlog_of_a_consumer_bound_key_keeps_growing(rows: list[dict[str, Any]]) -> None:
    sent = {row["message_id"]: row["t"] for row in rows if row["key"] == "hot-consumer" and row["event"] == "published"}
    late = [row["t"] - sent[row["message_id"]] for row in rows if row["key"] == "hot-consumer" and row["event"] == "delivered"]
    assert late == sorted(late)
    assert late[-1] > 3000


# --- burn --------------------------------------------------------------------------------------------------------------------


def test_the_tallies_are_those_of_the_runs(truth: dict[str, Any], runs: Mapping[str, StoredRun]) -> None:
    counted: dict[tuple[str, str, str], SliCounts] = {}
    for run in runs.values():
        assert run.result is not None
        date = f"2026-01-0{5 + int((run.at - MIDNIGHT) // 86400)}"
        for indicator, tally in run.result.checks.items():
            name = run.context.target, date, indicator.value
            counted[name] = counted.get(name, SliCounts()) + tally
    stated = {
        (one["target"], one["date"], one["indicator"]): SliCounts(one["good"], one["bad"], one["undecided"])
        for one in truth["tallies"]
    }
    assert counted == stated
    assert stated["target-0", "2026-01-05", Indicator.ORDER].bad == 0
    burnt = stated["target-0", "2026-01-06", Indicator.ORDER]
    assert (burnt.bad, burnt.undecided) == (6, 20)  # two hours of broken order, one in which nothing was judged
    assert stated["target-0", "2026-01-06", Indicator.COMPLETENESS].bad > 1
    assert stated["target-1", "2026-01-06", Indicator.ORDER].bad == 0


def test_publishes_are_rejected_and_deliveries_slow_in_their_windows_only(rows: list[dict[str, Any]]) -> None:
    traffic = [row for row in rows if row["target"] == "target-0" and row["probe"] == "traffic" and row["time"].day == 6]
    rejected = {row["time"].hour for row in traffic if row["event"] == "publish_failed"}
    assert rejected == {14}
    sent = {row["message_id"]: row["time"] for row in traffic if row["event"] == "published"}
    slow = Counter(
        sent[row["message_id"]].hour
        for row in traffic
        if row["event"] == "delivered"
        and row["key"] not in ("hot-consumer",)
        and (row["time"] - sent[row["message_id"]]).total_seconds() > 2.0
    )
    assert set(slow) <= {10, 11}
    assert slow[10] > 10


# --- the whole ---------------------------------------------------------------------------------------------------------------


def test_events_are_numbered_in_the_order_of_time(rows: list[dict[str, Any]], truth: dict[str, Any]) -> None:
    assert len(rows) == truth["events"]
    for before, row in pairwise(rows):
        if before["run_id"] == row["run_id"]:
            assert row["number"] == before["number"] + 1
            assert row["t"] >= before["t"]
        else:
            assert row["number"] == 1


def test_the_same_recipe_gives_the_same_history(location: Path, tmp_path: Path) -> None:
    make_history(str(tmp_path), RECIPE)
    for path in location.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(location)).read_bytes() == path.read_bytes()


def test_another_seed_gives_another(location: Path, tmp_path: Path) -> None:
    told: list[int] = []
    other = make_history(str(tmp_path), Recipe(MIDNIGHT, days=1, events=6000, targets=1, keys=3, seed=4), told.append)
    assert told == sorted(told)
    assert told[-1] == other.events
    first = ds.dataset(tmp_path / "events", schema=schema_of(EVENTS), format="parquet").to_table()
    assert pc.count_distinct(first["key"]).as_py() == 3 + 6 + 4
    assert not (tmp_path / "events/date=2026-01-06").exists()


def test_a_history_is_not_written_over(location: Path) -> None:
    with pytest.raises(HistoryError, match="holds a history already"):
        make_history(str(location), RECIPE)


@pytest.mark.parametrize("wrong", [{"start": MIDNIGHT + 1}, {"days": 0}, {"events": 0}, {"targets": 0}, {"keys": 0}, {"seed": -1}])
def test_a_recipe_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Recipe(**{"start": MIDNIGHT} | wrong)
