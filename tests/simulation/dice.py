"""Throws for the options of one run."""

from __future__ import annotations

from random import Random

from tests.simulation.options import NEVER


class Dice:
    """A feature is off in a part of the runs, and as strong as it comes in the others."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def rate(self, high: float, share: float = 0.5) -> float:
        """A probability up to `high`, 0 in all but a share of the runs."""
        return self.random.uniform(0, high) if self.random.random() < share else 0.0

    def every(self, low: float, high: float, share: float = 0.5) -> float:
        """A time between two occurrences, `NEVER` in all but a share of the runs."""
        return self.random.uniform(low, high) if self.random.random() < share else NEVER

    def flag(self, share: float) -> bool:
        """True in a share of the runs."""
        return self.random.random() < share
