"""Where the Python workers of executors come from: Spark runs this module, which forks a worker for every task that runs at a time.

What the jobs run on executors is imported here once, so that no worker has to.
"""

from __future__ import annotations

from pyspark.daemon import manager

import spark_jobs.burn
import spark_jobs.fold
import spark_jobs.loads
import spark_jobs.merging
import spark_jobs.messages
import spark_jobs.packing
import spark_jobs.points  # noqa: F401

if __name__ == "__main__":
    manager()
