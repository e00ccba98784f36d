"""Compiles the checker with mypyc, if that is wanted: a build hook of hatchling, and a command.

    ORDERING_PROBER_COMPILE=1 hatchling build       a wheel for this platform and version of Python, which holds the compiled checker
    python hatch_build.py                           extension modules beside the sources, for work on them (make compiled)

The source is the same; without the variable the wheel is pure Python and needs no compiler. What it brings is in docs/performance.md.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WANTED = "ORDERING_PROBER_COMPILE"
NEEDS = ["mypy[mypyc]>=1.15"]

PACKAGE = Path("prober/core")
FIRST = "verifier"
PURE = {"events", "findings", "gaps", "resting"}
"""Not compiled: what is one thing to mypy and another at run time, what describes itself by its annotations, what holds anything (a
dataclass that is generic), and what pickles."""


class CompiledChecker(BuildHookInterface[Any]):
    """Adds the extension modules to a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs besides hatchling."""
        return NEEDS if os.environ.get(WANTED) == "1" else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of the wheel are collected."""
        if os.environ.get(WANTED) != "1" or version == "editable":
            return
        self._scratch = TemporaryDirectory()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for built in compile_to(Path(self._scratch.name), Path(self.root)):
            build_data["force_include"][str(built)] = str(built.relative_to(self._scratch.name))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        if hasattr(self, "_scratch"):
            self._scratch.cleanup()


def modules(root: Path) -> list[str]:
    """The modules that the checker consists of: the first one, what it imports, and so on."""
    found: list[str] = []
    waiting = [FIRST]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.append(name)
            waiting += imported(root / PACKAGE / f"{name}.py")
    return sorted(set(found) - PURE)


def imported(source: Path) -> Iterator[str]:
    """The modules of the same package that a file imports."""
    package = ".".join(PACKAGE.parts)
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
            yield node.module.removeprefix(f"{package}.")


def marked(source: str) -> str:
    """A module as mypyc gets it: an object of its classes may be made without `__init__`, as `prober.core.resting` does.

    What says so takes the place of empty lines, so that errors name the lines of the source.
    """
    source = source.replace(
        "import annotations\n\n", "import annotations; from typing import TYPE_CHECKING as FOR_MYPYC\n" + IMPORT, 1
    )
    return PLAIN_CLASS.sub(r"\n@mypyc_attr(allow_interpreted_subclasses=True)\n\1", source)


IMPORT = "if FOR_MYPYC: from mypy_extensions import mypyc_attr\n"
PLAIN_CLASS = re.compile(r"\n\n(class \w+(?:\((?!NamedTuple|Protocol|\w*Enum)\w+\))?:\n)")


def compile_to(folder: Path, root: Path) -> list[Path]:
    """Builds the extension modules in a folder, laid out as they are to be installed, and names them."""
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    with TemporaryDirectory() as scratch:
        shutil.copytree(root / "prober", Path(scratch, "prober"), ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        shutil.copy(root / "pyproject.toml", scratch)
        os.chdir(scratch)
        paths = [PACKAGE / f"{name}.py" for name in modules(root)]
        for path in paths:
            path.write_text(marked(path.read_text(encoding="utf-8")), encoding="utf-8")
        extensions = mypycify([*map(str, paths)], opt_level="3", debug_level="0", group_name="prober.core.compiled")
        command = build_ext(Distribution({"ext_modules": extensions}))
        command.build_lib = str(folder)
        command.ensure_finalized()
        command.run()
        os.chdir(root)
    return sorted(path for path in folder.rglob("*") if path.suffix in (".so", ".pyd"))


def main() -> None:
    """Puts the extension modules beside the sources."""
    root = Path(__file__).resolve().parent
    with TemporaryDirectory() as folder:
        for built in compile_to(Path(folder), root):
            shutil.copy(built, root / built.relative_to(folder))


if __name__ == "__main__":
    main()
