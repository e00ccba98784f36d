"""How often Python looks for reference cycles.

Events, findings and what the checker remembers are made in great numbers, live long and form no cycles. With the defaults the
search for cycles goes over all of them again and again, which takes as much time as judging them (`benchmarks/end_to_end.py`).

A run that is over does form cycles: checkers and what they check, client libraries and what they call back. So a process that does run
after run looks in between: the garbage of a few dozen runs is worth a search of less than 0.1 s, that of thousands is gigabytes.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (50_000, 20, 20)
THRESHOLDS_OF_A_SERVICE: Final = (50_000, 5, 2)
"""Everything is looked at after half a million new objects."""


def collect_rarely() -> None:
    """From now on, looks for cycles after so many more new objects. To be called once, by a program and not by a library."""
    gc.set_threshold(*THRESHOLDS)


def collect_between_runs() -> None:
    """The same for a program that does run after run, whose remains must not pile up."""
    gc.set_threshold(*THRESHOLDS_OF_A_SERVICE)
