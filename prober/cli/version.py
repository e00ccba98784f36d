"""Which version of the program this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

DISTRIBUTION: Final = "ordering-keys-prober"


def own_version() -> str:
    """The version that is installed, or that none is."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "not installed"
