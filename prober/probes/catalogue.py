"""All probes, by name."""

from __future__ import annotations

from collections.abc import Mapping

from prober.probes import affinity, ordering, redelivery
from prober.probes.context import Experiment

PROBES: Mapping[str, Experiment] = {probe.name: probe for probe in (ordering.PROBE, redelivery.PROBE, affinity.PROBE)}
