"""One Spark session for all tests here, on two cores; without Java they are skipped, in CI they fail. And the simulated days."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from prober.simulation.world import Simulated
from spark_jobs.session import session
from spark_jobs.storage import JobError
from tests.spark.simulated import simulate_days


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


@pytest.fixture(scope="session")
def simulated_days(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Simulated]]:
    """Their history, for tests to copy, and what the simulations know of it."""
    folder = tmp_path_factory.mktemp("days")
    simulated = simulate_days(folder)
    assert not any(one.faults for one in simulated)
    return folder, simulated
