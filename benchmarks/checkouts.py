"""Other copies of this project, beside which it is measured: of another day, or with the checker compiled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy, copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.figures import CannotMeasureError

ROOT: Final = Path(__file__).resolve().parents[1]

TURN: Final = """
import sys
sys.path.insert(0, sys.argv[1])
import prober
sys.path[0] = sys.argv[2]
from importlib import import_module
import_module(f"benchmarks.{sys.argv[3]}").turn(*sys.argv[4:])
"""
"""The `prober` of the first folder, whatever is installed, under the benchmark of the second."""


def said_by(checkout: Path, benchmark: str, *arguments: str) -> str:
    """What `turn` of a benchmark prints in a process of its own, with the `prober` of a checkout."""
    command = [sys.executable, "-c", TURN, str(checkout), str(ROOT), benchmark, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


@contextmanager
def compiled() -> Iterator[Path]:
    """A copy of this project whose checker is compiled. Raises CannotMeasureError."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        copytree(ROOT / "prober", folder / "prober", ignore=ignore_patterns("*.so", "__pycache__"))
        for file in ("hatch_build.py", "pyproject.toml"):
            copy(ROOT / file, folder)
        try:
            subprocess.run([sys.executable, "hatch_build.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        except subprocess.CalledProcessError as error:
            raise CannotMeasureError("the checker cannot be compiled here; `make compiled` says why") from error
        yield folder
