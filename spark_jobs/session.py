"""The Spark session: on this machine, or on the cluster of `spark-submit`.

On this machine it needs Java 17 or newer, from JAVA_HOME or PATH. The output of Spark goes to a file, so that standard error contains only
messages for the user.

Java finds the number of cores that this process may use: its CPU affinity, or the limit of its container. A CPU request of Kubernetes is no
limit: set `--master local[N]`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from spark_jobs.storage import JobError

JAVA_VERSION_MIN: Final = 17
DRIVER_MEMORY: Final = "2g"

JAVA_OPTIONS: Final = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""Options for short queries.

The jobs are not interactive, so pauses cost nothing. Each query generates its own code, which runs for a moment, since Arrow processes the
single events: optimising that code takes more time than it saves, half of the total time at ten million events. Without optimising
compilers, Java would reserve only a fifth of the space for code, and stop compiling when it is full.
"""

_SHUFFLES_PER_CORE: Final = 4
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"  # set by spark-submit: port of its virtual machine

_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    "spark.hadoop.parquet.page.write-checksum.enabled": "true",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",  # else some questions have workers of their own for it
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}
_LOCALLY: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}
_PARALLEL: Final = ("spark.sql.shuffle.partitions", "spark.sql.sources.parallelPartitionDiscovery.parallelism")


@contextmanager
def session(
    master: str | None = None, *, name: str = "ordering-prober", memory: str = DRIVER_MEMORY, java_options: str = JAVA_OPTIONS
) -> Iterator[SparkSession]:
    """Provide a session; stop it when the block ends.

    Without a master it runs on this machine, with as many parallel tasks as cores that this process may use. Under spark-submit the
    submitted settings apply, master and memory included, unless a master is given. Raises `JobError` if Java is missing, or Spark does not
    start.
    """
    submitted = _SUBMITTED in os.environ
    settings = dict(_ALWAYS)
    if not submitted:
        os.environ["JAVA_HOME"] = str(find_java(os.environ))
        master = master or "local[*]"
        settings |= {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": java_options}
    is_local = master is not None and master.startswith("local")
    if is_local:
        settings |= _LOCALLY
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else Spark takes whatever `python3` is
    spark = _started(name, master, settings)
    if is_local:
        for setting in _PARALLEL:
            spark.conf.set(setting, _SHUFFLES_PER_CORE * spark.sparkContext.defaultParallelism)
    if submitted:
        spark.sparkContext.setLogLevel("WARN")  # else thousands of lines for each job
    try:
        yield spark
    finally:
        spark.stop()


def find_java(environ: Mapping[str, str]) -> Path:
    """Return the home of a Java that Spark can use: JAVA_HOME, else that of the first `java` in PATH. Raises `JobError`."""
    candidates = [Path(environ["JAVA_HOME"]) / "bin" / "java"] if environ.get("JAVA_HOME") else []
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        candidates.append(Path(on_path))
    found = []
    for candidate in candidates:
        version = _java_version(candidate)
        if version >= JAVA_VERSION_MIN:
            return candidate.resolve().parent.parent
        if version:
            found.append(f"{candidate} is version {version}")
    reason = "; ".join(found) or "none was found in JAVA_HOME and PATH"
    raise JobError(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer: {reason}; install it (Debian: apt-get install openjdk-17-jre-headless, "
        "macOS: brew install openjdk@17) or set JAVA_HOME"
    )


def _java_version(java: Path) -> int:
    """Return the feature version that a `java` reports, or 0 if its output cannot be parsed."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=30).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else 0


def _started(name: str, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    with tempfile.TemporaryFile("w+") as log, _standard_error_to(log.fileno()):
        try:
            return builder.getOrCreate()
        except Exception as error:
            log.seek(0)
            said = [line for line in log.read().splitlines() if "Exception" in line or "Error" in line]
            reason = said[0].strip() if said else str(error).partition("\n")[0]
            raise JobError(f"Spark does not start (master {master or 'of spark-submit'}): {reason}") from error


@contextmanager
def _standard_error_to(descriptor: int) -> Iterator[None]:
    """Redirect the standard error of processes started in the block, such as Spark's virtual machine, for their lifetime."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
