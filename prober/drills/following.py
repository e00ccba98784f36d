"""Following a finding to whoever is told, and watching that nobody is told without one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from prober.core.findings import FAILING
from prober.core.verdict import Verdict
from prober.drills.chain import NoAnswer, Patience, Sighting
from prober.drills.results import Step, StepName
from prober.sinks.metrics import DrillMetrics

EARLIER_S: Final = 300.0
"""How long an alert of an earlier drill is waited for to end; its rule lets it fire for three minutes."""


class CounterSighting:
    """Whether a scrape of the metrics shows more findings of a drill than before it."""

    def __init__(self, metrics: DrillMetrics) -> None:
        self._metrics = metrics
        self._before: dict[str, float] = {}

    def expect(self, drill: str) -> None:
        """Remembers how many there are."""
        self._before[drill] = self._metrics.scraped(drill, FAILING)

    async def sees(self, drill: str) -> str | None:
        """An empty note if there are more now."""
        return "" if self._metrics.scraped(drill, FAILING) > self._before[drill] else None


async def gone(sightings: Iterable[tuple[StepName, Sighting]], drill: str, patience: Patience) -> dict[StepName, str]:
    """Waits until nobody sees the alert of an earlier drill of that name. What is still in the way, by step; empty if nothing is."""
    found = await asyncio.gather(*(_gone(name, sighting, drill, patience) for name, sighting in sightings))
    return {name: trouble for name, trouble in found if trouble}


async def _gone(name: StepName, sighting: Sighting, drill: str, patience: Patience) -> tuple[StepName, str]:
    give_up_t = patience.clock() + EARLIER_S
    while True:
        try:
            if await sighting.sees(drill) is None:
                return name, ""
        except NoAnswer as error:
            return name, str(error)
        if patience.clock() >= give_up_t:
            return name, "the alert of an earlier drill has not ended"
        await asyncio.sleep(patience.look_s)


async def came(name: StepName, sighting: Sighting, drill: str, patience: Patience, since_t: float) -> Step:
    """Waits for what has to come. UNKNOWN only if the last look got no answer; `since_t` is when the fault struck."""
    give_up_t = patience.clock() + patience.deadline_s
    while True:
        trouble = ""
        try:
            note = await sighting.sees(drill)
            if note is not None:
                return Step(name, Verdict.PASS, patience.clock() - since_t, note)
        except NoAnswer as error:
            trouble = str(error)
        if patience.clock() >= give_up_t:
            if trouble:
                return Step(name, Verdict.UNKNOWN, note=trouble)
            return Step(name, Verdict.FAIL, note=f"did not come within {patience.deadline_s:g} s")
        await asyncio.sleep(patience.look_s)


async def stayed_away(name: StepName, sighting: Sighting, drill: str, patience: Patience, since_t: float) -> Step:
    """Watches for what must not come. UNKNOWN if any look got no answer: it may have been there then."""
    give_up_t = patience.clock() + patience.silence_s
    trouble = ""
    while True:
        try:
            if await sighting.sees(drill) is not None:
                return Step(name, Verdict.FAIL, patience.clock() - since_t, "came although no promise was broken")
        except NoAnswer as error:
            trouble = str(error)
        if patience.clock() >= give_up_t:
            return Step(name, Verdict.UNKNOWN, note=trouble) if trouble else Step(name, Verdict.PASS)
        await asyncio.sleep(patience.look_s)
