"""As many cores as this process may use: in a container that is not what the machine has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs import session
from spark_jobs.session import find_java, usable_cores
from spark_jobs.storage import JobError
from tests.commands import ROOT


@pytest.fixture(autouse=True)
def _a_large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_allowed", lambda: 64)


@pytest.mark.parametrize(
    ("quota", "usable"),
    [("max 100000", 64), ("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("12800000 100000", 64)],
)
def test_a_limit_of_the_container_counts(quota: str, usable: int, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(f"{quota}\n", encoding="ascii")
    assert usable_cores(tmp_path) == usable


@pytest.mark.parametrize(("quota", "usable"), [("300000", 3), ("-1", 64)])
def test_so_it_does_on_older_machines(quota: str, usable: int, tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota, encoding="ascii")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000", encoding="ascii")
    assert usable_cores(tmp_path) == usable


def test_without_control_groups_it_is_what_the_process_may_run_on(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 64


def test_java_sees_the_cores_that_spark_was_given() -> None:
    """More than this machine may have, so that it is not by chance."""
    try:
        find_java(os.environ)
    except JobError as problem:
        pytest.skip(str(problem))
    wanted = (os.cpu_count() or 1) + 3
    script = f"""
from spark_jobs.session import session
with session("local[{wanted}]", memory="512m") as spark:
    print(spark.sparkContext._jvm.java.lang.Runtime.getRuntime().availableProcessors(), spark.sparkContext.defaultParallelism)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(wanted), str(wanted)], done.stderr[-2000:]
