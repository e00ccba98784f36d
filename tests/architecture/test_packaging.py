"""What is shipped: the three packages and nothing else."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.architecture import tree

COMPILING = runpy.run_path(str(tree.ROOT / "hatch_build.py"), run_name="hatch_build")


def test_the_wheel_holds_the_three_packages_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name != COMPILING["WANTED"]}
    subprocess.run(command, cwd=tree.ROOT, env=environment, capture_output=True, check=True)
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


def test_what_would_be_compiled_is_the_checker() -> None:
    modules = COMPILING["modules"](tree.ROOT)
    assert {"verifier", "key", "positions"} <= set(modules)
    assert not {"events", "resting", "minimise", "slo"} & set(modules)


def test_compiling_keeps_the_lines_of_the_source() -> None:
    for name in COMPILING["modules"](tree.ROOT):
        source = (tree.ROOT / "prober" / "core" / f"{name}.py").read_text(encoding="utf-8")
        marked = COMPILING["marked"](source)
        assert len(marked.splitlines()) == len(source.splitlines())
        assert ("\n@mypyc_attr(" in marked) <= ("import mypyc_attr\n" in marked)
