"""The embedded service in the event loop of the simulation, behind a network."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Final

from prober.embedded.calls import Calls
from prober.embedded.faults import Fault, Faults
from prober.embedded.faulty_behaviour import FaultyBehaviour
from prober.embedded.pump import Pump
from prober.embedded.servicer import Servicer
from prober.embedded.signing import Signer
from prober.embedded.state import State
from prober.simulation.network import Network
from prober.simulation.network_conditions import NetworkConditions
from prober.simulation.pushing import App, SimulatedPosts
from prober.simulation.virtual_time import STARTED_AT

_SERIALS_PER_SECOND: Final = 1_000_000


class SimulatedService:
    """A service with faults, which sends its pushes to `app`. Its clock is separate and never set."""

    def __init__(self, faults: Iterable[Fault], conditions: NetworkConditions, rng: Random, app: App) -> None:
        loop, began = asyncio.get_running_loop(), STARTED_AT.timestamp()

        def now() -> float:
            return began + loop.time()

        self.faults = Faults(faults, now())
        self.network = Network(conditions, rng)
        state = State(int(now() * _SERIALS_PER_SECOND), FaultyBehaviour(self.faults))
        self._pump = Pump(state, now, Signer(), SimulatedPosts(self.network, app))
        self.network.serve(Servicer(self._pump, Calls(self._pump)).handlers())

    async def stop(self) -> None:
        """Stop the service with all its tasks."""
        self.network.cut(0.0)
        self._pump.stop()
        await self._pump.close()
