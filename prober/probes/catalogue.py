"""All probes, by name."""

from __future__ import annotations

from collections.abc import Mapping

from prober.probes import (
    affinity,
    control_group,
    control_plane,
    dead_letter,
    exactly_once,
    hot_key,
    isolation,
    limits,
    ordering,
    publish,
    pull,
    push,
    redelivery,
    region,
    seek,
)
from prober.probes.experiment import Experiment

PROBES: Mapping[str, Experiment] = {
    probe.name: probe
    for probe in (
        ordering.PROBE,
        redelivery.PROBE,
        affinity.PROBE,
        pull.PROBE,
        push.PROBE,
        publish.PROBE,
        dead_letter.PROBE,
        exactly_once.PROBE,
        seek.PROBE,
        isolation.PROBE,
        hot_key.PROBE,
        control_group.PROBE,
        control_plane.PROBE,
        limits.PROBE,
        region.PROBE,
    )
}
