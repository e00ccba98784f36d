"""Events put together to publishes and deliveries, each with its beginning, end and outcome."""

from __future__ import annotations

import pytest

from prober.core.events import Delivered
from prober.sinks.tracing.episodes import episodes_of
from tests.notation import history


def read(text: str) -> list[str]:
    """Each episode as `<what> <seq> <from>-<to> <outcome> <message id>`."""
    return [
        f"{'delivery' if isinstance(episode.began, Delivered) else 'publish'} {episode.began.seq} "
        f"{episode.began.t:g}-{episode.end_t:g} {episode.outcome} {episode.message_id}".rstrip()
        for episode in episodes_of(history(text))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P1@1 ok1=m1@1.5 end @9", "publish 1 1-1.5 confirmed m1"),
        ("P1@1 fail1@1.5 end @9", "publish 1 1-1.5 rejected"),
        ("P1@1 info1@1.5 abandon1@2 end @9", "publish 1 1-1.5 unknown"),
        ("P1@1 end @9", "publish 1 1-9 unknown"),
    ],
)
def test_a_publish_ends_with_its_outcome(text: str, expected: str) -> None:
    assert read(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A<1@2 A ack 1@3 A nack 1@4 end @9", ["delivery 1 2-3 acked m1"]),
        ("A<1@2 A nack 1@3 end @9", ["delivery 1 2-3 nacked m1"]),
        ("A<1@2 end @9", ["delivery 1 2-9 unanswered m1"]),
        ("A<1@2 close A@4 end @9", ["delivery 1 2-4 unanswered m1"]),
        ("A<1@2 close A@4 A ack 1@5 end @9", ["delivery 1 2-5 acked m1"]),
        ("A<1@2 A modack 1 5s@3 end @9", ["delivery 1 2-8 lease_ended m1"]),
        ("A<1@2 A modack 1 5s@3 close A@4 end @9", ["delivery 1 2-8 lease_ended m1"]),
        ("A<1@2 A modack 1 5s@3 end @7", ["delivery 1 2-7 unanswered m1"]),
        ("A<1@2 A modack 1 5s@3 A modack 1 9s@4 end @9", ["delivery 1 2-9 unanswered m1"]),
        ("A<1@2 A modack 1 1s@3 A ack 1@5 end @9", ["delivery 1 2-5 acked m1"]),
        ("A<1@2 A modack 1 1s@3 A<1@6 A ack 1@7 end @9", ["delivery 1 2-4 lease_ended m1", "delivery 1 6-7 acked m1"]),
        ("A<1@2 A<1@6 A ack 1@7 end @9", ["delivery 1 2-6 unanswered m1", "delivery 1 6-7 acked m1"]),
        ("A<1@2 B<1@6 A ack 1@7 end @9", ["delivery 1 2-7 acked m1", "delivery 1 6-9 unanswered m1"]),
        (
            "open A of client a A<1@2 A ack 1@2.5 close A@3 open A of client a@4 A<2@5 end @9",
            ["delivery 1 2-2.5 acked m1", "delivery 2 5-9 unanswered m2"],
        ),
    ],
)
def test_a_delivery_ends_with_our_answer_or_a_lease_that_we_set(text: str, expected: list[str]) -> None:
    assert read(text) == expected


def test_episodes_are_in_the_order_of_their_beginnings_and_know_their_events() -> None:
    events = history("P1@1 P2@1.1 ok2=m2@1.2 ok1=m1@1.3 open A of client c A<1@2 A<2@2.1 A ack 2@2.2 A ack 1@2.3 end @3")
    episodes = episodes_of(events)
    assert [episode.began.seq for episode in episodes] == [1, 2, 1, 2]
    assert [episode.subscriber for episode in episodes] == ["", "", "c", "c"]
    for episode in episodes:
        assert events[episode.number - 1] is episode.began
        assert events[episode.end_number - 1].t == episode.end_t
    assert [episode.end_number for episode in episodes_of(history("P1@1 A<1@2"))] == [0, 0]


def test_generations_are_publishes_of_their_own() -> None:
    assert read("P1@1 info1@2 P1'gen1@3 ok'gen1=m1@4 end @5") == ["publish 1 1-2 unknown", "publish 1 3-4 confirmed m1"]


def test_what_began_before_the_record_is_no_episode() -> None:
    assert read("ok1=m1@1 end @2") == []
    assert episodes_of([]) == []
