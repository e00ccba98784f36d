"""One Spark session for all tests here, on two cores; without Java they are skipped, in CI they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_jobs.session import session
from spark_jobs.storage import JobError


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
