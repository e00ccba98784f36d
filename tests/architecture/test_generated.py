"""What code writes is as the code would write it today."""

from __future__ import annotations

import pytest

from tests.commands import ROOT
from tests.generated import PAGES, SETS


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run: make generate"


@pytest.mark.parametrize("pattern", SETS)
def test_files_that_are_made_together_are_current(pattern: str) -> None:
    committed = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.glob(pattern)}
    assert committed == SETS[pattern](), "run: make generate"
