"""When a subscriber opens its next source, and what ends its start; hours pass in no time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from prober.brokers import subscriber
from prober.brokers.base import Tap
from prober.brokers.connection import Connection
from prober.errors import BrokerError, BrokerUnavailable, NotThere
from prober.simulation.virtual_time import VirtualTime


class Brief:
    """A source that ends as soon as it is opened."""

    def __init__(self, *, delivered: bool, error: BrokerError) -> None:
        self.answered, self.ended = asyncio.Event(), asyncio.Event()
        self.delivered, self._error = delivered, error

    async def open(self) -> None:
        self.answered.set()
        self.ended.set()

    def failure(self, doing: str) -> BrokerError:
        return self._error

    async def cut(self) -> None:
        """Nothing is open."""

    async def close(self) -> None:
        """Nothing is open."""


class Lasting(Brief):
    """A source that is open until it is closed."""

    async def open(self) -> None:
        self.answered.set()


class Nothing:
    """A connection that is there."""

    channel = None

    def opened(self, consumer: object) -> None:
        """Nobody asks what is open."""

    def closed(self, consumer: object) -> None:
        """Nobody asks what is open."""


UNAVAILABLE = BrokerUnavailable("the stream ended")


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_: object) -> None:
        """There is a connection."""

    monkeypatch.setattr(subscriber, "wait_until_connected", at_once)


def consumed_for(seconds: float, sources: Iterator[Brief]) -> int:
    """How many sources a subscriber opens in that time after its start."""
    opened: list[Brief] = []

    def new_source(_: Tap) -> Brief:
        opened.append(next(sources))
        return opened[-1]

    async def scenario() -> None:
        consumer = subscriber.ReopeningSubscriber(cast(Connection, Nothing()), "s", "one", new_source)
        try:
            await consumer.start(cast(Any, None))
            await asyncio.sleep(seconds)
        finally:
            await consumer.close()

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(scenario())
    return len(opened)


def brief(*, delivered: bool, error: BrokerError = UNAVAILABLE) -> Iterator[Brief]:
    while True:
        yield Brief(delivered=delivered, error=error)


def test_streams_that_deliver_and_break_are_opened_again_soon() -> None:
    assert consumed_for(60.0, brief(delivered=True)) > 500


def test_streams_that_break_again_and_again_without_a_message_are_opened_more_and_more_rarely() -> None:
    def sources() -> Iterator[Brief]:
        lasting = Lasting(delivered=False, error=UNAVAILABLE)
        asyncio.get_running_loop().call_later(1.0, lasting.ended.set)
        yield lasting
        yield from brief(delivered=False)

    assert consumed_for(60.0, sources()) < 40


def test_a_stream_that_breaks_before_its_first_message_does_not_end_the_start() -> None:
    def sources() -> Iterator[Brief]:
        yield Brief(delivered=False, error=UNAVAILABLE)
        yield Lasting(delivered=False, error=UNAVAILABLE)

    assert consumed_for(60.0, sources()) == 2


@pytest.mark.parametrize("error", [UNAVAILABLE, NotThere("no such subscription")])
def test_a_start_in_vain_ends_with_the_reason(error: BrokerError) -> None:
    with pytest.raises(type(error), match=str(error)):
        consumed_for(60.0, brief(delivered=False, error=error))
