"""Names for sessions: whose, and which one, counted over the whole process."""

from __future__ import annotations

from itertools import count
from typing import Final

_NUMBERS: Final = count(1)


def session_name(owner: str) -> str:
    """A name that no other session of this process has."""
    return f"{owner}#{next(_NUMBERS)}"
