"""Tests left to the night: cases of a parametrised test that wait for minutes, and most examples of properties."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import Any, Final

import pytest

AT_NIGHT: Final = bool(os.environ.get("FULL_PROPERTIES"))
"""Whether tests try many more examples than by day: `FULL_PROPERTIES=1`, as in `make test-nightly`."""


def nightly_but(by_day: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters. Those not in `by_day`, which represents them all in `make test`, are marked as nightly."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if case in by_day else pytest.mark.nightly)
        for case in cases
    ]
