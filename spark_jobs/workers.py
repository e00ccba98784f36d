"""Where the Python workers of executors come from: Spark runs this module, which forks a worker for every task that runs at a time.

What the jobs run on executors is imported here once, so that no worker has to. The checker makes many objects, which live long and rarely
hold each other: Python need not look for cycles among them as often as it does by itself, which takes a sixth of the checker's time.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import spark_jobs.burn
import spark_jobs.judging
import spark_jobs.loads
import spark_jobs.messages
import spark_jobs.points
import spark_jobs.sightings
import spark_jobs.waits  # noqa: F401

COLLECT_AFTER = (100_000, 50, 50)

if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    manager()
