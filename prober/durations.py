"""Durations as text: `30s`, `1h30m`, `250ms`. `read_duration` accepts every text that `write_duration` returns."""

from __future__ import annotations

import re
from datetime import timedelta
from math import nan
from typing import Final

from prober.errors import ConfigError

_UNITS: Final = {"d": 86400 * 10**6, "h": 3600 * 10**6, "m": 60 * 10**6, "s": 10**6, "ms": 1000}
_DURATION_END: Final = 10**15  # more microseconds than any wait
_DURATION = re.compile(r"((?:\d+(?:\.\d+)?)(?:ms|[smhd]))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")


def read_duration(value: object) -> timedelta:
    """Parse `30s`, `1h30m`, `250ms`, `28d`, or a number of seconds. Raises ValueError for anything else."""
    if isinstance(value, timedelta):
        return value
    microseconds = _microseconds(value)
    if not 0.0 <= microseconds < _DURATION_END:
        raise ValueError(f"{value!r} is not a duration: write it like 30s, 1h30m, 250ms or 28d, with the units d, h, m, s and ms")
    return timedelta(microseconds=round(microseconds))


def duration_s(text: str) -> float:
    """Return the seconds of a duration on the command line, written as in the configuration. Raises ConfigError for anything else."""
    try:
        return read_duration(text).total_seconds()
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _microseconds(value: object) -> float:
    """Return the microseconds of a value; NaN if it is not a duration."""
    if isinstance(value, str) and _DURATION.fullmatch(value.strip()):
        return sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(value))
    try:
        return float(value) * 10**6 if isinstance(value, int | float | str) and not isinstance(value, bool) else nan
    except (ValueError, OverflowError):
        return nan


def write_duration(value: timedelta) -> str:
    """Return a duration as text, the largest units first: `1h30m`."""
    rest = round(value / timedelta(microseconds=1))
    words = []
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        words += [f"{count}{unit}"] if count else []
    return "".join(words) or "0s"
