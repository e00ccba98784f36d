"""Client libraries from a package registry, in locked versions, and tests that run in Node."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

NPM_CI = ("npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error")
INSTALL_TIMEOUT_S = 300
RUN_TIMEOUT_S = 180
REASON_MAX = 300
OFFLINE = {"METADATA_SERVER_DETECTION": "none", "GOOGLE_CLOUD_PROJECT": "test"}
"""Environment of a client that asks no server for credentials or a project."""


def missing(reason: str) -> None:
    """Fail in continuous integration, skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def install_node(sources: Path, folder: Path) -> None:
    """Copy a Node package into the folder and install the packages of its lock there."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        missing("needs Node and npm: install nodejs 18 or newer")
    shutil.copytree(sources, folder, dirs_exist_ok=True)
    _run(*NPM_CI, folder=folder)


def run_node_tests(folder: Path, script: str, address: str) -> None:
    """Run a script with the test runner of Node against the server at this address."""
    environment = {**os.environ, **OFFLINE, "PUBSUB_EMULATOR_HOST": address}
    command = ["node", "--test", "--test-reporter=spec", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout


def install_python(requirements: Path, folder: Path) -> Path:
    """Install a requirements file into a virtual environment in the folder; its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(requirements), folder=folder)
    return python


def _run(*command: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT_S)
    if done.returncode:
        missing(f"{' '.join(command[:3])} failed: {' '.join(done.stderr.split())[:REASON_MAX]}")
