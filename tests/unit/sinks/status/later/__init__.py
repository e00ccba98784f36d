"""Programs of later versions: this program with further revisions of the status store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prober.sinks.status import revisions

ADDITIVE, BREAKING = (Path(__file__).parent / name for name in ("additive", "breaking"))


@contextmanager
def program_with(*folders: Path) -> Iterator[None]:
    """Inside the block this process is a program that also contains the revisions of these folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revisions, "FOLDERS", [*revisions.FOLDERS, *folders])
        yield
