"""What becomes of a subscription whose messages are not taken fast enough, or that are given out before the last one is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from prober.brokers import library_pull
from prober.brokers.base import BrokerSession, FlowControlSettings, Received
from prober.brokers.connection import Connection
from prober.brokers.endpoint import Endpoint
from prober.brokers.library_calls import WatchedCall
from prober.brokers.library_pull import LibraryPull, LibrarySession, subscriber_names


class Client:
    """Google's client, which gives out what it is asked to, at once: it may violate its guarantee."""

    def __init__(self, given: list[str]) -> None:
        self.given = given
        self.ended: Callable[[Any], None] = lambda _: None

    def subscribe(self, _channel: object, _name: str, callback: Callable[[Any], None], *_: object) -> Client:
        self.callback = callback
        return self

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Tells at once what waits for its end."""
        self.ended = callback

    def cancel(self) -> bool:
        return False

    def give(self, ack_id: str, key: str) -> None:
        def reported(what: str) -> Callable[..., None]:
            return lambda *_: self.given.append(f"{what} {ack_id}")

        message = SimpleNamespace(
            ack_id=ack_id,
            ordering_key=key,
            message_id=ack_id,
            data=b"",
            attributes={},
            delivery_attempt=None,
            exactly_once_enabled=False,
            ack=reported("ack"),
            nack=reported("nack"),
            drop=reported("drop"),
        )
        self.callback(message)


class Answers:
    """A tap that answers each message as it is asked to, and keeps which ones overlapped."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers
        self.overlapping: list[str] = []
        self.seen = 0

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """Of no interest."""

    def received(self, session: BrokerSession, received: Received) -> None:
        self.seen += 1
        if received.overlaps:
            self.overlapping.append(received.ack_id)
        if answer := self._answers.get(received.ack_id):
            getattr(session, answer)(received)

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Nothing is confirmed."""

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        """Nothing is pushed."""

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        """Of no interest."""


@pytest.mark.parametrize(
    ("given", "answers", "overlapping"),
    [
        (("1k", "2k"), {}, ["2k"]),
        (("1k", "2j", "3k"), {}, ["3k"]),
        (("1k", "2k", "3k"), {"2k": "ack"}, ["2k", "3k"]),  # 1 is not answered
        (("1k", "2k"), {"1k": "ack"}, []),
        (("1k", "2k"), {"1k": "nack"}, []),
        (("1k", "2k"), {"1k": "let_expire"}, []),
        (("1", "2"), {}, []),  # they have no key
    ],
)
def test_a_message_given_out_before_the_last_of_its_key_is_answered_is_marked(
    monkeypatch: pytest.MonkeyPatch, given: Sequence[str], answers: Mapping[str, str], overlapping: Sequence[str]
) -> None:
    client, tap = Client([]), Answers(answers)
    monkeypatch.setattr(library_pull, "subscribe", client.subscribe)

    async def scenario() -> None:
        connection = Connection(Endpoint("127.0.0.1:1", secure=False), None)
        pull = LibraryPull(connection, "s", "one", FlowControlSettings(), 10, tap)
        await pull.open()
        session = LibrarySession(pull, "one", 0.0)
        for count, ack_id in enumerate(given, 1):
            pull.stream_delivered(session, {ack_id: None})
            client.give(ack_id, ack_id[1:])
            while tap.seen < count:
                await asyncio.sleep(0)
        await pull.close()
        client.ended(client)
        await connection.close()

    asyncio.run(asyncio.wait_for(scenario(), 10))
    assert tap.overlapping == overlapping


class Reasons:
    """A tap that keeps why sessions ended."""

    def __init__(self) -> None:
        self.opened_count = 0
        self.reasons: list[str] = []

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        self.opened_count += 1

    def received(self, session: BrokerSession, received: Received) -> None:
        """Nothing comes."""

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        raise AssertionError("nothing is pushed here")

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Nothing is confirmed."""

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        assert not lost
        self.reasons.append(reason)


def test_a_subscription_whose_news_are_not_taken_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_pull, "MAILBOX_SLACK", 0)

    async def scenario() -> None:
        connection, tap = Connection(Endpoint("127.0.0.1:1", secure=False), None), Reasons()
        pull = LibraryPull(connection, "s", "one", FlowControlSettings(messages_max=1), 10, tap)
        for _ in range(3):  # there is room for two, and the event loop is not let in between
            WatchedCall(pull)
        await asyncio.wait_for(pull.ended.wait(), 5)
        assert tap.opened_count == 2
        await pull.close()
        assert tap.reasons == ["given up: messages came faster than they were taken"] * 2
        await connection.close()

    asyncio.run(scenario())


def test_each_subscription_of_a_subscriber_is_a_subscriber_of_its_own() -> None:
    assert list(islice(subscriber_names("one"), 3)) == ["one", "one/2", "one/3"]
