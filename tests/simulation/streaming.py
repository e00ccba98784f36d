"""Streaming pull: a service that keeps a key at one subscriber.

Legal by sections 3.2 to 3.4 and the amendments. While a lane has holds, everything is sent to the subscriber that has them; only when it
has none may the next message go elsewhere. The finer points:

* A message that was dropped (negative acknowledgement, end of lease) is sent again before anybody else gets anything above it (Lemma 1:
  "by a release, and then the run restarts"). The rewind may take a moment, or the back-off of the retry policy, and until then
  successors may go on to the same owner, or wait.
* After a spontaneous rewind (a server restart) whatever the owner held is dropped without the owner's doing. If that leaves out something
  below that is still held, the owner keeps the key. If the service forgets everything that is held, it starts again at or below the
  lowest of it, at anybody (row 11): at-least-once, and affinity is not guaranteed. Never with exactly-once delivery.
* The streams of one client take turns, or race: messages one after the other go to both at once, and arrive within Delta in any
  interleaving that keeps each stream in order (row 5).
* A message that is lost with its stream has to be sent again, unless it had been acknowledged before (row 2).
* A stream's flow control is that with which it was opened: no more is sent on it while so much is outstanding. The owner's other streams
  may go on, and a key of which nothing is held goes where there is room.
* While another key is held, a key may have to wait (F 4.1, row 3).
* With a dead-letter policy a run may leave out what was acknowledged, and a nacked message may be redelivered by itself (row 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.answers import Copy, addressed
from tests.simulation.lane import Lane
from tests.simulation.line import Hold, Line, Record
from tests.simulation.neighbours import Neighbours
from tests.simulation.options import Options
from tests.simulation.streaming_bugs import Bugs
from tests.simulation.streaming_lane import Stream, StreamLane
from tests.simulation.topic import Message
from tests.simulation.world import ProbeInstance, World

OVERHEAD_BYTES = 40
"""What the service counts of a message besides its data."""


@dataclass(slots=True)
class Service:
    """Chooses streams, sends, and hears what comes back."""

    probe_instance: ProbeInstance
    receive: Callable[[Stream, Copy], None]
    crash: Callable[[Stream], None]
    lanes: dict[str, StreamLane] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    neighbours: Neighbours = field(init=False)
    bugs: Bugs = field(init=False)

    def __post_init__(self) -> None:
        self.neighbours = Neighbours(self.probe_instance, self.lanes)
        self.bugs = Bugs(self.world, self._send, self._wake, self.receive)

    @property
    def world(self) -> World:
        return self.probe_instance.world

    @property
    def options(self) -> Options:
        return self.probe_instance.options

    def add(self, key: str) -> None:
        self.lanes[key] = StreamLane(self.probe_instance, key)

    def append(self, message: Message) -> None:
        lane = self.lanes[message.key]
        lane.append(message)
        self._wake(lane)

    # --- streams ---

    def connect(self, stream: Stream, replaces: Stream | None = None) -> None:
        if not stream.up_at_client or stream.lost:
            return
        stream.up_at_service = True
        self.streams.append(stream)
        if replaces is not None and replaces.up_at_service:
            self._hand_over(replaces, stream)
        self.wake_all()

    def _hand_over(self, old: Stream, new: Stream) -> None:
        """What the old stream holds now belongs to the new one."""
        self.world.note("handed over")
        old.up_at_service = False
        self.streams.remove(old)
        for lane in self.lanes.values():
            for hold in lane.holds.values():
                if hold.session is old:
                    hold.session = new
                    self.world.note("handed over with holds")
            if lane.stream is old:
                lane.stream = new
        old.raced_until = new.raced_until = old.last_arrival
        new.messages, new.bytes = new.messages + old.messages, new.bytes + old.bytes
        old.messages = old.bytes = 0

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
        held = [hold for hold in lane.holds.values() if hold.session is stream]
        if held:
            self.world.note("break with holds")
        if self.bugs.resume_past(lane, held):
            return
        owner_gone = lane.stream is stream or not any(other.owner == lane.owner for other in self.streams)
        again = dict(lane.pending) if owner_gone else {}
        for hold in held:
            record = hold.record
            if lane.lose(hold):
                again[record.line] = min(record.position, again.get(record.line, record.position))
        for line, position in again.items():
            self._rewind(lane, line, position)

    # --- what comes back ---

    def ack(self, lane: Lane, hold: Hold) -> None:
        if lane.acknowledge(hold):
            self._freed(lane)

    def nack(self, lane: Lane, hold: Hold) -> None:
        self._release(lane, hold)

    def modify(self, lane: Lane, hold: Hold, seconds: float) -> None:
        lane.modify(hold, seconds)

    # --- leases ---

    def _release(self, lane: Lane, hold: Hold) -> None:
        assert isinstance(lane, StreamLane)
        record = hold.record
        if not lane.give_up(hold):
            self._freed(lane)
            return
        if self._alone(lane, record):
            return
        wait = lane.rest(record, hold.received)
        if wait:
            self.world.after(wait, lambda: self._wake(lane))
        if self.world.happens(self.options.service.lazy_rewind):
            lane.pending[record.line] = min(record.position, lane.pending.get(record.line, record.position))
            self.world.after(max(wait, self.world.between(0, 1)), lambda: self._rewind_late(lane, record.line))
            if self.world.random.random() < 0.5:
                record.line.rests_until = self.world.now  # the successors do not wait
            self._freed(lane)
        else:
            self._rewind(lane, record.line, record.position)

    def _alone(self, lane: StreamLane, record: Record) -> bool:
        """Whether the message is sent again at once and by itself: with a dead-letter policy, or by a bug."""
        if lane.stream is None or not lane.stream.up_at_service:
            return False
        if self.bugs.alone(record):
            pass
        elif self.world.happens(self.options.service.leaves_out):
            self.world.note("redelivered by itself with a dead-letter policy")
        else:
            return False
        self._send(lane, record, lane.stream)
        return True

    def _rewind(self, lane: StreamLane, line: Line, position: int) -> None:
        lowest = lane.lowest_held(line)
        held_below = lowest is not None and lowest < position
        lane.rewind(line, position if held_below else lane.deeper(position))
        lane.pinned = lane.pinned and held_below
        if line in lane.pending and position <= lane.pending[line]:
            del lane.pending[line]
        self._freed(lane)

    def _rewind_late(self, lane: StreamLane, line: Line) -> None:
        if line in lane.pending:
            self._rewind(lane, line, lane.pending[line])

    # --- what needs no occasion ---

    def spontaneous(self) -> None:
        lane = self._any_lane()
        lane.pinned = lane.pinned or bool(lane.holds)
        lane.forget_recent()
        self._freed(lane)

    def forget(self) -> None:
        """Starts again from the lowest held message, wherever."""
        lane = self._any_lane()
        if not lane.holds or self.world.draining:
            return
        lane.forget(lane.pending.items())
        lane.pending.clear()
        lane.pinned, lane.owner = False, None
        self._freed(lane)

    def _any_lane(self) -> StreamLane:
        return self.world.random.choice(list(self.lanes.values()))

    def misbehave(self) -> None:
        """The bugs that need no occasion."""
        lane = self._any_lane()
        if lane.stream is not None and lane.stream.up_at_service and lane.stream.up_at_client:
            self.bugs.misbehave(lane, lane.stream)

    # --- sending ---

    def wake_all(self) -> None:
        for lane in self.lanes.values():
            self._wake(lane)

    def _freed(self, lane: Lane) -> None:
        """Something is not held any more: it may have kept others waiting too."""
        service = self.options.service
        if service.neighbour_delay or service.limit_messages or service.limit_bytes:
            self.wake_all()
        else:
            self._wake(lane)

    def _wake(self, lane: Lane) -> None:
        assert isinstance(lane, StreamLane)
        if not lane.pumping:
            lane.pumping = True
            self.world.after(self.world.between(0, 0.02), lambda: self._pump(lane))

    def _pump(self, lane: StreamLane) -> None:
        lane.pumping = False
        line = lane.ready_line()
        if lane.frozen or line is None or len(lane.holds) >= self.options.service.pace or self.neighbours.delay(lane):
            return
        stream = self._choose(lane)
        if stream is None:
            return
        for record in self._next(lane, line):
            self._send(lane, record, stream)
        self._wake(lane)

    def _room(self, stream: Stream) -> bool:
        service = self.options.service
        if service.limit_messages and stream.messages >= service.limit_messages:
            return False
        return not service.limit_bytes or stream.bytes + OVERHEAD_BYTES * stream.messages < service.limit_bytes

    def _choose(self, lane: StreamLane) -> Stream | None:
        others = [stream for stream in self.streams if stream.owner != lane.owner]
        split = self.bugs.wrong_stream(lane, others)
        if split is not None:
            return split
        chosen = self._owners_choice(lane) if lane.holds else self._free_choice(lane)
        if chosen is not None:
            lane.stream, lane.owner, lane.pinned = chosen, chosen.owner, False
        return chosen

    def _owners_choice(self, lane: StreamLane) -> Stream | None:
        """The key stays where its holds are: on the same stream, or, racing, on any of the owner's."""
        race = self.options.service.race
        own = [stream for stream in self.streams if stream.owner == lane.owner and self._room(stream)]
        if lane.stream in own and not (race and len(own) > 1 and self.world.happens(race)):
            return lane.stream
        if not own or not race:
            self.world.note("flow control used up")
            return None
        chosen = self.world.random.choice(own)
        if chosen is not lane.stream:
            self.world.note("race of two streams")
            for stream in self.streams:
                if stream.owner == lane.owner:
                    stream.raced_until = self.world.now + self.options.bounds.delay_max_s
        return chosen

    def _free_choice(self, lane: StreamLane) -> Stream | None:
        """Nothing is held: the same stream, another of the owner's, or someone else's, where there is room."""
        world, old, service = self.world, lane.stream, self.options.service
        free = [stream for stream in self.streams if self._room(stream)]
        own = [stream for stream in free if stream.owner == lane.owner]
        stays = lane.pinned or bool(lane.pending)
        if own and (stays or not world.happens(service.idle_move)):
            return old if old in own and not world.happens(service.turn) else world.random.choice(own)
        if not free or (stays and any(stream.owner == lane.owner for stream in self.streams)):
            return None
        chosen = world.random.choice(free)
        if lane.owner is not None and chosen.owner != lane.owner:
            world.note("move")
        return chosen

    def _next(self, lane: StreamLane, line: Line) -> list[Record]:
        """What to send now; the cursor moves past it."""
        record, first = line.step()
        if lane.leave_out(record, first):
            return []
        return [record] if self.world.fault is None else self.bugs.instead_of(lane, record, first)

    def _send(self, lane: StreamLane, record: Record, stream: Stream, share: float | None = None) -> None:
        """Sends, with that share of the longest delay, or any delay."""
        world, longest = self.world, self.options.bounds.delay_max_s
        hold = lane.hold(record, stream, lambda held: self._release(lane, held))
        copy = addressed(self.probe_instance, stream, lane, record, hold)
        stream.last_arrival = max(
            stream.last_arrival, world.now + (world.between(0, longest) if share is None else share * longest)
        )
        if record.poison and not world.draining:
            world.at(stream.last_arrival, lambda: self.crash(stream))
        else:
            world.at(stream.last_arrival, lambda: self.receive(stream, copy))
