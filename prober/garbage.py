"""How often Python looks for reference cycles.

Events, findings and what the checker remembers are made in great numbers, live long and form no cycles. With the defaults the
search for cycles goes over all of them again and again, which takes as much time as judging them (`benchmarks/end_to_end.py`).
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (50_000, 20, 20)


def collect_rarely() -> None:
    """From now on, looks for cycles after so many more new objects. To be called once, by a program and not by a library."""
    gc.set_threshold(*THRESHOLDS)
