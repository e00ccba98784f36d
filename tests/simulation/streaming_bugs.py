"""What a streaming service can do wrong, and tells that it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.simulation.answers import Copy
from tests.simulation.faults import Fault
from tests.simulation.lane import Lane
from tests.simulation.line import Hold, Line, Record
from tests.simulation.streaming_lane import Stream, StreamLane
from tests.simulation.topic import Message
from tests.simulation.world import World

FIRST_GHOST = 100_000
"""A sequence number that nobody publishes."""


class Send(Protocol):
    """Sends a message on a stream, with that share of the longest delay."""

    def __call__(self, lane: StreamLane, record: Record, stream: Stream, share: float | None = None) -> None: ...


@dataclass(slots=True)
class Bugs:
    """Asked at each occasion; does nothing unless the service has the bug."""

    world: World
    send: Send
    wake: Callable[[Lane], None]
    receive: Callable[[Stream, Copy], None]
    haunted: set[str] = field(default_factory=set)
    others: Sequence[Stream] = ()

    # --- where ---

    def wrong_stream(self, lane: StreamLane, others: Sequence[Stream]) -> Stream | None:
        """Another subscriber's stream, while this one holds something."""
        self.others = others
        if not (lane.holds and others and self.world.broken(Fault.SPLIT, 0.15)):
            return None
        self.world.fire(f"{lane.key} split")
        return self.world.random.choice(others)

    # --- what comes next ---

    def instead_of(self, lane: StreamLane, record: Record, first: bool) -> list[Record]:
        """What is sent in the place of a message."""
        line = record.line
        follower = line.log[line.cursor] if line.cursor < len(line.log) else None
        if follower is not None and self._split_racing(lane, record, follower):
            return []
        return self._first(lane, record, follower) if first else self._again(lane, record, follower)

    def _split_racing(self, lane: StreamLane, record: Record, follower: Record) -> bool:
        """The next message goes slowly to the holder of the key, its successor fast to somebody else."""
        if not (lane.stream and lane.holds and self.others and self.world.broken(Fault.SPLIT_RACING, 0.15)):
            return False
        self.world.fire(f"{record.message.message_id} slowly, {follower.message.message_id} to somebody else")
        record.line.cursor += 1
        self.send(lane, record, lane.stream, 1.0)
        self.send(lane, follower, self.world.random.choice(self.others), 0.0)
        return True

    def _first(self, lane: StreamLane, record: Record, follower: Record | None) -> list[Record]:
        world = self.world
        if follower and world.broken(Fault.SKIP_FIRST, 0.15):
            world.fire(f"{record.message.message_id} skipped")
            record.line.cursor += 1
            if world.random.random() < 0.5:
                world.after(world.between(0, 2), lambda: self._late(lane, record))
            return [follower]
        swapped = world.broken(Fault.SWAP_FIRST, 0.2) or (lane.key in self.haunted and world.broken(Fault.PHANTOM_THEN_SWAP, 0.5))
        if follower and swapped:
            world.fire(f"{record.message.message_id} swapped")
            record.line.cursor += 1
            return [follower, record]
        return [record]

    def _late(self, lane: StreamLane, record: Record) -> None:
        if lane.stream is not None and lane.stream.up_at_service:
            self.send(lane, record, lane.stream)

    def _again(self, lane: StreamLane, record: Record, follower: Record | None) -> list[Record]:
        world, line = self.world, record.line
        if record.acked and world.broken(Fault.REDELIVER_UNACKED_ONLY, 1.0):
            world.fire(f"{record.message.message_id} left out")
            return []
        if follower is None or follower.position >= line.frontier:
            return [record]
        if not record.acked and world.broken(Fault.EOD_SKIP, 0.3):
            world.fire(f"{record.message.message_id} skipped")
            return []
        if world.broken(Fault.REORDER_RUN, 0.4):
            world.fire(f"{record.message.message_id} swapped")
            line.cursor += 1
            return [follower, record]
        if world.broken(Fault.STALL_RUN, 0.3):
            world.fire(f"{lane.key} frozen after {record.message.message_id}")
            lane.frozen = True
        return [record]

    # --- what is not sent again ---

    def alone(self, record: Record) -> bool:
        """Whether a message is sent again without those behind it."""
        if not self.world.broken(Fault.REDELIVER_SINGLE, 0.7):
            return False
        if record.line.cursor > record.position + 1:
            self.world.fire(f"only {record.message.message_id}")
        return True

    def resume_past(self, lane: StreamLane, held: Sequence[Hold]) -> bool:
        """Whether what a broken stream held is passed over."""
        if not held or not self.world.broken(Fault.RESUME_PAST, 0.8):
            return False
        self.world.fire(f"{lane.key} resumes past {[hold.record.message.message_id for hold in held]}")
        for hold in held:
            lane.end(hold)
        return True

    # --- what nobody asked for ---

    def misbehave(self, lane: StreamLane, stream: Stream) -> None:
        """Something that needs no occasion."""
        line = next(iter(lane.lines.values()), None)
        if line is None or line.frontier < 2:
            return
        if self.world.broken(Fault.DUP_ALONE, 0.6):
            self._duplicate(lane, line, stream)
        elif self.world.broken(Fault.PHANTOM, 0.6):
            self.world.fire("ghost")
            self._ghost(lane, line, stream)
        elif self.world.broken(Fault.PHANTOM_THEN_SWAP, 0.6) and lane.key not in self.haunted:
            self._ghost(lane, line, stream)
        elif lane.holds and self.world.broken(Fault.EOD_WHILE_HELD, 0.6):
            self._early(lane, stream)
        elif lane.again_after_ack():
            self.wake(lane)

    def _duplicate(self, lane: StreamLane, line: Line, stream: Stream) -> None:
        record = line.log[self.world.random.randrange(line.cursor - 1)] if line.cursor > 1 else None
        if record is not None and not record.removed:
            self.world.fire(f"{record.message.message_id} alone")
            self.send(lane, record, stream)

    def _ghost(self, lane: StreamLane, line: Line, stream: Stream) -> None:
        self.haunted.add(lane.key)
        number, last = self.world.number(), line.log[-1].message
        ghost = Message(lane.key, last.region, last.epoch, FIRST_GHOST + number, 0, f"ghost-{number}", 0, self.world.now)
        self.receive(stream, Copy(stream, lane, Record(ghost, line, 0), None, 0))

    def _early(self, lane: StreamLane, stream: Stream) -> None:
        """Exactly-once: what is held, and will be for some time, is redelivered with all that follows."""
        held = lane.surely_held()
        if held is not None:
            self.world.fire(f"{held.record.message.message_id} while held")
            held.record.line.cursor = min(held.record.line.cursor, held.record.position)
            self.wake(lane)
