"""What all keys of one subscription share: its rules, its sessions, and when a subscriber is there to deliver to."""

from __future__ import annotations

from math import inf

from prober.core.events import LONG_AGO, Closed, Opened
from prober.core.rules import Mode, Rules
from prober.core.sessions import Session

SESSIONS_KEPT = 4096
"""Sessions of a pull or push subscription known by name; the oldest are let go beyond that."""


class Subscription:
    """The sessions of one subscription.

    index           its place among the subscriptions of the topic.
    open            how many sessions are open.
    up_since_t      since when a subscriber is there: an open stream, or for pull and push the first session; `inf` if none is.
    last_closed_t   when a stream was last closed.
    settles_until_t when the last control operation has settled.
    seen            whether any event named the subscription.
    complete        whether every session was seen to open, so that no unknown one can deliver.
    """

    __slots__ = (
        "_sessions",
        "complete",
        "index",
        "last_closed_t",
        "name",
        "open",
        "rules",
        "seen",
        "settles_until_t",
        "shortest_deadline_s",
        "up_since_t",
    )

    def __init__(self, name: str, index: int, rules: Rules) -> None:
        self.name = name
        self.index = index
        self.rules = rules
        self.shortest_deadline_s = rules.shortest_deadline_s
        self.open = 0
        self.up_since_t = inf
        self.last_closed_t = LONG_AGO
        self.settles_until_t = LONG_AGO
        self.seen = False
        self.complete = True
        self._sessions: dict[str, Session] = {}

    def session(self, name: str, t: float) -> Session:
        """The session of that name; one that was never seen to open is taken to have been there all along."""
        session = self._sessions.get(name)
        if session is None:
            self.complete = False
            session = self._begin(name, name, LONG_AGO, t)
        return session

    def opened(self, event: Opened) -> None:
        """A session began; a name used again is a new session, and the old one is over."""
        if event.session in self._sessions:
            self._end(event.session, event.t)
        invoked_t = event.t if event.invoked_t is None else min(event.invoked_t, event.t)
        self._begin(event.session, event.subscriber, invoked_t, event.t)

    def closed(self, event: Closed) -> None:
        """The client noticed that a session is over."""
        self._end(event.session, event.t)

    def close_all(self, t: float) -> None:
        """Ends every session: the record has a hole, and what is open is not known."""
        self.complete = False
        for name in list(self._sessions):
            self._end(name, t)

    def is_alone(self, session: Session) -> bool:
        """Whether nothing but this stream can deliver. Never said of pull and push: a request may be on its way."""
        streaming = self.rules.mode is Mode.STREAMING
        return streaming and self.complete and self.open == 1 and session.closed_t == inf

    def _begin(self, name: str, subscriber: str, opened_t: float, t: float) -> Session:
        owner = subscriber if self.rules.mode is Mode.STREAMING else name
        session = self._sessions[name] = Session(name, owner, opened_t)
        if self.open == 0 and (self.up_since_t == inf or self.rules.mode is Mode.STREAMING):
            self.up_since_t = t
        self.open += 1
        self.seen = True
        if len(self._sessions) > SESSIONS_KEPT and self.rules.mode is not Mode.STREAMING:
            del self._sessions[next(iter(self._sessions))]
            self.open -= 1
        return session

    def _end(self, name: str, t: float) -> None:
        session = self._sessions.pop(name, None)
        if session is None:
            return
        session.closed_t = t
        self.open -= 1
        if self.rules.mode is Mode.STREAMING:
            self.last_closed_t = t
            if self.open == 0:
                self.up_since_t = inf
