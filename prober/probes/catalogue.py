"""All probes, by name."""

from __future__ import annotations

from collections.abc import Mapping

from prober.probes import affinity, ordering, redelivery
from prober.probes.base import Probe

PROBES: Mapping[str, Probe] = {probe.name: probe for probe in (ordering.PROBE, redelivery.PROBE, affinity.PROBE)}
