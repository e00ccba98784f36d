"""What numbers say in situations that are rare: an outage, a dead prober beside other jobs, rules that are not loaded. By promtool."""

from __future__ import annotations

from math import isnan, nan
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts.tools import said
from tests.dashboards.committed import dashboard, interpolated, panels

PROBER = 'job="p", instance="a"'
PLACE = f'{PROBER}, target="t", environment="e", region="r"'
WATCHDOG = 'ALERTS{alertname="PubsubProberWatchdog", alertstate="firing", severity="none"}'
FIRING = (
    'ALERTS{alertname="PubsubOrderViolated", alertstate="firing", severity="critical", target="t", environment="e", region="r"}'
)
UP = {f"up{{{PROBER}}}": "1x60", f"pubsub_prober_build_info{{{PROBER}}}": "1x60", 'up{job="other", instance="b"}': "0x60"}
DEAD = UP | {f"up{{{PROBER}}}": "1x30 0x30", f"pubsub_prober_build_info{{{PROBER}}}": "1x30 stale"}

OUTAGE = {
    f'pubsub_prober_publishes_total{{{PLACE}, topic="o", outcome="confirmed"}}': "100x60",
    f'pubsub_prober_publishes_total{{{PLACE}, topic="o", outcome="rejected"}}': "0x60",
    f'pubsub_prober_publishes_unsent_total{{{PLACE}, topic="o"}}': "0+10x60",
}
WELL = {f'pubsub_prober_publishes_total{{{PLACE}, topic="o", outcome="confirmed"}}': "0+10x60"}
BEFORE_UNSENT = WELL | {f'pubsub_prober_publishes_total{{{PLACE}, topic="o", outcome="rejected"}}': "0+10x60"}


def late(target: str = "t", kind: str = "ORDER_GAP", **more: str) -> str:
    """What later verification found there."""
    labels = {"job": "p", "instance": "a", "target": target, "environment": "e", "region": "r", "kind": kind} | more
    written = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"pubsub_prober_reverified_findings{{{written}}}"


def left(project: str, instance: str = "a") -> str:
    """What is left behind in a project."""
    return f'pubsub_prober_leftover_resources{{job="p", instance="{instance}", project="{project}"}}'


def errors(operation: str, code: str) -> str:
    """Calls that ended with an error."""
    return f'pubsub_prober_target_errors_total{{{PLACE}, operation="{operation}", code="{code}"}}'


NOT_KNOWN = " ".join(["NaN"] * 61)
FOUND_LATE = "Violated guarantees found only by later verification"
LEFT_BEHIND = "Topics and subscriptions left behind"
FAILED = {errors("publish", "UNAVAILABLE"): "0+1x60", errors("administer", "NOT_FOUND"): "0+2x60"}
UNREACHABLE = {
    f'pubsub_prober_unreachable_runs{{{PLACE}, subscription="{name}"}}': values for name, values in (("x", "7x60"), ("y", "3x60"))
}
UNDECIDED = {f'pubsub_prober_undecided_durations_total{{{PLACE}, duration="publish_latency"}}': "0+2x60"}

STORIES: list[tuple[str, str, dict[str, str], float | None]] = [
    ("publisher", "Publishes confirmed", OUTAGE, 0.0),
    ("publisher", "Publishes confirmed", BEFORE_UNSENT, 0.5),
    ("publisher", "Publishes confirmed", {}, None),
    ("publisher", "Publishes never sent", OUTAGE, 1.0),
    ("publisher", "Publishes not confirmed", OUTAGE, 1.0),
    ("publisher", "Publishes not confirmed", BEFORE_UNSENT, 0.5),
    ("prober", "Probers up", UP, 1.0),
    ("prober", "Probers up", DEAD, 0.0),
    ("jobs", FOUND_LATE, {late(): "2x60", late(kind="STUCK"): "1x60", late("u"): "0x60"}, 3.0),
    ("jobs", FOUND_LATE, {late(): "2x60", late(instance="b"): "2x60"}, 2.0),
    ("jobs", FOUND_LATE, {late(): "2x60", late(kind="STUCK"): NOT_KNOWN}, 2.0),
    ("jobs", FOUND_LATE, {late(): "0x60"}, 0.0),
    ("jobs", FOUND_LATE, {late(): NOT_KNOWN}, nan),
    ("jobs", FOUND_LATE, {}, None),
    ("prober", LEFT_BEHIND, {left("p"): "2x60", left("p", "b"): "2x60", left("q"): "3x60"}, 5.0),
    ("prober", LEFT_BEHIND, {left("p"): "2x60", left("q"): NOT_KNOWN}, 2.0),
    ("prober", LEFT_BEHIND, {left("p"): "0x60", left("p", "b"): NOT_KNOWN}, 0.0),
    ("prober", LEFT_BEHIND, {left("p"): "0x60", left("q"): NOT_KNOWN}, nan),
    ("prober", LEFT_BEHIND, {}, None),
    ("prober", "Undecided durations", UNDECIDED, 10.0),
    ("publisher", "Runs in a row that could not reach the target", UNREACHABLE, 7.0),
    ("publisher", "Errors of calls to publish, by code", FAILED, 5.0),
    ("control-plane", "Errors of calls, by what they are for", FAILED, 15.0),
    ("control-plane", "Errors of calls, by what they are for", {errors("publish", "UNAVAILABLE"): "0x60"}, 0.0),
    ("control-plane", "Errors of calls, by code", FAILED, 15.0),
    ("control-plane", "Errors of calls, by code", {errors("publish", "UNAVAILABLE"): "0x60"}, None),
    ("overview", "Firing alerts", {WATCHDOG: "1x60"}, 0.0),
    ("overview", "Firing alerts", {WATCHDOG: "1x60", FIRING: "1x60"}, 1.0),
    ("overview", "Firing alerts", {}, None),
    (
        "overview",
        "Firing alerts by target",
        {FIRING: "1x60", FIRING.replace("ALERTS", "ALERTS_FOR_STATE").replace('alertstate="firing", ', ""): "0x60"},
        3600.0,
    ),
    ("overview", "Firing alerts by target", {FIRING.replace("firing", "pending"): "1x60"}, None),
]


def number(board: str, title: str) -> str:
    """The query behind a number, everything chosen, not broken down, as one number."""
    (panel,) = (one for one in panels(dashboard(board)) if one["title"] == title)
    windows = {"__rate_interval": "5m", "__range": "30m"}
    return f"sum({interpolated(panel['targets'][0]['expr'], 'target', windows)})"


@pytest.mark.parametrize(("board", "title", "series", "wanted"), STORIES)
def test_a_number_says_what_is_so(board: str, title: str, series: dict[str, str], wanted: float | None, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"expr": number(board, title), "eval_time": "1h"}
    if wanted is not None and isnan(wanted):  # promtool does not take two for equal that are not numbers
        asked["expr"], wanted = f"count(({asked['expr']}) != ({asked['expr']}))", 1.0
    asked["exp_samples"] = [] if wanted is None else [{"labels": "{}", "value": wanted}]
    given = [{"series": name, "values": values} for name, values in series.items()]
    story = {"evaluation_interval": "1m", "tests": [{"interval": "1m", "input_series": given, "promql_expr_test": [asked]}]}
    (tmp_path / "story.yaml").write_text(yaml.safe_dump(story), encoding="utf-8")
    code, words = said("promtool", "test", "rules", tmp_path / "story.yaml")
    assert code == 0, words
