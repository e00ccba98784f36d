"""Unary pull: several pullers, and a service with at most one response outstanding per key.

Legal by section 3.4. A response holds consecutive positions from the cursor, and a key is put into a response only while it has no
holds. A response may carry several keys and may be lost on its way, which is only noticed when its leases end. After a partly
acknowledged batch the next one starts at the first message that was not acknowledged (or below it). A negative acknowledgement may
rewind at once, which drops the holds from there on, or wait until the batch is over. A spontaneous rewind happens only while nothing
is outstanding: anything else would hand out a second batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from prober.core.events import Acked, Delivered, LeaseModified, Nacked, Opened
from tests.simulation.lane import Hold, Lane
from tests.simulation.options import Fault
from tests.simulation.topic import Record
from tests.simulation.world import SUBSCRIPTION, World


@dataclass(slots=True)
class PullLane(Lane):
    """A lane with the lowest position that the batch under way failed to get acknowledged."""

    again_from: int | None = None


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request: its name is the session and the subscriber."""

    name: str
    invoked: float


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a response."""

    lane: PullLane
    record: Record
    hold: Hold
    attempt: int


@dataclass(slots=True)
class Service:
    """Answers pulls, keeps leases."""

    world: World
    client: Client
    lanes: dict[str, PullLane] = field(default_factory=dict)
    waiting: list[Pull] = field(default_factory=list)

    def append(self, record: Record) -> None:
        self.lanes[record.key].log.append(record)
        self.wake_all()

    def pull(self, request: Pull) -> None:
        self.waiting.append(request)
        self.wake_all()
        self.world.after(self.world.between(1, 10), lambda: self._give_up_waiting(request))

    def _give_up_waiting(self, request: Pull) -> None:
        if request in self.waiting:
            self.waiting.remove(request)
            self.client.finished(request)

    # --- answering ---

    def wake_all(self) -> None:
        self.world.after(self.world.between(0, 0.02), self._answer)

    def _answer(self) -> None:
        if not self.waiting:
            return
        ready = [lane for lane in self.lanes.values() if self._ready(lane)]
        if not ready:
            return
        request = self.waiting.pop(self.world.random.randrange(len(self.waiting)))
        chosen = ready if self.world.random.random() < 0.5 else [self.world.random.choice(ready)]
        parts = [part for lane in chosen for part in self._batch(lane, request)]
        self._respond(request, self._interleave(parts))
        self.wake_all()

    def _ready(self, lane: PullLane) -> bool:
        if lane.frozen:
            return False
        if not lane.holds and lane.again_from is not None:
            lane.rewind(lane.deeper(lane.again_from))
            lane.again_from = None
        lane.skip_removed()
        if lane.cursor >= len(lane.log):
            return False
        if lane.holds and self.world.broken(Fault.OVERLAP, 0.3):
            self.world.fire(f"{lane.key} overlap")
            return True
        return not lane.holds

    def _batch(self, lane: PullLane, request: Pull) -> list[Part]:
        """The next positions of a key, those that are removed left out."""
        positions: list[int] = []
        first = lane.cursor >= lane.frontier
        for _ in range(self.world.random.randint(1, self.world.options.batch_max)):
            lane.skip_removed()
            if lane.cursor < len(lane.log):
                positions.append(lane.cursor)
                lane.cursor += 1
        parts = []
        for position in self._broken(lane, positions, first):
            hold, attempt = lane.hold(position, request.name)
            parts.append(Part(lane, lane.log[position], hold, attempt))
        if len(self.waiting) > 1:
            self.world.note("concurrent pulls")
        return parts

    def _broken(self, lane: PullLane, positions: list[int], first: bool) -> list[int]:
        world = self.world
        if first and len(positions) > 2 and world.broken(Fault.HOLE, 0.3):
            left_out = positions.pop(world.random.randrange(1, len(positions) - 1))
            world.fire(f"{lane.log[left_out].message_id} left out")
        if len(positions) > 1 and world.broken(Fault.BATCH_REVERSE, 0.3):
            world.fire(f"{lane.log[positions[0]].message_id} last")
            positions.reverse()
        if not first and world.fault is Fault.REDELIVER_UNACKED_ONLY and any(p in lane.acked for p in positions):
            world.fire(f"{[lane.log[p].message_id for p in positions if p in lane.acked]} left out")
            positions = [position for position in positions if position not in lane.acked]
        if not first and lane.cursor < lane.frontier and world.broken(Fault.STALL_RUN, 0.5):
            world.fire(f"{lane.key} frozen")
            lane.frozen = True
        return positions

    def _interleave(self, parts: list[Part]) -> list[Part]:
        """Messages of several keys in any mixture that keeps each key's order."""
        queues: dict[str, list[Part]] = {}
        for part in parts:
            queues.setdefault(part.lane.key, []).append(part)
        keys = [part.lane.key for part in parts]
        self.world.random.shuffle(keys)
        return [queues[key].pop(0) for key in keys]

    def _respond(self, request: Pull, parts: list[Part]) -> None:
        world = self.world
        for part in parts:
            world.after(world.options.lease_s, lambda part=part: self._expire(part.lane, part.hold))  # type: ignore[misc]
        delay = world.between(0, world.options.delay_max_s)
        if world.chance(world.options.loss):
            world.note("lost response")
            world.after(delay, lambda: self.client.finished(request))
        else:
            world.after(delay, lambda: self.client.receive(request, parts))

    # --- what comes back ---

    def ack(self, lane: PullLane, hold: Hold) -> None:
        lane.acknowledge(hold)
        self.wake_all()

    def nack(self, lane: PullLane, hold: Hold) -> None:
        self._release(lane, hold, at_once=self.world.random.random() < 0.5)

    def modify(self, lane: PullLane, hold: Hold, seconds: float) -> None:
        lane.modify(hold, seconds)
        self.world.after(seconds, lambda: self._expire(lane, hold))

    def _release(self, lane: PullLane, hold: Hold, at_once: bool) -> None:
        if lane.give_up(hold):
            lane.again_from = min(hold.position, lane.cursor if lane.again_from is None else lane.again_from)
            if at_once:
                lane.rewind(hold.position)
        self.wake_all()

    def _expire(self, lane: PullLane, hold: Hold) -> None:
        if not lane.current(hold):
            return
        if self.world.now < hold.lease_end:
            self.world.after(hold.lease_end - self.world.now, lambda: self._expire(lane, hold))
        else:
            self.world.note("lease over")
            self._release(lane, hold, at_once=False)

    def spontaneous(self) -> None:
        lane = self.world.random.choice(list(self.lanes.values()))
        if lane.cursor and not lane.holds and not self.world.options.exactly_once:
            self.world.note("spontaneous rewind")
            lane.rewind(self.world.random.randint(max(0, lane.cursor - 6), lane.cursor - 1))
            self.wake_all()

    def misbehave(self) -> None:
        """Every bug of this service waits for its occasion."""


