"""One Spark session for all tests here, on two cores; without Java they are skipped, in CI they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.session import session
from spark_jobs.storage import JobError

PATIENCE_S = 600.0
"""On two busy cores a job takes far longer than by itself, and that is no failure."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Gives every test here that time."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(PATIENCE_S))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        with session("local[2]", memory="1g") as started:
            started.conf.set("spark.sql.shuffle.partitions", "2")  # frames are small here
            yield started
    except JobError as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(problem))
