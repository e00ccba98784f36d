"""What becomes of a subscription whose messages are not taken fast enough."""

from __future__ import annotations

import asyncio
from itertools import islice

import pytest

from prober.brokers import library_pull
from prober.brokers.base import BrokerSession, FlowControlSettings, Received
from prober.brokers.connection import Connection
from prober.brokers.endpoint import Endpoint
from prober.brokers.library_calls import WatchedCall
from prober.brokers.library_pull import LibraryPull, subscriber_names


class Reasons:
    """A tap that keeps why sessions ended."""

    def __init__(self) -> None:
        self.opened_count = 0
        self.reasons: list[str] = []

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        self.opened_count += 1

    def received(self, session: BrokerSession, received: Received) -> None:
        """Nothing comes."""

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
