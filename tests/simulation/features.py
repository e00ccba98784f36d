"""The features of the legal service that can be switched off one by one, to see which of them an accusation comes from.

Features that are off by default are those that sections 3 and 5 of the specification, before the amendments, would not call legal; a run
without all of them is what that specification imagined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from tests.simulation.options import NEVER, Options, PublishTime

FEATURES: dict[str, Mapping[str, Mapping[str, Any]]] = {
    "away": {"client": {"away_s": 0.0}},
    "backoff": {"bounds": {"backoff_s": 0.0}},
    "clock_steps": {"record": {"clock_steps": False}},
    "clocks": {"record": {"recorders": 1, "clock_error_s": 0.0}},
    "dead_letter": {"service": {"dead_letter": 0, "leaves_out": 0.0, "poison": 0.0}},
    "epochs": {"topic": {"epoch_per_burst": False, "bursts": lambda bursts: min(10, bursts)}},
    "exactly_once": {"service": {"exactly_once": False}},
    "excerpt": {"record": {"excerpt": False}},
    "failover": {"topic": {"failover": 0.0}},
    "flow_control": {"service": {"limit_messages": 0, "limit_bytes": 0}},
    "flow_control_bytes": {"service": {"limit_bytes": 0}},
    "forget": {"service": {"forget_every_s": NEVER}},
    "half_open_loses": {"session": {"half_open_loses": 0.0}},
    "handover": {"session": {"handover": 0.0}},
    "hold": {"client": {"hold": 0.0}},
    "hole": {"record": {"hole": False}},
    "late": {"": {"late_s": 0.0}},
    "leaves_out": {"service": {"leaves_out": 0.0}},
    "neighbours": {"service": {"neighbour_delay": 0.0}},
    "pause": {"topic": {"pause_s": 0.0}},
    "poison": {"service": {"poison": 0.0}},
    "publish_time": {"topic": {"store_twice": 0.0, "publish_time": PublishTime.NONE}},
    "race": {"service": {"race": 0.0}},
    "retention": {"bounds": {"retention_s": inf}},
    "second": {"": {"second": None}},
    "seek": {"service": {"seek": False}},
    "short_memory": {"": {"short_memory": False}},
    "stays_lost": {"service": {"stays_lost": 0.0}},
    "store_twice": {"topic": {"store_twice": 0.0}},
}
"""The options without a feature, by their group ("": none); a function makes the value of the one that was drawn."""

NEEDS: dict[str, tuple[str, ...]] = {
    "clock_steps": ("clocks",),
    "flow_control": ("race",),
    "flow_control_bytes": ("flow_control", "race"),
    "late": ("second",),
    "leaves_out": ("dead_letter",),
    "poison": ("dead_letter",),
    "store_twice": ("publish_time",),
}
"""Features that are nothing without others."""


def without(options: Options, names: Iterable[str]) -> Options:
    """The options without these features, for both subscriptions."""
    for name in names:
        options = _off(options, name)
        if options.second is not None:
            options = replace(options, second=_off(options.second, name))
    return options


def _off(options: Options, name: str) -> Options:
    for group, values in FEATURES[name].items():
        part: Any = getattr(options, group) if group else options
        changed: Any = replace(part, **{each: to(getattr(part, each)) if callable(to) else to for each, to in values.items()})
        whole: Any = {group: changed}
        options = replace(options, **whole) if group else changed
    return options


def only(options: Options, names: Iterable[str]) -> Options:
    """The options with no other features than these and what they need."""
    kept = {each for name in names for each in (name, *NEEDS.get(name, ()))}
    return without(options, [name for name in FEATURES if name not in kept])
