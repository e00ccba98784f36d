"""Order of first delivery, consistent redelivery, deadlines, back-off."""

from __future__ import annotations

import pytest

from prober.embedded import resources
from tests.unit.embedded.notation import Play, ordered


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("+k:1,2,3 open:A", "A<k1,k2,k3"),
        ("open:A +k:1 +k:2", "A<k1 A<k2"),
        ("open:A +k:1,2 +j:1", "A<k1,k2 A<j1"),
        ("open:A +:1,2", "A<1,2"),
        # a refused message brings all later ones, acknowledged or not
        ("open:A +k:1,2,3 ack:k3 nack:k2", "A<k1,k2,k3 A<k2,k3"),
        ("open:A +k:1,2,3 ack:k1,k3 nack:k2", "A<k1,k2,k3 A<k2,k3"),
        ("open:A +k:1,2,3 nack:k3", "A<k1,k2,k3 A<k3"),
        # and nothing earlier
        ("open:A +k:1,2,3 ack:k1,k2,k3 +k:4 nack:k4", "A<k1,k2,k3 A<k4 A<k4"),
        # several refused ones are one rewind
        ("open:A +k:1,2,3 nack:k3,k2", "A<k1,k2,k3 A<k2,k3"),
        # what was acknowledged before a rewind has to be acknowledged again
        ("open:A +k:1,2,3 ack:k2,k3 nack:k1 ack:k1,k2 nack:k3", "A<k1,k2,k3 A<k1,k2,k3 A<k3"),
        # an answer to a delivery that is over has no effect
        ("open:A +k:1 @11 ack:k1", "A<k1 A<k1"),
        # keys are independent
        ("open:A +k:1,2 +j:1 nack:k1", "A<k1,k2 A<j1 A<k1,k2"),
        # a message without a key comes alone
        ("open:A +:1,2,3 nack:2", "A<1,2,3 A<2"),
    ],
)
def test_order_and_redelivery(script: str, out: str) -> None:
    assert Play()(script) == out


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("open:A +k:1,2 @9.9", "A<k1,k2"),
        ("open:A +k:1,2 @10", "A<k1,k2 A<k1,k2"),
        ("open:A +k:1,2 ack:k1 @10", "A<k1,k2 A<k2"),
        ("open:A +k:1,2 ack:k2 @10", "A<k1,k2 A<k1,k2"),
        ("open:A +k:1 mod:k1=30 @29.9", "A<k1"),
        ("open:A +k:1 mod:k1=30 @30", "A<k1 A<k1"),
        ("open:A +k:1 mod:k1=2 @2", "A<k1 A<k1"),
        ("open:A +k:1 mod:k1=30 mod:k1=3 @3", "A<k1 A<k1"),
        ("open:A +k:1,2 mod:k1=30 @10", "A<k1,k2 A<k2"),
    ],
)
def test_deadlines(script: str, out: str) -> None:
    assert Play()(script) == out


def test_back_off_doubles_up_to_its_bound() -> None:
    play = Play(ordered(retry_policy=resources.RetryPolicy(1.0, 3.0)))
    assert play("open:A +k:1,2 nack:k1 @0.9") == "A<k1,k2"
    assert play("@1") == "A<k1,k2"
    assert play("nack:k1 @2.9 @3") == "A<k1,k2"
    assert play("nack:k1 @5.9 @6") == "A<k1,k2"
    assert play("nack:k1 @8.9 @9") == "A<k1,k2"


def test_back_off_of_one_key_does_not_hold_up_another() -> None:
    play = Play(ordered(retry_policy=resources.RetryPolicy(5.0, 5.0)))
    assert play("open:A +k:1 nack:k1 +j:1") == "A<k1 A<j1"


def test_next_wakeup_is_when_something_happens_next() -> None:
    play = Play(ordered(retry_policy=resources.RetryPolicy(1.0, 1.0)))
    assert play.state.next_wakeup(0.0) == float("inf")
    play("open:A +k:1")
    assert play.state.next_wakeup(0.0) == 10.0
    play("@2 nack:k1")
    assert play.state.next_wakeup(2.0) == 3.0
    play("@3 ack:k1")
    assert play.state.next_wakeup(3.0) == float("inf")


def test_without_ordering_a_key_means_nothing() -> None:
    play = Play(ordered(enable_message_ordering=False))
    assert play("open:A +k:1,2,3 ack:k1 nack:k2") == "A<k1,k2,k3 A<k2"


def test_a_long_run_is_given_up_as_it_is_acknowledged() -> None:
    play = Play()
    play("open:A")
    for number in range(1000):
        play(f"+k:{number} ack:k{number}")
    key_queue = play.state.registry.subscriptions[play.settings.name].key_queues["k"]
    assert len(key_queue.entries) == 0
    assert key_queue.cursor == key_queue.end == 1001
