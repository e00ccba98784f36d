"""What holds for tests of the checker that was compiled."""

from __future__ import annotations

import pytest

from tests.compiled import COMPILED

PURE = ("test_resting.py",)
"""Tests of what is never compiled."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bounds are part of the machine code, so they cannot be made smaller for a test."""
    unchangeable = pytest.mark.skip(reason="changes a bound, which a compiled checker does not notice")
    for item in items if COMPILED else ():
        patches = "monkeypatch" in getattr(item, "fixturenames", ())
        if patches and item.path.parent.name == "core" and item.path.name not in PURE:
            item.add_marker(unchangeable)
