"""The section `drills` of the configuration."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from prober.config.loading import load
from prober.config.sections import Drills, overlaid
from prober.drills.schedule import drills_of
from prober.errors import ConfigError
from tests.unit.config.writing import loaded, problems


def test_without_a_schedule_nothing_is_drilled() -> None:
    settings = load(None, {}).drills
    assert settings == Drills()
    assert drills_of(settings) == ()


def test_with_a_schedule_one_of_each_sort_is_drilled_or_what_is_named(tmp_path: Path) -> None:
    settings = loaded(tmp_path, 'drills: {cron: "0 3 * * mon", prometheus: "http://prometheus:9090", port: 9096}').drills
    assert drills_of(settings)[-2:] == ("reply_lost", "control")
    assert drills_of(overlaid(settings, {"faults": ["drop", "jitter"]})) == ("drop", "jitter")
    assert (settings.deadline, settings.silence) == (timedelta(minutes=2), timedelta(minutes=1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('drills: {cron: "0 3 1 * *"}', "drills.cron: must come at least every 7d, or PubsubProberDrillOverdue would fire"),
        ("drills: {faults: [dorp]}", "drills.faults[0]: 'dorp' is not a drill; did you mean drop?"),
        ("drills: {prometheus: prometheus}", "drills.prometheus: must be a URL that begins with http:// or https://"),
        ("drills: {port: 70000}", "drills.port: must be at most 65535, not 70000"),
        ("drills: {silence: 0s}", "drills.silence: must be longer than 0"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, problem: str) -> None:
    assert problems(tmp_path, text) == [problem]


def test_the_command_line_wins() -> None:
    settings = Drills(prometheus="http://a:1", alertmanager="http://b:1")
    assert overlaid(settings, {"prometheus": "http://c:1"}) == Drills(prometheus="http://c:1", alertmanager="http://b:1")
    with pytest.raises(ConfigError, match=r"^drills: prometheus: must be a URL"):
        overlaid(settings, {"prometheus": "c:1"})
