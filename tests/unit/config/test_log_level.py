"""The level of log lines, by the variable that many programs have and by our own."""

from __future__ import annotations

import pytest

from prober.config.loading import load
from prober.config.sections import LogLevel
from prober.errors import ConfigError


@pytest.mark.parametrize(
    ("environ", "level"),
    [
        ({"LOG_LEVEL": "DEBUG"}, LogLevel.DEBUG),
        ({"LOG_LEVEL": "warning", "ORDERING_PROBER_TELEMETRY__LOG_LEVEL": "error"}, LogLevel.ERROR),
        ({"LOG_LEVEL": ""}, LogLevel.INFO),
    ],
)
def test_the_common_variable_of_levels_sets_ours_unless_ours_is_set(environ: dict[str, str], level: LogLevel) -> None:
    assert load(None, environ).telemetry.log_level is level


def test_a_wrong_level_is_named_by_its_variable() -> None:
    with pytest.raises(ConfigError, match=r"LOG_LEVEL \(telemetry\.log_level\): must be 'debug', .* not 'loud'"):
        load(None, {"LOG_LEVEL": "loud"})
