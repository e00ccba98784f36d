"""How durations are written and read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.durations import duration_s, read_duration, write_duration
from prober.errors import ConfigError

durations = st.timedeltas(timedelta(0), timedelta(days=9999)).map(lambda d: timedelta(milliseconds=d // timedelta(milliseconds=1)))


@given(durations)
def test_a_duration_reads_as_it_is_written(duration: timedelta) -> None:
    assert read_duration(write_duration(duration)) == duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30s", 30), ("1h30m", 5400), ("250ms", 0.25), ("28d", 28 * 86400), (90, 90), (0.5, 0.5), ("12", 12), ("1.5m", 90), ("0s", 0)],
)
def test_durations(written: object, seconds: float) -> None:
    assert read_duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written",
    ["", "s", "5 apples", "-5s", -1, True, None, [], "1h 30m", "nan", float("inf"), "5M", "9999999999d", "9" * 400 + "s", 10**400],
)
def test_what_is_no_duration(written: object) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        read_duration(written)


@pytest.mark.parametrize(("written", "seconds"), [("30s", 30.0), ("5m", 300.0), ("1h30m", 5400.0), ("250ms", 0.25), ("12", 12.0)])
def test_a_duration_on_the_command_line_is_written_as_in_the_configuration(written: str, seconds: float) -> None:
    assert duration_s(written) == seconds


@pytest.mark.parametrize("written", ["", "soon", "-5s", "nan", "5 apples", "9999999999d"])
def test_what_is_no_duration_on_the_command_line_is_one_line(written: str) -> None:
    with pytest.raises(ConfigError) as caught:
        duration_s(written)
    assert (
        str(caught.value)
        == f"{written!r} is not a duration: write it like 30s, 1h30m, 250ms or 28d, with the units d, h, m, s and ms"
    )
