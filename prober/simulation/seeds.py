"""Notation of seeds, `1..200` or one number, and the default length of a simulation."""

from __future__ import annotations

from typing import Final

from prober.errors import ConfigError

HOURS_DEFAULT: Final = 0.05
"""Simulated hours per seed."""


def read_seeds(text: str) -> range:
    """Return the seeds of a text, both ends included. Raises ConfigError."""
    first, dots, last = text.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        seeds = range(0)
    if not seeds or seeds[0] < 0:
        raise ConfigError(f"{text!r} are no seeds; write them like 1..200")
    return seeds
