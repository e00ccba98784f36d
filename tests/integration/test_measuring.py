"""What probes measure: what a fault delays shows, what is as ever does not, and nobody is accused.

In virtual time (`tests.virtual_time`), where nothing else delays anything.
"""

from __future__ import annotations

import json

import pytest

from prober.cli.check_report import result_as_text
from prober.cli.check_runs import CheckRequest, run_checks
from prober.config.loading import load
from prober.core.findings import FAILING
from prober.core.verdict import Verdict
from prober.probes.push import RATES_PER_S
from prober.runs.result import RunResult
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from tests.virtual_time import in_virtual_time

THRESHOLD_S = 1.0
CREATION_S = 10.0


def run(probe: str, *faults: str, processing: str = "slow_key") -> RunResult:
    environ = {
        "ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps(faults),
        "ORDERING_PROBER_PROBES__ISOLATION__PROCESSING": processing,
    }
    (result,) = in_virtual_time(lambda: run_checks(load(None, environ), CheckRequest(probes=(probe,)), environ, lambda _: None))
    assert result.verdict is Verdict.PASS, result.reason
    return result


def test_a_held_key_that_delays_others_shows_as_a_delay_and_accuses_nobody() -> None:
    result = run("isolation", "head_of_line:p=1")
    delays = result.durations[Indicator.HEAD_OF_LINE_DELAY]
    assert delays.count == result.counters["delays_measured"] == 288
    assert delays.max_s > THRESHOLD_S
    during, after = result.figures[Figure.LATENCY_DURING_HOLD], result.figures[Figure.LATENCY_AFTER_HOLD]
    usual = max(after, result.figures[Figure.LATENCY_BEFORE_HOLD])
    assert during > 2 * usual
    assert result.figures[Figure.LATENCY_WHILE_SLOW] > 2 * usual
    assert "  latency during hold: " in result_as_text(result)


def test_jitter_that_is_as_before_is_no_delay() -> None:
    delays = run("isolation", "jitter:p=1,seed=1").durations[Indicator.HEAD_OF_LINE_DELAY]
    assert delays.count == 288
    assert delays.max_s < THRESHOLD_S


def test_a_stuck_subscription_that_delays_its_sibling_shows_as_a_delay_and_accuses_nobody() -> None:
    result = run("isolation", "sibling_delays")
    assert result.durations[Indicator.HEAD_OF_LINE_DELAY].max_s > THRESHOLD_S
    during, held = result.figures[Figure.LATENCY_DURING_SIBLING_HOLD], result.figures[Figure.LATENCY_DURING_HOLD]
    assert during > 2 * max(held, result.figures[Figure.LATENCY_BEFORE_HOLD], result.figures[Figure.LATENCY_AFTER_HOLD])
    assert result.figures[Figure.DELAY_DURING_RESTARTS] < THRESHOLD_S
    assert not [status for _, status in result.counts if status in FAILING]


def test_what_a_held_key_delays_while_subscribers_restart_is_a_figure_and_counts_for_no_objective() -> None:
    plain = run("isolation")
    assert plain.counters["subscribers_restarted"] == 2
    assert plain.figures[Figure.DELAY_DURING_RESTARTS] < THRESHOLD_S
    assert plain.durations[Indicator.HEAD_OF_LINE_DELAY].max_s < THRESHOLD_S
    assert run("isolation", "head_of_line").figures[Figure.DELAY_DURING_RESTARTS] > THRESHOLD_S


@pytest.mark.parametrize("fault", ["", "slow_ack_extension:p=0.5", "jitter:p=0.5", "lease_short:p=0.5", "stream_break:p=0.1"])
def test_a_slow_key_delays_only_itself_and_its_leases_last(fault: str) -> None:
    """Its last messages wait for longer than their lease of ten seconds."""
    result = run("isolation", *filter(None, [fault]))
    assert result.durations[Indicator.HEAD_OF_LINE_DELAY].p99_s < THRESHOLD_S
    assert result.figures[Figure.SLOW_BACKLOG] >= 9
    assert result.figures[Figure.SLOW_OLDEST] > 10.0
    assert result.counters["messages_processed_slowly"] >= 12
    assert bool(result.counters.get("slow_consumer_redeliveries")) == fault.startswith(("lease_short", "stream_break"))


