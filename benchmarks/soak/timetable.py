"""When what goes wrong in a soak: one trouble after the other, with as much quiet between them as there is time for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from typing import Final

from benchmarks.soak.samples import Sample
from benchmarks.soak.troubles import Spell, Trouble

FIRST_S: Final = 120.0
"""Before the first trouble, every probe has run."""
FIRST_SHARE: Final = 0.2
TROUBLED_MAX: Final = 0.6
"""Of the time of each trouble; the rest is for its consequences, and for quiet."""


class Timetable:
    """Lets troubles begin and end while a soak goes on. `spells` are those that began; the last one ends with the `with` statement."""

    def __init__(self, troubles: Sequence[Trouble], seconds: float) -> None:
        self.spells: list[Spell] = []
        first_s = min(FIRST_S, FIRST_SHARE * seconds)
        self._each_s = (seconds - first_s) / len(troubles)
        self._waiting = [(first_s + number * self._each_s, trouble) for number, trouble in enumerate(troubles)]
        self._lasting = ExitStack()
        self._t = 0.0

    def __enter__(self) -> Timetable:
        return self

    def __exit__(self, *_: object) -> None:
        if self.spells and self.spells[-1].ended_t == inf:
            self._end(self._t)

    def look(self, now: Sample) -> str:
        """Ends and begins what is due; what that is, in words."""
        self._t = now.t
        if self.spells and self.spells[-1].ended_t == inf:
            return self._end(now.t) if now.t >= self.spells[-1].began_t + self._lasts_s(self.spells[-1].trouble) else ""
        if self._waiting and now.t >= self._waiting[0][0]:
            return self._begin(self._waiting.pop(0)[1], now)
        return ""

    def _lasts_s(self, trouble: Trouble) -> float:
        return min(trouble.lasts_s, TROUBLED_MAX * self._each_s)

    def _begin(self, trouble: Trouble, now: Sample) -> str:
        self.spells.append(Spell(trouble, now.t, inf, now))
        self._lasting.enter_context(trouble.inflicted())
        return f"{trouble.name}: begins"

    def _end(self, t: float) -> str:
        self._lasting.close()
        self.spells[-1] = replace(self.spells[-1], ended_t=t)
        return f"{self.spells[-1].trouble.name}: ends"
