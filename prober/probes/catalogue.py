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
        ProbeName.ORDERING: ordering.PROBE,
        ProbeName.REDELIVERY: redelivery.PROBE,
        ProbeName.AFFINITY: affinity.PROBE,
        ProbeName.PULL: pull.PROBE,
        ProbeName.PUSH: push.PROBE,
        ProbeName.PUBLISH: publish.PROBE,
        ProbeName.DEAD_LETTER: dead_letter.PROBE,
        ProbeName.EXACTLY_ONCE: exactly_once.PROBE,
        ProbeName.SEEK: seek.PROBE,
        ProbeName.ISOLATION: isolation.PROBE,
        ProbeName.HOT_KEY: hot_key.PROBE,
        ProbeName.CONTROL_GROUP: control_group.PROBE,
        ProbeName.CONTROL_PLANE: control_plane.PROBE,
        ProbeName.LIMITS: limits.PROBE,
        ProbeName.REGION: region.PROBE,
        ProbeName.SCALE: scale.PROBE,
        ProbeName.LONG_LIVED: long_lived.PROBE,
        ProbeName.OBSERVE: observe.PROBE,
    }
)
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
