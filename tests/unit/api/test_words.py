"""Numbers and times for people: short, and never rounded into something else."""

from __future__ import annotations

import pytest

from api import words
from tests.unit.api.asking import NOON


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (-1.0, "0 ms"),
        (0.0000001, "0.01 ms"),
        (0.0004, "0.4 ms"),
        (0.0035, "3.5 ms"),
        (0.012, "12 ms"),
        (0.35, "350 ms"),
        (1.0, "1 s"),
        (2.19, "2.1 s"),
        (9.99, "9.9 s"),
        (45.9, "45 s"),
        (60.0, "1 min"),
        (179.0, "2 min"),
        (3600.0, "1 h"),
        (3900.0, "1 h 5 min"),
        (86400.0 * 30, "30 d"),
        (86400.0 + 7200.0, "1 d 2 h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (1000.0, "now"),
        (999.5, "now"),
        (997.0, "3 s ago"),
        (1007.9, "in 7 s"),
        (880.0, "2 min ago"),
        (1000.0 - 90000.0, "1 d 1 h ago"),
    ],
)
def test_ago(at: float, text: str) -> None:
    assert words.ago(at, 1000.0) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.5, "50 %"),
        (0.99, "99 %"),
        (0.9999, "99.99 %"),
        (0.99995, "99.995 %"),
        (0.9999999, "99.99999 %"),
        (0.000123, "0.012 %"),
        (1e-7, "0.00001 %"),
        (0.0317, "3.2 %"),
        (12.5, "1,250 %"),
    ],
)
def test_share(ratio: float, text: str) -> None:
    assert words.share(ratio) == text


def test_times() -> None:
    assert words.iso(1772366400.9) == "2026-03-01T12:00:00Z"
    assert words.clock(1772366400.9) == "2026-03-01 12:00:00 UTC"


def test_counts() -> None:
    assert [words.counted(count, "run") for count in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.00001, "0.00001"),
        (0.0994, "0.099"),
        (0.6, "0.6"),
        (9.96, "10"),
        (14.4, "14"),
        (99.6, "100"),
        (1234.5, "1,234"),
        (2e9, "2,000,000,000"),
        (-0.25, "-0.25"),
    ],
)
def test_amount(value: float, text: str) -> None:
    assert words.amount(value) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (640, "640 B"),
        (999.6, "1 kB"),
        (3456, "3.5 kB"),
        (920_000, "920 kB"),
        (12_300_000, "12 MB"),
        (2e15, "2,000,000 GB"),
    ],
)
def test_size(count: float, text: str) -> None:
    assert words.size(count) == text


@pytest.mark.parametrize(
    ("value", "text"), [(5.0, "5"), (0.25, "0.25"), (12.345678, "12.345678"), (1e6, "1,000,000"), (1e-5, "0.00001")]
)
def test_exact(value: float, text: str) -> None:
    assert words.exact(value) == text


def test_times_on_an_axis() -> None:
    assert (words.hour(NOON), words.day(NOON), words.since(NOON, NOON + 60.0)) == ("12:00", "1 Mar", "12:00 UTC")
