"""The experiment of a drill: the probe, the runner, the recorder and the checker of the service, on a server with a planted fault.

The server is made for one drill, in this process, and gone afterwards. No target of the configuration is touched, and nobody but the
drill hears of the run: no metric about a service, no objective, no status store, no history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint
from prober.clock import monotonic_s, wall_s
from prober.config.models import Probe, ProbeName, Schedule, TargetSettings
from prober.core.findings import FAILING, Finding
from prober.drills.plans import Plan
from prober.embedded.faults import Ledger
from prober.embedded.server import EmbeddedServer
from prober.runs.classification import Observation
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.runs.sink import RunBegun, RunEnded
from prober.runs.site import Site
from prober.schedule.instances import PlannedSite
from prober.sinks.metrics import DrillMetrics

PLACE: Final = "drill"
_ONCE: Final = Schedule(interval=timedelta(days=1))
_LEASE: Final = timedelta(seconds=10)
_SETTINGS: Final = MappingProxyType(
    {
        # Little enough that probes of the service do not feel it; enough for every fault to strike.
        ProbeName.ORDERING: Probe(schedule=_ONCE, keys=6, messages=10, rate=400, subscribers=3, ack_deadline=_LEASE),
        ProbeName.REDELIVERY: Probe(schedule=_ONCE, keys=4, messages=5, subscribers=2, ack_deadline=_LEASE),
    }
)


class Exercise:
    """One experiment with one plan. What it found can be asked for while it goes on.

    noticed   set as soon as an announced finding was made, and at the end in any case.
    found_t   when the first announced finding was made, on the monotonic clock; None if there is none.
    found     the kinds that accuse the server; `astray` those of them on keys where nothing was planted.
    internal_error   the run ended by a mistake of ours.
    """

    def __init__(self, plan: Plan, seed: int, metrics: DrillMetrics) -> None:
        self.noticed = asyncio.Event()
        self.found_t: float | None = None
        self.found: set[str] = set()
        self.astray: set[str] = set()
        self.internal_error = False
        self._plan, self._seed, self._metrics = plan, seed, metrics
        self._ledger = Ledger()
        # The server's clock is the wall's, for the ids that it gives out, and runs evenly with ours.
        self._offset_s = wall_s() - monotonic_s()
        faults = () if plan.fault is None else (replace(plan.fault, seed=seed),)
        self._server = EmbeddedServer(0, faults, now=lambda: self._offset_s + monotonic_s())

    async def carry_out(self) -> RunResult:
        """Runs, to its end. Raises OSError if there is no port for the server."""
        try:
            async with AsyncExitStack() as resources:
                server = await resources.enter_async_context(self._server)
                self._ledger = server.faults.ledger
                endpoint = Endpoint(server.address, secure=False)
                broker = await connect(endpoint, Vantage.WIRE)
                resources.push_async_callback(broker.close)
                site = self._site()
                target = site.at(endpoint)
                run = Run(site.experiment, broker, target, Provisioner(target, PLACE, lasting=False), site.workload, self._seed)
                run.begin(Site(PLACE, site.probe, site.vantage, 0.0), [self])
                return await run.carry_out()
        finally:
            self.noticed.set()

    @property
    def struck(self) -> int:
        """How often the fault has struck."""
        return self._ledger.counts.total()

    @property
    def struck_t(self) -> float | None:
        """When it first did, on the monotonic clock; None if it has not."""
        struck = self._ledger.latest
        return struck[0].t - self._offset_s if struck else None

    def _site(self) -> PlannedSite:
        settings = _SETTINGS[self._plan.probe]
        target = TargetSettings(name=PLACE, probes={self._plan.probe: settings})
        return PlannedSite(target, self._plan.probe, settings, Vantage.WIRE)

    def begin(self, run: RunBegun) -> Exercise:
        """Its run begins, of which it hears itself."""
        return self

    def event(self, seen: Observation) -> None:
        """Takes in what was found with an event."""
        self._take_in(seen.findings)

    def ended(self, end: RunEnded) -> None:
        """Takes in what only the end of the run has decided."""
        self.internal_error = end.result.internal_error
        self._take_in(end.findings)

    def _take_in(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._metrics.found(self._plan.name, finding.kind, finding.status)
            self._weigh(finding)

    def _weigh(self, finding: Finding) -> None:
        if finding.status not in FAILING:
            return
        self.found.add(finding.kind)
        if not self._plan.planted_on(finding.key):
            self.astray.add(finding.kind)
        elif finding.kind in self._plan.announced and self.found_t is None:
            self.found_t = monotonic_s()
            self.noticed.set()
