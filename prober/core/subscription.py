"""What all keys of one subscription share: its rules, its sessions, who is there to deliver to, and what may delay a key.

Four questions are answered here, for every key alike:

* Is anybody there to deliver to, and since when? (`waiting`, `presence`)
* May something have been sent and lost, because a stream broke or a pull ended without its answer? (`may_have_lost`)
* Can another session of the same subscriber race this one, or another recorder's clock be ahead? (`race_s`)
* Is another key held, which may delay this one? (`neighbours`)
"""

from __future__ import annotations

from math import inf
from typing import Final

from prober.core.confirmations import Confirmations
from prober.core.events import LONG_AGO, Closed, Opened
from prober.core.losses import Losses
from prober.core.neighbours import Neighbours
from prober.core.parted import Parted
from prober.core.presence import Presence
from prober.core.rules import Assumptions, Mode, Rules
from prober.core.sessions import Session
from prober.core.waiting import OVERHEAD_BYTES, FlowControl, UnseenFlowControl, WaitingTime, flow_of

SESSIONS_KEPT: Final = 4096
"""Sessions of a pull or push subscription known by name; the oldest are let go beyond that."""
OVER_KEPT: Final = 1024
"""Sessions that are over remembered by name where deliveries race: some of what came on them may be judged only now."""

CHANCES_KEPT: Final = 16
"""Into how many counts the chances to see a split are divided that a stream which is over takes back."""

SAMPLES_PER_DEADLINE: Final = 32


