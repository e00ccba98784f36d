"""Promise 3: while messages of a key are outstanding, the key stays at one subscriber.

The one-holder rule: *at no instant do two subscribers both hold an outstanding message of a key.* A holder is a streaming subscriber
(one client id, however many streams), one PullResponse, or one push request; so the same rule is "affinity" for streaming pull, "one
outstanding batch" for unary pull and "one outstanding message" for push.

A client cannot see when the service stops counting a message as held: an acknowledgement takes time to be applied, a lease runs out
unseen, a stream dies before its client notices. So the rule is three-valued. A message is *certainly held* when its receipt is
recorded, no acknowledgement or refusal was sent, no later rewind dropped it, its lease certainly runs, and its stream is open and
stays open for Delta_close.

What a delivery of position q to another subscriber than the holder means is the first row of this table that fits (`TABLE`):

    row                                                             finding          the key is now
    a late copy, sent before the key moved, and something is held   indeterminate    where it was
    a late copy, and nothing is held                                none             where it was
    its run may have begun before the holder's period               indeterminate    there, or not
    something below q is certainly held elsewhere                   violation        there
    something at or above q is certainly held elsewhere             indeterminate    there: redelivered early
    something may be held elsewhere                                 indeterminate    there
    nothing is held                                                 a move           there

    AFFINITY_SPLIT / PULL_OVERLAP / PUSH_OVERLAP   the findings; AFFINITY_MOVE is informational: idle affinity is best effort.

Why only what is held *below* q proves a violation: delivery is at least once, so the service may start a key again from the lowest
message held, or below, at another subscriber before any lease is over (it "lost track"). It may not go on above something that is
held: that is neither a redelivery nor in the holder's hands. With exactly-once delivery starting again is forbidden as well
(`outstanding`).

A violation is put on hold until it can no longer be explained: by a stream that breaks within Delta_close, by a rewind that was sent
before and arrives later, by an answer whose recorder's clock is behind.

Redelivered early may also have been what is held elsewhere, if the copy that came last was sent first: then nobody certainly holds it.

An excuse is judged too. When a skip is explained by a copy that was sent to another subscriber in between (`redelivery`), then that
copy was held there when the skipped-to message was sent: unless an acknowledgement of an earlier delivery can have ended that hold, it
is a split itself.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import inf
from typing import Final

from prober.core.collector import SEQS_SHOWN, FindingsCollector
from prober.core.events import LONG_AGO
from prober.core.findings import Fact, Facts, Kind
from prober.core.order import OrderCheck
from prober.core.outstanding import OutstandingCheck
from prober.core.places import certainly_before, changes_region, continued_t, may_stand_above, must_precede, was_sent_beside
from prober.core.positions import ACKED, LearnedLog
from prober.core.rules import Mode
from prober.core.sessions import Arrival, Session, Track, Tracks
from prober.core.splits import Acknowledgements, Break, Certain, Split, Splits, overtook_t, with_break
from prober.core.subscription import Subscription

OVERLAP: Final = {Mode.STREAMING: Kind.AFFINITY_SPLIT, Mode.PULL: Kind.PULL_OVERLAP, Mode.PUSH: Kind.PUSH_OVERLAP}

EARLY: Final = "the service may redeliver from the lowest message held, or below, before its lease is over"
RELEASED: Final = "what was held may have been released: refused, its lease over, its stream gone, or an acknowledgement under way"
LATE_COPY: Final = "it may be a late copy, sent before the key moved"
EARLIER_RUN: Final = "it may belong to a run that began before the other subscriber's"


class Scene:
    """What is to be known of a delivery to another subscriber than the holder, gathered once for all rows of the table.

    held        what others certainly hold, the lowest of each session first.
    perhaps     whether others hold something, certainly or not.
    """

    __slots__ = ("arrival", "held", "late", "perhaps", "run_start", "run_start_t")

    def __init__(self, arrival: Arrival, held: list[Certain], *, perhaps: bool, late: bool) -> None:
        self.arrival = arrival
        self.held = held
        self.perhaps = perhaps
        self.late = late
        self.run_start = 0
        self.run_start_t = LONG_AGO

    @property
    def below(self) -> list[Certain]:
        """What is certainly held below the delivery."""
        return [held for held in self.held if held.position < self.arrival.position and held.in_order]


class HolderCheck:
    """Judges who holds one key; see the head of this file. It owns what that takes:

    owner               who holds the key: since some time between `_start_lo` and `_start_t`, beginning at `_start_position`.
    _contested          after a late copy elsewhere that may have been a move.
    acks                which acknowledgements and refusals may still be under way.
    splits              the violations on hold.
    """

    __slots__ = (
        "_breaks",
        "_collector",
        "_contested",
        "_log",
        "_orders",
        "_outstanding",
        "_start_lo",
        "_start_number",
        "_start_position",
        "_start_t",
        "_subscription",
        "_tracks",
        "acks",
        "owner",
        "splits",
    )

    def __init__(
        self, collector: FindingsCollector, log: LearnedLog, tracks: Tracks, subscription: Subscription, orders: OrderCheck
    ) -> None:
        self._collector = collector
        self._orders = orders
        self._log = log
        self._tracks = tracks
        self._subscription = subscription
        self.acks = Acknowledgements(log, collector.rules)
        self._breaks: tuple[Break, ...] = ()
        self.splits = Splits(collector, log, orders, subscription)
        self._outstanding = OutstandingCheck(collector, log, tracks, subscription, orders, self.splits)
        self._contested = False
        self.owner: str | None = None
        self._start_t = self._start_lo = LONG_AGO
        self._start_position = 0
        self._start_number = 0

    # --- deliveries ----------------------------------------------------------------------------------------------------------

    def judge(self, arrival: Arrival) -> bool:
        """Judges a delivery and moves the key where it belongs; True when the key is certainly at the subscriber now."""
        if self.splits.pending:
            self.splits.explain(arrival)
        if self._collector.rules.exactly_once:
            if arrival.new:
                self._count_outstanding(arrival)
            else:
                self._outstanding.judge(arrival, self._breaks)
        if self.owner == arrival.track.session.subscriber:
            if not arrival.new and self._begins_anew(arrival):
                self._note_break(arrival)
            self._stay(arrival)
            return True
        if not arrival.new:
            self._note_break(arrival)
        if self.owner is None:
            self._move(arrival, arrival.position, arrival.lo)
            return True
        scene = self._look(arrival)
        for applies, outcome in TABLE:
            if applies(self, scene):
                return outcome(self, scene)
        raise AssertionError("something is held, or perhaps, or nothing")

    def _stay(self, arrival: Arrival) -> None:
        if self._contested:
            self._resume(arrival)
        if arrival.new and self._subscription.shared and self._is_chance(arrival):
            self._collector.counts.chances_affinity += 1
            self._subscription.note_chance(arrival.t)

    def _is_chance(self, arrival: Arrival) -> bool:
        """Whether this was published after what its subscriber certainly holds had come, so that the service chose where it goes.

        Had it gone elsewhere, that would be a split; see `chances`.
        """
        track, rules = arrival.track, self._collector.rules
        later = self._log.invoked_t(arrival.position) > track.last_t + rules.clock_error_s and arrival.position > track.last > 0
        return later and arrival.t > self._collector.grace_until_t and track.certainly_holds(arrival.t + rules.clock_error_s)

    def _count_outstanding(self, arrival: Arrival) -> None:
        """Exactly-once: the service could have begun again with what is held instead; on its stream that would be certain."""
        promised = not self._collector.rules.dead_letter_max_attempts
        if promised and self.owner == arrival.track.session.subscriber and self._is_chance(arrival):
            self._collector.counts.chances_outstanding += 1

    def answered(self, track: Track, position: int, t: float) -> None:
        """A message is let go. If it was the last of its batch, another one would have overlapped until now; see `chances`."""
        if self._collector.rules.mode is not Mode.STREAMING and track.held.keys() == {position}:
            held = t > self._collector.grace_until_t and track.certainly_holds(t + self._collector.rules.clock_error_s)
            more = any(next(owed, None) is not None for _, owed in self._orders.undelivered(t))
            self._collector.counts.chances_overlap += held and more and self._subscription.could_take
        track.let_go(position)

    def unplaced(self, arrival: Arrival) -> None:
        """A delivery that can no longer be placed: the key is where it is, and everything may have been released."""
        self._note_break(arrival)
        self._may_begin_below_all(arrival)
        self._move(arrival, 0, arrival.lo)

    def foreign(self, arrival: Arrival) -> None:
        """A message that is not on record: with exactly-once delivery a run from there is the only one that may bring what is held."""
        arrival.track.after_foreign = True
        if self._collector.rules.exactly_once:
            self._may_begin_below_all(arrival)

    def _may_begin_below_all(self, arrival: Arrival) -> None:
        """The key may have begun again below all that is held: so nothing is held for certain, nor was before that came."""
        if self.splits.pending:
            self.splits.explain(arrival)
        arrival.track.rewound_t = arrival.t
        for track in self._tracks:
            track.drop_from(0)

    def _begins_anew(self, arrival: Arrival) -> bool:
        """Whether a redelivery does not go on with the run of its session, or the key had come further on another one since."""
        track, position = arrival.track, arrival.position
        if position != arrival.own + 1 or not arrival.own:
            return True
        return any(other.last >= position and other.last_t >= track.last_t for other in self._tracks.others(track))

    def _note_break(self, arrival: Arrival) -> None:
        self._breaks = with_break(self._breaks, arrival, self._tracks, self._log, self._collector)

    def judge_excuse(
        self, t: float, position: int, session: Session, witnesses: tuple[int, ...], facts: Facts, copy: Arrival
    ) -> None:
        """A copy explains a skip to `position`, seen at `t`: then it was held where it was sent when the skipped-to message was sent."""
        holder = copy.track.session
        if holder.subscriber == session.subscriber or holder.unseen or session.unseen or copy.position >= position:
            return
        if self._log.flags(copy.position) & ACKED or self._collector.rules.clock_error_s:
            return
        held = Certain(copy.position, copy.number, holder)
        told: Facts = {
            "seq": facts["seq"],
            "epoch": facts["epoch"],
            "message_id": facts["message_id"],
            "subscriber": session.subscriber,
            "holder": holder.subscriber,
            "held": (copy.seq,),
            "held_epoch": copy.epoch,
        }
        due_t, proof = t + self._collector.rules.on_hold_s, (*witnesses, copy.number)
        self.splits.put_on_hold(Split(self._overlap, due_t, t, position, session, (held,), proof, told))

    def split_if_not_late(self, arrival: Arrival) -> None:
        """A delivery that explains a skip after what is held was sent after that: no late copy, but a split."""
        if self.owner is None or self.owner == arrival.track.session.subscriber:
            return
        scene = self._look(arrival)
        if scene.late and self._above_what_is_held(scene):
            self._hold_split(scene)

    def may_begin_anew(self, arrival: Arrival) -> bool:
        """Whether the key may have begun again with what comes no lower: it was lost with a stream before, or is another region's."""
        if was_sent_beside(self._log, arrival.position) and not self._subscription.parted.is_empty:
            return True
        return arrival.own > 0 and not arrival.new and changes_region(self._orders, self._log, arrival)  # each has its own run

    def begin_anew(self, arrival: Arrival) -> None:
        """The key began again: nobody certainly holds what stands there, or above, or where sessions race may stand above."""
        arrival.track.rewound_t = arrival.t
        for track in self._tracks:
            track.drop_from(arrival.position)
            if self._subscription.racing:
                track.drop_where(lambda held: may_stand_above(self._orders, self._log, held, arrival.position))

    # --- time and control ----------------------------------------------------------------------------------------------------

    def rest(self) -> None:
        """Nothing that was sent so far is under way any more."""
        self.acks.rest()
        self._breaks = ()

    def reset(self) -> None:
        """A control operation: all holds are gone and everything may have been released."""
        self.splits.reset()
        self.owner = None

    # --- the rows of the table -----------------------------------------------------------------------------------------------

    def _look(self, arrival: Arrival) -> Scene:
        subscriber = arrival.track.session.subscriber
        others = [track for track in self._tracks if track.session.subscriber != subscriber]
        held = self._certainly_held(others, arrival) if others else []
        now = arrival.t - self._collector.rules.clock_error_s
        perhaps = bool(held) or self._tracks.unsettled_until_t > now or (bool(others) and self._is_busy(others, now))
        scene = Scene(arrival, held, perhaps=perhaps, late=self._is_late_copy(arrival))
        if 0 < arrival.own < arrival.position and self._log.may_follow(arrival.position, arrival.own):
            scene.run_start, scene.run_start_t = arrival.track.run_start, arrival.track.run_start_t
        return scene

    def _is_busy(self, tracks: list[Track], now: float) -> bool:
        return any(track.busy_until_t > now for track in tracks)

    def _is_late_copy(self, arrival: Arrival) -> bool:
        """Whether the delivery may have been sent to its subscriber, on any of its streams, before the key moved away.

        If it was, then it was let go before the key moved: by a rewind to where the new period began, or by an acknowledgement of an
        earlier delivery. What a session delivered before a control operation had settled is forgotten, so its first delivery after
        that may continue anything.
        """
        rules, session = self._collector.rules, arrival.track.session
        sent_t = arrival.lo - rules.clock_error_s
        if any(one.explains(arrival, sent_t, self._orders, self._log) for one in self._breaks):
            return True
        if sent_t > self._start_t:
            return False
        if self.acks.may_have_ended(arrival.position, arrival.lo, self._start_number):
            return True
        for last in self._tracks.lasts_of(session.subscriber, arrival):
            if last and self._start_position <= max(last, arrival.position) and self._log.may_follow(arrival.position, last):
                return True
        if arrival.own:
            return False
        forgotten = session.opened_t < self._collector.grace_until_t or self._tracks.forgetful
        return (
            forgotten
            or self._subscription.last_closed_t >= continued_t(self._orders, self._log, rules, arrival) - rules.clock_error_s
        )

    def _late_while_held(self, scene: Scene) -> bool:
        return scene.late and scene.perhaps

    def _late(self, scene: Scene) -> bool:
        return scene.late

    def _in_an_earlier_run(self, scene: Scene) -> bool:
        return scene.run_start > 0 and scene.run_start_t + self._collector.rules.clock_error_s >= self._start_lo

    def _above_what_is_held(self, scene: Scene) -> bool:
        return bool(scene.below) and not scene.arrival.track.after_foreign

    def _at_or_below_what_is_held(self, scene: Scene) -> bool:
        return bool(scene.held) and not scene.below

    def _perhaps_held(self, scene: Scene) -> bool:
        return scene.perhaps

    def _nothing_held(self, scene: Scene) -> bool:
        return not scene.perhaps

    # --- what follows from them ----------------------------------------------------------------------------------------------

    def _doubt_late_copy(self, scene: Scene) -> bool:
        self._file(scene, LATE_COPY)
        return self._ignore_late_copy(scene)

    def _ignore_late_copy(self, scene: Scene) -> bool:
        self._contested = True
        return False

    def _doubt_order_of_runs(self, scene: Scene) -> bool:
        arrival = scene.arrival
        self._file(scene, EARLIER_RUN)
        self._count_doubtful_move()
        run_lo = max(scene.run_start_t - self._collector.rules.delivery_delay_max_s, arrival.track.session.opened_t)
        self._move(arrival, min(scene.run_start, arrival.position), run_lo)
        for track in self._tracks:
            track.drop_from(0)
        return False

    def _count_doubtful_move(self) -> None:
        """Only between streams is it a move: every pull response and push request is a subscriber of its own."""
        self._collector.counts.affinity_moves_outstanding_unknown += self._collector.rules.mode is Mode.STREAMING

    def _split(self, scene: Scene) -> bool:
        self._hold_split(scene, moved=self._collector.rules.mode is Mode.STREAMING)
        return self._move(scene.arrival, scene.arrival.position, scene.arrival.lo)

    def _hold_split(self, scene: Scene, *, moved: bool = False) -> None:
        arrival, due_t = scene.arrival, scene.arrival.t + self._collector.rules.on_hold_s
        proof, held = self._proof(scene), tuple(scene.below)
        self.splits.put_on_hold(
            Split(self._overlap, due_t, arrival.t, arrival.position, arrival.track.session, held, *proof, moved)
        )

    def _redelivered_early(self, scene: Scene) -> bool:
        """Or what is held elsewhere was: if that copy was sent after this one, nobody certainly holds this one any more."""
        self._file(scene, EARLY)
        self._collector.counts.early_redeliveries += 1
        self._count_doubtful_move()
        lowest = scene.held[0]
        certain = lowest.position > scene.arrival.position or lowest.overtook_t == LONG_AGO
        return self._move(scene.arrival, scene.arrival.position, scene.arrival.lo) and certain

    def _perhaps_released(self, scene: Scene) -> bool:
        self._file(scene, RELEASED)
        self._count_doubtful_move()
        position = 0 if scene.arrival.track.after_foreign else scene.arrival.position  # a run from who knows where
        return self._move(scene.arrival, position, scene.arrival.lo)

    def _idle_move(self, scene: Scene) -> bool:
        arrival = scene.arrival
        if self._collector.rules.mode is Mode.STREAMING:
            facts: Facts = {
                "seq": arrival.seq,
                "epoch": arrival.epoch,
                "subscriber": arrival.track.session.subscriber,
                "holder": self.owner or "",
            }
            self._collector.counts.affinity_moves_outstanding_no += 1
            self._collector.info(Kind.AFFINITY_MOVE, arrival.t, (self._start_number, arrival.number), facts)
        return self._move(arrival, arrival.position, arrival.lo)

    # --- the state -----------------------------------------------------------------------------------------------------------

    def _move(self, arrival: Arrival, position: int, lo: float) -> bool:
        """The key is now at the arrival's subscriber; its period began at `position`, not before `lo` and not after this delivery.

        What the others hold at or above `position` is dropped.
        """
        subscriber = arrival.track.session.subscriber
        for track in self._tracks if self.owner is not None else ():
            if track.session.subscriber != subscriber:
                track.drop_from(position)
        self.owner = subscriber
        self._contested = False
        self._start_position = position
        self._start_t = arrival.t
        self._start_lo = lo
        self._start_number = arrival.number
        return True

    def _resume(self, arrival: Arrival) -> None:
        """The holder is delivered to after what may have been a late copy elsewhere, or a move there: then it begins anew."""
        self._contested = False
        self._start_t, self._start_number = arrival.t, arrival.number
        self._start_position = min(self._start_position, arrival.position)

    # --- words ---------------------------------------------------------------------------------------------------------------

    @property
    def _overlap(self) -> Kind:
        return OVERLAP[self._collector.rules.mode]

    def _certainly_held(self, others: list[Track], arrival: Arrival) -> list[Certain]:
        """What others certainly hold when a delivery arrives: it came before by every clock, and its lease runs by every clock.

        Whatever the clocks say, the first delivery of a message comes before the first deliveries of all that must follow it.
        """
        eps = self._collector.rules.clock_error_s
        now = arrival.t + eps
        in_turn = arrival.new and arrival.proven
        held = []
        for track in others:
            if track.session.unseen or arrival.track.session.unseen:
                continue  # whose stream that is, is not on record
            if track.lowest_held(now, self._log.floor):
                shown = islice(track.held.items(), SEQS_SHOWN)
                held += [
                    Certain(
                        *(p, number, track.session, self._comes_first(p, arrival)),
                        *(overtook_t(self._collector.rules, t, arrival), self._left_out_t(p, t)),
                    )
                    for p, (number, t, until_t, _) in shown
                    if until_t > now
                    and not self._orders.has_expired(self._log.invoked_t(p), arrival.t)
                    and (self._sent_before(p, number, t, arrival) or (in_turn and self._came_first(p, number, arrival.position)))
                ]
        held.sort(key=lambda one: one.position)
        return held

    def _left_out_t(self, position: int, t: float) -> float:
        """From when on a run from a position need not bring what is held: since it was sent, if it had been acknowledged before."""
        return t - self._collector.rules.delivery_delay_max_s if self._log.flags(position) & ACKED else inf

    def _comes_first(self, position: int, arrival: Arrival) -> bool:
        """Whether a run from a position comes past it first: with a dead-letter policy it may leave out what was acknowledged."""
        left_out = self._collector.rules.dead_letter_max_attempts and self._log.flags(position) & ACKED
        return not left_out and certainly_before(self._orders, self._log, position, arrival)

    def _sent_before(self, position: int, number: int, t: float, arrival: Arrival) -> bool:
        """Whether a delivery was sent before another one; a copy may have overtaken a first delivery on its way."""
        eps = self._collector.rules.clock_error_s
        return t <= arrival.t - eps and (not arrival.new or number == self._log.number(position) or t + eps < arrival.lo)

    def _came_first(self, position: int, number: int, follower: int) -> bool:
        """Whether a delivery is the first of its message, and that must precede another one."""
        return number == self._log.number(position) and must_precede(self._orders, self._log, position, follower)

    def _file(self, scene: Scene, doubt: str) -> None:
        self._collector.violation(self._overlap, scene.arrival.t, *self._proof(scene), doubt)

    def _epochs_of(self, several: list[Certain], epoch: str) -> Facts:
        """What says of which epochs messages are, unless all are of the one given."""
        epochs = tuple(self._orders.epoch_name(self._log.epoch(held.position)) for held in several)
        return {"held_epochs": epochs} if any(one != epoch for one in epochs) else {}

    def _proof(self, scene: Scene) -> tuple[tuple[int, ...], Facts]:
        arrival, lowest = scene.arrival, scene.held[:SEQS_SHOWN]
        facts: dict[str, Fact] = {
            "seq": arrival.seq,
            "epoch": arrival.epoch,
            "message_id": arrival.message_id,
            "subscriber": arrival.track.session.subscriber,
            "holder": self.owner or "",
            "held": (),
        }
        if not lowest:
            return (self._start_number, arrival.number), facts
        facts["holder"] = lowest[0].session.subscriber
        facts["held"] = tuple(self._log.seq(held.position) for held in lowest)
        facts |= self._epochs_of(lowest, arrival.epoch)
        return (self._start_number, *(held.number for held in lowest[:5]), arrival.number), facts


TABLE: Final[tuple[tuple[Callable[[HolderCheck, Scene], bool], Callable[[HolderCheck, Scene], bool]], ...]] = (
    (HolderCheck._late_while_held, HolderCheck._doubt_late_copy),
    (HolderCheck._late, HolderCheck._ignore_late_copy),
    (HolderCheck._in_an_earlier_run, HolderCheck._doubt_order_of_runs),
    (HolderCheck._above_what_is_held, HolderCheck._split),
    (HolderCheck._at_or_below_what_is_held, HolderCheck._redelivered_early),
    (HolderCheck._perhaps_held, HolderCheck._perhaps_released),
    (HolderCheck._nothing_held, HolderCheck._idle_move),
)
"""The rows of the table at the head of this file, each with what follows from it."""
