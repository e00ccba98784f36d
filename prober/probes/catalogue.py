"""All probes, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prober.probes import affinity, ordering, redelivery
from prober.probes.context import Experiment, Workload
from prober.probes.cost import Traffic

PROBES: Mapping[str, Experiment] = {probe.name: probe for probe in (ordering.PROBE, redelivery.PROBE, affinity.PROBE)}

TRAFFIC: Mapping[str, Callable[[Workload], Traffic]] = {
    ordering.PROBE.name: ordering.traffic,
    redelivery.PROBE.name: redelivery.traffic,
    affinity.PROBE.name: affinity.traffic,
}
"""What one run of each probe sends and receives."""

PLANNED: Mapping[str, Callable[[Workload], Mapping[str, int]]] = {
    ordering.PROBE.name: ordering.chances,
    redelivery.PROBE.name: redelivery.chances,
    affinity.PROBE.name: affinity.chances,
}
"""How many chances (`prober.core.chances`) one run of each probe gives at the wire to see its own promise broken, by their counters."""
