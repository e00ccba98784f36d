"""The chain of alerting at a faster pace: every duration of rules and configurations divided, so that hours pass in minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

_DURATION = re.compile(r"\b(\d+)(s|m|h|d)\b")
_WINDOW = re.compile(r"(?<=[\[:])\d+[smhd](?=[\]:])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LEAST_S = 1
"""Nothing of the chain is quicker than this."""


def quickened(document: Any, pace: float) -> Any:
    """A configuration of Prometheus or Alertmanager with all its durations divided; nothing becomes shorter than a second."""
    if isinstance(document, Mapping):
        return {name: quickened(value, pace) for name, value in document.items()}
    if isinstance(document, list):
        return [quickened(value, pace) for value in document]
    if isinstance(document, str):
        return _DURATION.sub(lambda found: _shorter(found, pace), document)
    return document


def _shorter(found: re.Match[str], pace: float) -> str:
    return f"{max(_LEAST_S, round(int(found[1]) * _SECONDS[found[2]] / pace))}s"


def quicken_rules(text: str, pace: float) -> str:
    """Rules with every window, interval and wait divided; the names of recorded series and all words stay."""
    document = yaml.safe_load(text)
    for group in document["groups"]:
        group["interval"] = quickened(group["interval"], pace)
        for rule in group["rules"]:
            rule["expr"] = _WINDOW.sub(lambda window: str(quickened(window[0], pace)), rule["expr"])
            if "for" in rule:
                rule["for"] = quickened(rule["for"], pace)
    return yaml.safe_dump(document, sort_keys=False)
