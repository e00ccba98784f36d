"""Every alert fires when it should, not when it should not, and stops: written as stories, played by promtool."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from prober.slo.objectives import DAY_S
from tests.alerts import (
    about_client_library,
    about_comparisons,
    about_dependencies,
    about_down,
    about_findings,
    about_no_data,
    about_objectives,
    about_own_subscriptions,
    about_prober,
    about_self_monitoring,
    about_service,
    about_top_keys,
)
from tests.alerts.stories import EPOCH, NAMES, Story, play

REPORTED = (
    about_objectives,
    about_service,
    about_prober,
    about_no_data,
    about_self_monitoring,
    about_dependencies,
    about_comparisons,
    about_own_subscriptions,
    about_client_library,
    about_down,
    about_findings,
    about_top_keys,
)
STORIES = tuple(story for module in REPORTED for story in module.STORIES)
ALWAYS = {"PubsubProberWatchdog"}


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_story_goes_as_written(story: Story, tmp_path: Path) -> None:
    code, words = play(story, tmp_path)
    assert code == 0, words


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_alert_has_its_stories(name: str) -> None:
    reported = [list(story.firing.values()) for story in STORIES if story.alert == name]
    assert [counts for counts in reported if any(counts)], "one in which it fires"
    assert any(story.reads for story in STORIES if story.alert == name), "one that reads its description"
    if name not in ALWAYS:
        assert [counts for counts in reported if not any(counts)], "one in which it stays quiet"
        assert [counts for counts in reported if any(counts) and not counts[-1]], "one in which it ends"


def test_timestamps_are_those_of_the_time_of_stories() -> None:
    for story in STORIES:
        for series, values in story.series.items():
            if "_timestamp_seconds" in series:
                starts = [float(found) for found in re.findall(r"(?:^|\s)(-?\d+)", values)]
                assert all(not start or start > EPOCH - DAY_S * 365 for start in starts), f"{story}: write them by `at`"


def test_stories_are_about_alerts_that_exist() -> None:
    assert {story.alert for story in STORIES} == NAMES


def test_a_story_that_is_written_wrongly_is_noticed(tmp_path: Path) -> None:
    story = next(story for story in STORIES if story.alert == "PubsubOrderViolated" and story.reads)
    assert play(replace(story, reads=None, firing={"20m15s": 0}), tmp_path)[0] != 0
    assert story.reads is not None
    time, labels, _ = story.reads
    assert play(replace(story, reads=(time, labels, "something else")), tmp_path)[0] != 0
    assert play(replace(story, summary="something else"), tmp_path)[0] != 0
