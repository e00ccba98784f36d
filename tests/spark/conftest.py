"""One Spark session for all tests here, on two cores; without Java they are skipped, in CI they fail. And the simulated days."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from prober.simulation.world import Simulated
from spark_jobs.session import session
from spark_jobs.storage import JobError
from tests.spark.simulated import simulate_days

FOR_SMALL_FRAMES: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Java would compile each query for a few rows, and plan it again after each step."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        with session("local[2]", memory="1g") as started:
            for name, value in FOR_SMALL_FRAMES.items():
                started.conf.set(name, value)
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