@dataclass(slots=True)
class Client:
    """The pullers: each sends a pull, answers what it gets, and pulls again."""

    world: World
    service: Service = field(init=False)
    _names: count[int] = field(default_factory=lambda: count(1))
    stopped: bool = False

    def __post_init__(self) -> None:
        self.service = Service(self.world, self)

    def start(self) -> None:
        for _ in range(self.world.options.clients):
            self._pull()

    def _pull(self) -> None:
        world = self.world
        if self.stopped:
            return
        request = Pull(f"pull-{next(self._names)}", world.now)
        if not world.options.opened_at_arrival:
            world.record(Opened(world.now, SUBSCRIPTION, request.name, request.name))
        world.after(world.between(0, 0.3), lambda: self.service.pull(request))

    def finished(self, _: Pull) -> None:
        """A pull came back empty or failed."""
        self.world.after(self.world.between(0, 1), self._pull)

    def receive(self, request: Pull, parts: list[Part]) -> None:
        world = self.world
        if world.options.opened_at_arrival:
            world.record(Opened(world.now, SUBSCRIPTION, request.name, request.name, request.invoked))
        for part in parts:
            part.hold.received = True
            part.record.attempt_seen = max(part.record.attempt_seen, part.attempt)
            world.record(_delivered(world.now, request, part))
            self._decide(request, part)
        self.finished(request)

    def _decide(self, request: Pull, part: Part) -> None:
        world, options = self.world, self.world.options
        delay = 0.01 if world.draining else world.between(0, 0.3)
        if world.chance(options.late_ack):
            delay = world.between(0, 1.2 * options.lease_s)
        if world.chance(options.shorten):
            world.after(world.between(0, 0.2), lambda: self._modify(request, part, options.lease_s / 4))
        elif world.chance(options.extend):
            world.after(world.between(0, options.lease_s), lambda: self._modify(request, part, options.lease_s))
        if world.chance(options.ignore):
            world.note("ignored")
        elif world.chance(options.nack):
            world.after(delay, lambda: self._nack(request, part))
        else:
            world.after(delay, lambda: self._ack(request, part))

    def _ack(self, request: Pull, part: Part) -> None:
        world = self.world
        world.record(Acked(world.now, SUBSCRIPTION, part.record.key, request.name, part.record.message_id))
        if world.chance(world.options.ack_loss):
            world.note("lost ack")
        else:
            lag = 0.01 if world.draining else world.between(0, world.options.ack_lag_s)
            world.after(lag, lambda: self.service.ack(part.lane, part.hold))

    def _nack(self, request: Pull, part: Part) -> None:
        world = self.world
        world.note("nack")
        world.record(Nacked(world.now, SUBSCRIPTION, part.record.key, request.name, part.record.message_id))
        if not world.chance(world.options.ack_loss):
            world.after(world.between(0, world.options.ack_lag_s), lambda: self.service.nack(part.lane, part.hold))

    def _modify(self, request: Pull, part: Part, seconds: float) -> None:
        world = self.world
        world.record(LeaseModified(world.now, SUBSCRIPTION, part.record.key, request.name, part.record.message_id, seconds))
        if not world.chance(world.options.ack_loss):
            world.after(world.between(0, world.options.ack_lag_s), lambda: self.service.modify(part.lane, part.hold, seconds))


def _delivered(now: float, request: Pull, part: Part) -> Delivered:
    record = part.record
    return Delivered(
        now,
        SUBSCRIPTION,
        record.key,
        request.name,
        record.epoch,
        record.seq,
        record.message_id,
        record.generation,
        part.attempt,
    )
