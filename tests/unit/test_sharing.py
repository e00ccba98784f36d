"""How workers share the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sharing import SINGLY, SLOW, TOGETHER, rank, together

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted({*SLOW, *TOGETHER, *SINGLY}))
def test_what_is_named_is_there(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("tests/spark/test_burn.py::test_a", "tests/spark/test_scan.py::test_b[x/y::z]", True),
        ("tests/spark/test_simulated.py::test_a", "tests/spark/test_simulated.py::test_b", True),
        ("tests/spark/test_simulated.py::test_a", "tests/spark/test_scan.py::test_b", False),
        ("tests/helm/test_render.py::test_a", "tests/helm/test_network.py::test_b", True),
        ("tests/helm/test_render.py::test_a", "tests/helm/test_for_real.py::test_b", False),
        ("tests/compat/test_node.py::test_a", "tests/compat/test_node.py::test_b", True),
        ("tests/dashboards/test_live.py::test_a", "tests/dashboards/test_live.py::test_b", True),
        ("tests/integration/test_check.py::test_a", "tests/integration/test_check.py::test_b", False),
        ("tests/unit/test_logs.py::test_a", "tests/unit/test_logs.py::test_b", True),
        ("tests/unit/test_logs.py::test_a", "tests/unit/test_memory.py::test_a", False),
    ],
)
def test_one_worker_does_what_belongs_together(one: str, other: str, expected: bool) -> None:
    assert (together(one) == together(other)) is expected


def test_what_takes_long_begins_first() -> None:
    shuffled = [
        "tests/unit/test_a.py::t",
        "tests/integration/test_a.py::t",
        "tests/integration/test_service.py::t",
        "tests/runbooks/test_commands.py::t",
        "tests/dashboards/test_live.py::t",
        "tests/alerts/test_a.py::t",
        "tests/spark/test_a.py::t",
    ]
    assert sorted(shuffled, key=rank) == [shuffled[number] for number in (4, 2, 3, 6, 1, 0, 5)]


def test_a_test_that_ends_its_worker_fails_once_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.sharing import Sharing\ndef pytest_xdist_make_scheduler(config, log):\n    return Sharing(config, log)\n"
    )
    (tmp_path / "test_one.py").write_text("import os\ndef test_a(): pass\ndef test_ends(): os._exit(1)\ndef test_b(): pass\n")
    (tmp_path / "test_other.py").write_text("def test_c(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "2", "--dist", "loadscope", str(tmp_path)]
    environ = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 1
    assert "1 failed, 3 passed" in ran.stdout
