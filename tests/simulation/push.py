"""Push: one request at a time per key, and an endpoint that answers 200, 500, late or never.

Legal by section 3.4 and the amendments. The next request of a key is sent only after the answer to the last one arrived or its deadline
passed, and only a success within the deadline lets the key advance; a refused or unanswered message is sent again (after a pause, or the
back-off of the retry policy) before anything above it in its region. A request may be lost on its way, and so may its answer. An answer
after the deadline changes nothing. A spontaneous rewind happens only between two requests, after a success.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from prober.core.events import Acked, Nacked, Opened
from tests.simulation.answers import Copy, addressed, record_delivery
from tests.simulation.faults import Fault
from tests.simulation.lane import Lane
from tests.simulation.line import Hold, Session
from tests.simulation.neighbours import Neighbours
from tests.simulation.options import Options
from tests.simulation.topic import Message
from tests.simulation.world import ProbeInstance, World


@dataclass(slots=True, eq=False)
class PushLane(Lane):
    """A lane; `resting` while it waits before sending a refused message again."""

    resting: bool = False


@dataclass(slots=True)
class Service:
    """Sends requests, waits for answers."""

    probe_instance: ProbeInstance
    client: Client
    lanes: dict[str, PushLane] = field(default_factory=dict)
    neighbours: Neighbours = field(init=False)
    _names: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.neighbours = Neighbours(self.probe_instance, self.lanes)

    @property
    def world(self) -> World:
        return self.probe_instance.world

    @property
    def options(self) -> Options:
        return self.probe_instance.options

    def add(self, key: str) -> None:
        self.lanes[key] = PushLane(self.probe_instance, key)

    def append(self, message: Message) -> None:
        self.lanes[message.key].append(message)
        self._wake(self.lanes[message.key])

    def wake_all(self) -> None:
        for lane in self.lanes.values():
            self._wake(lane)

    def _wake(self, lane: PushLane) -> None:
        self.world.after(self.world.between(0, 0.02), lambda: self._send(lane))

    def _send(self, lane: PushLane) -> None:
        world = self.world
        line = lane.ready_line()
        if lane.resting or line is None:
            return
        if lane.holds:
            if not world.broken(Fault.OVERLAP, 0.5):
                return
            world.fire(f"{lane.key} overlap")
        elif self.neighbours.delay(lane):
            return
        record, first = line.step()
        if lane.leave_out(record, first):
            self._wake(lane)
            return
        request = Session(f"{self.probe_instance.name}-push-{next(self._names)}", self.probe_instance.any_recorder())
        copy = addressed(
            self.probe_instance, request, lane, record, lane.hold(record, request, lambda held: self._again(lane, held))
        )
        if (record.poison and not world.draining) or world.happens(self.options.session.loss):
            world.note("lost request")
        else:
            world.after(world.between(0, self.options.bounds.delay_max_s), lambda: self.client.receive(copy))

    def answer(self, lane: Lane, hold: Hold, success: bool) -> None:
        assert isinstance(lane, PushLane)
        if not lane.current(hold):
            self.world.note("answer after the deadline")
        elif success:
            lane.acknowledge(hold)
            self._freed(lane)
        elif self.world.broken(Fault.PAST_NACK, 0.6):
            self.world.fire(f"{hold.record.message.message_id} passed")
            lane.end(hold)
            self._freed(lane)
        else:
            self._again(lane, hold)

    def _again(self, lane: PushLane, hold: Hold) -> None:
        wait = 0.0
        if lane.give_up(hold):
            record = hold.record
            lane.rewind(record.line, lane.deeper(record.position))
            wait = lane.rest(record, hold.received)
        lane.resting = True
        self.world.after(self.world.between(0, 2), lambda: self._rested(lane))
        self.world.after(wait, lambda: self._freed(lane))

    def _rested(self, lane: PushLane) -> None:
        lane.resting = False
        self._wake(lane)

    def _freed(self, lane: PushLane) -> None:
        """A request is over: it may have kept other keys waiting too."""
        if self.options.service.neighbour_delay:
            self.wake_all()
        else:
            self._wake(lane)

    def spontaneous(self) -> None:
        lane = self._any_lane()
        if not lane.holds:
            lane.forget_recent()
            self._wake(lane)

    def forget(self) -> None:
        """A push subscription has no second subscriber to start again at."""

    def _any_lane(self) -> PushLane:
        return self.world.random.choice(list(self.lanes.values()))

    def misbehave(self) -> None:
        """Overlap needs a request under way: try while one is."""
        self.wake_all()


@dataclass(slots=True)
class Client:
    """The endpoint."""

    probe_instance: ProbeInstance
    service: Service = field(init=False)

    def __post_init__(self) -> None:
        self.service = Service(self.probe_instance, self)

    def start(self) -> None:
        """The service begins."""

    def rest(self, quiet_s: float) -> None:
        """A quiet time begins: nothing changes."""

    def go_away(self) -> None:
        """The endpoint is always there: nothing recorded would tell that it is not."""

    def receive(self, copy: Copy) -> None:
        world, client, request = self.probe_instance.world, self.probe_instance.options.client, copy.session
        world.record(Opened(request.recorder.t, self.probe_instance.name, request.name, request.name))
        record_delivery(self.probe_instance, copy)
        if world.happens(client.ignore):
            world.note("never answered")
            return
        delay = world.between(0, 0.3)
        if world.happens(client.late_ack):
            delay = world.between(0, 1.5 * self.probe_instance.options.bounds.lease_s)
        success = not world.happens(client.nack)
        world.after(delay, lambda: self._answer(copy, success))

    def _answer(self, copy: Copy, success: bool) -> None:
        world, options, request = self.probe_instance.world, self.probe_instance.options, copy.session
        world.note("success" if success else "failure")
        kind = Acked if success else Nacked
        key = copy.key or copy.record.message.key
        world.record(kind(request.recorder.t, self.probe_instance.name, key, request.name, copy.record.message.message_id))
        hold = copy.hold
        if world.happens(options.client.ack_loss):
            world.note("lost answer")
        elif hold is not None:
            world.after(world.between(0, options.bounds.ack_lag_s), lambda: self.service.answer(copy.lane, hold, success))
