"""What the nightly jobs cost, against a bare Spark `groupBy(key).count()` over the same files, and how that grows with the events.

    python -m benchmarks.spark_jobs [--events N ...] [--folder FOLDER] [--repeat R] [--memory 3g] [--jobs NAME ...]

For each number of events a day of history (`benchmarks.days`) is written below FOLDER, unless it is there, and every job runs on it R
times; the best counts, and the first one is told too, since a night has but one. Each size has a process of its own, so that peaks of
memory can be compared, and so has the bare count, under the options that Java has by itself. Time is given on the wall and in processor
seconds of everything that worked for it; ratios are of processor seconds, which other work on the machine disturbs less. It says how
many of the day's hot keys were found, and what reverify found: nothing, since all of the day is legal. If DuckDB can be imported
(`pip install duckdb`), it answers three of the same questions from the same files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from shutil import copytree, rmtree
from time import perf_counter, time

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks.days import HOT, write_day
from prober.sinks.history.schema import EVENTS, RUNS
from spark_jobs import compact, hot_keys, reverify, slo_burn
from spark_jobs.history import History, folders_of
from spark_jobs.session import session
from spark_jobs.work import Reports, Work

DAY = date(2026, 1, 5)
CORES = 2
TICKS = os.sysconf("SC_CLK_TCK")
ALL = ("hot-keys", "slo-burn", "reverify", "compact")


def main() -> None:
    """Measures every size in a process of its own and prints a line for each measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "spark-jobs-benchmark")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--jobs", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bare-s", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    location = asked.folder / f"events-{asked.events[0]}"
    if asked.bare:
        _measure_bare(location, asked.repeat, asked.memory)
        return
    if asked.bare_s:
        _measure(location, asked.repeat, asked.memory, asked.jobs, asked.bare_s)
        return
    for events in asked.events:
        location = asked.folder / f"events-{events}"
        if not (location / RUNS.name).exists():
            rmtree(location, ignore_errors=True)
            print(f"writing {events:,} events", flush=True)
            write_day(str(location), DAY, events)
        more = ["--folder", str(asked.folder), "--repeat", str(asked.repeat), "--memory", asked.memory, "--jobs", *asked.jobs]
        print(f"\n{_events_in(location):,} events", flush=True)
        program = [sys.executable, "-m", "benchmarks.spark_jobs", "--events", str(events), *more]
        said = subprocess.run([*program, "--bare"], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(said, end="", flush=True)
        subprocess.run([*program, "--bare-s", said.partition("wall, ")[2].split()[0]], check=True)


def _measure_bare(location: Path, repeat: int, memory: str) -> None:
    with session(f"local[{CORES}]", memory=memory, java_options="-XX:+UseParallelGC") as spark:
        rows = History(spark, str(location)).read(EVENTS, folders_of(EVENTS, DAY, DAY))
        _best("groupBy(key).count()", lambda: _compute(rows.groupBy("key").count()), repeat + 2)


def _measure(location: Path, repeat: int, memory: str, jobs: list[str], bare_s: float) -> None:
    with tempfile.TemporaryDirectory(dir=location.parent) as scratch, session(f"local[{CORES}]", memory=memory) as spark:
        reports = Reports(spark, f"{scratch}/reports")
        work = Work(spark, History(spark, str(location)), reports, DAY, time())
        checks = {"hot-keys": lambda: _compare_keys(reports), "reverify": lambda: _compare_findings(reports)}

        def anew(job: Callable[[Work], object]) -> Callable[[], None]:
            def carry_out() -> None:
                rmtree(f"{scratch}/reports", ignore_errors=True)
                job(work)

            return carry_out

        def merged() -> None:
            rmtree(f"{scratch}/copy", ignore_errors=True)
            copytree(location, f"{scratch}/copy")
            compact.run(replace(work, history=History(spark, f"{scratch}/copy")))

        tasks = {"hot-keys": anew(hot_keys.run), "slo-burn": anew(slo_burn.run), "reverify": anew(reverify.run), "compact": merged}
        spent = {}
        for name in jobs:
            spent[name] = _best(name, tasks[name], repeat, bare_s)
            checks.get(name, lambda: None)()
        if {"hot-keys", "slo-burn"} <= spent.keys():
            print(f"  hot-keys and slo-burn together: {(spent['hot-keys'] + spent['slo-burn']) / bare_s:.1f} x the bare count")
        print(f"  memory at most: {_peak_mb():,} MB in the driver and its workers")
    _ask_duckdb(str(location / "events"), repeat, bare_s)


def _events_in(location: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in (location / EVENTS.name).rglob("*.parquet"))


def _compute(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _best(name: str, task: Callable[[], None], repeat: int, bare_s: float = 0.0) -> float:
    """Processor seconds of the best run."""
    runs = []
    for _ in range(repeat):
        began_s, before_s = perf_counter(), _processor_s()
        task()
        runs.append((_processor_s() - before_s, perf_counter() - began_s))
    spent_s, wall_s = min(runs)
    ratio = f", {spent_s / bare_s:.1f} x the bare count" if bare_s else ""
    first = f" (the first time {runs[0][1]:.1f} and {runs[0][0]:.1f} s)"
    print(f"  {name}: {wall_s:.1f} s on the wall, {spent_s:.1f} s of processors{ratio}{first}", flush=True)
    return spent_s


# --- what is true of the day -----------------------------------------------------------------------------------------------------


def _compare_keys(reports: Reports) -> None:
    found = {(one["key"], one["class"]) for one in reports.summary("hot-keys", DAY)["keys"]}
    expected = {(key.name, heat) for key, heat in HOT.items()}
    print(f"    hot keys: {len(found & expected)} of {len(expected)} in their class, {len(found - expected)} others", flush=True)


def _compare_findings(reports: Reports) -> None:
    summary = reports.summary("reverify", DAY)
    print(f"    runs: {summary['runs']}, findings: {summary['findings']}", flush=True)


# --- the same without Spark ------------------------------------------------------------------------------------------------------


def _ask_duckdb(events: str, repeat: int, bare_s: float) -> None:
    try:
        import duckdb
    except ImportError:
        print("  DuckDB is not installed: pip install duckdb")
        return
    duckdb.sql(f"SET threads = {CORES}")
    rows = f"read_parquet('{events}/**/*.parquet', union_by_name = true)"
    questions = {
        "DuckDB, messages per key": f"SELECT key, count(*) FROM {rows} GROUP BY key",
        "DuckDB, loads per key": f"""SELECT target, topic, subscription, key, sum(message_bytes), count_if(event = 'publish'),
            count_if(event = 'delivered'), count_if(event = 'acked') FROM {rows} GROUP BY ALL""",
        "DuckDB, latencies": f"""SELECT minute, count_if(d - p > 1e6) FROM (
            SELECT run_id, key, seq, min(date_trunc('minute', time)) AS minute,
            min(epoch_us(time)) FILTER (event = 'publish') AS p,
            min(epoch_us(time)) FILTER (event = 'delivered') AS d
            FROM {rows} WHERE event IN ('publish', 'published', 'delivered') GROUP BY run_id, key, seq) GROUP BY minute""",
    }
    for name, question in questions.items():
        _best(name, lambda question=question: duckdb.sql(question).fetchall(), repeat, bare_s)  # type: ignore[misc]


# --- what the processes of this benchmark use ----------------------------------------------------------------------------------


def _processor_s() -> float:
    """Processor seconds of this process and everything below it, those that have ended included."""
    total = 0
    for process in _family():
        with _gone_is_nothing():
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11:15])
    return total / TICKS


def _peak_mb() -> int:
    """The sum of the largest sizes that the living processes have had."""
    total = 0
    for process in _family():
        with _gone_is_nothing():
            status = Path(f"/proc/{process}/status").read_text()
            total += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
    return total // 1024


def _family() -> Iterator[int]:
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        yield process
        with _gone_is_nothing():
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


@contextmanager
def _gone_is_nothing() -> Iterator[None]:
    with suppress(FileNotFoundError, ProcessLookupError):
        yield


if __name__ == "__main__":
    main()
