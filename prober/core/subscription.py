"""One subscription: its sessions, the messages possibly lost with them, and its control operations. Its state concerns every key."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Final

from prober.core.clocks import Clocks
from prober.core.events import LONG_AGO, Closed, Opened
from prober.core.facts import Delivery, Grace, Loss, Session
from prober.core.opportunities import SubscriptionOpportunities
from prober.core.rules import Mode, Rules

SESSIONS_KEPT: Final = 4096
"""Number of remembered open sessions, and of lost ones; beyond that the oldest are forgotten."""
GRACE_KEPT: Final = 64
SEEK: Final = "a seek or purge"
FILTER_CHANGE: Final = "a change of the filter"
HOLE: Final = "a hole in the record"


class Subscription:
    """The sessions, losses and control operations of a subscription.

    index       its place among the subscriptions of the topic.
    sessions    the open ones, by name.
    losses      possible losses, in the order in which they were noticed.
    lost_upto_t losses before then are forgotten.
    graces      control operations and holes.
    first_seen_t    the time of its first session.
    is_plain    whether it has neither a filter nor exactly-once delivery.
    unseen      whether sessions may be open that are not on record yet.
    has_one_stream  whether, while its only stream is open, no earlier send can arrive after a delivery on it.
    over        whether the record is over: a pull that has no answer by now may have had one that was lost.
    """

    def __init__(self, name: str, index: int, rules: Rules) -> None:
        self.name = name
        self.index: int = index
        self.rules = rules
        self.streaming = rules.mode is Mode.STREAMING
        self.is_plain = not (rules.filtered or rules.exactly_once)
        self.sessions: dict[str, Session] = {}
        self.losses: deque[Loss] = deque(maxlen=SESSIONS_KEPT)
        self.ended: deque[Session] = deque(maxlen=SESSIONS_KEPT)
        self.lost_upto_t = LONG_AGO
        self.graces: list[Grace] = []
        self.first_seen_t = inf
        self.unseen = self.has_one_stream = False
        self.over = False
        self.clocks = Clocks(self)
        self.opportunities = SubscriptionOpportunities(rules)

    # --- sessions ------------------------------------------------------------------------------------------------------------

    def opened(self, event: Opened) -> None:
        """Note the start of a session."""
        opened_t = event.t if event.invoked_t is None else event.invoked_t
        if opened_t < event.t and self.rules.mode is Mode.PULL:
            self.unseen = True  # other pulls may have begun by now that are recorded with their answer
        if self.rules.mode is Mode.PUSH:
            opened_t = LONG_AGO  # the request was sent before it was received
        session = self._begin(Session(event.session, event.subscriber if self.streaming else event.session, opened_t), event.t)
        session.max_messages = event.max_outstanding_messages or inf
        session.max_bytes = event.max_outstanding_bytes or inf
        session.is_limited = min(session.max_messages, session.max_bytes) < inf

    def session(self, name: str, t: float) -> Session:
        """Return the session of a delivery; a stream without a recorded opening may belong to any subscriber."""
        session = self.sessions.get(name)
        if session is None:
            self.unseen = True
            session = self._begin(Session(name, None if self.streaming else name, LONG_AGO), t)
        return session

    def closed(self, event: Closed) -> None:
        """Note the end of a session."""
        session = self.sessions.pop(event.session, None)
        self.unseen = self.unseen or session is None  # streams were opened before the record
        self._count_streams()
        if session is None:
            if not self.streaming:
                return
            session = Session(event.session, None, LONG_AGO)
        session.closed_t, session.lost = event.t, event.lost
        rules = self.rules
        if rules.mode is not Mode.PUSH:
            self.ended.append(session)  # when push might deliver does not depend on its requests
        if self.streaming:
            since_t = event.t - rules.close_detection_max_s - rules.delivery_delay_max_s
            self._lose(Loss(session, max(session.sent_t, since_t), event.t))
        elif event.lost and rules.mode is Mode.PULL:
            self._lose(Loss(session, session.opened_t, event.t))

    def sent_from_t(self, now: float) -> float:
        """Return the time after which every later delivery was sent, as far as its sessions show."""
        if self.rules.mode is not Mode.PULL or self.unseen:
            return LONG_AGO
        return min((one.opened_t for one in self.sessions.values() if one.answered_t == inf), default=now)

    def _begin(self, session: Session, t: float) -> Session:
        self.sessions[session.name] = session
        self.first_seen_t = min(self.first_seen_t, t)
        if len(self.sessions) > SESSIONS_KEPT and not self.streaming:
            del self.sessions[next(iter(self.sessions))]
        self._count_streams()
        return session

    def _count_streams(self) -> None:
        self.has_one_stream = len(self.sessions) == 1 and self.streaming and not self.unseen and not self.rules.clock_error_s

    def _lose(self, loss: Loss) -> None:
        if len(self.losses) == self.losses.maxlen:
            self.lost_upto_t = self.losses[0].until_t
        self.losses.append(loss)

    # --- what may have been lost: 6.3 ----------------------------------------------------------------------------------------

    def may_have_lost(self, since_t: float, until_t: float, besides: Session | None = None) -> bool:
        """Return whether a message sent between two times may have been lost on another session than `besides`."""
        eps = self.rules.clock_error_s
        if since_t - eps <= self.lost_upto_t:
            return True
        for loss in reversed(self.losses):
            if loss.until_t + eps < since_t and self.streaming:
                return False
            if loss.session is not besides and loss.since_t - eps <= until_t and since_t - eps <= loss.until_t:
                return True
        return self.over and self.loss_may_show(until_t)

    def loss_may_show(self, t: float) -> bool:
        """Return whether a pull that had started by `t` has no answer yet: it may prove to be lost."""
        if self.rules.mode is not Mode.PULL:
            return False
        return any(one.opened_t <= t + self.rules.clock_error_s and one.answered_t == inf for one in self.sessions.values())

    def may_explain(self, one: Delivery) -> bool:
        """Return whether an event that is not in the record yet may explain a delivery: an earlier send, or the loss of a session."""
        if not self.streaming:
            return self.rules.mode is Mode.PUSH or self.unseen or self.loss_may_show(one.t)
        others = (session for session in self.sessions.values() if session is not one.session)
        return self.unseen or any(session.opened_t <= one.t + self.rules.clock_error_s for session in others)

    def may_have_lost_beside(self, invoked_t: float, one: Delivery) -> bool:
        """Return whether a message may have been sent before a delivery on another stream of the same subscriber, which broke.

        With exactly-once delivery it stays leased until its deadline, and later messages go to the same subscriber meanwhile.
        """
        if not self.streaming:
            return False
        rules = self.rules
        eps = rules.clock_error_s
        leased_s = rules.ack_deadline_s if rules.exactly_once else 0.0
        sent_t = max(invoked_t, one.earliest_t - leased_s) - eps
        return any(
            loss.session is not one.session
            and _may_be_of_one(loss.session, one.session)
            and loss.since_t <= one.t + eps
            and sent_t <= loss.until_t
            for loss in self.losses
        )

    def may_have_lost_one(self, invoked_t: float, one: Delivery) -> bool:
        """Return whether a message may have been sent before, on another stream of the same subscriber, which broke."""
        since_t = invoked_t - self.rules.clock_error_s
        lost = (loss.session for loss in self.losses if loss.until_t >= since_t)
        return self.streaming and any(session is not one.session and _may_be_of_one(session, one.session) for session in lost)

    def may_have_handed_over(self, held: Delivery, session: Session, by_t: float) -> bool:
        """7.4: return whether a newer stream of the holder may have taken over a held message, and ended before a send."""
        if not self.streaming or session is held.session:
            return False  # the old stream is sent nothing more
        eps, ended_t = self.rules.clock_error_s, by_t + self.rules.close_detection_max_s
        first_t, last_t = held.earliest_t - eps, held.session.closed_t + eps
        newer = (loss for loss in self.losses if loss.until_t <= ended_t and first_t < loss.session.opened_t <= last_t)
        return any(loss.session is not held.session and _may_be_of_one(loss.session, held.session) for loss in newer)

    def may_have_dead_lettered(self, attempts: int, invoked_t: float, now: float) -> bool:
        """6.4: return whether the dead-letter policy may have removed a message after this number of recorded attempts."""
        most = self.rules.dead_letter_max_attempts
        return most > 0 and attempts + self._unseen_attempts(invoked_t, now) >= most - 1

    def _unseen_attempts(self, since_t: float, now: float) -> float:
        """Return the most unobserved attempts to deliver a message published at `since_t`.

        Infinite by push: a request may be lost anywhere.
        """
        rules = self.rules
        since_t -= rules.clock_error_s
        if rules.mode is Mode.PUSH or since_t <= self.lost_upto_t:
            return inf
        gone_s = rules.close_detection_max_s if self.streaming else 0.0  # the service may send for so long into a closed stream
        spans = [(loss.since_t, loss.until_t + gone_s) for loss in self.losses if loss.until_t + gone_s >= since_t]
        if not self.streaming:
            waiting = (one.opened_t for one in self.sessions.values() if one.answered_t == inf)
            spans.append((since_t if self.unseen else min(waiting, default=inf), now))
        lasted_s = [until_t - max(begin_t, since_t) for begin_t, until_t in spans if begin_t <= until_t]
        if inf in lasted_s or (lasted_s and rules.ack_deadline_s <= 0.0):
            return inf
        return sum(1 + seconds // rules.ack_deadline_s for seconds in lasted_s)

    # --- control operations --------------------------------------------------------------------------------------------------

    def settle(self, start_t: float, until_t: float, cause: str, since_t: float = inf) -> Grace:
        """Note a control operation, recorded at `start_t`; `since_t`: messages published since then are to be redelivered.

        That is certain only if no earlier operation settles later.
        """
        start_t -= self.rules.clock_error_s
        if any(grace.until_t > until_t for grace in self.graces):
            since_t = inf
        return self._grace(Grace(start_t, start_t, until_t, until_t, cause, since_t=since_t))

    def interrupted(self, t: float) -> Grace:
        """Note a hole in the record that ends at `t`: sessions from before it may have delivered unseen."""
        eps = self.rules.clock_error_s
        return self._grace(Grace(LONG_AGO, t - eps, t, t + eps, HOLE, is_hole=True))

    def _grace(self, grace: Grace) -> Grace:
        self.graces.append(grace)
        if len(self.graces) > GRACE_KEPT:
            merged, *rest = self.graces
            rest[0].start_t, rest[0].begun_t = min(rest[0].start_t, merged.start_t), min(rest[0].begun_t, merged.begun_t)
            rest[0].published_t = max(rest[0].published_t, merged.published_t)
            rest[0].since_t = inf
            self.graces = rest
        return grace

    def grace_of(self, one: Delivery) -> Grace | None:
        """Return the grace period in which a delivery may have been sent: it is not verified (section 10)."""
        for grace in reversed(self.graces):
            if grace.is_hole:
                before = one.t <= grace.until_t
                if before or (one.session.opened_t < grace.until_t and min(one.earliest_t, self._published(one)) <= grace.until_t):
                    return grace
            elif grace.start_t <= one.t and one.earliest_t <= grace.until_t:
                return grace
        return None

    def showed(self, one: Delivery) -> None:
        """Note a delivery sent after a hole of the record: its session is still open (section 10)."""
        for grace in self.graces:
            if grace.is_hole and grace.shown_t == inf and one.earliest_t > grace.published_t:
                grace.shown_t = one.earliest_t

    def may_have_been_acked_unseen(self, invoked_t: float) -> bool:
        """Return whether a message published at `invoked_t` may have been acknowledged in a hole of the record."""
        return any(grace.is_hole and invoked_t <= grace.published_t for grace in self.graces)

    def may_have_come_unseen(self, invoked_t: float, t: float) -> Grace | None:
        """Return a grace period in which a message published at `invoked_t` may have been delivered, or passed over, before `t`."""
        for grace in reversed(self.graces):
            if grace.start_t <= t and invoked_t <= grace.published_t:
                return grace
        return None

    def control_since(self, invoked_t: float) -> Grace | None:
        """Return the last control operation, if it had not settled when a message was published."""
        last = next((grace for grace in reversed(self.graces) if not grace.is_hole), None)
        return last if last is not None and invoked_t <= last.published_t else None

    def stays(self, one: Delivery) -> bool:
        """Return whether a delivery was sent after every control operation had settled."""
        last = next((grace for grace in reversed(self.graces) if not grace.is_hole), None)
        return last is not None and one.earliest_t > last.until_t

    def _published(self, one: Delivery) -> float:
        return LONG_AGO if one.publication is None else one.publication.invoked_t


def _may_be_of_one(session: Session, other: Session) -> bool:
    """Return whether two streams may have the same subscriber: one without a recorded opening may belong to any."""
    return session.owner is None or other.owner is None or session.owner == other.owner
