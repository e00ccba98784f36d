"""Runs the tests of a copy of the project on the code of that copy: `python inside.py COPY PYTEST-ARGUMENT...`.

The project is installed in editable mode, which redirects `import prober` to the original by a hook in front of the import path.
Here the hook is taken away, the copy comes first, and where `prober` came from is checked before and after the tests.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

WRONG_CODE = 99
"""Exit code: the tests would have run on other code than the copy's."""


def redirects(finder: object) -> bool:
    """Whether this finder of modules is the one of an editable installation."""
    return getattr(finder, "__module__", "").startswith(("editables", "_editable_impl"))


def is_from(copy: Path) -> bool:
    """Whether the core that is imported is the copy's."""
    return Path(str(import_module("prober.core.verifier").__file__)).is_relative_to(copy)


def main(copy: Path, arguments: list[str]) -> int:
    """The exit code of the tests, or WRONG_CODE."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not redirects(finder)]
    sys.path.insert(0, str(copy))
    if not is_from(copy):
        return WRONG_CODE
    code = int(pytest.main(["--rootdir", str(copy), *arguments]))
    return code if is_from(copy) else WRONG_CODE


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
