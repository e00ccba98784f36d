"""The jobs on executors that have only what Spark needs: the project reaches them as an archive, or by the images' entry point."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from sysconfig import get_paths

import pytest
from pyspark.sql import SparkSession

from spark_jobs.container import command_of, main
from spark_jobs.nightly import JOBS
from spark_jobs.session import find_java
from spark_jobs.storage import JobError
from spark_jobs.work import Exit
from tests.commands import ROOT
from tests.spark.cases import cases
from tests.spark.taped import DAY, write

NEEDED = (
    "pyspark",
    "py4j",
    "numpy",
    "numpy.libs",
    "pandas",
    "pandas.libs",
    "pyarrow",
    "pyarrow.libs",
    "dateutil",
    "pytz",
    "six.py",
)
"""What PySpark and its functions on Arrow import; nothing else is in the environment of the executors."""

SMALL = (
    "spark.sql.shuffle.partitions=2",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
)
"""For a small history: few tasks, and no time spent on optimising code."""


@pytest.fixture
def java() -> str:
    try:
        return str(find_java(os.environ))
    except JobError as problem:
        pytest.skip(str(problem))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python with what Spark needs, without the project. PySpark is a folder of its own: workers write below it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    (packages,) = (tmp_path / "bare" / "lib").glob("python*/site-packages")
    there = Path(get_paths()["purelib"])
    for name in NEEDED:
        if name == "pyspark":
            (packages / name).mkdir()
            for part in (there / name).iterdir():
                (packages / name / part.name).symlink_to(part)
        elif (there / name).exists():
            (packages / name).symlink_to(there / name)
    python = tmp_path / "bare" / "bin" / "python"
    found = subprocess.run([python, "-c", "import prober"], cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert "No module named 'prober'" in found.stderr
    return python


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """What `make jobs-archive` builds."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "wheel")]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = (tmp_path / "wheel").iterdir()
    return wheel.rename(tmp_path / "ordering-prober-jobs.zip")


def test_the_jobs_import_only_what_is_on_a_cluster(bare: Path, archive: Path, tmp_path: Path) -> None:
    environ = {"PYTHONPATH": str(archive)}
    command = [str(bare), "-m", "spark_jobs", "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
def test_the_nightly_jobs_run_on_executors_that_get_the_project_as_an_archive(
    java: str, bare: Path, archive: Path, tmp_path: Path
) -> None:
    write(tmp_path / "h", *cases())
    program = shutil.copy(ROOT / "spark_jobs" / "__main__.py", tmp_path / "jobs.py")
    (home,) = bare.parent.parent.glob("lib/python*/site-packages/pyspark")
    settings = [part for setting in SMALL for part in ("--conf", setting)]
    submit = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]", *settings, "--py-files", str(archive)]
    asked = ["nightly", "--history", str(tmp_path / "h"), "--reports", str(tmp_path / "r"), "--date", str(DAY), "--look-back", "0"]
    environ = {"PATH": os.environ["PATH"], "JAVA_HOME": java, "SPARK_HOME": str(home), "PYSPARK_PYTHON": str(bare)}
    done = subprocess.run([*submit, str(program), *asked], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == Exit.FAIL, done.stderr[-3000:]
    assert f"\nnightly {DAY}: FAIL" in done.stdout, done.stderr[-3000:]
    for job in JOBS:
        summary = json.loads((tmp_path / "r" / job / f"date={DAY}" / "summary.json").read_text(encoding="utf-8"))
        assert summary["verdict"] != "UNKNOWN", summary
    assert len(list((home / "work").glob("app-*/*/ordering-prober-jobs.zip"))) == 2  # both executors took it


def test_the_entry_point_starts_the_jobs_by_default() -> None:
    assert command_of(["nightly", "--help"], {}) == [sys.executable, "-m", "spark_jobs", "nightly", "--help"]


EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "executor-7",
    **{f"SPARK_JAVA_OPT_{number}": f"-Dnumber{number}=1" for number in (0, 10, 9)},
}
"""The variables that Spark on Kubernetes sets for an executor."""


def test_the_entry_point_gives_an_executor_its_options_in_order(java: str) -> None:
    program, *options = command_of(["executor"], EXECUTOR | {"JAVA_HOME": java, "SPARK_CONF_DIR": "/conf"})
    assert program == f"{java}/bin/java"
    assert options[:6] == ["-Dnumber0=1", "-Dnumber9=1", "-Dnumber10=1", "-Xms512m", "-Xmx512m", "-cp"]
    assert options[6].split(":")[0] == "/conf"
    given = dict(zip(options[8::2], options[9::2], strict=True))
    assert given == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "7",
        "--cores": "1",
        "--app-id": "spark-1",
        "--hostname": "127.0.0.1",
        "--resourceProfileId": "0",
        "--podName": "executor-7",
    }


@pytest.mark.nightly
def test_the_entry_point_starts_a_driver_that_runs_a_job(java: str, tmp_path: Path) -> None:
    """As Spark on Kubernetes calls it: with a file of properties, and the address to listen on in the environment."""
    write(tmp_path / "h", *cases())
    (tmp_path / "spark.properties").write_text("spark.master=local[1]\nspark.driver.memory=512m\n", encoding="utf-8")
    runner = ["--properties-file", str(tmp_path / "spark.properties"), "--class", "org.apache.spark.deploy.PythonRunner"]
    asked = ["retention", "--history", str(tmp_path / "h"), "--reports", str(tmp_path / "r"), "--date", str(DAY)]
    program = "local://" + str(ROOT / "spark_jobs" / "__main__.py")
    command = [sys.executable, "-m", "spark_jobs.container", "driver", *runner, program, *asked]
    environ = {
        "SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1",
        "JAVA_HOME": java,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (Exit.PASS, f"retention {DAY}: PASS, every day is kept\n"), done.stderr[-2000:]


@pytest.mark.nightly
def test_the_entry_point_starts_an_executor_that_reaches_its_driver(java: str, spark: SparkSession, tmp_path: Path) -> None:
    """A driver on one machine has no scheduler of executors, and says so: the executor has asked it."""
    url = f"spark://CoarseGrainedScheduler@127.0.0.1:{spark.sparkContext.getConf().get('spark.driver.port')}"
    environ = EXECUTOR | {"JAVA_HOME": java, "PYTHONPATH": str(ROOT), "SPARK_DRIVER_URL": url}
    command = [sys.executable, "-m", "spark_jobs.container", "executor"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | environ, capture_output=True, text=True, check=False)
    assert f"Cannot find endpoint: {url}" in done.stderr


def test_a_variable_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["driver"]) == Exit.USAGE
    assert "the variable 'SPARK_DRIVER_BIND_ADDRESS' is missing" in capsys.readouterr().err
