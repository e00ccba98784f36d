"""Unary pull: a service with at most one response outstanding per key.

Legal by section 3.4 and the amendments. A response holds consecutive positions from the cursor, and a key is put into a response only
while it has no holds. A response may carry several keys. It may be lost on its way, which the service only notices when its leases end;
what had been acknowledged before need not be redelivered then (row 2). After a partly acknowledged batch the next one starts at the first
message that was not acknowledged (or below it). A negative acknowledgement may rewind at once, which drops the holds from there on, or
wait until the batch is over, and both wait for the back-off of the retry policy. A spontaneous rewind happens while nothing is
outstanding; the service may also forget everything that is held of a key, and then starts again at or below the lowest of it, in another
response (row 11). While another key is held, a key may have to wait (row 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.answers import Copy, addressed
from tests.simulation.faults import Fault
from tests.simulation.lane import Lane
from tests.simulation.line import Hold, Line, Record, Session
from tests.simulation.neighbours import Neighbours
from tests.simulation.options import Options
from tests.simulation.topic import Message
from tests.simulation.world import ProbeInstance, World


@dataclass(slots=True, eq=False)
class Pull(Session):
    """A pull request: its name is the session and the subscriber.

    `waits_s`: how long the service lets it wait for messages, None if that is up to the service. `done`: it came back, with an answer or
    without.
    """

    invoked_t: float = 0.0
    waits_s: float | None = None
    done: bool = False


@dataclass(slots=True, eq=False)
class PullLane(Lane):
    """A lane with the lowest position per region that the batch under way failed to get acknowledged."""

    again_from: dict[Line, int] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        return not self.again_from and self.at_rest


@dataclass(slots=True)
class Service:
    """Answers pulls, keeps leases."""

    probe_instance: ProbeInstance
    receive: Callable[[Pull, list[Copy]], None]
    came_back_empty: Callable[[Pull], None]
    lanes: dict[str, PullLane] = field(default_factory=dict)
    waiting: list[Pull] = field(default_factory=list)
    waking: bool = False
    neighbours: Neighbours = field(init=False)

    def __post_init__(self) -> None:
        self.neighbours = Neighbours(self.probe_instance, self.lanes)

    @property
    def world(self) -> World:
        return self.probe_instance.world

    @property
    def options(self) -> Options:
        return self.probe_instance.options

    def add(self, key: str) -> None:
        self.lanes[key] = PullLane(self.probe_instance, key)

    def append(self, message: Message) -> None:
        self.lanes[message.key].append(message)
        self.wake_all()

    def pull(self, request: Pull) -> None:
        self.waiting.append(request)
        self.wake_all()
        wait = self.world.between(2, 20) if request.waits_s is None else request.waits_s
        self.world.after(wait, lambda: self._give_up_waiting(request))

    def _give_up_waiting(self, request: Pull) -> None:
        if request in self.waiting:
            self.waiting.remove(request)
            self.came_back_empty(request)

    # --- answering ---

    def wake_all(self) -> None:
        if not self.waking:
            self.waking = True
            self.world.after(self.world.between(0, 0.02), self._answer)

    def _answer(self) -> None:
        self.waking = False
        if not self.waiting:
            return
        ready = [lane for lane in self.lanes.values() if self._ready(lane)]
        if not ready:
            return
        request = self.waiting.pop(self.world.random.randrange(len(self.waiting)))
        if self.waiting:
            self.world.note("concurrent pulls")
        chosen = ready if self.world.random.random() < 0.5 else [self.world.random.choice(ready)]
        self._respond(request, self._interleave([copy for lane in chosen for copy in self._batch(lane, request)]))
        self.wake_all()

    def _ready(self, lane: PullLane) -> bool:
        if lane.frozen:
            return False
        if not lane.holds:
            for line, position in lane.again_from.items():
                lane.rewind(line, lane.deeper(position))
            lane.again_from.clear()
        if lane.ready_line() is None:
            return False
        if lane.holds and self.world.broken(Fault.OVERLAP, 0.3):
            self.world.fire(f"{lane.key} overlap")
            return True
        return not lane.holds and not self.neighbours.delay(lane)

    def _batch(self, lane: PullLane, request: Pull) -> list[Copy]:
        """The next messages of a key, those that are removed left out."""
        steps: list[tuple[Record, bool]] = []
        for _ in range(self.world.random.randint(1, self.options.session.batch_max)):
            line = lane.ready_line()
            if line is not None:
                record, first = line.step()
                if not lane.leave_out(record, first):
                    steps.append((record, first))
        copies = []
        for record in self._broken(lane, steps):
            hold = lane.hold(record, request, lambda held: self._release(lane, held, at_once=False))
            copies.append(addressed(self.probe_instance, request, lane, record, hold))
        return copies

    def _broken(self, lane: PullLane, steps: list[tuple[Record, bool]]) -> list[Record]:
        world = self.world
        records = [record for record, _ in steps]
        if not records:
            return records
        first, line = steps[0][1], records[0].line
        if first and len(records) > 2 and world.broken(Fault.HOLE, 0.3):
            left_out = records.pop(world.random.randrange(1, len(records) - 1))
            world.fire(f"{left_out.message.message_id} left out")
        unacked = [record for record in records[1:-1] if not record.acked]  # what was confirmed may be left out
        if not first and unacked and world.broken(Fault.EOD_SKIP, 0.8):
            records.remove(unacked[0])
            world.fire(f"{unacked[0].message.message_id} skipped")
        if len(records) > 1 and world.broken(Fault.BATCH_REVERSE, 0.3):
            world.fire(f"{records[0].message.message_id} last")
            records.reverse()
        if not first and world.fault is Fault.REDELIVER_UNACKED_ONLY and any(record.acked for record in records):
            world.fire(f"{[record.message.message_id for record in records if record.acked]} left out")
            records = [record for record in records if not record.acked]
        if not first and line.cursor < line.frontier and world.broken(Fault.STALL_RUN, 1.0):
            world.fire(f"{lane.key} frozen")
            lane.frozen = True
        return records

    def _interleave(self, copies: list[Copy]) -> list[Copy]:
        """Messages of several keys in any mixture that keeps each key's order."""
        queues: dict[str, list[Copy]] = {}
        for copy in copies:
            queues.setdefault(copy.lane.key, []).append(copy)
        keys = [copy.lane.key for copy in copies]
        if len(queues) > 1:
            self.world.random.shuffle(keys)
        return [queues[key].pop(0) for key in keys]

    def _respond(self, request: Pull, copies: list[Copy]) -> None:
        world = self.world
        delay = world.between(0, self.options.bounds.delay_max_s)
        poisoned = any(copy.record.poison for copy in copies) and not world.draining
        if poisoned or world.happens(self.options.session.loss):
            world.note("lost response")
            if any(copy.record.acked for copy in copies):
                world.note("lost response with acknowledged messages")
        else:
            world.after(delay, lambda: self.receive(request, copies))

    # --- what comes back ---

    def ack(self, lane: Lane, hold: Hold) -> None:
        lane.acknowledge(hold)
        self.wake_all()

    def nack(self, lane: Lane, hold: Hold) -> None:
        self._release(lane, hold, at_once=self.world.random.random() < 0.5)

    def modify(self, lane: Lane, hold: Hold, seconds: float) -> None:
        lane.modify(hold, seconds)

    def _release(self, lane: Lane, hold: Hold, at_once: bool) -> None:
        assert isinstance(lane, PullLane)
        if lane.give_up(hold):
            record = hold.record
            line = record.line
            lane.again_from[line] = min(record.position, lane.again_from.get(line, line.cursor))
            wait = lane.rest(record, hold.received)
            if wait:
                self.world.after(wait, self.wake_all)
            if at_once:
                lane.rewind(line, record.position)
        self.wake_all()

    # --- what needs no occasion ---

    def spontaneous(self) -> None:
        lane = self._any_lane()
        if not lane.holds:
            lane.forget_recent()
            self.wake_all()

    def forget(self) -> None:
        """Starts again from the lowest held message, in another response."""
        lane = self._any_lane()
        if lane.holds and not self.world.draining:
            lane.forget(lane.again_from.items())
            lane.again_from.clear()
            self.wake_all()

    def _any_lane(self) -> PullLane:
        return self.world.random.choice(list(self.lanes.values()))

    def misbehave(self) -> None:
        """The bugs that need no occasion: those of exactly-once delivery."""
        lane = self._any_lane()
        held = lane.surely_held()
        if held is not None and self.world.broken(Fault.EOD_WHILE_HELD, 0.6):
            self.world.fire(f"{held.record.message.message_id} while held")
            lane.forget()
            self.wake_all()
        elif lane.again_after_ack():
            self.wake_all()
