"""Forty-five minutes without the target, at twenty times the pace: one page, and no word that it is over before it is."""

from __future__ import annotations

import pytest

from tests.integration.outage import MINUTE_S, PAGER, Outage, Story, play

LASTS_S = 45 * MINUTE_S
PACE = 20.0
UNREACHABLE = "PubsubTargetUnreachable"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return play(tmp_path_factory.mktemp("outage"), lasts_s=LASTS_S, pace=PACE, how=Outage.REFUSED, look_every_s=1.0)


def test_it_pages_once(story: Story) -> None:
    assert {message["groupKey"] for message in story.messages if message["status"] == "firing"} == {story.messages[0]["groupKey"]}
    labels = story.messages[0]["commonLabels"]
    assert (story.messages[0]["receiver"], labels["owner"], labels["target"]) == (PAGER, "service", "embedded")


def test_nobody_hears_that_it_is_over_while_it_lasts(story: Story) -> None:
    assert [moment for moment in story.during if moment.resolved] == []
    firing = [UNREACHABLE in moment.firing for moment in story.during]
    assert True in firing
    assert all(firing[firing.index(True) :])


def test_what_could_not_be_sent_goes_on_being_counted(story: Story) -> None:
    unsent = [moment.unsent for moment in story.during]
    quarter = len(unsent) // 4
    assert unsent[0] == 0
    assert all(unsent[number] < unsent[number + quarter] for number in range(quarter, len(unsent) - quarter, quarter))


def test_then_everybody_hears_that_it_is_over(story: Story) -> None:
    assert story.is_over
    assert story.messages[-1]["status"] == "resolved"