@pytest.mark.parametrize("processing", ["fixed", "heavy_tailed"])
def test_slow_consumers_of_all_keys_are_measured_and_delay_no_other_key(processing: str) -> None:
    result = run("isolation", processing=processing)
    assert result.counters["delays_measured"] == 192
    assert result.counters["messages_processed_slowly"] > 12
    assert result.figures[Figure.SLOW_BACKLOG] > 60
    assert "slow_consumer_redeliveries" not in result.counters


def test_head_of_line_delays_behind_a_slow_key_are_found_without_a_held_one() -> None:
    result = run("isolation", "head_of_line:start=13")
    assert result.figures[Figure.LATENCY_DURING_HOLD] < THRESHOLD_S / 2
    assert result.durations[Indicator.HEAD_OF_LINE_DELAY].max_s > THRESHOLD_S


def test_keys_that_wait_for_each_other_show_in_the_parallelism() -> None:
    assert run("scale").figures[Figure.SCALE_PARALLELISM] > 0.8
    assert run("scale", "few_keys_at_once:p=1").figures[Figure.SCALE_PARALLELISM] < 0.5


def test_a_backlog_begins_where_a_key_is_slow() -> None:
    result = run("hot_key", "slow_delivery:p=1")
    assert 0.0 < result.figures[Figure.BACKLOG_BEGINS] < 1_000_000
    assert result.figures[Figure.HOT_KEY_BACKLOG_GROWTH] > 0.0
    assert result.counters["backlogs_drained"] == 1


def test_the_unordered_twin_is_read_and_in_no_count_of_deliveries() -> None:
    result = run("control_group")
    assert result.counters["deliveries_first"] == result.counters["unordered_deliveries"] == result.counters["pairs"] == 320
    low, high = result.figures[Figure.ORDER_LATENCY_LOW], result.figures[Figure.ORDER_LATENCY_HIGH]
    assert low < result.figures[Figure.ORDER_LATENCY] < high
    assert result.figures[Figure.ORDER_UNAVAILABILITY] == 0.0
    assert 0.0 <= result.figures[Figure.UNORDERED_REORDERED] <= 1.0


def test_a_slow_publish_on_keys_is_a_price_of_the_key_and_one_on_all_is_none() -> None:
    slow = run("control_group", "publish_slow:key=twin-*,p=0.5,seed=1").figures
    assert slow[Figure.KEY_PUBLISH_LATENCY_LOW] > 0.1
    assert slow[Figure.KEY_PUBLISH_FAILURES] == 0.0
    alike = run("control_group", "publish_slow:p=1").figures
    assert abs(alike[Figure.KEY_PUBLISH_LATENCY]) < 0.1


def test_publishes_that_fail_on_keys_only_are_a_price_of_the_key() -> None:
    result = run("control_group", "publish_unavailable:key=twin-*,p=0.5,seed=1")
    assert result.figures[Figure.KEY_PUBLISH_FAILURES_LOW] > 0.0
    assert result.counters["publishes_without_key"] == 320
    alike = run("control_group", "publish_unavailable:p=0.3,seed=1").figures
    assert alike[Figure.KEY_PUBLISH_FAILURES_LOW] < 0.0 < alike[Figure.KEY_PUBLISH_FAILURES_HIGH]


def test_messages_without_a_key_are_neither_recorded_nor_verified() -> None:
    result = run("control_group")
    assert result.counters["deliveries_unordered"] == result.counters["publishes_without_key"] == 320
    assert result.counters["publishes_invoked"] == 320
    assert not result.findings


