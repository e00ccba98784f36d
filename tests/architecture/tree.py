"""The files of this checkout, as the architecture tests see them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("prober", "api", "spark_jobs")


@cache
def files() -> list[Path]:
    """Every file that is, or could be, committed, relative to the root; outside a git checkout every file not in a hidden folder."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        found = {Path(name) for name in listing.stdout.split("\0") if name}
    else:
        found = {path.relative_to(ROOT) for path in ROOT.rglob("*")}
        found = {path for path in found if not any(part.startswith(".") or part == "__pycache__" for part in path.parts)}
    return sorted(path for path in found if (ROOT / path).is_file())


@cache
def texts() -> list[tuple[Path, str]]:
    """Each text file with its content."""
    found = []
    for path in files():
        with suppress(UnicodeDecodeError):
            found.append((path, (ROOT / path).read_text(encoding="utf-8")))
    return found


def sources(*folders: str) -> Iterator[tuple[Path, str]]:
    """Each Python file with its content: of the whole checkout, or under these top-level folders."""
    for path, text in texts():
        if path.suffix == ".py" and (not folders or path.parts[0] in folders):
            yield path, text


def expect_none(complaints: Iterable[str]) -> None:
    """Fail with one line per complaint."""
    found = list(complaints)
    assert not found, "\n" + "\n".join(found)
