"""Which cases of a parametrised test wait for minutes, and run at night."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def nightly_but(by_day: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters. Those not in `by_day`, which represents them all in `make test`, are marked as nightly."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if case in by_day else pytest.mark.nightly)
        for case in cases
    ]
