"""The service with every fault that can be armed."""

from __future__ import annotations

from prober.embedded.delivery_faults import DeliveryFaults
from prober.embedded.faults import Faults
from prober.embedded.storage_faults import StorageFaults


class FaultyBehaviour(StorageFaults, DeliveryFaults):
    """Service with faults; correct while no fault is armed."""

    def __init__(self, faults: Faults) -> None:
        StorageFaults.__init__(self, faults)
        DeliveryFaults.__init__(self, faults)
