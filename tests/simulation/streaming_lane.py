"""A stream as both ends see it, and a key with its affinity to one of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.lane import Lane
from tests.simulation.line import Line, Session


@dataclass(slots=True, eq=False)
class Stream(Session):
    """One stream. `deaf`: what is under way will not arrive. `raced_until`: till then a raced message is under way."""

    owner: str = ""
    up_at_client: bool = True
    up_at_service: bool = False
    lost: bool = False
    deaf: bool = False
    handed_over: bool = False
    last_arrival: float = 0.0
    raced_until: float = 0.0


@dataclass(slots=True, eq=False)
class StreamLane(Lane):
    """A lane with its affinity. `pinned`: the owner keeps the key although nothing is held. `pending`: where rewinds are due."""

    stream: Stream | None = None
    owner: str | None = None
    pinned: bool = False
    pumping: bool = False
    pending: dict[Line, int] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        return not self.pending and self.at_rest
