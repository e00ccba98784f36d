"""The mixin: the same rules and dashboards, with the addresses of an installation."""

from __future__ import annotations

import json
from typing import Any

import _jsonnet
import pytest
import yaml

from prober.alerting.catalogue import rule_files
from prober.alerting.options import Options
from prober.config.loading import load
from tests.commands import ROOT

MIXIN = ROOT / "alerts" / "mixin.libsonnet"


def evaluated(expression: str) -> Any:
    """The value of a Jsonnet expression about the mixin."""
    return json.loads(_jsonnet.evaluate_snippet("test", f"local mixin = import '{MIXIN}'; {expression}"))


@pytest.mark.parametrize(
    ("addresses", "options"),
    [
        pytest.param("{}", Options(), id="defaults"),
        pytest.param(
            "{pages: 'https://p.example.com', dashboards: 'https://g.example.com'}",
            Options(pages="https://p.example.com", dashboards="https://g.example.com"),
            id="runbooks of the service",
        ),
        pytest.param("{runbooks: 'https://r.example.com'}", Options(runbooks="https://r.example.com"), id="own runbooks"),
    ],
)
def test_the_rules_are_those_that_the_command_writes(addresses: str, options: Options) -> None:
    files = rule_files(load(None, {}).objectives, options).values()
    expected = [group for text in files for group in yaml.load(text, Loader=yaml.CSafeLoader)["groups"]]
    assert evaluated(f"(mixin + {{_config+:: {addresses}}}).prometheusAlerts.groups") == expected


def test_it_has_every_dashboard_with_these_addresses() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "dashboards").glob("*.json")}
    addressed = {"${VAR_STATUS_PAGE}": "https://p.example.com", "${VAR_RUNBOOKS}": "https://p.example.com/runbooks"}
    for variable, address in addressed.items():
        assert any(variable in text for text in texts.values())
        texts = {name: text.replace(variable, address) for name, text in texts.items()}
    made = evaluated("(mixin + {_config+:: {pages: 'https://p.example.com'}}).grafanaDashboards")
    assert made == {name: json.loads(text) for name, text in texts.items()}
