"""The programs of Prometheus: found on the PATH or beside the interpreter; without them a test is skipped, in CI it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = {
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "amtool": "prometheus-alertmanager",
    "prometheus-alertmanager": "prometheus-alertmanager",
}


OTHER_NAMES = {"prometheus-alertmanager": "alertmanager"}
"""What Debian calls a program, and what everybody else does."""


def tool(name: str) -> str:
    """The path of a program."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    found = shutil.which(name, path=folders) or shutil.which(OTHER_NAMES.get(name, name), path=folders)
    if found is None:
        missing = f"{name} is missing; install it (Debian, Ubuntu: apt install {PACKAGES[name]}) or put it on the PATH"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


SHORT_LIVED = {"GOGC": "800"}
"""They end before memory matters; looking for garbage took a fourth of their time."""


def said(*command: str | Path) -> tuple[int, str]:
    """The exit code of a program, and everything that it says."""
    done = subprocess.run(
        [tool(str(command[0])), *map(str, command[1:])],
        env=SHORT_LIVED | os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout
