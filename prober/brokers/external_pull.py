"""Consuming through the program of the external vantage: its streams, and the messages delivered on them."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import grpc

from prober.brokers.base import FlowControlSettings, Received, Tap
from prober.brokers.connection import session_name
from prober.brokers.external_process import CLOSE_TIMEOUT_S, Event, ExternalProcess, text_of
from prober.brokers.grpc_errors import error_of
from prober.clock import next_number, wall_s
from prober.errors import BrokerError

CUT: Final = "cut by the prober"


class ExternalSession:
    """One stream of the program's client, with the client's flow control; `subscriber` is the prober's name for it."""

    is_over = False
    """Never over: the client sends an answer by another stream or request if this one has ended."""

    def __init__(self, pull: ExternalPull, subscriber: str, flow: FlowControlSettings) -> None:
        self._pull, self.subscriber, self.flow = pull, subscriber, flow
        self.name = session_name(subscriber)

    def ack(self, received: Received) -> None:
        """Acknowledge through the client."""
        self._pull.answer("ack", received)

    def nack(self, received: Received) -> None:
        """Nack through the client."""
        self._pull.answer("nack", received)

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Modify the lease through the client, which may continue to extend it."""
        self._pull.modify_lease(received, seconds)

    def let_expire(self, received: Received) -> None:
        """Make the client forget the message."""
        self._pull.answer("drop", received)


class ExternalPull:
    """One subscription of the program's client, from its first stream to its last."""

    def __init__(
        self,
        process: ExternalProcess,
        subscription: str,
        subscriber: str,
        flow: FlowControlSettings,
        ack_deadline_s: int,
        tap: Tap,
    ) -> None:
        self._process, self._subscription, self._subscriber = process, subscription, subscriber
        self._flow, self._ack_deadline_s, self._tap = flow, ack_deadline_s, tap
        self._name = f"subscriber-{next_number()}"
        self._sessions: dict[str, ExternalSession] = {}
        self._open: dict[str, ExternalSession] = {}
        self._held: set[str] = set()
        self._error: tuple[str, str] | None = None
        self._asked = self._closed = self._cutting = False
        self._handlers: Mapping[str, Callable[[Event], None]] = {
            "opened": self._on_opened,
            "answered": self._on_answered,
            "delivered": self._on_delivered,
            "ack_confirmed": self._on_confirmed,
            "closed": self._on_closed,
            "ended": self._on_ended,
        }
        self.answered = asyncio.Event()
        """Set at the first answer of the service."""
        self.delivered = False
        """Whether a message was delivered."""
        self.ended = asyncio.Event()
        """Set when the client has stopped."""

    # ------------------------------------------------------------------------------------------ asked by the subscriber

    async def open(self) -> None:
        """Make the client subscribe. Raises BrokerError if the program cannot be used."""
        await self._process.ready()
        self._asked = True
        self._process.listen(self._name, self._on_event)
        command = {
            "command": "subscribe",
            "subscriber": self._name,
            "subscription": self._subscription,
            "messages_max": self._flow.messages_max,
            "bytes_max": self._flow.bytes_max,
            "ack_deadline_s": self._ack_deadline_s,
        }
        self._process.send(command)

    async def cut(self) -> None:
        """Cut the open streams; the client opens others."""
        if self._open:
            self._cutting = True
            self._process.send({"command": "break", "subscriber": self._name})

    def failure(self, doing: str) -> BrokerError:
        """Return the reason why the client stopped."""
        if self._error is None:
            return BrokerError(f"{doing}: {self._process.failure or 'the external client gave up'}")
        code, reason = self._error
        return error_of(grpc.StatusCode.__members__.get(code, grpc.StatusCode.UNKNOWN), reason, doing)

    async def close(self) -> None:
        """End the subscription, and report all sessions as closed."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._asked and self._process.send({"command": "unsubscribe", "subscriber": self._name}):
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_TIMEOUT_S):
                        await self.ended.wait()
        finally:
            self._process.forget(self._name)
            self._close_all("cancelled")

    # ------------------------------------------------------------------------------------------ asked by sessions

    def answer(self, command: str, received: Received) -> None:
        """Answer a message once; ignore messages already answered, or of a closed subscription."""
        if received.ack_id in self._held:
            self._held.discard(received.ack_id)
            self._process.send({"command": command, "subscriber": self._name, "ack_id": received.ack_id})

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Modify the lease of an unanswered message."""
        if received.ack_id in self._held:
            command = {"command": "modify_lease", "subscriber": self._name, "ack_id": received.ack_id, "seconds": seconds}
            self._process.send(command)

    # ------------------------------------------------------------------------------------------ events of the program

    def _on_event(self, event: Event | None) -> None:
        if event is None:
            self._close_all(self._process.failure)
            self.ended.set()
            return
        self._handlers[event["event"]](event)

    def _on_ended(self, event: Event) -> None:
        if event.get("code"):
            self._error = (text_of(event, "code"), text_of(event, "reason"))
        self._close_all(str(event.get("reason", "ended")))
        self.ended.set()

    def _on_answered(self, _event: Event) -> None:
        self.answered.set()

    def _on_closed(self, event: Event) -> None:
        if (session := self._open.pop(event["session"], None)) is not None:
            reason, self._cutting = CUT if self._cutting else text_of(event, "reason"), False
            self._tap.closed(session, reason)

    def _on_confirmed(self, event: Event) -> None:
        """Report a confirmation, unless this subscription is closed: the tap outlives it."""
        if not self._closed:
            self._tap.ack_confirmed(self._sessions[event["session"]], text_of(event, "message_id"))

    def _on_opened(self, event: Event) -> None:
        """Report a new session. The program runs on this machine, so both share the wall clock."""
        name = text_of(event, "session")
        if name in self._sessions:
            raise ValueError(f"session {name} was opened before")
        asked_ago_s = max(0.0, wall_s() - float(event["asked_at"]))
        if not self._closed:
            self._sessions[name] = self._open[name] = session = ExternalSession(self, self._subscriber, self._flow)
            self._tap.opened(session, asyncio.get_running_loop().time() - asked_ago_s)

    def _on_delivered(self, event: Event) -> None:
        if self._closed:
            return
        session = self._sessions[event["session"]]
        publish_time = event.get("publish_time")
        received = Received(
            text_of(event, "message_id"),
            text_of(event, "ack_id"),
            text_of(event, "ordering_key"),
            b64decode(text_of(event, "data"), validate=True),
            {str(name): str(value) for name, value in event["attributes"].items()},
            int(event.get("delivery_attempt") or 0),
            None if publish_time is None else int(publish_time),
        )
        self.delivered = True
        self.answered.set()
        self._held.add(received.ack_id)
        self._tap.received(session, received)

    def _close_all(self, reason: str) -> None:
        sessions, self._open = self._open, {}
        self._held.clear()
        for session in sessions.values():
            self._tap.closed(session, reason)
