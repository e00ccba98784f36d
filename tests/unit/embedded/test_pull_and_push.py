"""Unary pull (one outstanding batch per key) and push (one outstanding message per key)."""

from __future__ import annotations

import pytest

from prober.embedded import errors
from tests.unit.embedded.notation import Play, ordered, pushed


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("+k:1,2 pull:p", "p<k1,k2"),
        ("pull:p +k:1,2", "p<k1,k2"),
        ("pull:p @19 @20", "p<"),
        ("+k:1,2,3 +j:1 pull:p/2 pull:q", "p<k1,k2 q<j1"),
        # one outstanding batch per key
        ("+k:1 pull:p +k:2 pull:q +j:1", "p<k1 q<j1"),
        ("+k:1,2,3 pull:p/2 pull:q ack:k1", "p<k1,k2"),
        ("+k:1,2,3 pull:p/2 pull:q ack:k1,k2", "p<k1,k2 q<k3"),
        # a refused one rewinds; an earlier one that is open still blocks
        ("+k:1,2,3 pull:p ack:k1,k3 nack:k2 pull:q", "p<k1,k2,k3 q<k2,k3"),
        ("+k:1,2,3 pull:p nack:k2 pull:q", "p<k1,k2,k3"),
        ("+k:1,2,3 pull:p nack:k2 pull:q ack:k1", "p<k1,k2,k3 q<k2,k3"),
        ("+k:1,2 pull:p @10 pull:q", "p<k1,k2 q<k1,k2"),
        # without a key there is nothing to keep in order
        ("+:1,2 pull:p/1 pull:q/1", "p<1 q<2"),
        # a stream and a pull do not share a key
        ("+k:1 pull:p open:A +k:2", "p<k1"),
        ("+k:1 pull:p open:A +k:2 ack:k1", "p<k1 A<k2"),
    ],
)
def test_pull(script: str, out: str) -> None:
    assert Play()(script) == out


def test_a_cancelled_pull_gets_nothing() -> None:
    play = Play()
    play("pull:p pull:q")
    play.state.cancel_pull("p")
    assert play("+k:1") == "q<k1"


def test_a_pull_asks_for_at_least_one() -> None:
    with pytest.raises(errors.ServiceError, match="argument=max_messages"):
        Play()("pull:p/-1")


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("+k:1,2,3", "POST k1"),
        ("+k:1,2 ok:k1", "POST k1 POST k2"),
        ("+k:1 +j:1 +:1,2", "POST k1 POST j1 POST 1 POST 2"),
        # no advance past a failed one; back-off is 100 ms at first
        ("+k:1,2 bad:k1 @0.09", "POST k1"),
        ("+k:1,2 bad:k1 @0.1", "POST k1 POST k1"),
        ("+k:1,2 bad:k1 @0.1 ok:k1", "POST k1 POST k1 POST k2"),
        # no answer in time
        ("+k:1,2 @10 @10.2", "POST k1 cancel k1 POST k1"),
        ("+k:1,2 @10 ok:k1", "POST k1 cancel k1"),
    ],
)
def test_push(script: str, out: str) -> None:
    assert Play(pushed())(script) == out


def test_a_push_subscription_cannot_be_pulled() -> None:
    with pytest.raises(
        errors.ServiceError, match=r"FAILED_PRECONDITION: This method is not supported for this subscription type\."
    ):
        Play(pushed())("pull:p")


def test_a_pull_subscription_that_is_pushed_from_now_on() -> None:
    play = Play()
    play("open:A +k:1,2 ack:k1")
    play.state.registry.update_subscription(pushed(), ["push_config"], 0.0)
    assert play("@1") == "A!FAILED_PRECONDITION POST k2"
    play.state.registry.update_subscription(ordered(), ["push_config"], 0.0)
    assert play("ok:k2 pull:p +k:3") == "p<k3"
