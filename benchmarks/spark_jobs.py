"""Cost of the nightly jobs against a bare Spark `groupBy(key).count()`.

Both read the same files, with growing numbers of events.

    python -m benchmarks.spark_jobs [--events N ...] [--probed] [--folder FOLDER] [--repeat R] [--memory 3g] [--jobs NAME ...]

For each number of events a day of history is written below FOLDER, unless it exists (`benchmarks.days`, or with `--probed` as probers write
it, `benchmarks.probed_days`). Every job runs on it R times; the best run counts, and the first one is reported too, since a night has only
one run. Each size has a process of its own, so that memory peaks can be compared; so has the bare count, with Java's default options. Times
are wall times and CPU seconds of all processes involved; ratios are of CPU seconds, which other work on the machine disturbs less. The
output contains the number of the day's hot keys that were found, and the findings of reverify: none, since the whole day is legal. If
DuckDB can be imported (`pip install duckdb`), it computes three of the same results from the same files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from shutil import copytree, rmtree
from time import perf_counter, time
from typing import TypeVar

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks.days import HOT, write_day
from benchmarks.figures import Figure
from benchmarks.probed_days import write_probed_day
from benchmarks.processes import peak_mb, processor_s
from prober.sinks.history.schema import EVENTS, RUNS
from spark_jobs import hot_keys, nightly, reverify, slo_burn
from spark_jobs.history import History
from spark_jobs.session import session
from spark_jobs.tables import Tables
from spark_jobs.work import Reports, Work

Measured = TypeVar("Measured")

DAY = date(2026, 1, 5)
CORES = 2
ALL = ("hot-keys", "slo-burn", "reverify")


PLAIN_JAVA = "-XX:+UseParallelGC"
"""Options of Java for the bare count: those of an ordinary start of Spark."""
NIGHT_EVENTS = 2_000_000
NIGHT_S_MAX = 40.0
BARE_MULTIPLE_MAX = 3.0


def main() -> None:
    """Measure every size in a process of its own and print a line for each measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "spark-jobs-benchmark")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--jobs", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--probed", action="store_true", help="days as probers leave them (`benchmarks.probed_days`)")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bare-s", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    kind = "probed" if asked.probed else "events"
    location = asked.folder / f"{kind}-{asked.events[0]}"
    if asked.bare:
        _measure_bare(location, asked.repeat, asked.memory)
        return
    if asked.bare_s:
        _measure(location, asked.repeat, asked.memory, asked.jobs, asked.bare_s, probed=asked.probed)
        return
    for events in asked.events:
        location = asked.folder / f"{kind}-{events}"
        if not (location / RUNS.name).exists():
            rmtree(location, ignore_errors=True)
            print(f"writing {events:,} events", flush=True)
            (write_probed_day if asked.probed else write_day)(str(location), DAY, events)
        more = ["--folder", str(asked.folder), "--repeat", str(asked.repeat), "--memory", asked.memory, "--jobs", *asked.jobs]
        more += ["--probed"] if asked.probed else []
        print(f"\n{_events_in(location):,} events", flush=True)
        program = [sys.executable, "-m", "benchmarks.spark_jobs", "--events", str(events), *more]
        said = subprocess.run([*program, "--bare"], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(said, end="", flush=True)
        subprocess.run([*program, "--bare-s", said.partition("wall, ")[2].split()[0]], check=True)


def _measure_bare(location: Path, repeat: int, memory: str) -> None:
    with session(f"local[{CORES}]", memory=memory, java_options=PLAIN_JAVA) as spark:
        rows = Tables(spark, str(location)).read(EVENTS, DAY, DAY)
        _best("groupBy(key).count()", lambda: _compute(rows.groupBy("key").count()), repeat + 2)


def _measure(location: Path, repeat: int, memory: str, jobs: list[str], bare_s: float, *, probed: bool) -> None:
    with tempfile.TemporaryDirectory(dir=location.parent) as scratch, session(f"local[{CORES}]", memory=memory) as spark:
        reports = Reports(spark, f"{scratch}/reports")
        work = Work(spark, History(spark, str(location)), reports, DAY, time())
        checks = {"reverify": lambda: _compare_findings(reports)}
        if not probed:
            checks["hot-keys"] = lambda: _compare_keys(reports)

        def repeated(job: Callable[[Work], object]) -> Callable[[], None]:
            def carry_out() -> None:
                rmtree(f"{scratch}/reports", ignore_errors=True)
                job(work)

            return carry_out

        tasks = {"hot-keys": repeated(hot_keys.run), "slo-burn": repeated(slo_burn.run), "reverify": repeated(reverify.run)}
        spent = {}
        for name in jobs:
            spent[name] = _best(name, tasks[name], repeat, bare_s)
            checks.get(name, lambda: None)()
        if {"hot-keys", "slo-burn"} <= spent.keys():
            print(f"  hot-keys and slo-burn together: {(spent['hot-keys'] + spent['slo-burn']) / bare_s:.1f} x the bare count")
        print(f"  memory at most: {peak_mb():,} MB in the driver and its workers")
    _ask_duckdb(str(location / "events"), repeat, bare_s)


def _events_in(location: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in (location / EVENTS.name).rglob("*.parquet"))


def _compute(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _best(name: str, task: Callable[[], None], repeat: int, bare_s: float = 0.0) -> float:
    """Return the CPU seconds of the best run."""
    runs = []
    for _ in range(repeat):
        began_s, before_s = perf_counter(), processor_s()
        task()
        runs.append((processor_s() - before_s, perf_counter() - began_s))
    spent_s, wall_s = min(runs)
    ratio = f", {spent_s / bare_s:.1f} x the bare count" if bare_s else ""
    first = f" (the first time {runs[0][1]:.1f} and {runs[0][0]:.1f} s)"
    print(f"  {name}: {wall_s:.1f} s on the wall, {spent_s:.1f} s of processors{ratio}{first}", flush=True)
    return spent_s


# --- a night -----------------------------------------------------------------------------------------------------------------


def figures(repeat: int = 2) -> Iterator[Figure]:
    """Yield the figures of the jobs: a night, each time in a separate process and relative to a bare count at its first run."""
    with tempfile.TemporaryDirectory() as folder:
        write_probed_day(folder, DAY, NIGHT_EVENTS)
        rounds = [(_alone(bare_s, folder), _alone(jobs_s, folder), _alone(night_s, folder)) for _ in range(repeat)]
        unit = "times groupBy(key).count()"
        for name in nightly.JOBS:
            ratios = tuple(spent_s[name] / bare for bare, spent_s, _ in rounds)
            yield Figure(f"{name}, CPU after Spark has started", unit, ratios, BARE_MULTIPLE_MAX)
        yield Figure("nightly, from the start of Spark", "s on the wall", tuple(wall_s for *_, wall_s in rounds), NIGHT_S_MAX)
        with suppress(ImportError):
            yield Figure("DuckDB, messages per key", unit, tuple(_alone(duckdb_s, folder) / bare for bare, *_ in rounds))


def _alone(measure: Callable[[str], Measured], folder: str) -> Measured:
    """Return the result of a measurement in a separate process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(measure, folder).result()


def bare_s(folder: str) -> float:
    """Return the CPU seconds of the bare count, at its first run."""
    with session(f"local[{CORES}]", java_options=PLAIN_JAVA) as spark:
        began_s = processor_s()
        _compute(Tables(spark, folder).read(EVENTS, DAY, DAY).groupBy("key").count())
        return processor_s() - began_s


def jobs_s(folder: str) -> Mapping[str, float]:
    """Return the CPU seconds of each job; they run one after the other."""
    spent_s = {}
    with _copied(folder) as work:
        for name, job in nightly.JOBS.items():
            before_s = processor_s()
            job(work)
            spent_s[name] = processor_s() - before_s
    return spent_s


def night_s(folder: str) -> float:
    """Return the wall time of a night, in seconds."""
    began_s = perf_counter()
    with _copied(folder) as work:
        nightly.run(work)
        return perf_counter() - began_s


@contextmanager
def _copied(folder: str) -> Iterator[Work]:
    """Provide a copy of the day."""
    with tempfile.TemporaryDirectory() as scratch, session(f"local[{CORES}]") as spark:
        copytree(folder, f"{scratch}/history")
        yield Work(spark, History(spark, f"{scratch}/history"), Reports(spark, f"{scratch}/reports"), DAY, time())


def duckdb_s(folder: str) -> float:
    """Return the CPU seconds of DuckDB for the bare count. Raises ImportError without DuckDB."""
    import duckdb

    duckdb.sql(f"SET threads = {CORES}")
    began_s = processor_s()
    duckdb.execute(
        f"SELECT key, count(*) FROM read_parquet('{folder}/events/**/*.parquet', union_by_name = true) GROUP BY key"
    ).fetchall()
    return processor_s() - began_s


# --- facts of the day ------------------------------------------------------------------------------------------------------------


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
        _best(name, partial(_answer, question), repeat, bare_s)


def _answer(question: str) -> None:
    import duckdb

    duckdb.execute(question).fetchall()


if __name__ == "__main__":
    main()
