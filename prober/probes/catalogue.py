"""All probes, by name. Each is declared in a module of its own; code that handles all probes iterates over this catalogue."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from prober.probes import (
    affinity,
    control_group,
    control_plane,
    dead_letter,
    exactly_once,
    hot_key,
    isolation,
    limits,
    long_lived,
    observe,
    ordering,
    publish,
    pull,
    push,
    redelivery,
    region,
    scale,
    seek,
)
from prober.probes.experiment import Experiment
from prober.slo.indicators import Indicator


class ProbeName(StrEnum):
    """Names of the probes that can be configured."""

    ORDERING = "ordering"
    REDELIVERY = "redelivery"
    AFFINITY = "affinity"
    PULL = "pull"
    PUSH = "push"
    PUBLISH = "publish"
    DEAD_LETTER = "dead_letter"
    EXACTLY_ONCE = "exactly_once"
    SEEK = "seek"
    ISOLATION = "isolation"
    HOT_KEY = "hot_key"
    CONTROL_GROUP = "control_group"
    CONTROL_PLANE = "control_plane"
    LIMITS = "limits"
    REGION = "region"
    SCALE = "scale"
    LONG_LIVED = "long_lived"
    OBSERVE = "observe"


DECLARED: Final[Mapping[str, Experiment]] = MappingProxyType(
    {
        ProbeName(module.PROBE.name): module.PROBE
        for module in (
            ordering, redelivery, affinity, pull, push, publish, dead_letter, exactly_once, seek,
            isolation, hot_key, control_group, control_plane, limits, region, scale, long_lived, observe,
        )
    }
)  # fmt: skip
"""All probes that can be configured."""
PROBES: Final[Mapping[str, Experiment]] = MappingProxyType({name: one for name, one in DECLARED.items() if one.own_messages})
"""Probes that publish the messages they receive: the experiments."""

DISTURBED: Final[Mapping[Indicator, frozenset[str]]] = MappingProxyType(
    {indicator: frozenset(str(name) for name, one in DECLARED.items() if indicator in one.disturbs) for indicator in Indicator}
)
"""Probes that do not count for an indicator, by indicator (`Experiment.disturbs`)."""


def is_fed(indicator: Indicator, probes: Collection[str]) -> bool:
    """Return whether at least one of the probes feeds an indicator."""
    return any(indicator in DECLARED[name].counts for name in probes if name in DECLARED)
