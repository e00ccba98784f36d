"""The service's view of one ordering key on a subscription, common to the three ways of consuming it.

A lane has a line per publishing region, and the holds of what it sent. Nothing relates two lines: order is guaranteed within a region only
(row 12 of the amendments). Holds belong to the key, whatever the region.

A hold ends by an acknowledgement, a negative acknowledgement, the end of its lease, the loss of its session or a rewind to its position
or below (section 3.3). After a refusal or the end of a lease the message, and those behind it, may have to wait for the retry policy's
back-off (row 8).

An acknowledgement that arrives after its message was sent again may count for the message (section 5.7: "ack sent before, applied after
the redelivery or the move"). Then the hold of the later delivery ends, or its message need not be sent again when its lease ends. It
must be if that later delivery was lost, unless what was lost with a stream or with the answer of a pull had been acknowledged before:
what was sent and lost is not skipped (row 2). A push request without an answer is a refusal.

Dead-lettering follows section 5.8 and row 4: with a policy a message may leave once as many of its deliveries failed as the limit says,
whether the prober saw them or not (F 4.4: an attempt is counted per refusal and expired deadline), or a client was shown that count. That
the prober sees `DeadLettered` is a matter of luck. After it the run restarts at the next message, or does not restart at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from prober.core.events import AckConfirmed, DeadLettered
from prober.core.rules import Mode
from tests.simulation.faults import Fault
from tests.simulation.line import Hold, Line, Record, Session
from tests.simulation.options import Options
from tests.simulation.topic import Message
from tests.simulation.world import ProbeInstance, World

LONGEST_BACKOFF_AFTER_UNSEEN_S = 2.0


@dataclass(slots=True, eq=False)
class Lane:
    """A key; see the head of this file."""

    probe_instance: ProbeInstance
    key: str
    lines: dict[str, Line] = field(default_factory=dict)
    holds: dict[Record, Hold] = field(default_factory=dict)
    frozen: bool = False
    sent: int = 0

    @property
    def world(self) -> World:
        return self.probe_instance.world

    @property
    def options(self) -> Options:
        return self.probe_instance.options

    @property
    def idle(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.at_rest

    @property
    def at_rest(self) -> bool:
        return not self.holds and (self.frozen or all(line.all_sent for line in self.lines.values()))

    def append(self, message: Message) -> None:
        line = self.lines.setdefault(message.region, Line(message.region))
        if line.log and line.log[-1].message.epoch != message.epoch and self.world.broken(Fault.LOST_TAIL, 0.8):
            self._lose_tail(line)
        record = Record(message, line, len(line.log))
        record.poison = bool(self.options.service.poison) and self.world.happens(self.options.service.poison)
        line.log.append(record)

    def _lose_tail(self, line: Line) -> None:
        """The bug of forgetting what was not sent of an epoch when the next one begins."""
        tail = [record for record in line.log[line.frontier :] if not record.removed]
        for record in tail:
            record.removed = True
            if record.message.confirmed:
                self.world.fire(f"{record.message.message_id} lost")

    def ready_line(self) -> Line | None:
        """A line with something to send now; any of them when there are several."""
        now = self.world.now
        ready = [line for line in self.lines.values() if line.sendable(now)]
        if not ready:
            return None
        return ready[0] if len(ready) == 1 else self.world.random.choice(ready)

    # --- holds ---

    def hold(self, record: Record, session: Session, over: Callable[[Hold], None]) -> Hold:
        """Note that the message is being sent; `over` is called if its lease ends."""
        record.attempts += 1
        self.sent += 1
        line = record.line
        if record.position < line.frontier:
            self.world.note("redelivery")
            if record.acked:
                self.world.note("redelivery of acked")
        line.frontier = max(line.frontier, record.position + 1)
        former = self.holds.get(record)
        if former is not None:
            self.end(former)
        lease_s = self.options.bounds.lease_s
        held = Hold(record, session, self.world.now, self.world.now + lease_s, over)
        self.world.after(lease_s, lambda: self._expire(held))
        session.messages += 1
        session.bytes += record.message.size
        self.holds[record] = held
        return held

    def current(self, held: Hold) -> bool:
        return self.holds.get(held.record) is held

    def end(self, held: Hold) -> None:
        del self.holds[held.record]
        held.session.messages -= 1
        held.session.bytes -= held.record.message.size

    def acknowledge(self, held: Hold) -> bool:
        """An acknowledgement arrives. Tell whether the hold is over; exactly-once takes only the lowest, and only while it holds."""
        record = held.record
        if self.options.service.exactly_once:
            if not self.current(held) or any(self._pending(lower) for lower in record.line.log[: record.position]):
                self.world.note("rejected ack")
                return False
            self._confirm(held)
        record.acked = True
        if not self.current(held):
            return self._old_ack(record)
        self.end(held)
        return True

    def _old_ack(self, record: Record) -> bool:
        """An acknowledgement of an earlier delivery: it may count for the message, and then ends the hold of the later one."""
        self.world.note("late ack")
        later = self.holds.get(record)
        if later is None or not later.received or not self.world.happens(self.options.service.old_ack_counts):
            return False
        self.world.note("old ack counts")
        self.end(later)
        return True

    def _pending(self, record: Record) -> bool:
        return not record.acked and not record.removed

    def _confirm(self, held: Hold) -> None:
        message_id, world = held.record.message.message_id, self.world
        if world.happens(0.1):
            return
        session = held.session
        world.after(
            world.between(0, 0.5),
            lambda: world.record(AckConfirmed(session.recorder.t, self.probe_instance.name, self.key, session.name, message_id)),
        )

    def modify(self, held: Hold, seconds: float) -> None:
        """A lease modification arrives: the lease now ends that long from now."""
        if not self.current(held):
            return
        sooner = self.world.now + seconds < held.lease_end
        held.lease_end = self.world.now + seconds
        if sooner:
            self.world.after(seconds, lambda: self._expire(held))

    def _expire(self, held: Hold) -> None:
        if not self.current(held):
            return
        if self.world.now < held.lease_end:
            self.world.after(held.lease_end - self.world.now, lambda: self._expire(held))
        else:
            self.world.note("lease over")
            held.over(held)

    # --- release ---

    def give_up(self, held: Hold) -> bool:
        """The hold ends without an acknowledgement. Tell whether the message has to be sent again."""
        if not self.current(held):
            return False
        self.end(held)
        record = held.record
        if self._leaves(record):
            self._dead_letter(record)
            return self.world.happens(0.5)
        if self.may_stay_away(held) or record.removed:
            return False
        return not self._kept_back(record)

    def lose(self, held: Hold) -> bool:
        """The session that carried the message is gone. Tell whether the message has to be sent again."""
        self.end(held)
        record = held.record
        if self._leaves(record) and record.poison:
            self._dead_letter(record)
        return not (record.removed or self.may_stay_away(held))

    def may_stay_away(self, held: Hold) -> bool:
        """Whether an ended hold's message need not be sent again, because it was acknowledged before."""
        if not held.record.acked:
            return False
        if held.received:
            return not self.world.happens(0.5)
        if self.options.mode is Mode.PUSH or not self.world.happens(self.options.service.stays_lost):
            return False
        self.world.note("acknowledged, sent again, lost, not sent again")
        return True

    def _leaves(self, record: Record) -> bool:
        limit = self.options.service.dead_letter
        record.failures += 1
        return 0 < limit <= max(record.attempt_seen, record.failures) and not record.acked and self.world.random.random() < 0.7

    def _dead_letter(self, record: Record) -> None:
        world = self.world
        record.removed = True
        world.note("dead-lettered")
        if record.poison:
            world.note("dead-lettered before its receipt")
        if world.random.random() < self.options.service.dead_letter_observed:
            recorder, message_id = world.recorders.publisher, record.message.message_id
            world.after(
                world.between(0, 2), lambda: world.record(DeadLettered(recorder.t, self.probe_instance.name, self.key, message_id))
            )

    def _kept_back(self, record: Record) -> bool:
        """The bugs of not sending again what was not acknowledged: not for its own sake, or never again."""
        if record.acked:
            return False
        if self.world.broken(Fault.NEVER_AGAIN, 0.5):
            record.removed = True
        elif not self.world.broken(Fault.NO_REDELIVER, 0.6):
            return False
        self.world.fire(f"{record.message.message_id} kept back")
        return True

    def leave_out(self, record: Record, first: bool) -> bool:
        """With a dead-letter policy a redelivery run need not be complete; what was never acknowledged stays held, or is sent by itself."""
        if (
            first
            or not record.acked
            or not self.options.service.leaves_out
            or not self.world.happens(self.options.service.leaves_out)
        ):
            return False
        self.world.note("left out with a dead-letter policy")
        return True

    # --- rewinds ---

    def rewind(self, line: Line, position: int) -> None:
        """Send from here again; the holds from here on are dropped. Exactly-once: never past an acknowledgement that was accepted."""
        if self.options.service.exactly_once:
            position = max(position, 1 + max((record.position for record in line.log if record.acked), default=-1))
        if position < line.cursor:
            self.world.note("restart inside a run" if line.cursor < line.frontier else "rewind")
        line.cursor = min(line.cursor, position)
        for held in [held for held in self.holds.values() if held.record.line is line and held.record.position >= position]:
            self.end(held)

    def rest(self, record: Record, seen: bool) -> float:
        """The retry policy's back-off begins. Tell how long it takes. The prober can only allow for one that it did not see begin."""
        bound, world = self.options.bounds.backoff_s, self.world
        if not bound or world.draining:
            return 0.0
        if not seen:
            bound = LONGEST_BACKOFF_AFTER_UNSEEN_S if record.waited_unseen else bound
            record.waited_unseen = True
        wait = world.between(0, bound)
        line = record.line
        still = line.rests_from if world.now < line.rests_until else record.position
        line.rests_from = min(still, record.position)
        line.rests_until = max(line.rests_until, world.now + wait)
        if bound > LONGEST_BACKOFF_AFTER_UNSEEN_S:
            world.note("back-off")
        return line.rests_until - world.now

    def deeper(self, position: int) -> int:
        """Some position at or below, at random: a service may rewind further than it must, though not past confirmed acks."""
        service = self.options.service
        if service.exactly_once or not self.world.happens(service.deeper_rewind):
            return position
        return self.world.random.randint(max(0, position - 4), position)

    def lowest_held(self, line: Line) -> int | None:
        return min((held.record.position for held in self.holds.values() if held.record.line is line), default=None)

    def forget(self, due: Iterable[tuple[Line, int]] = ()) -> None:
        """The service loses track of all holds, and starts again at or below the lowest of each region (row 11), `due` included.

        The bug is to start above it.
        """
        self.world.note("lost track of what is held")
        if self.world.broken(Fault.RESUME_ELSEWHERE, 1.0):
            self.world.fire(
                f"{self.key} goes on elsewhere, {[held.record.message.message_id for held in self.holds.values()]} held"
            )
            for held in list(self.holds.values()):
                self.end(held)
            return
        lowest = dict(due)
        for line in self.lines.values():
            position = self.lowest_held(line)
            if position is not None:
                lowest[line] = min(position, lowest.get(line, position))
        for line, position in lowest.items():
            self.rewind(line, self.world.random.randint(max(0, position - 4), position))

    def forget_recent(self) -> None:
        """A server restarts and has forgotten acknowledgements, or repeats itself for no reason."""
        lines = [line for line in self.lines.values() if line.cursor]
        if lines:
            self.world.note("spontaneous rewind")
            line = self.world.random.choice(lines)
            self.rewind(line, self.world.random.randint(max(0, line.cursor - 6), line.cursor - 1))

    def surely_held(self) -> Hold | None:
        """A message whose first lease is far from over, and whose client has it and said nothing, if there is one."""
        late = self.world.now - self.options.bounds.lease_s / 2
        return next((held for held in self.holds.values() if held.kept and held.sent_t > late), None)

    def again_after_ack(self) -> bool:
        """The bug of exactly-once delivery that sends again what was acknowledged, with all that follows."""
        for line in self.lines.values():
            acked = [record for record in line.log[: line.cursor] if record.acked and not record.removed]
            if acked and self.world.broken(Fault.EOD_AFTER_ACK, 0.5):
                record = acked[len(acked) // 2]
                self.world.fire(f"{record.message.message_id} again")
                line.cursor = record.position
                return True
        return False

    # --- what is gone ---

    def seek(self) -> None:
        """A seek takes effect: forward to somewhere in the backlog, or back. What lies before its target is gone for good."""
        for held in list(self.holds.values()):
            self.end(held)
        for line in self.lines.values():
            target = self.world.random.randint(max(0, line.cursor - 8), len(line.log))
            for record in line.log:
                record.removed = record.removed or record.position < target
                record.acked = record.position < target
            line.cursor = target
            line.frontier = max(line.frontier, target)

    def expire(self, before_t: float) -> None:
        """What was stored before is older than the retention, and gone."""
        for line in self.lines.values():
            for record in line.log:
                if record.message.stored_t < before_t and not record.removed:
                    record.removed = True
                    if not record.acked:
                        self.world.note("retention")
