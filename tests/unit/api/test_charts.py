"""Charts of durations: what is known is a line, what is not is a gap, and neither is ever a zero."""

from __future__ import annotations

from api.charts import HEIGHT, WIDTH, Chart, charts
from prober.core.verdict import Verdict
from prober.runs.result import Durations, RunResult
from prober.sinks.status.records import ProberState, RunRecord
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective

LIMIT = Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, 30 * DAY_S, threshold_s=0.5)
NOW = 100.0


def run(at: float, *known: float, indicator: Indicator = Indicator.PUBLISH_LATENCY) -> RunRecord:
    """A run that ended then; `known` are the median, what 99 % did not exceed, and the longest."""
    durations = {indicator: Durations(9, *known)} if known else {}
    result = RunResult(f"run-{at}", "ordering", "europe", "wire", Verdict.PASS, "", at, 0.0, durations=durations)
    return RunRecord(result, "", "", at, ProberState("prober-0", "1", 0.0, 0.0))


def chart(*runs: RunRecord, number: int = 0, now: float = NOW) -> Chart:
    """One of the charts of a site that runs every ten seconds."""
    return charts(runs, 10.0, now, [LIMIT])[number]


def test_without_runs_there_are_none() -> None:
    assert charts((), 10.0, NOW, [LIMIT]) == ()


def test_a_line_from_run_to_run() -> None:
    drawn = chart(run(60.0, 0.1, 0.5, 0.9), run(80.0, 0.2, 1.0, 2.0), run(100.0, 0.1, 0.0, 0.0))
    assert drawn.upper == f"M0 {HEIGHT / 2:.2f}h0L{WIDTH / 2:g} 0.00L{WIDTH:g} {HEIGHT:.2f}"
    assert drawn.lower.startswith(f"M0 {HEIGHT * 0.9:.2f}h0L")
    assert drawn.gaps == ()
    assert (drawn.ceiling_s, drawn.highest_s) == (1.0, 1.0)


def test_the_order_of_the_runs_does_not_matter() -> None:
    runs = (run(60.0, 0.1, 0.5, 0.9), run(80.0, 0.2, 1.0, 2.0))
    assert chart(*runs) == chart(*reversed(runs))


def test_a_run_that_knows_nothing_is_a_gap() -> None:
    drawn = chart(run(60.0, 0.1, 1.0, 1.0), run(70.0), run(80.0, 0.1, 1.0, 1.0), run(90.0, 0.1, 1.0, 1.0), now=100.0)
    assert drawn.upper == "M0 0.00h0M150 0.00h0L225 0.00"
    assert drawn.gaps == ((0.0, WIDTH / 2),)
    assert drawn.words.endswith("; 1 gap in which nothing is known")


def test_missing_runs_are_a_gap() -> None:
    drawn = chart(run(20.0, 0.1, 1.0, 1.0), run(60.0, 0.1, 1.0, 1.0), now=70.0)
    assert drawn.upper == "M0 0.00h0M240 0.00h0"
    assert drawn.gaps == ((0.0, 240.0),)


def test_a_few_missing_runs_are_none() -> None:
    assert chart(run(70.0, 0.1, 1.0, 1.0), run(100.0, 0.1, 1.0, 1.0)).gaps == ()


def test_silence_until_now_is_a_gap() -> None:
    drawn = chart(run(0.0, 0.1, 1.0, 1.0), run(10.0, 0.1, 1.0, 1.0))
    assert drawn.gaps == ((WIDTH / 10, WIDTH * 9 / 10),)


def test_nothing_known_at_all() -> None:
    drawn = chart(run(60.0), run(70.0), now=80.0)
    assert (drawn.upper, drawn.lower, drawn.latest) == ("", "", None)
    assert drawn.gaps == ((0.0, WIDTH),)
    assert (drawn.words, drawn.now) == ("publish latency: nothing is known", "unknown")


def test_what_the_newest_run_says() -> None:
    drawn = chart(run(90.0, 0.01, 0.04, 0.9), run(100.0, 0.012, 0.035, 0.9))
    assert drawn.now == "99 % within 35 ms, half within 12 ms"
    assert drawn.words == f"publish latency: {drawn.now}; at most 40 ms in the time shown"
    assert drawn.ceiling_s == 0.05


def test_of_an_age_the_longest_counts() -> None:
    drawn = chart(run(100.0, 0.1, 0.4, 26.0, indicator=Indicator.OLDEST_UNACKED_MESSAGE_AGE), number=2)
    assert (drawn.now, drawn.ceiling_s, drawn.lower) == ("up to 26 s", 50.0, "")


def test_the_limit_is_drawn_where_it_is_not_above_the_chart() -> None:
    assert chart(run(100.0, 0.1, 0.9, 0.9)).limit == HEIGHT / 2
    assert chart(run(100.0, 0.01, 0.09, 0.9)).limit is None
    assert chart(run(100.0, 0.1, 0.9, 0.9), number=1).limit is None


def test_nothing_but_zeros_is_a_line_at_the_bottom() -> None:
    drawn = chart(run(100.0, 0.0, 0.0, 0.0))
    assert drawn.upper.endswith(f" {HEIGHT:.2f}h0")
    assert drawn.ceiling_s > 0.0
