"""How often a process looks for cycles of references.

Events, findings and what the checker remembers are made in great numbers, live long and form no cycles. With Python's defaults the search
for cycles goes over all of them again and again, which takes as much time as verifying them (`benchmarks/end_to_end.py`).

A run that is over does form cycles: checkers and what they check, client libraries and what they call back. The remains of a few dozen
runs are worth a search of less than 0.1 s, those of thousands are gigabytes. So everything is looked at after half a million new objects.
"""

from __future__ import annotations

import gc
from typing import Final

_THRESHOLDS: Final = (50_000, 5, 2)


def collect_rarely() -> None:
    """From now on, look for cycles after so many more new objects. To be called once, by a program and not by a library."""
    gc.set_threshold(*_THRESHOLDS)
