"""The queries of docs/history.md answer on the engines that they are written for, on the history of simulated days."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb
import pytest
import sqlglot
from pyspark.sql import SparkSession

from prober.simulation.world import Simulated
from tests.architecture.tree import ROOT
from tests.spark.taped import DAY

_BLOCK: Final = re.compile(r'^```sql title="(?P<engine>\w+)"\n(?P<query>.*?)^```', re.DOTALL | re.MULTILINE)
QUERIES_MIN: Final = 7


def queries() -> Iterator[tuple[str, str]]:
    """Each query of the page with its engine."""
    for found in _BLOCK.finditer((ROOT / "docs" / "history.md").read_text(encoding="utf-8")):
        yield found["engine"], found["query"]


def asked(engine: str) -> list[str]:
    return [query for name, query in queries() if name == engine]


def located(query: str, history: Path) -> str:
    return query.replace("HISTORY", str(history)).replace("2026-01-05", str(DAY))


@pytest.fixture(scope="module")
def history(simulated_days: tuple[Path, list[Simulated]]) -> Path:
    return simulated_days[0]


@pytest.fixture(scope="module")
def database(history: Path) -> duckdb.DuckDBPyConnection:
    """One in which BigQuery's external table is a view."""
    database = duckdb.connect()
    database.execute("CREATE SCHEMA history")
    database.execute(
        f"CREATE VIEW history.messages AS FROM read_parquet('{history}/messages/*/*.parquet', hive_partitioning = true)"
    )
    return database


def test_there_are_enough_and_no_other_engine() -> None:
    engines = [engine for engine, _ in queries()]
    assert len(engines) >= QUERIES_MIN
    assert set(engines) == {"duckdb", "spark", "bigquery"}


@pytest.mark.parametrize("query", asked("duckdb"))
def test_duckdb_answers(query: str, history: Path) -> None:
    assert duckdb.execute(located(query, history)).fetchall()


def test_a_message_of_several_subscriptions_counts_once(history: Path) -> None:
    (query,) = (query for query in asked("duckdb") if "sum(bytes * attempts)" in query)
    every_day = located(query, history).replace(f"date={DAY}", "*").replace("LIMIT 10", "")
    events = f"""
        SELECT target, key, count(DISTINCT (run_id, epoch, seq)) AS messages, sum(message_bytes) AS bytes
        FROM read_parquet('{history}/events/*/*/*.parquet') WHERE event = 'publish' GROUP BY target, key
    """
    complete = f"SELECT run_id FROM read_parquet('{history}/runs/*/*.parquet') WHERE messages IS NOT NULL"
    events = events.replace("'publish'", f"'publish' AND run_id IN ({complete})")
    assert sorted(duckdb.execute(every_day).fetchall()) == sorted(duckdb.execute(events).fetchall())


@pytest.mark.parametrize("query", asked("spark"))
def test_spark_answers(query: str, history: Path, spark: SparkSession) -> None:
    assert not spark.sql(located(query, history)).isEmpty()


@pytest.mark.parametrize("query", [query for query in asked("bigquery") if not query.startswith("CREATE")])
def test_bigquery_would_understand(query: str, database: duckdb.DuckDBPyConnection) -> None:
    """Its own engine runs in the cloud only: questions are translated to DuckDB; the definition of the table nobody checks here."""
    (statement,) = sqlglot.transpile(query, read="bigquery", write="duckdb", error_level=sqlglot.ErrorLevel.RAISE)
    assert database.execute(statement).fetchall()
