"""What the nightly jobs cost, against a bare Spark `groupBy(key).count()` over the same files, and how that grows with the events.

    python -m benchmarks.spark_jobs [--events N ...] [--folder FOLDER] [--repeat R] [--memory 3g] [--jobs NAME ...]

For each number of events a day of history is synthesized below FOLDER, unless it is there, and every job runs on it R times; the best
counts, and the first one is told too, since a night has but one. Each size has a process of its own, so that peaks of memory can be
compared, and so has the bare count, under the options that Java has by itself. Time is given on the wall and in processor seconds of
everything that worked for it; ratios are of processor seconds, which other work on the machine disturbs less. What hot-keys and reverify
say is compared with what was planted. If DuckDB can be imported (`pip install duckdb`), it answers three of the same questions from the
same files.
"""

from __future__ import annotations

import argparse
import json
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
from typing import Any

# This file is called what the package is called, and where it lies is looked in first.
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).parent.resolve()]

import pyarrow.parquet as pq  # noqa: E402
from pyspark.sql import DataFrame  # noqa: E402

from prober.sinks.history.schema import EVENTS  # noqa: E402
from prober.sinks.history.synthesis.plan import Recipe  # noqa: E402
from prober.sinks.history.synthesize import make_history  # noqa: E402
from spark_jobs import compact, hot_keys, reverify, slo_burn  # noqa: E402
from spark_jobs.history import History, folders_of  # noqa: E402
from spark_jobs.session import session  # noqa: E402
from spark_jobs.work import Reports, Work  # noqa: E402

DAY = date(2026, 1, 5)
MIDNIGHT = 1_767_571_200.0
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
        if not (location / "truth.json").exists():
            rmtree(location, ignore_errors=True)
            print(f"synthesizing {events:,} events", flush=True)
            make_history(str(location), Recipe(MIDNIGHT, days=1, events=events, seed=1))
        more = ["--folder", str(asked.folder), "--repeat", str(asked.repeat), "--memory", asked.memory, "--jobs", *asked.jobs]
        print(f"\n{json.loads((location / 'truth.json').read_text())['events']:,} events", flush=True)
        program = [sys.executable, __file__, "--events", str(events), *more]
        said = subprocess.run([*program, "--bare"], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(said, end="", flush=True)
        subprocess.run([*program, "--bare-s", said.partition("wall, ")[2].split()[0]], check=True)


def _measure_bare(location: Path, repeat: int, memory: str) -> None:
    with session(f"local[{CORES}]", memory=memory, java_options="-XX:+UseParallelGC") as spark:
        rows = History(spark, str(location)).read(EVENTS, folders_of(EVENTS, DAY, DAY))
        _best("groupBy(key).count()", lambda: _compute(rows.groupBy("key").count()), repeat + 2)


def _measure(location: Path, repeat: int, memory: str, jobs: list[str], bare_s: float) -> None:
    truth = json.loads((location / "truth.json").read_text())
    with tempfile.TemporaryDirectory(dir=location.parent) as scratch, session(f"local[{CORES}]", memory=memory) as spark:
        reports = Reports(spark, f"{scratch}/reports")
        work = Work(spark, History(spark, str(location)), reports, DAY, time())
        checks = {"hot-keys": lambda: _compare_keys(reports, truth), "reverify": lambda: _compare_findings(scratch, truth)}

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


# --- what was planted ----------------------------------------------------------------------------------------------------------


def _compare_keys(reports: Reports, truth: dict[str, Any]) -> None:
    found = {(one["subscription"], one["key"], one["class"]) for one in reports.summary("hot-keys", DAY)["keys"]}
    _print_match("hot keys in their class", found, {(one["subscription"], one["key"], one["class"]) for one in truth["hot_keys"]})


def _compare_findings(scratch: str, truth: dict[str, Any]) -> None:
    names = ("run_id", "subscription", "key", "kind", "status")
    rows = pq.read_table(f"{scratch}/reports/reverify/date={DAY}/findings", columns=list(names), partitioning=None).to_pylist()
    planted = {
        (*(one[name] for name in names[:3]), finding["kind"], finding["status"])
        for one in truth["violations"]
        for finding in one["findings"]
    }
    _print_match("findings", {tuple(row[name] for name in names) for row in rows}, planted)


def _print_match(what: str, found: set[Any], planted: set[Any]) -> None:
    right = len(found & planted)
    precision, recall = (right / len(one) if one else 1.0 for one in (found, planted))
    print(f"    {what}: {len(planted)} planted, {len(found)} found; precision {precision:.3f}, recall {recall:.3f}", flush=True)


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
