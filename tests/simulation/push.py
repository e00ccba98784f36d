"""Push: one request at a time per key, and an endpoint that answers 200, 500, late or never.

Legal by section 3.4. The next request of a key is sent only after the answer to the last one arrived or its deadline passed, and only a
success within the deadline lets the key advance; a refused or unanswered message is sent again (after a pause) before anything above
it. A request may be lost on its way, and so may its answer. An answer after the deadline changes nothing. A spontaneous rewind happens
only between two requests, after a success.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from prober.core.events import Acked, Delivered, Nacked, Opened
from tests.simulation.lane import Hold, Lane
from tests.simulation.options import Fault
from tests.simulation.topic import Record
from tests.simulation.world import SUBSCRIPTION, World


@dataclass(slots=True)
class PushLane(Lane):
    """A lane; `resting` while it waits before sending a refused message again."""

    resting: bool = False
    owed: bool = False


@dataclass(slots=True)
class Service:
    """Sends requests, waits for answers."""

    world: World
    client: Client
    lanes: dict[str, PushLane] = field(default_factory=dict)
    _names: count[int] = field(default_factory=lambda: count(1))

    def append(self, record: Record) -> None:
        self.lanes[record.key].log.append(record)
        self._wake(self.lanes[record.key])

    def wake_all(self) -> None:
        for lane in self.lanes.values():
            self._wake(lane)

    def _wake(self, lane: PushLane) -> None:
        self.world.after(self.world.between(0, 0.02), lambda: self._send(lane))

    def _send(self, lane: PushLane) -> None:
        world = self.world
        lane.skip_removed()
        if lane.resting or lane.cursor >= len(lane.log):
            return
        if lane.holds:
            if not world.broken(Fault.OVERLAP, 0.5):
                return
            world.fire(f"{lane.key} overlap")
        position = lane.cursor
        lane.cursor += 1
        lane.owed = False
        request = f"push-{next(self._names)}"
        hold, attempt = lane.hold(position, request)
        record = lane.log[position]
        world.after(world.options.lease_s, lambda: self._expire(lane, hold))
        if world.chance(world.options.loss):
            world.note("lost request")
        else:
            world.after(
                world.between(0, world.options.delay_max_s),
                lambda: self.client.receive(lane, record, hold, attempt),
            )

    def answer(self, lane: PushLane, hold: Hold, success: bool) -> None:
        if not lane.current(hold):
            self.world.note("answer after the deadline")
        elif success:
            lane.acknowledge(hold)
            self._wake(lane)
        elif self.world.broken(Fault.PAST_NACK, 0.6):
            self.world.fire(f"{lane.log[hold.position].message_id} passed")
            del lane.holds[hold.position]
            self._wake(lane)
        else:
            self._again(lane, hold)

    def _again(self, lane: PushLane, hold: Hold) -> None:
        if lane.give_up(hold):
            lane.rewind(lane.deeper(hold.position))
            lane.owed = True
        lane.resting = True
        self.world.after(self.world.between(0, 2), lambda: self._rested(lane))

    def _rested(self, lane: PushLane) -> None:
        lane.resting = False
        self._wake(lane)

    def _expire(self, lane: PushLane, hold: Hold) -> None:
        if lane.current(hold):
            self.world.note("lease over")
            self._again(lane, hold)

    def spontaneous(self) -> None:
        lane = self.world.random.choice(list(self.lanes.values()))
        if lane.cursor and not lane.holds:
            self.world.note("spontaneous rewind")
            lane.rewind(self.world.random.randint(max(0, lane.cursor - 6), lane.cursor - 1))
            self._wake(lane)

    def misbehave(self) -> None:
        """Overlap needs a request under way: try while one is."""
        self.wake_all()


@dataclass(slots=True)
class Client:
    """The endpoint."""

    world: World
    service: Service = field(init=False)

    def __post_init__(self) -> None:
        self.service = Service(self.world, self)

    def start(self) -> None:
        """The service begins."""

    def receive(self, lane: PushLane, record: Record, hold: Hold, attempt: int) -> None:
        world, options = self.world, self.world.options
        hold.received = True
        record.attempt_seen = max(record.attempt_seen, attempt)
        world.record(Opened(world.now, SUBSCRIPTION, hold.session, hold.session))
        world.record(
            Delivered(
                world.now,
                SUBSCRIPTION,
                record.key,
                hold.session,
                record.epoch,
                record.seq,
                record.message_id,
                record.generation,
                attempt,
            )
        )
        if world.chance(options.ignore):
            world.note("never answered")
            return
        delay = world.between(0, 0.3)
        if world.chance(options.late_ack):
            delay = world.between(0, 1.5 * options.lease_s)
        success = not world.chance(options.nack)
        world.after(delay, lambda: self._answer(lane, record, hold, success))

    def _answer(self, lane: PushLane, record: Record, hold: Hold, success: bool) -> None:
        world = self.world
        world.note("success" if success else "failure")
        kind = Acked if success else Nacked
        world.record(kind(world.now, SUBSCRIPTION, record.key, hold.session, record.message_id))
        if world.chance(world.options.ack_loss):
            world.note("lost answer")
        else:
            world.after(world.between(0, world.options.ack_lag_s), lambda: self.service.answer(lane, hold, success))
