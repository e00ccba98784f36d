"""Streaming pull: subscribers with one or several streams, and a service that keeps a key at one subscriber.

Legal by sections 3.2 to 3.4. While a lane has holds, everything is sent on the stream that has them; only when it has none may the
next message go elsewhere. Taking the key to another *owner* therefore needs that every hold is over. Four finer points:

* A message that was dropped (negative acknowledgement, end of lease) is sent again before anybody else gets anything above it (Lemma 1:
  "by a release, and then the run restarts"). The rewind may take a moment, and until then successors may go on to the same owner.
* After a spontaneous rewind (a server restart) whatever the owner held is dropped without the owner's doing, so the owner keeps the
  key as long as it has a stream: only a release may move a key that had something outstanding (section 6.4, second row).
* Two streams of one client take turns, and a turn comes only when the lane has no holds. Otherwise a message still under way on the
  first could be overtaken by its successor on the second, with nothing in D1 to D4 against it.
* A message that is lost with its stream has no special rule: the loss ends its hold, and the lane rewinds to it.

A stream breaks cleanly (both sides at once, what is under way is lost), half-open (the service drops it, the client goes on receiving
what was under way and notices within Delta_close), or at the client first (the service sends into the void for a while).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prober.core.events import Acked, Closed, Delivered, LeaseModified, Nacked, Opened
from tests.simulation.lane import Hold, Lane
from tests.simulation.options import NEVER, Fault
from tests.simulation.topic import Record
from tests.simulation.world import SUBSCRIPTION, World


@dataclass(slots=True, eq=False)
class Stream:
    """One stream as both ends see it."""

    name: str
    owner: str
    up_at_client: bool = True
    up_at_service: bool = False
    lost: bool = False
    last_arrival: float = 0.0


@dataclass(slots=True)
class StreamLane(Lane):
    """A lane with its affinity. `pinned`: the owner keeps the key although nothing is held. `pending`: where a rewind is due."""

    stream: Stream | None = None
    owner: str | None = None
    pinned: bool = False
    pending: int | None = None
    pumping: bool = False


@dataclass(slots=True)
class Service:
    """Chooses streams, sends, and hears what comes back."""

    world: World
    client: Client
    lanes: dict[str, StreamLane] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)

    # --- what happens to it ---

    def append(self, record: Record) -> None:
        lane = self.lanes[record.key]
        lane.log.append(record)
        self._wake(lane)

    def connect(self, stream: Stream) -> None:
        if stream.up_at_client and not stream.lost:
            stream.up_at_service = True
            self.streams.append(stream)
            self.wake_all()

    def drop(self, stream: Stream) -> None:
        """The stream is lost, or found lost: what it held has to be sent again."""
        stream.lost = True
        if not stream.up_at_service:
            return
        stream.up_at_service = False
        self.streams.remove(stream)
        for lane in self.lanes.values():
            self._drop_from(lane, stream)
        self.wake_all()

    def _drop_from(self, lane: StreamLane, stream: Stream) -> None:
        held = [hold.position for hold in lane.holds.values() if hold.session == stream.name]
        if lane.pending is not None and lane.stream is stream:
            held.append(lane.pending)
        if not held:
            return
        self.world.note("break with holds")
        if self.world.broken(Fault.RESUME_PAST, 0.8):
            self.world.fire(f"{lane.key} resumes past {[lane.log[position].message_id for position in held]}")
            for position in held:
                lane.holds.pop(position, None)
            return
        self._rewind(lane, min(held))

    def ack(self, lane: StreamLane, hold: Hold) -> None:
        if lane.acknowledge(hold):
            self._wake(lane)

    def nack(self, lane: StreamLane, hold: Hold) -> None:
        self._release(lane, hold)

    def modify(self, lane: StreamLane, hold: Hold, seconds: float) -> None:
        lane.modify(hold, seconds)
        self.world.after(seconds, lambda: self._expire(lane, hold))

    def spontaneous(self) -> None:
        """A server restarts and has forgotten acknowledgements, or repeats itself for no reason."""
        lane = self.world.random.choice(list(self.lanes.values()))
        if lane.cursor and not self.world.options.exactly_once:
            self.world.note("spontaneous rewind")
            lane.pinned = lane.pinned or bool(lane.holds)
            lane.rewind(self.world.random.randint(max(0, lane.cursor - 6), lane.cursor - 1))
            self._wake(lane)

    def misbehave(self) -> None:
        """The bugs that need no occasion."""
        lane = self.world.random.choice(list(self.lanes.values()))
        if lane.stream is None or not (lane.stream.up_at_service and lane.stream.up_at_client) or lane.frontier < 2:
            return
        if self.world.broken(Fault.DUP_ALONE, 0.6):
            position = self.world.random.randrange(lane.cursor - 1) if lane.cursor > 1 else None
            if position is not None and not lane.log[position].removed:
                self.world.fire(f"{lane.log[position].message_id} alone")
                self._send(lane, position, lane.stream)
        elif self.world.broken(Fault.PHANTOM, 0.6):
            self.world.fire("ghost")
            ghost = Record(lane.key, lane.log[-1].epoch, 100_000 + self.world.number(), 0, f"ghost-{self.world.number()}")
            self.client.receive(lane.stream, lane, ghost, None, 0)

    # --- leases ---

    def _release(self, lane: StreamLane, hold: Hold) -> None:
        if not lane.give_up(hold):
            self._wake(lane)
        elif self.world.broken(Fault.REDELIVER_SINGLE, 0.7) and lane.stream and lane.stream.up_at_service:
            if lane.cursor > hold.position + 1:
                self.world.fire(f"only {lane.log[hold.position].message_id}")
            self._send(lane, hold.position, lane.stream)
        elif self.world.chance(self.world.options.lazy_rewind):
            lane.pending = min(hold.position, hold.position if lane.pending is None else lane.pending)
            self.world.after(self.world.between(0, 1), lambda: self._rewind_late(lane))
            self._wake(lane)
        else:
            self._rewind(lane, hold.position)

    def _rewind(self, lane: StreamLane, position: int) -> None:
        held_below = any(held < position for held in lane.holds)
        lane.rewind(position if held_below else lane.deeper(position))
        lane.pinned = lane.pinned and held_below
        if lane.pending is not None and position <= lane.pending:
            lane.pending = None
        self._wake(lane)

    def _rewind_late(self, lane: StreamLane) -> None:
        if lane.pending is not None:
            self._rewind(lane, lane.pending)

    def _expire(self, lane: StreamLane, hold: Hold) -> None:
        if not lane.current(hold):
            return
        if self.world.now < hold.lease_end:
            self.world.after(hold.lease_end - self.world.now, lambda: self._expire(lane, hold))
        else:
            self.world.note("lease over")
            self._release(lane, hold)

    # --- sending ---

    def wake_all(self) -> None:
        for lane in self.lanes.values():
            self._wake(lane)

    def _wake(self, lane: StreamLane) -> None:
        if not lane.pumping:
            lane.pumping = True
            self.world.after(self.world.between(0, 0.02), lambda: self._pump(lane))

    def _pump(self, lane: StreamLane) -> None:
        lane.pumping = False
        lane.skip_removed()
        if lane.frozen or lane.cursor >= len(lane.log) or len(lane.holds) >= self.world.options.flow:
            return
        stream = self._choose(lane)
        if stream is None:
            return
        for position in self._next(lane):
            self._send(lane, position, stream)
        self._wake(lane)

    def _choose(self, lane: StreamLane) -> Stream | None:
        split = self._wrong_stream(lane)
        if split is not None:
            return split
        if not (lane.holds and lane.stream is not None and lane.stream.up_at_service):
            lane.stream = self._free_choice(lane)
        if lane.stream is not None:
            lane.owner, lane.pinned = lane.stream.owner, False
        return lane.stream

    def _free_choice(self, lane: StreamLane) -> Stream | None:
        """Nothing is held: the same stream, another of the owner's, or someone else's."""
        world, old = self.world, lane.stream
        if not self.streams:
            return None
        own = [stream for stream in self.streams if stream.owner == lane.owner]
        if own and (lane.pinned or lane.pending is not None or not world.chance(world.options.idle_move)):
            return old if old in own and not world.chance(world.options.turn) else world.random.choice(own)
        chosen = world.random.choice(self.streams)
        if lane.owner is not None and chosen.owner != lane.owner:
            world.note("move")
        return chosen

    def _wrong_stream(self, lane: StreamLane) -> Stream | None:
        others = [stream for stream in self.streams if stream.owner != lane.owner]
        if not (lane.holds and others):
            return None
        if self.world.broken(Fault.SPLIT, 0.15):
            self.world.fire(f"{lane.key} split")
            return self.world.random.choice(others)
        if self.world.broken(Fault.LOST_TRACK, 0.1):
            self.world.fire(f"{lane.key} moved")
            lane.stream = self.world.random.choice(others)
            lane.owner = lane.stream.owner
            return lane.stream
        return None

    def _next(self, lane: StreamLane) -> list[int]:
        """The positions to send now; the cursor moves past them."""
        at = lane.cursor
        first = at >= lane.frontier
        lane.cursor = at + 1
        if first:
            return self._next_first(lane, at)
        return self._next_again(lane, at)

    def _next_first(self, lane: StreamLane, at: int) -> list[int]:
        if at + 1 < len(lane.log) and self.world.broken(Fault.SKIP_FIRST, 0.15):
            self.world.fire(f"{lane.log[at].message_id} skipped")
            lane.cursor = at + 2
            if self.world.random.random() < 0.5:
                self.world.after(self.world.between(0, 2), lambda: self._send_late(lane, at))
            return [at + 1]
        if at + 1 < len(lane.log) and self.world.broken(Fault.SWAP_FIRST, 0.2):
            self.world.fire(f"{lane.log[at].message_id} swapped")
            lane.cursor = at + 2
            return [at + 1, at]
        return [at]

    def _next_again(self, lane: StreamLane, at: int) -> list[int]:
        if at in lane.acked and self.world.broken(Fault.REDELIVER_UNACKED_ONLY, 1.0):
            self.world.fire(f"{lane.log[at].message_id} left out")
            return []
        if at + 1 < lane.frontier and self.world.broken(Fault.REORDER_RUN, 0.4):
            self.world.fire(f"{lane.log[at].message_id} swapped")
            lane.cursor = at + 2
            return [at + 1, at]
        if at + 1 < lane.frontier and self.world.broken(Fault.STALL_RUN, 0.3):
            self.world.fire(f"{lane.key} frozen after {lane.log[at].message_id}")
            lane.frozen = True
        return [at]

    def _send_late(self, lane: StreamLane, position: int) -> None:
        if lane.stream is not None and lane.stream.up_at_service:
            self._send(lane, position, lane.stream)

    def _send(self, lane: StreamLane, position: int, stream: Stream) -> None:
        world, record = self.world, lane.log[position]
        hold, attempt = lane.hold(position, stream.name)
        stream.last_arrival = max(stream.last_arrival, world.now + world.between(0, world.options.delay_max_s))
        world.at(stream.last_arrival, lambda: self.client.receive(stream, lane, record, hold, attempt))
        world.after(world.options.lease_s, lambda: self._expire(lane, hold))


@dataclass(slots=True)
class Client:
    """All subscribers of the process: they open streams, break them, and answer what they get."""

    world: World
    service: Service = field(init=False)
    subscribers: int = 0

    def __post_init__(self) -> None:
        self.service = Service(self.world, self)

    def start(self) -> None:
        for _ in range(self.world.options.clients):
            self.subscribers += 1
            for _ in range(self.world.options.streams):
                self._open(f"c{self.subscribers}")

    # --- streams ---

    def _open(self, owner: str) -> None:
        world = self.world
        stream = Stream(f"{owner}-{world.number()}", owner)
        world.record(Opened(world.now, SUBSCRIPTION, stream.name, owner))
        world.after(world.between(0, 0.3), lambda: self.service.connect(stream))
        if world.options.break_every_s < NEVER:
            world.after(world.random.expovariate(1 / world.options.break_every_s), lambda: self._break(stream))

    def _break(self, stream: Stream) -> None:
        world = self.world
        if world.draining or not stream.up_at_client:
            return
        if world.chance(world.options.half_open):
            world.note("half-open")
            self.service.drop(stream)
            world.after(world.between(0, world.options.close_detection_s), lambda: self._close(stream))
        elif world.chance(world.options.client_first):
            self._close(stream)
            world.after(world.between(0, world.options.lease_s), lambda: self.service.drop(stream))
        else:
            self.service.drop(stream)
            self._close(stream)

    def _close(self, stream: Stream) -> None:
        world = self.world
        stream.up_at_client = False
        world.record(Closed(world.now, SUBSCRIPTION, stream.name))
        owner = stream.owner
        if world.chance(world.options.other_client):
            self.subscribers += 1
            owner = f"c{self.subscribers}"
        world.after(world.between(0, 3), lambda: self._open(owner))

    # --- messages ---

    def receive(self, stream: Stream, lane: StreamLane, record: Record, hold: Hold | None, attempt: int) -> None:
        world = self.world
        if not stream.up_at_client:
            world.note("lost with its stream")
            return
        if hold is not None:
            hold.received = True
        record.attempt_seen = max(record.attempt_seen, attempt)
        world.record(
            Delivered(
                world.now,
                SUBSCRIPTION,
                record.key,
                stream.name,
                record.epoch,
                record.seq,
                record.message_id,
                record.generation,
                attempt,
            )
        )
        if hold is not None:
            self._decide(stream, lane, record, hold)

    def _decide(self, stream: Stream, lane: StreamLane, record: Record, hold: Hold) -> None:
        world, options = self.world, self.world.options
        delay = 0.01 if world.draining else world.between(0, 0.3)
        if world.chance(options.late_ack):
            delay = world.between(0, 1.2 * options.lease_s)
        if world.chance(options.shorten):
            world.after(world.between(0, 0.2), lambda: self._modify(stream, lane, record, hold, options.lease_s / 4))
        elif world.chance(options.extend):
            world.after(world.between(0, options.lease_s), lambda: self._modify(stream, lane, record, hold, options.lease_s))
        if world.chance(options.ignore):
            world.note("ignored")
        elif world.chance(options.nack):
            world.after(delay, lambda: self._nack(stream, lane, record, hold))
        else:
            world.after(delay, lambda: self._ack(stream, lane, record, hold))

    def _ack(self, stream: Stream, lane: StreamLane, record: Record, hold: Hold) -> None:
        world = self.world
        if not stream.up_at_client and not world.chance(world.options.ack_after_close):
            return
        world.record(Acked(world.now, SUBSCRIPTION, record.key, stream.name, record.message_id))
        if world.chance(world.options.ack_loss):
            world.note("lost ack")
        else:
            lag = 0.01 if world.draining else world.between(0, world.options.ack_lag_s)
            world.after(lag, lambda: self.service.ack(lane, hold))

    def _nack(self, stream: Stream, lane: StreamLane, record: Record, hold: Hold) -> None:
        world = self.world
        if not stream.up_at_client:
            return
        world.note("nack")
        world.record(Nacked(world.now, SUBSCRIPTION, record.key, stream.name, record.message_id))
        if not world.chance(world.options.ack_loss):
            world.after(world.between(0, world.options.ack_lag_s), lambda: self.service.nack(lane, hold))

    def _modify(self, stream: Stream, lane: StreamLane, record: Record, hold: Hold, seconds: float) -> None:
        world = self.world
        if not stream.up_at_client:
            return
        world.record(LeaseModified(world.now, SUBSCRIPTION, record.key, stream.name, record.message_id, seconds))
        if not world.chance(world.options.ack_loss):
            world.after(world.between(0, world.options.ack_lag_s), lambda: self.service.modify(lane, hold, seconds))
