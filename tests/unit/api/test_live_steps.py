"""Events as rows: each in the lane of whom it concerns, messages by their numbers."""

from __future__ import annotations

from api.live_steps import SUBSCRIBERS_MAX, keys_of, lanes_of, shown_steps
from prober.core.events import Opened
from prober.sinks.live.feed import LiveFeed
from tests.unit.api.watching import GAP, KEY, end, see, under_way


def test_each_event_has_a_row_in_its_lane() -> None:
    run = under_way(LiveFeed())
    end(run)
    assert lanes_of(run) == ("publisher", "subscriber 2")
    assert [(row.number, row.lane, row.words) for row in shown_steps(run, run.steps, "")] == [
        (1, 1, "opened"),
        (2, 0, "publish 1 →"),
        (3, 0, "← confirmed 1"),
        (4, 0, "publish 1 →"),
        (5, 0, "publish 2 →"),
        (6, 0, "← confirmed 2"),
        (7, 1, "→ 2"),
        (8, 1, "← ack 2"),
        (9, None, "ended"),
        (10, None, "the run ended: FAIL"),
    ]


def test_only_a_key_with_what_concerns_all() -> None:
    run = under_way(LiveFeed())
    assert keys_of(run) == (KEY, "other")
    assert [row.number for row in shown_steps(run, run.steps, "other")] == [1, 4]


def test_times_count_from_the_first_event_and_findings_are_in_words() -> None:
    run = under_way(LiveFeed())
    delivery = list(shown_steps(run, run.steps, KEY))[-2]
    assert delivery.after_s == 1.0
    ((finding, words),) = delivery.findings
    assert finding is GAP
    assert "message 2" in words


def test_further_subscribers_share_a_lane() -> None:
    run = under_way(LiveFeed())
    for number in range(SUBSCRIBERS_MAX + 1):
        see(run, Opened(5.0, "s", f"another-{number}", f"another-{number}"))
    assert lanes_of(run) == ("publisher", "subscriber 2", "another-0", "another-1", "another-2", "2 more")
    assert [row.lane for row in shown_steps(run, run.steps, "")][-2:] == [SUBSCRIBERS_MAX + 1, SUBSCRIBERS_MAX + 1]
