"""Formats of numbers and times for readers. A nonzero value is never rounded to 0 %, nor one below 100 % to 100 %."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from math import ceil, floor, log10
from typing import Final

_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def iso(at: float) -> str:
    """Return a time in RFC 3339 in UTC, to the second, for `<time datetime=...>`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(at: float) -> str:
    """Return date and time in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def form_time(at: datetime | None) -> str:
    """Return a time in UTC in the format of a form's field; empty without a time."""
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def hour(at: float) -> str:
    """Return the time of day in UTC, for an axis."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


def day(at: float) -> str:
    """Return a day in UTC, for an axis: `1 Mar`."""
    said = datetime.fromtimestamp(at, UTC)
    return f"{said.day} {said:%b}"


def since(at: float, now: float, *, seconds: bool = False) -> str:
    """Return a past time in UTC, to the minute or to the second, without the date if that is today's."""
    said, time = datetime.fromtimestamp(at, UTC), "%H:%M:%S UTC" if seconds else "%H:%M UTC"
    return said.strftime(time if said.date() == datetime.fromtimestamp(now, UTC).date() else f"%Y-%m-%d {time}")


def duration(seconds: float) -> str:
    """Return up to two units, the largest first: `0.4 ms`, `350 ms`, `2.1 s`, `45 s`, `3 min`, `1 h 5 min`."""
    if 0.0 < seconds < 0.01:
        return f"{max(0.01, seconds * 1000):.2g} ms"
    if seconds < 1.0:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 10.0:
        return f"{floor(seconds * 10) / 10:g} s"
    return _two_units(floor(seconds))


def to_the_millisecond(seconds: float) -> str:
    """Return seconds with three decimals, for rows at distances of milliseconds."""
    return f"{seconds:.3f}"


def ago(at: float, now: float) -> str:
    """Return the time since or until `at`."""
    if abs(now - at) < 1.0:
        return "now"
    return f"{_two_units(floor(now - at))} ago" if at < now else f"in {_two_units(floor(at - now))}"


def share(ratio: float) -> str:
    """Return a percentage with two significant digits of its distance to 0 % or to 100 %: `99.995 %`, `0.012 %`."""
    percent, distance = ratio * 100.0, min(abs(ratio), abs(1.0 - ratio)) * 100.0
    digits = max(0, 1 - floor(log10(distance))) if distance > 0.0 else 0
    return f"{_without_zeros(f'{percent:,.{digits}f}')} %"


def amount(value: float) -> str:
    """Return a value that is neither a count nor a share, with two significant digits, or more before the point: `0.099`, `17`, `1,250`."""
    digits = max(0, 1 - floor(log10(abs(value)))) if value else 0
    return _without_zeros(f"{value:,.{digits}f}")


def exact(value: float) -> str:
    """Return a setting as it was written: never rounded."""
    return _without_zeros(f"{Decimal(repr(value)):,f}")


def size(count: float) -> str:
    """Return bytes, in steps of a thousand: `640 B`, `3.5 kB`, `1,200 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{amount(count)} {unit}"
        count /= 1000.0
    return f"{amount(count)} GB"


def number(count: float) -> str:
    """Return a whole number with thousands separators."""
    return f"{count:,.0f}"


def dollars(amount: float) -> str:
    """Return US dollars, rounded up: `$22`."""
    return f"${ceil(amount):,}"


def counted(count: float, noun: str, plural: str = "") -> str:
    """Return a whole number with its noun: `1 finding`, `2 findings`."""
    return f"{number(count)} {noun if count == 1 else plural or f'{noun}s'}"


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _two_units(seconds: int) -> str:
    for position, (unit, size) in enumerate(_UNITS):
        whole, rest = divmod(seconds, size)
        if whole:
            below, below_size = _UNITS[min(position + 1, len(_UNITS) - 1)]
            second = rest // below_size if rest and unit not in {"min", "s"} else 0
            return f"{whole} {unit} {second} {below}" if second else f"{whole} {unit}"
    return "0 s"
