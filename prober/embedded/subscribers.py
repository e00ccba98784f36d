"""Who receives: the streams of a subscription, the clients they belong to, and which of them a key goes to.

Streams with the same `client_id` are one subscriber (proto, StreamingPullRequest.client_id). While messages of a key are outstanding
the key stays where it is; that rule is kept in `feed`. Here is the other half, for a key of which nothing is outstanding: it goes to its
last subscriber, as best effort, unless that one has more keys than its share, or is full, or let the last deadline pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from prober.embedded.lanes import Lane
from prober.embedded.messages import Delivery


@dataclass(slots=True, eq=False)
class Client:
    """One subscriber: its open streams, and how many keys went to it last."""

    id: str
    streams: list[Stream] = field(default_factory=list)
    keys: int = 0

    def roomiest(self) -> Stream | None:
        """The stream with the least to do among those that may get more."""
        return roomiest(self.streams)


@dataclass(slots=True, eq=False)
class Stream:
    """One StreamingPull stream.

    messages_max, bytes_max  flow control: as long as it is reached nothing more is sent; 0 means no limit.
    deadline_s               how long each message sent on it may stay unanswered.
    ready                    lanes with something to send that are bound to this stream.
    outbox                   what this round of dispatching sends.
    breaking                 a fault will end it soon, and what would be sent on it meanwhile would be lost: nothing is.
    """

    id: str
    client: Client
    deadline_s: float
    messages_max: int = 0
    bytes_max: int = 0
    open: bool = True
    messages: int = 0
    bytes: int = 0
    ready: deque[Lane] = field(default_factory=deque)
    outbox: list[Delivery] = field(default_factory=list)
    breaking: bool = False

    @property
    def has_room(self) -> bool:
        """Whether flow control lets at least one more message pass."""
        if self.breaking:
            return False
        return (self.messages < self.messages_max or self.messages_max <= 0) and (
            self.bytes < self.bytes_max or self.bytes_max <= 0
        )


@dataclass(slots=True, eq=False)
class PullCall:
    """A unary pull that waits for messages until `deadline`."""

    id: str
    messages_max: int
    deadline: float
    open: bool = True


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """An acknowledgement (`seconds` None) or a further deadline that takes effect later, unless the delivery is over by then."""

    ack_id: str
    seconds: int | None


def roomiest(streams: Iterable[Stream]) -> Stream | None:
    """The stream with the least to do among those that may get more."""
    best: Stream | None = None
    for stream in streams:
        if stream.has_room and (best is None or stream.messages < best.messages):
            best = stream
    return best


def route(lane: Lane, clients: list[Client], streams: Iterable[Stream]) -> Stream | None:
    """The stream for a lane of which nothing is outstanding; None when all are full. `clients` are those with open streams."""
    if not lane.key:
        return roomiest(streams)
    last = lane.client
    if last is not None and last.streams and last is not lane.shunned and not _has_more_than_its_share(last, clients):
        stream = last.roomiest()
        if stream is not None:
            return stream
    chosen: Stream | None = None
    for client in sorted(clients, key=lambda client: (client is lane.shunned, client.keys)):
        chosen = client.roomiest()
        if chosen is not None:
            break
    return chosen


def _has_more_than_its_share(client: Client, clients: list[Client]) -> bool:
    return len(clients) > 1 and any(other.keys + 1 < client.keys and other.roomiest() is not None for other in clients)


def bind(lane: Lane, stream: Stream | None) -> None:
    """The lane's messages go to this stream from now on; None: to nobody in particular."""
    client = stream.client if stream is not None else None
    lane.stream = stream
    lane.shunned = None
    if lane.client is client:
        return
    if lane.client is not None:
        lane.client.keys -= 1
    if client is not None:
        client.keys += 1
    lane.client = client
