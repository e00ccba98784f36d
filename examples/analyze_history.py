"""Draws hot keys and spent error budget from a probe history, with DuckDB and matplotlib.

    pip install duckdb matplotlib
    ordering-prober simulate --seeds 1..20 --history history     # or use the history of a prober
    python examples/analyze_history.py history --date 2025-12-20 --output charts

Writes `hot_keys.svg` and `budget.svg`. The cells between `# %%` lines can be run one by one in a notebook or an editor. The history is
documented in docs/history.md; the nightly jobs give the exact answers (docs/jobs.md).
"""

from __future__ import annotations

import argparse
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
from matplotlib import pyplot as plt
from matplotlib.dates import ConciseDateFormatter

from prober.slo.objectives import DEFAULTS

plt.switch_backend("agg")  # into files, without a screen
plt.rcParams["svg.fonttype"] = "none"  # text stays text

TOP = 10
SHOWN = 18
"""Characters of a key that are shown."""
MARGIN = timedelta(minutes=5)
OBJECTIVES = {one.indicator.value: one.target for one in DEFAULTS}
"""The share of good events that is aimed at, by indicator; your own objectives are in the configuration (docs/configuration.md)."""

# %% what a key carries, and how long its messages wait for their acknowledgement

HOT_KEYS = """
WITH
streams AS (  -- a stream of others is its topic: each run that observes it has a subscription of its own, and runs may overlap
    SELECT *, CASE WHEN epoch IS NULL THEN topic ELSE subscription END AS stream
    FROM messages
    QUALIFY epoch IS NOT NULL OR row_number() OVER (PARTITION BY target, topic, key, message_id ORDER BY received_at) = 1
),
minutes AS (
    SELECT target, stream, key, date_trunc('minute', intended_at) AS minute,
           sum(coalesce(bytes, 0)) / 60 AS bytes_per_s
    FROM streams GROUP BY ALL
),
peaks AS (SELECT target, stream, key, max(bytes_per_s) AS peak_bytes_per_s FROM minutes GROUP BY ALL),
waits AS (
    SELECT target, stream, key, any_value(probe || ', ' || vantage) AS probe, count(*) AS messages,
           quantile_cont(date_diff('microsecond', intended_at, waited_until) / 1e6, 0.99) AS wait_p99_s
    FROM streams GROUP BY ALL
)
SELECT key, probe, messages, peak_bytes_per_s, wait_p99_s
FROM waits JOIN peaks USING (target, stream, key)
ORDER BY peak_bytes_per_s DESC, wait_p99_s DESC, target, stream, key LIMIT ?
"""

# %% how fast each indicator of the checker spends its error budget, by the minute in which runs ended

BUDGET = """
WITH checks AS (
    SELECT date_trunc('minute', time) AS period, unnest(checks, recursive := true) FROM runs WHERE verdict IS NOT NULL
)
SELECT indicator, period, sum(bad) / nullif(sum(good) + sum(bad), 0) AS bad_share
FROM checks WHERE indicator <> 'publish_availability'  -- of that one the checks of runs know only what was never sent
GROUP BY ALL HAVING sum(good) + sum(bad) > 0 ORDER BY indicator, period
"""


def connect(history: Path, day: date) -> duckdb.DuckDBPyConnection:
    """A database with the views `messages` and `runs` of a day."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for table in ("messages", "runs"):
        files = f"{history}/{table}/date={day.isoformat()}/[!._]*.parquet"
        quoted = files.replace("'", "''")
        database.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{quoted}', union_by_name = true)")
    return database


# %% the charts


def shortened(text: str) -> str:
    """A text, without its middle if it is too long for a label."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}...{text[3 - SHOWN // 2 :]}"


def draw_hot_keys(database: duckdb.DuckDBPyConnection, output: Path) -> None:
    """The keys with the highest minute: what they carry, and how long the slowest hundredth of their messages waits."""
    rows = database.execute(HOT_KEYS, [TOP]).fetchall()[::-1]
    names = [f"{shortened(ascii(key))} ({probe})" for key, probe, *_ in rows]
    figure, (carries, waits) = plt.subplots(1, 2, figsize=(11, 0.45 * len(rows) + 1.8), sharey=True, layout="constrained")
    bars = carries.barh(range(len(rows)), [peak for *_, peak, _ in rows], color="#2f6f9f")
    carries.bar_label(bars, [f"{messages:,} messages" for _, _, messages, *_ in rows], padding=4, fontsize=8)
    carries.set(yticks=range(len(rows)), yticklabels=names, xlabel="bytes per second in the fullest minute", title="Hot keys")
    carries.margins(x=0.35)
    waits.barh(range(len(rows)), [wait or 0.0 for *_, wait in rows], color="#c0692b")
    waits.set(xlabel="seconds since the intended publish, 99th percentile", title="Until the acknowledgement")
    figure.savefig(output / "hot_keys.svg")
    plt.close(figure)


def draw_budget(database: duckdb.DuckDBPyConnection, output: Path) -> None:
    """How fast each indicator burns the budget of its objective: at 1 that lasts exactly as long as the window of the objective."""
    burns: dict[str, list[tuple[datetime, float]]] = {}
    for indicator, period, bad_share in database.execute(BUDGET).fetchall():
        burns.setdefault(indicator, []).append((period, bad_share / (1 - OBJECTIVES[indicator])))
    figure, axes = plt.subplots(figsize=(11, 4.5), layout="constrained")
    for indicator, points in burns.items():
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=f"{indicator} ({OBJECTIVES[indicator]:.4g})")
    times = [time for points in burns.values() for time, _ in points]
    if times:
        axes.set_xlim(min(times) - MARGIN, max(times) + MARGIN)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator(), tz="UTC"))
    axes.axhline(1, color="grey", linestyle="--", linewidth=1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set(ylim=(0, None), ylabel="times the budget", xlabel="UTC", title="Burn rates (and objectives)")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    figure.savefig(output / "budget.svg")
    plt.close(figure)


# %% everything


def main() -> None:
    """Draws both charts of a day."""
    parser = argparse.ArgumentParser(description="Draw hot keys and spent error budget from a probe history.")
    parser.add_argument("history", type=Path)
    parser.add_argument("--date", type=date.fromisoformat, required=True, help="a day in UTC")
    parser.add_argument("--output", type=Path, default=Path("charts"))
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    try:
        database = connect(asked.history, asked.date)
    except duckdb.IOException:
        parser.exit(2, f"{asked.history} has no messages or runs of {asked.date}: is it a history, and a day of it?\n")
    draw_hot_keys(database, asked.output)
    draw_budget(database, asked.output)


if __name__ == "__main__":
    main()
