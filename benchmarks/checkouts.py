"""Other checkouts of this project, beside which it is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

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
