"""A compaction that is killed: `python -m tests.spark.compactor HISTORY FOLDER STEP` ends by SIGKILL just before that step."""

from __future__ import annotations

import os
import signal
import sys

from prober.sinks.history.schema import EVENTS
from spark_jobs.compact import merge
from spark_jobs.history import History
from spark_jobs.session import session


def main(location: str, folder: str, step: str) -> None:
    """Merges the events of a folder and dies meanwhile, together with its virtual machine."""

    def kill(coming: str) -> None:
        if coming == step:
            os.killpg(0, signal.SIGKILL)

    with session("local[1]", memory="512m") as spark:
        merge(History(spark, location), EVENTS, folder, kill)


if __name__ == "__main__":
    main(*sys.argv[1:])
