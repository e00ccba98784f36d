"""Decisions of the service that a guarantee depends on, and that a fault can change.

The state calls a method of `Behaviour` at each decision, with the time and the objects concerned, and only where a fault would make a
difference. Each fault is implemented in one place, and the state machine contains none. A new fault is a description in `catalogue` and a
few lines in one of the two modules.
"""

from __future__ import annotations

from prober.embedded.delivery_faults import DeliveryFaults
from prober.embedded.faults import Faults
from prober.embedded.storage_faults import StorageFaults


class Behaviour(StorageFaults, DeliveryFaults):
    """The service: correct while no fault is armed."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = Faults() if faults is None else faults
        StorageFaults.__init__(self, self.faults)
        DeliveryFaults.__init__(self, self.faults)