class Subscription:
    """The sessions of one subscription.

    index           its place among the subscriptions of the topic.
    open            how many sessions are open.
    presence        since when somebody is there to deliver to, and who came.
    waiting         how long somebody was there to deliver to.
    neighbours      which keys are held.
    last_closed_t   when a stream was last closed.
    settles_until_t when the last control operation has settled, and `settling` what that was.
    seen            whether any event named the subscription.
    first_seen_t    when its first session was seen, `inf` before.
    complete        whether every session was seen to open, so that no unknown one can deliver.
    holed           whether the record had a hole.
    sessions        those that are open, by name.
    lost_until_t    until when messages of a lost pull may be leased.
    losses          which streams broke and pulls were lost so far, countless where pulls are recorded only once they are answered.
    parted          which streams broke beside others of their subscriber.
    racing          whether deliveries may overtake each other on several sessions.
    unawaited_t     until when nobody knew that they may, so that nothing was waited for.
    """

    __slots__ = (
        "_chances",
        "_open_streams",
        "_over",
        "_unanswered",
        "ack_settled_s",
        "assumptions",
        "complete",
        "confirmations",
        "first_seen_t",
        "holed",
        "index",
        "last_closed_t",
        "losses",
        "lost_until_t",
        "name",
        "neighbours",
        "open",
        "parted",
        "presence",
        "racing",
        "rules",
        "seen",
        "sessions",
        "settles_until_t",
        "settling",
        "shortest_deadline_s",
        "streaming",
        "unawaited_t",
        "waiting",
    )

    def __init__(self, name: str, index: int, rules: Rules) -> None:
        self.name = name
        self.index = index
        self.rules = rules
        self.assumptions = Assumptions(rules)
        self.streaming = rules.mode is Mode.STREAMING
        self.shortest_deadline_s = rules.shortest_deadline_s
        self.ack_settled_s = rules.ack_settled_s
        self.open = 0
        self.parted = Parted(rules)
        self.neighbours = Neighbours(rules)
        self.confirmations = Confirmations(rules)
        step_s = min(rules.shortest_deadline_s, 3600.0) / SAMPLES_PER_DEADLINE
        self.waiting = WaitingTime(step_s)
        self.presence = Presence(rules, step_s)
        self.last_closed_t = LONG_AGO
        self.settles_until_t = LONG_AGO
        self.settling = ""
        self.seen = False
        self.first_seen_t = inf
        self.complete = True
        self.holed = False
        self.losses = Losses(rules.clock_error_s)
        self.lost_until_t = LONG_AGO
        self.racing = rules.clock_error_s > 0 or self.streaming  # until a stream is seen to open, any may deliver
        self.unawaited_t = LONG_AGO
        self.sessions: dict[str, Session] = {}
        self._over: dict[str, Session] = {}
        self._open_streams: dict[str, int] = {}
        self._unanswered: dict[str, float] = {}
        self._chances: list[tuple[float, int]] = []

    # --- sessions ------------------------------------------------------------------------------------------------------------

    def session(self, name: str, t: float) -> Session:
        """The session of that name, on which something was delivered at `t`.

        One that was never seen to open is taken to have been there all along.
        """
        session = self.sessions.get(name) or self._over.get(name)
        if session is None or session.closed_t < t:
            if self.streaming and self.seen and self.complete:
                self.unawaited_t = t
            self.complete = False
            session = self._begin_unseen(name, t)
        if not session.answered:
            self._answer(session, t)
        return session

    def opened(self, event: Opened) -> int:
        """A session began; a name used again is a new session, and the old one is over.

        Returns how many confirmed acknowledgements became certain, since nothing that was sent before can come.
        """
        certain = 0 if self.open or self.rules.clock_error_s else self.confirmations.take_all()
        if event.session in self.sessions:
            self._end(event.session, event.t, lost=False)
        if not self.seen and self.complete:
            self.racing = self.rules.clock_error_s > 0
        invoked_t = event.t if event.invoked_t is None else min(event.invoked_t, event.t)
        if self.rules.mode is Mode.PULL and invoked_t < event.t:
            self.losses.count = inf
        if self.rules.mode is Mode.PUSH:
            invoked_t -= self.rules.delivery_delay_max_s  # it begins when it arrives, and was sent before
        subscriber = event.subscriber if self.streaming else event.session
        self._begin(Session(event.session, subscriber, invoked_t, flow_of(event)), event.t)
        self.presence.opened(subscriber, event.t)
        return certain

    def closed(self, event: Closed) -> int:
        """The client noticed that a session is over. Returns how many chances to see a split that takes back."""
        self.complete = self.complete and self.seen
        if (self.streaming or event.lost) and not (event.session in self.sessions or event.session in self._over):
            # It was opened before the record, or in a hole of it, and may have carried messages all the same.
            self._begin_unseen(event.session, event.t)
        self._end(event.session, event.t, lost=event.lost)
        doubtful_t = event.t - self.rules.close_detection_max_s - self.rules.clock_error_s
        taken_back = sum(count for until_t, count in self._chances if until_t >= doubtful_t)
        self._chances = []
        return taken_back

    def note_chance(self, t: float) -> None:
        """A split of a key could have been seen. It would be in doubt if a stream was over soon after."""
        step_s = self.rules.close_detection_max_s / CHANCES_KEPT
        if not step_s:
            return
        until_t = (t // step_s + 1.0) * step_s if step_s < inf else inf  # the same whatever other keys do
        chances = self._chances
        if chances and chances[-1][0] == until_t:
            chances[-1] = (until_t, chances[-1][1] + 1)
            return
        chances.append((until_t, 1))
        if len(chances) > CHANCES_KEPT + 1:
            del chances[0]

    def close_all(self, t: float) -> None:
        """Ends every session: the record has a hole, and what is open is not known."""
        self.complete = False
        self.holed = True
        for name in list(self.sessions):
            self._end(name, t, lost=True)
        self._over.clear()

    def is_alone(self, session: Session) -> bool:
        """Whether nothing but this stream can deliver. Never said of pull and push: a request may be on its way."""
        return self.streaming and self.complete and self.open == 1 and session.closed_t == inf and not self.rules.clock_error_s

    @property
    def shared(self) -> bool:
        """Whether several subscribers have streams open."""
        return len(self._open_streams) > 1

    @property
    def there_since_t(self) -> float:
        """Since when the subscription has certainly been there: long ago if it is older than what was published, `inf` if unseen."""
        return LONG_AGO if self.rules.subscription_predates_first_publish else self.first_seen_t + self.rules.clock_error_s

    @property
    def could_take(self) -> bool:
        """Whether the service could deliver right now: a pull waits. Push requests it sends when it likes."""
        return self.rules.mode is Mode.PUSH or bool(self._unanswered)

    def race_s(self, session: Session) -> float:
        """By how much a delivery on this session may have overtaken one that was sent before it on another, in seconds.

        Streams of one subscriber are read side by side, so the delays of delivery do not cancel; and the clocks of two recorders may
        differ.
        """
        rules = self.rules
        unknown = not self.complete  # a stream that was not seen to open may be anybody's
        over = session.closed_t < inf  # what comes after that came beside another one
        if self.streaming and (unknown or over or self._open_streams.get(session.subscriber, 0) > 1):
            return rules.delivery_delay_max_s + rules.clock_error_s
        return rules.clock_error_s

    def went_with_another(self, session: Session, until_t: float) -> bool:
        """Whether what was held on a stream that was over by then may have gone with a later one of its subscriber.

        A client opens a stream while it still reads the old one. Then the service moves what is held there, and the new one may break.
        """
        return session.closed_t <= until_t and any(
            session.opened_t < other.opened_t <= session.closed_t and other.subscriber == session.subscriber
            for other in self._over.values()
            if other.closed_t <= until_t
        )

    @property
    def race_max_s(self) -> float:
        """The most that this can be on any session, at any time."""
        return self.rules.clock_error_s + (self.rules.delivery_delay_max_s if self.streaming else 0.0)

    def _begin(self, session: Session, t: float) -> Session:
        self.sessions[session.name] = session
        self._over.pop(session.name, None)
        self.presence.came(t)
        self.open += 1
        self.seen = True
        self.first_seen_t = min(self.first_seen_t, t)
        if self.streaming:
            streams = self._open_streams[session.subscriber] = self._open_streams.get(session.subscriber, 0) + 1
            self.racing = self.racing or streams > 1 or not self.complete
        elif self.rules.mode is Mode.PULL:
            self._unanswered[session.name] = session.opened_t
        if len(self.sessions) > SESSIONS_KEPT and not self.streaming:
            self._end(next(iter(self.sessions)), t, lost=False)
        self.waiting.start(t)
        return session

    def _begin_unseen(self, name: str, t: float) -> Session:
        flow = UnseenFlowControl() if self.streaming else None
        return self._begin(Session(name, name, LONG_AGO, flow, unseen=True), t)

    def _end(self, name: str, t: float, *, lost: bool) -> None:
        session = self.sessions.pop(name, None)
        if session is None:
            return
        session.closed_t = t
        # With exactly-once delivery the next stream goes on behind what is lost with this one: `parted`.
        self.racing = self.racing or (self.streaming and self.rules.exactly_once)
        if self.racing:
            self._over.pop(name, None)
            self._over[name] = session
            if len(self._over) > OVER_KEPT:
                del self._over[next(iter(self._over))]
        self.open -= 1
        if self.streaming:
            self._end_stream(session, t)
        elif lost and not session.answered and self.rules.mode is Mode.PULL:
            self.losses.add(session.opened_t, t)
            self.lost_until_t = t + self.rules.ack_deadline_s + self.rules.delivery_delay_max_s
        self._answer(session, t)

    def _end_stream(self, session: Session, t: float) -> None:
        self.last_closed_t = t
        if session.flow is not None:
            for flow in self._heirs(session):
                flow.inherit(session.flow)
        self.losses.add(max(session.opened_t, t - self.rules.close_detection_max_s - self.rules.delivery_delay_max_s), t)
        left = self._open_streams[session.subscriber] - 1
        self.parted.add(session, beside=left > 0 or (self.open > 0 and not self.complete))
        if left:
            self._open_streams[session.subscriber] = left
        else:
            del self._open_streams[session.subscriber]
        self.presence.lost(t, last=self.open == 0)
        if self.open == 0:
            self.waiting.stop(t)
        else:
            self.flow_changed(t)

    def _answer(self, session: Session, t: float) -> None:
        session.answered = True
        if self.rules.mode is Mode.PULL:
            self._unanswered.pop(session.name, None)
            if not self._unanswered:
                self.waiting.stop(t)

    def settle(self, until_t: float, cause: str) -> None:
        """A control operation on the subscription; of several the one that lasts longest counts."""
        if until_t > self.settles_until_t:
            self.settles_until_t = until_t
            self.settling = cause

    def take(self, session: Session, token: int, size: float, t: float, until_t: float) -> None:
        """A message with that much data was delivered: it uses up flow control until it is answered, at the latest until `until_t`."""
        if session.flow is not None:
            session.flow.take(token, size + OVERHEAD_BYTES, until_t)
            self.flow_changed(t)

    def release(self, session: str, token: int, t: float) -> None:
        """A message is answered: it does not use up the flow control any more."""
        for flow in self._flows_of(session):
            flow.release(token, t + self.ack_settled_s)
            self.flow_changed(t)

    def extend(self, session: str, token: int, leased_until_t: float) -> None:
        """The lease of a message was extended."""
        for flow in self._flows_of(session):
            flow.extend(token, leased_until_t)

    def _flows_of(self, name: str) -> list[FlowControl]:
        """The flow control that a message which came on a session may use up: of a stream that is over also that of its heirs."""
        session = self.sessions.get(name) or self._over.get(name)
        if session is None or session.flow is None:
            return []
        return [session.flow] if session.closed_t == inf else self._heirs(session)

    def _heirs(self, session: Session) -> list[FlowControl]:
        """The flow control of the open streams of the same subscriber."""
        alike = (other.flow for other in self.sessions.values() if other.subscriber == session.subscriber)
        return [flow for flow in alike if flow is not None]

    # --- who is there --------------------------------------------------------------------------------------------------------

    def flow_changed(self, t: float) -> None:
        """The flow control of a stream was used up, or has room again, or may have since."""
        if not self.streaming:
            return
        flows = (session.flow for session in self.sessions.values())
        room_t = min((LONG_AGO if flow is None else flow.used_up_until_t() for flow in flows), default=inf)
        if room_t <= t:
            self.waiting.start(room_t)
        else:
            self.waiting.stop(t)

    def used_up_until_t(self, subscriber: str) -> float:
        """Until when no stream of a subscriber has room, as things are; long ago if one has."""
        flows = [session.flow for session in self.sessions.values() if session.subscriber == subscriber]
        return min([LONG_AGO if flow is None else flow.used_up_until_t() for flow in flows], default=LONG_AGO)

    # --- what may have been lost ---------------------------------------------------------------------------------------------

    @property
    def losses_max(self) -> float:
        """How many losses there may have been so far: a push request that did not arrive is not on record, nor is a lost pull yet."""
        return inf if self.rules.mode is Mode.PUSH else self.losses.count + len(self._unanswered)

    def may_have_lost(self, since_t: float, until_t: float) -> bool:
        """Whether something may have been sent between these times and lost, by all that is known now."""
        return self.losses.may_have_taken(since_t, until_t)

    def is_held_elsewhere(self, key: str, since_t: float, until_t: float) -> bool:
        """Whether other keys were held all the time between two moments, by all that is known.

        What may have been sent and lost meanwhile was to be sent again only when its lease was over, and a key whose acknowledgement
        was lost is held until then: so others count that were held by that time.
        """
        lease_s = self.rules.ack_deadline_s + self.rules.delivery_delay_max_s
        over = (over_t + lease_s for over_t in self.losses.ends_since(since_t))
        begun_t = max([since_t, *(t for t in over if t < until_t)])
        return self.neighbours.kept_until_t(key, self.neighbours.leased_until_t(key, begun_t), until_t) == until_t

    def may_yet_have_lost(self, since_t: float, until_t: float) -> bool:
        """The same, by what may yet turn out: the answer of a pull may have been lost, and of a lost push request nobody ever hears."""
        if self.rules.mode is Mode.PUSH or self.losses.count == inf:
            return True
        return bool(self._unanswered) or self.may_have_lost(since_t, until_t)

    def parting_shows_t(self, t: float) -> float:
        """Until when it may turn out that a stream broke at `t` beside another of its subscriber; that time itself where there is none."""
        paired = self.open > (len(self._open_streams) if self.complete else 1) or t <= self.parted.paired_until_t
        return t + (self.rules.close_detection_max_s + self.race_max_s if self.streaming and paired else 0.0)

    def loss_may_show(self, t: float, now: float) -> bool:
        """Whether it may still turn out that something sent up to `t` was lost: a stream looks open, or a pull still waits."""
        if self.streaming:
            return now <= t + self.rules.close_detection_max_s + self.rules.delivery_delay_max_s + self.rules.clock_error_s
        return bool(self._unanswered) and next(iter(self._unanswered.values())) <= t
