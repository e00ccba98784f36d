"""Seeds as they are written: `1..200`, or one number."""

from __future__ import annotations

from prober.errors import ConfigError


def read_seeds(text: str) -> range:
    """The seeds, both ends included. Raises ConfigError."""
    first, dots, last = text.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        seeds = range(0)
    if not seeds or seeds[0] < 0:
        raise ConfigError(f"{text!r} are no seeds; write them like 1..200")
    return seeds
