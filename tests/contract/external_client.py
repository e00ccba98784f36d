"""A small program for the external vantage: the protocol of docs/external-clients.md on the adapter for the wire.

Messages of a key are published one after the other, as a client library does. `--fault NAME` makes it misbehave.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from prober.brokers.base import (
    Broker,
    BrokerSession,
    Confirmed,
    FlowControlSettings,
    Outgoing,
    Publisher,
    Received,
    Rejected,
    Subscriber,
)
from prober.brokers.endpoint import Endpoint
from prober.brokers.wire import WireBroker
from prober.clock import wall_s
from prober.errors import BrokerError, NotThere, PermissionRefused

PUBLISH_TIMEOUT_S = 60.0
CODES: dict[type[BrokerError], str] = {NotThere: "NOT_FOUND", PermissionRefused: "PERMISSION_DENIED"}
FAULT = sys.argv[2] if sys.argv[1:2] == ["--fault"] else ""


def emit(event: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Publishing:
    """Publishes one message of a key at a time."""

    def __init__(self, name: str, publisher: Publisher) -> None:
        self.name, self.publisher = name, publisher
        self._turns: dict[str, asyncio.Lock] = {}

    async def publish(self, command: Mapping[str, Any]) -> None:
        message = Outgoing(command["ordering_key"], b64decode(command["data"]), command["attributes"])
        async with self._turns.setdefault(message.ordering_key, asyncio.Lock()):
            (outcome,) = await self.publisher.publish([message], PUBLISH_TIMEOUT_S)
        event: dict[str, object] = {"publisher": self.name, "id": command["id"]}
        if isinstance(outcome, Confirmed):
            emit({**event, "event": "published", "message_id": outcome.message_id})
        else:
            kind = "publish_failed" if isinstance(outcome, Rejected) else "publish_unknown"
            emit({**event, "event": kind, "reason": outcome.reason})


class Subscribing:
    """Passes on what the adapter reports. The wire names each stream anew."""

    def __init__(self, name: str, subscriber: Subscriber) -> None:
        self.name, self.subscriber = name, subscriber
        self.held: dict[str, tuple[BrokerSession, Received]] = {}
        self.delivered = 0
        self.late: tuple[BrokerSession, Received] | None = None

    async def run(self) -> None:
        try:
            await self.subscriber.start(self)
            self.emit("answered")
        except BrokerError as error:
            self.emit("ended", code=CODES.get(type(error), "UNAVAILABLE"), reason=str(error))

    async def close(self) -> None:
        await self.subscriber.close()
        self.emit("ended")

    def emit(self, event: str, **fields: object) -> None:
        emit({"event": event, "subscriber": self.name, **fields})

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        ago_s = 0.0 if invoked_t is None else asyncio.get_running_loop().time() - invoked_t
        self.emit("opened", session=session.name, asked_at=wall_s() - ago_s)

    def received(self, session: BrokerSession, received: Received) -> None:
        self.delivered += 1
        if FAULT == "swaps" and self.delivered == 3:
            self.late = (session, received)
            return
        if FAULT == "dies" and self.delivered == 3:
            sys.exit("the client gave up")
        if FAULT == "babbles" and self.delivered == 3:
            sys.stdout.write("a line for people\n")
        self.pass_on(session, received)
        if self.late is not None and self.late[1].ordering_key == received.ordering_key:
            self.pass_on(*self.late)
            self.late = None

    def pass_on(self, session: BrokerSession, received: Received) -> None:
        self.held[received.ack_id] = (session, received)
        self.emit(
            "delivered",
            session=session.name,
            message_id=received.message_id,
            ack_id=received.ack_id,
            ordering_key=received.ordering_key,
            data=b64encode(received.data).decode(),
            attributes=dict(received.attributes),
            delivery_attempt=received.delivery_attempt,
            publish_time=None if received.publish_time is None else str(received.publish_time),
        )

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        self.emit("ack_confirmed", session=session.name, message_id=message_id)

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        raise AssertionError("nothing is pushed here")

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        self.emit("closed", session=session.name, reason=reason)


class Program:
    """Carries out commands in their order."""

    def __init__(self) -> None:
        self.broker: Broker | None = None
        self.publishers: dict[str, Publishing] = {}
        self.subscribers: dict[str, Subscribing] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def carry_out(self, command: Mapping[str, Any]) -> None:
        name = command["command"]
        if name == "hello":
            self.broker = WireBroker(Endpoint(command["endpoint"], secure=command["secure"]), None)
            emit({"event": "ready", "client": "the wire adapter"})
            return
        assert self.broker is not None
        match name:
            case "open_publisher":
                publisher = self.broker.publisher(command["topic"])
                self.publishers[command["publisher"]] = Publishing(command["publisher"], publisher)
            case "publish":
                self.start(self.publishers[command["publisher"]].publish(command))
            case "resume":
                self.start(self.publishers[command["publisher"]].publisher.resume(command["ordering_key"]))
            case "close_publisher":
                if (publishing := self.publishers.pop(command["publisher"], None)) is not None:
                    self.start(publishing.publisher.close())
            case "subscribe":
                flow = FlowControlSettings(command["messages_max"], command["bytes_max"])
                made = self.broker.subscriber(command["subscription"], command["subscriber"], flow, command["ack_deadline_s"])
                self.subscribers[command["subscriber"]] = subscribing = Subscribing(command["subscriber"], made)
                self.start(subscribing.run())
            case "unsubscribe":
                self.start(self.subscribers[command["subscriber"]].close())
            case "break":
                self.start(self.subscribers[command["subscriber"]].subscriber.break_stream())
            case _:
                self.answer(command)

    def answer(self, command: Mapping[str, Any]) -> None:
        held = self.subscribers[command["subscriber"]].held
        session, received = held[command["ack_id"]]
        match command["command"]:
            case "ack":
                session.ack(received)
            case "nack":
                session.nack(received)
            case "drop":
                session.let_expire(received)
            case "modify_lease":
                session.modify_lease(received, command["seconds"])
        if command["command"] != "modify_lease":
            del held[command["ack_id"]]


async def main() -> None:
    program, loop = Program(), asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        program.carry_out(json.loads(line))
    if program.broker is not None:
        await program.broker.close()


if __name__ == "__main__":
    asyncio.run(main())
