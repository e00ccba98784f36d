"""One error budget everywhere: recorded rules, status store and API, and `slo-burn` agree on budgets and burn rates.

The same counts are scraped, reported to the status store, and given to the job: over a part of the period, a whole one, and one with a gap.

Tolerances follow from the steps. Store and job count the same clock hours, so budgets differ only by what the edge of a window holds. The
rules sample the last hour every five minutes: an hour and a sample for each stretch of measuring. A window of the store is right to half a
slice, one of the rules to a scrape, and those above six hours to an hour. The latter lack things for as long, so tickets come later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from prober.alerting import objectives as rules
from prober.alerting.catalogue import OBJECTIVES, rule_files
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import families
from prober.sinks.status.database import Database
from prober.sinks.status.overview import Overview
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.slices import Series, Slices, counted_windows, definition_of, length_for
from prober.sinks.status.store import StatusStore
from prober.slo.budgets import RULE_SAMPLE_S, STEP_S
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S, AlertState, Objective, SliCounts, windows_s
from spark_jobs.burn import alert_days, window_lengths_min, window_rows, window_sums
from spark_jobs.slo_burn import MINUTES
from tests.alerts.stories import of
from tests.alerts.tools import said
from tests.nightly import nightly_but

ORDER: Final = Objective("order", Indicator.ORDER, 0.99, 2 * DAY_S)
SERIES: Final = Series("t", ORDER.name, definition_of(ORDER))
SCRAPE_S: Final = MINUTE_S
CALM, BAD = SliCounts(199, 1), SliCounts(190, 10)
SWING: Final = 4.5
"""Between the burn rates of the two."""


@dataclass(frozen=True)
class Reported:
    """A prober was up from each minute to another, and every minute of `bad` was bad; how it stands at minute `now`."""

    up: tuple[tuple[int, int], ...]
    bad: range
    now: int

    def counts(self) -> Iterator[tuple[int, list[SliCounts]]]:
        """When each process started, and what it counted minute by minute."""
        for begin, end in self.up:
            yield begin, [BAD if minute in self.bad else CALM for minute in range(begin, min(end, self.now))]


CASES: Final = {
    "four minutes that just ended": Reported(((70, 74),), range(100), 76),
    "four minutes, hours ago": Reported(((70, 74),), range(100), 301),
    "more than a period": Reported(((17, 9_999),), range(3_290, 9_999), 3_400),
    "a gap": Reported(((17, 600), (1_123, 9_999)), range(1_500, 1_600), 1_640),
}


@dataclass(frozen=True)
class Standing:
    """Budget, burn rates and alerts by one of the places."""

    left: float | None
    burn: Mapping[float, float | None]
    alerts: Mapping[float, str]


@pytest.mark.parametrize("name", nightly_but(CASES.keys() - {"more than a period"}, CASES))  # promtool takes half a minute for days
def test_the_budget_is_the_same_everywhere(name: str, spark: SparkSession, tmp_path: Path) -> None:
    reported = CASES[name]
    stored, burnt = _stored(reported, tmp_path), _burnt(reported, spark)
    assert stored.left is not None
    assert burnt.left == pytest.approx(stored.left, abs=_burn_tolerance(ORDER.window_s))
    assert stored.alerts == burnt.alerts
    for window_s in windows_s(ORDER):
        assert burnt.burn[window_s] == pytest.approx(stored.burn[window_s], abs=_burn_tolerance(window_s)), window_s
    code, words = said("promtool", "test", "rules", _story(reported, stored, tmp_path))
    assert code == 0, words


def _burn_tolerance(window_s: float) -> float:
    steps_s = length_for(window_s) / 2 + SCRAPE_S + (HOUR_S if window_s > rules.READ_OFF_MAX_S else 0.0)
    return SWING * min(1.0, steps_s / window_s)


def _stored(reported: Reported, folder: Path) -> Standing:
    """By the status store and the API."""
    database = Database(f"sqlite:///{folder}/status.db")
    store, now = StatusStore(database), reported.now * MINUTE_S
    store.prepare()
    for begin, counts in reported.counts():
        process = f"p{begin}"
        slices = Slices(process)
        for minute, total in enumerate(accumulate(counts), begin):
            slices.record(SERIES, total, minute * MINUTE_S + 30.0)
        store.heartbeat(ProberRecord(process, "1", begin * MINUTE_S, now), (), slices.as_slices(slices.take()))
    queries = StatusQueries(database)
    onlooker = LiveState((), version="1", instance="api", started_at=now).snapshot(now)
    (slo,) = Overview(queries, [ORDER]).snapshot(onlooker).slos
    windows = counted_windows(slo, {window_s: queries.counts(window_s, now) for window_s in windows_s(ORDER)})
    burn = {window.window_s: window.burn_rate for window in windows}
    database.close()
    return Standing(slo.budget_left, burn, {one.window_s: one.state.value for one in slo.burn})


def _burnt(reported: Reported, spark: SparkSession) -> Standing:
    """By the job."""
    rows = [
        (ORDER.name, "t", minute, one.good, one.bad, one.undecided)
        for begin, counts in reported.counts()
        for minute, one in enumerate(counts, begin)
    ]
    minutes = spark.createDataFrame(rows, MINUTES)
    sums = [row.asDict() for row in window_sums(minutes, window_lengths_min(ORDER), reported.now).collect()]
    windows: dict[float, Any] = {row["window_s"]: row for row in window_rows(sums, [ORDER], reported.now)}
    alerts = {row["long_s"]: row["state"] for row in alert_days(minutes, [ORDER], reported.now - 1, reported.now)}
    burn = {window_s: row["burn_rate"] for window_s, row in windows.items()}
    return Standing(windows[ORDER.window_s]["budget_left"], burn, alerts)


def _story(reported: Reported, expected: Standing, folder: Path) -> Path:
    """What Prometheus must say, played by promtool on the real rules."""
    (folder / OBJECTIVES).write_text(rule_files([ORDER])[OBJECTIVES], encoding="utf-8")
    stretch_s = (STEP_S + RULE_SAMPLE_S) * len(reported.up)
    rate = expected.burn[ORDER.window_s]
    assert expected.left is not None
    assert rate is not None
    spent = rate * stretch_s / ORDER.window_s + _burn_tolerance(ORDER.window_s)
    asked = [_near(rules.SPENT, 1.0 - expected.left, spent), _near(rules.REMAINING, expected.left, spent)]
    for window_s, rate in expected.burn.items():
        asked.append(_near(rules.burn_rate_series(window_s), rate, _burn_tolerance(window_s)))
    alerts = {"critical": (HOUR_S, 6 * HOUR_S), "warning": (DAY_S, 3 * DAY_S)}
    if (reported.now - reported.up[0][0]) * MINUTE_S < HOUR_S:
        del alerts["warning"]
    for severity, windows in alerts.items():
        fires = any(expected.alerts[window_s] == AlertState.FIRING for window_s in windows)
        alert = f'ALERTS{{alertname="PubsubErrorBudgetBurn", severity="{severity}"}}'
        asked.append({"expr": f"count({alert}) or vector(0)", "exp_samples": [{"labels": "{}", "value": int(fires)}]})
    series = [
        {"series": of(families.CHECKS[ORDER.indicator], subscription="s", result=result), "values": _scraped(reported, result)}
        for result in ("good", "bad")
    ]
    tests = [one | {"eval_time": f"{reported.now}m"} for one in asked]
    test = {"name": "budget", "interval": "1m", "input_series": series, "promql_expr_test": tests}
    path = folder / "budget.yaml"
    document = {"rule_files": [OBJECTIVES], "evaluation_interval": "1m", "tests": [test]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _near(name: str, expected: float | None, tolerance: float) -> dict[str, Any]:
    one = f'{name}{{slo="{ORDER.name}"}}'
    if expected is None:
        return {"expr": f"count({one} >= 0) or vector(0)", "exp_samples": [{"labels": "{}", "value": 0}]}
    return {
        "expr": f"max(abs({one} - {expected!r}) <= bool {tolerance!r})",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }


def _scraped(reported: Reported, result: str) -> str:
    """One value a minute: the total of the process that is up then, which starts at 0; nothing while none is."""
    values = ["_"] * (reported.now + 1)
    for begin, counts in reported.counts():
        for minute, total in enumerate(accumulate(counts, initial=SliCounts()), begin):
            values[minute] = str(getattr(total, result))
        if begin + len(counts) < reported.now:
            values[begin + len(counts) + 1] = "stale"
    return " ".join(values)
