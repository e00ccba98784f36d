"""One lifetime of a prober in the simulation: the schedule, probe loops, runs and sinks of the service, on a broker at the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from prober.brokers.endpoint import local_endpoint
from prober.brokers.push.endpoint import PushEndpoint
from prober.brokers.wire import WireBroker
from prober.clock import wall_s
from prober.config.models import Config, TargetSettings
from prober.runs.handover import Checkpoints
from prober.runs.probe_instance import ProbeInstance
from prober.runs.sink import RunSink
from prober.schedule.assignments import Assignments, Unshared
from prober.schedule.instances import instances_of
from prober.schedule.probe_loop import OpenProbe, Surroundings
from prober.simulation.network import Network
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import Metrics
from prober.sinks.metrics.measurements import MetricsSink
from prober.slo.counts import SloCounters

ADDRESS: Final = "simulated:1"
PUSHED_TO: Final = "http://prober"
VERSION: Final = "simulated"
AGE_S: Final = 1.0


class SimulatedProber:
    """All probes of one target, from `start` to `stop`; `sinks` get every run."""

    def __init__(
        self, config: Config, network: Network, pushes: PushEndpoint, sinks: Sequence[RunSink], checkpoints: Checkpoints
    ) -> None:
        (target,) = config.targets
        self._config, self._sinks, self._checkpoints = config, sinks, checkpoints
        self.faults: list[Exception] = []
        """Exceptions in the prober's own code."""
        self.metrics = Metrics(config.objectives, VERSION, [target.environment])
        self.live = LiveState((), version=VERSION, instance=config.name, started_at=wall_s())
        self._assignments = Assignments(config, self.live, self.metrics.health)
        self._broker = broker_of(target, network, pushes)
        endpoint = local_endpoint(ADDRESS, paired=target.peer is not None)
        instances = [OpenProbe(probe_instance, endpoint, self._broker, config.name) for probe_instance in instances_of(target)]
        self.live.follow((instance.shown for instance in instances), config.objectives)
        self._assignments.follow(config, instances, {target.series: self._surroundings(target)})
        self._unshared = Unshared(self._assignments, self._assignments.renew, self.faults.append)
        self._aging: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the probes."""
        self._assignments.start()
        self._unshared.follow()
        self._aging = asyncio.create_task(self._age(), name="ages")

    async def stop(self) -> None:
        """Stop, as the service does on a signal."""
        assert self._aging is not None
        self._aging.cancel()
        await self._assignments.stop()
        await self._assignments.leave()
        await self._broker.close()

    def _surroundings(self, target: TargetSettings) -> Surroundings:
        counters = SloCounters(self._config.objectives)
        metrics = self.metrics.watch(target, backlog=partial(self._assignments.backlogs, target.series))

        def sinks(instance: ProbeInstance, names: Sequence[str]) -> list[RunSink]:
            measuring = MetricsSink(metrics, names, counters, self.metrics.health, instance.probe, instance.vantage)
            return [measuring, self.live, *self._sinks]

        return Surroundings(metrics, self.live, sinks, counters, self._checkpoints)

    async def _age(self) -> None:
        while True:
            await asyncio.sleep(AGE_S)
            self._assignments.age()


def broker_of(target: TargetSettings, network: Network, pushes: PushEndpoint) -> WireBroker:
    """Return a broker of the wire vantage, with a second one if the target has two endpoints."""
    endpoint, open_channel = local_endpoint(ADDRESS), network.open_channel
    peer = WireBroker(endpoint, None, open_channel=open_channel) if target.peer is not None else None
    receiver = pushes.target(target.name, PUSHED_TO, None)
    return WireBroker(endpoint, None, peer=peer, pushes=receiver, open_channel=open_channel)