def test_a_subscription_that_is_silent_at_first_is_late_and_a_slow_answer_within_the_objective_is_not() -> None:
    late = run("control_plane", "slow_creation")
    assert late.durations[Indicator.CREATION_TO_RECEIPT_LATENCY].max_s > CREATION_S
    assert late.figures[Figure.CREATION_TO_RECEIPT] > CREATION_S > late.figures[Figure.SUBSCRIPTION_CREATION]
    slow = run("control_plane", "admin_slow:count=3")
    assert 6.0 < slow.figures[Figure.SUBSCRIPTION_CREATION] < slow.figures[Figure.CREATION_TO_RECEIPT] < CREATION_S
    assert slow.counters["first_receipts_measured"] == 1
    assert slow.durations[Indicator.CREATION_TO_RECEIPT_LATENCY].count == 1


def test_another_order_in_the_dead_letter_topic_shows_and_late_messages_in_order_do_not() -> None:
    overtaken = run("dead_letter", "dead_letter_late")
    assert overtaken.figures[Figure.DEAD_LETTERS_REORDERED] == 0.5
    assert overtaken.figures[Figure.DEAD_LETTERS_EXTENT] == 1
    assert not overtaken.findings
    late = run("dead_letter", "slow_delivery:p=0.3")
    assert late.figures[Figure.DEAD_LETTERS_REORDERED] == late.figures[Figure.DEAD_LETTERS_EXTENT] == 0.0


def test_a_redelivery_before_the_minimum_backoff_shows_and_a_late_one_does_not() -> None:
    kept = run("redelivery")
    assert kept.counters["backoffs_measured"] == 24
    assert kept.figures[Figure.BACKOFF_EARLY] == 0.0
    assert 1.0 < kept.figures[Figure.BACKOFF_MEDIAN] < kept.figures[Figure.BACKOFF_LONGEST] < 2.5
    ignored = run("redelivery", "backoff_ignored:p=0.5,seed=1")
    assert 0.25 < ignored.figures[Figure.BACKOFF_EARLY] < 0.75
    assert {status for _, status in ignored.counts} <= {status for _, status in kept.counts}
    late = run("redelivery", "jitter:p=1,seed=1")
    assert late.figures[Figure.BACKOFF_EARLY] == 0.0


@pytest.mark.parametrize(("probe", "indicator"), [("push", Indicator.PUSH_LATENCY), ("pull", Indicator.PULL_LATENCY)])
def test_slow_delivery_by_push_and_pull_is_late_and_jitter_is_not(probe: str, indicator: Indicator) -> None:
    late = run(probe, "slow_delivery:p=1").durations[indicator]
    assert late.count == run(probe).counters["first_messages_measured"]
    assert late.p50_s > THRESHOLD_S
    assert run(probe, "jitter:p=1,seed=1").durations[indicator].max_s < THRESHOLD_S


def test_push_that_is_throttled_falls_behind_at_a_rate_and_jitter_is_no_throttle() -> None:
    throttled = run("push", "throttle_push")
    assert (throttled.figures[Figure.PUSH_KEPT_UP], throttled.figures[Figure.PUSH_FELL_BEHIND]) == (10.0, 20.0)
    for faults in ((), ("jitter:p=1,seed=1",), ("reply_lost:p=0.3,seed=1",)):
        result = run("push", *faults)
        assert result.figures == {Figure.PUSH_KEPT_UP: RATES_PER_S[-1]}
        assert "  push kept up: at least 40 messages/s" in result_as_text(result)


def test_a_ramp_that_is_published_too_slowly_says_nothing_about_push() -> None:
    result = run("push", "publish_slow:key=push-ramp-*")
    assert result.figures == {}
    assert result.counters["push_ramps_undecided"] == 1


def test_a_ramp_that_leaves_messages_behind_leaves_out_the_latency() -> None:
    result = run("push", "ack_lost:key=push-ramp-*,count=2")
    assert Indicator.PUSH_LATENCY not in result.durations
    assert result.counters["first_messages_left_out"] == 10
    assert " latency: median " in result_as_text(run("push"))
