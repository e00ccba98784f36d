"""The alert that drills are followed by is among the rules, wakes up nobody, and reaches the prober's own receiver."""

from __future__ import annotations

from typing import Any

import yaml

from prober.alerting.files import rule_files
from prober.config.loading import load
from prober.drills.chain import ALERT, DRILL, PAGES
from prober.drills.drill import EARLIER_S
from prober.sinks.metrics.families import DRILL_FINDINGS, FAMILIES
from tests.commands import ROOT


def rule() -> dict[str, Any]:
    texts = rule_files(load(None, {}).objectives).values()
    rules = [one for text in texts for group in yaml.safe_load(text)["groups"] for one in group["rules"]]
    (found,) = [one for one in rules if one.get("alert") == ALERT]
    return dict(found)


def test_the_alert_is_about_findings_of_drills_and_keeps_their_name() -> None:
    expression = rule()["expr"]
    assert DRILL_FINDINGS.full_name in expression
    assert not [family for family in FAMILIES if family.full_name in expression and "target" in family.labels]
    assert f"sum by ({DRILL}, " in expression


def test_it_wakes_up_nobody() -> None:
    assert rule()["labels"] == {"severity": "none", "owner": "prober"}


def test_it_ends_while_the_next_drill_waits_for_it() -> None:
    assert "offset 3m" in rule()["expr"]
    assert EARLIER_S > 180.0 + 60.0


def test_the_example_of_alertmanager_sends_it_here() -> None:
    config = yaml.safe_load((ROOT / "alerts" / "alertmanager.example.yaml").read_text(encoding="utf-8"))
    (route,) = [one for one in config["route"]["routes"] if f'alertname="{ALERT}"' in one["matchers"]]
    (receiver,) = [one for one in config["receivers"] if one["name"] == route["receiver"]]
    assert [webhook["url"].endswith(PAGES) for webhook in receiver["webhook_configs"]] == [True]
