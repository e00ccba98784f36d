"""What is shipped: the three packages and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.architecture import tree


def test_the_wheel_holds_the_three_packages_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=tree.ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        packed.extractall(tmp_path / "installed")
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(tree.PACKAGES)
    assert {f"{package}/py.typed" for package in tree.PACKAGES} <= set(names)
    assert runbooks_in(tmp_path / "installed") == sorted(path.stem for path in (tree.ROOT / "docs" / "runbooks").iterdir())


def runbooks_in(folder: Path) -> list[str]:
    """The runbooks that the API serves if it is installed in a folder."""
    code = "import api.runbooks as r; print(r.__file__, *r.runbooks())"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    where, *names = done.stdout.split()
    assert Path(where).is_relative_to(folder)
    return names
