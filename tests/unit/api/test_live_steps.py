"""Events as rows: each in the lane of whom it concerns, messages by their numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.routes.live import SUBSCRIBERS_MAX, FoundAt, ShownStep, keys_of, lanes_of, shown_steps, silence_s
from prober.core.events import Opened, PublishInvoked
from prober.runs.classification import Observation
from prober.sinks.live.feed import LiveFeed, WatchedRun
from tests.unit.api.asking import EUROPE
from tests.unit.api.watching import GAP, KEY, RUN, end, see, under_way


def rows_of(run: WatchedRun, key: str = "") -> list[ShownStep]:
    return list(shown_steps(run, run.steps_of(key), key, {}))


def test_each_event_has_a_row_in_its_lane() -> None:
    run = under_way(LiveFeed())
    end(run)
    assert lanes_of(run) == ("publisher", "subscriber 2")
    assert [(row.number, row.lane, row.words) for row in rows_of(run)] == [
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
    assert keys_of(run, "") == (KEY, "other")
    assert keys_of(run, "asked") == (KEY, "asked", "other")
    assert [row.number for row in rows_of(run, "other")] == [1, 4]


def test_of_a_key_the_findings_on_others_are_left_out() -> None:
    run = under_way(LiveFeed())
    run.event(Observation(PublishInvoked(2.5, "other", RUN, 2), None, None, (GAP, replace(GAP, key="other"))))
    assert [finding.finding.key for row in rows_of(run, "other") for finding in row.findings] == ["other"]
    assert [finding.finding.key for row in rows_of(run, KEY) for finding in row.findings] == [KEY, KEY]


def test_only_events_that_are_shown_are_linked() -> None:
    run = under_way(LiveFeed())
    run.steps.popleft()
    run.event(Observation(PublishInvoked(2.5, KEY, RUN, 3), None, None, (replace(GAP, witnesses=(1, 5)),)))
    assert rows_of(run)[-1].findings[0].witnesses == ((1, False), (5, True))


def test_a_finding_has_a_page_once_the_run_has_ended_and_is_stored() -> None:
    run = under_way(LiveFeed())
    place = GAP.kind, GAP.subscription, GAP.key, GAP.t

    def page(pages: dict[FoundAt, str]) -> list[str]:
        return [one.page for row in shown_steps(run, run.steps, "", pages) for one in row.findings]

    assert page({}) == [""]
    end(run)
    assert page({}) == [f"runs/{RUN}"]
    assert page({place: "a/1"}) == ["findings/a%2F1"]


def test_silence_counts_from_the_latest_event_of_the_key() -> None:
    run = under_way(LiveFeed())
    assert silence_s(run, "", 10.0) == pytest.approx(7.9)
    assert silence_s(run, "other", 10.0) == pytest.approx(8.7)
    end(run)
    assert silence_s(run, "", 10.0) is None
    empty = WatchedRun("run", EUROPE, 0.0, begun_t=4.0)
    assert silence_s(empty, "", 10.0) == 6.0


def test_times_count_from_the_first_event_and_findings_are_in_words() -> None:
    run = under_way(LiveFeed())
    delivery = rows_of(run, KEY)[-2]
    assert delivery.after_s == 1.0
    (shown,) = delivery.findings
    assert shown.finding is GAP
    assert "message 2" in shown.words


def test_further_subscribers_share_a_lane() -> None:
    run = under_way(LiveFeed())
    for number in range(SUBSCRIBERS_MAX + 1):
        see(run, Opened(5.0, "s", f"another-{number}", f"another-{number}"))
    assert lanes_of(run) == ("publisher", "subscriber 2", "another-0", "another-1", "another-2", "2 more")
    assert [(row.lane, row.lane_name) for row in rows_of(run)][-2:] == [(SUBSCRIBERS_MAX + 1, "2 more")] * 2
