"""What is recorded of publishes that fail, that nobody answers, and that several publishers send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

import pytest

from prober.brokers.base import Confirmed, Outcome, Outgoing, Rejected, Unknown
from prober.core.events import Event, PublishAbandoned, Published, PublishFailed, PublishInvoked, PublishUnknown
from prober.probes.publishing import GENERATIONS_MAX, Publishing, unsettled

WORDS = {PublishInvoked: "P", Published: "ok", PublishFailed: "fail", PublishUnknown: "info", PublishAbandoned: "abandon"}


class Publisher:
    """Answers each request with the next of these letters, for all of its messages: confirmed, rejected, unknown; then it confirms."""

    def __init__(self, letters: str, *, keeps_order: bool) -> None:
        self._answers = iter(letters)
        self.keeps_order, self.unexplained_stops = keeps_order, 0
        self.resumed = self.under_way = self.under_way_max = 0
        self.requests: list[int] = []

    async def publish(self, messages: Sequence[Outgoing], _timeout_s: float) -> Sequence[Outcome]:
        self.requests.append(len(messages))
        self.under_way += 1
        self.under_way_max = max(self.under_way, self.under_way_max)
        await asyncio.sleep(0)
        self.under_way -= 1
        answers: dict[str, Outcome] = {"c": Confirmed("m"), "r": Rejected("no"), "u": Unknown("nobody knows")}
        return [answers[next(self._answers, "c")]] * len(messages)

    async def resume(self, _key: str) -> None:
        self.resumed += 1

    async def close(self) -> None:
        """Nothing is open."""


class World:
    """Publishes by publishers that answer so, and knows what was recorded."""

    def __init__(self, *letters: str, keeps_order: bool = False) -> None:
        self.publishers = [Publisher(answers, keeps_order=keeps_order) for answers in letters]
        self.events: list[Event] = []

    def does(self, publish: Callable[[Publishing], Coroutine[Any, Any, Any]]) -> Any:
        made = iter(self.publishers)

        async def scenario() -> Any:
            return await publish(Publishing(lambda: next(made), "e", 5.0, "", self.events.append, lambda: 1.0, Random(0)))

        return asyncio.run(scenario())

    @property
    def said(self) -> str:
        """What was recorded, with the generation of each that has one above 0."""
        return " ".join(self._word(event) for event in self.events)

    def _word(self, event: Any) -> str:
        return f"{WORDS[type(event)]}{event.seq}" + (f"'{event.generation}" if event.generation else "")


@pytest.mark.parametrize(
    ("answers", "confirmed", "said", "resumed"),
    [
        ("c", 2, "P1 P2 ok1 ok2", 0),
        ("r", 0, "P1 P2 fail1 fail2", 1),
        ("uc", 2, "P1 P2 info1 info2 P1'1 P2'1 ok1'1 ok2'1", 1),
        ("ur", 0, "P1 P2 info1 info2 P1'1 P2'1 fail1'1 fail2'1", 2),
    ],
)
def test_what_is_unknown_is_published_again(answers: str, confirmed: int, said: str, resumed: int) -> None:
    world = World(answers)
    assert world.does(lambda publishing: publishing.publish("k", 2)) == confirmed
    assert (world.said, world.publishers[0].resumed) == (said, resumed)


def test_what_stays_unknown_is_given_up() -> None:
    world = World("u" * 9)
    assert world.does(lambda publishing: publishing.publish("k", 1)) == 0
    assert world.said.endswith(f"info1'{GENERATIONS_MAX - 1} abandon1'{GENERATIONS_MAX - 1}")


@pytest.mark.parametrize(("keeps_order", "under_way"), [(True, 3), (False, 1)])
def test_only_a_publisher_that_keeps_their_order_has_several_messages_of_a_key_under_way(keeps_order: bool, under_way: int) -> None:
    world = World("", keeps_order=keeps_order)
    assert world.does(lambda publishing: publishing.publish_singly("k", 3)) == 3
    assert (world.publishers[0].requests, world.publishers[0].under_way_max) == ([1, 1, 1], under_way)
    assert [event.seq for event in world.events if isinstance(event, PublishInvoked)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("first", "second", "confirmed", "said"),
    [
        ("c", "c", 1, "P1 P1'1 ok1 ok1'1"),
        ("u", "c", 1, "P1 P1'1 info1 ok1'1"),
        ("r", "r", 0, "P1 P1'1 fail1 fail1'1"),
        ("r", "u", 1, "P1 P1'1 fail1 info1'1 P1'2 ok1'2"),
    ],
)
def test_what_two_publish_at_once_is_settled_if_either_is_confirmed(first: str, second: str, confirmed: int, said: str) -> None:
    world = World(first, second)
    assert world.does(lambda publishing: publishing.publish_by_all("k", 1, publishers=2)) == confirmed
    assert world.said == said


def test_of_what_is_sent_beside_messages_nothing_is_recorded() -> None:
    world = World("r")
    outcomes = world.does(lambda publishing: publishing.attempt("k", [1], beside=[Outgoing("k", b"")]))
    assert (len(outcomes), world.publishers[0].requests, world.said) == (2, [2], "P1 fail1")


def test_unsettled_is_what_may_have_been_stored_and_was_not_confirmed() -> None:
    confirmed, rejected, unknown = Confirmed("m"), Rejected("no"), Unknown("who knows")
    assert unsettled([1, 2, 3], [[confirmed, rejected, unknown]]) == [3]
    assert unsettled([1, 2, 3], [[confirmed, rejected, unknown], [unknown, unknown, rejected]]) == [2, 3]
