"""What is held of one key may delay the others.

"Unacknowledged messages for a given ordering key can potentially delay delivery of messages for other ordering keys" (F 4.1, row 3 of the
amendments). A key that has something to send may have to wait until everything that is held of other keys at that moment is over, first
deliveries and redelivery runs alike. Then it is its turn: what keeps a key back was held since before it had to wait, which the
record shows (row 3). Were it kept back by one key after the other, on a busy subscription nothing would ever have to be delivered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.simulation.lane import Lane
from tests.simulation.line import Hold
from tests.simulation.world import ProbeInstance


@dataclass(slots=True)
class Neighbours:
    """The keys of a subscription, and what each of them waits for."""

    probe_instance: ProbeInstance
    lanes: Mapping[str, Lane]
    _waits_for: dict[str, list[Hold]] = field(default_factory=dict)
    _turns: dict[str, int] = field(default_factory=dict)

    def delay(self, lane: Lane) -> bool:
        """Whether the key has to wait, still or from now on."""
        rate = self.probe_instance.options.service.neighbour_delay
        if not rate:
            return False
        waited = self._waits_for.get(lane.key)
        waits = [hold for hold in waited or () if self.lanes[hold.record.message.key].current(hold)]
        if waited and not waits:
            self._turns[lane.key] = lane.sent
        its_turn = self._turns.get(lane.key) == lane.sent
        if not waits and not its_turn and self.probe_instance.world.happens(rate):
            waits = [hold for other in self.lanes.values() if other is not lane for hold in other.holds.values()]
            if waits:
                self.probe_instance.world.note("waits for another key")
        self._waits_for[lane.key] = waits
        return bool(waits)
