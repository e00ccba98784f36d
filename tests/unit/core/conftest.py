"""Marks what the checker is known to verify otherwise than a test expects."""

from __future__ import annotations

import pytest

from tests.unit.core.differences import ACCUSED, MISSED, OTHERWISE

KNOWN = {*ACCUSED, *MISSED, *OTHERWISE}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A known difference is an expected failure; once it is gone, its line has to go too."""
    for item in items:
        if item.nodeid.rpartition("tests/unit/core/")[2] in KNOWN:
            item.add_marker(pytest.mark.xfail(strict=True, reason="a known difference, see differences.py"))
