"""The interval at which a process searches for cycles of references.

Events, findings and the checker's records are created in great numbers, live long and form no cycles. With Python's defaults the search
for cycles visits all of them again and again, which takes as much time as verifying them (`benchmarks/end_to_end.py`).

A finished run does form cycles: checkers and the objects they check, client libraries and their callbacks. The remains of a few dozen
runs are worth a search of less than 0.1 s, those of thousands are gigabytes. So a full search follows half a million new objects.
"""

from __future__ import annotations

import gc
from typing import Final

_THRESHOLDS: Final = (50_000, 5, 2)


def collect_rarely() -> None:
    """Search for cycles only after many more new objects. To be called once, by a program and not by a library."""
    gc.set_threshold(*_THRESHOLDS)
