"""Who gets a key: affinity, its release, shares, flow control, streams that come and go."""

from __future__ import annotations

import pytest

from prober.embedded import errors
from tests.unit.embedded.notation import SUBSCRIPTION, Play, ordered


@pytest.mark.parametrize(
    ("script", "out"),
    [
        # outstanding messages keep the key
        ("open:A +k:1 open:B +k:2 +k:3", "A<k1 A<k2 A<k3"),
        # a full subscriber keeps it too: the message waits
        ("open:A/1 +k:1 open:B +k:2", "A<k1"),
        ("open:A/1 +k:1 open:B +k:2 ack:k1", "A<k1 A<k2"),
        # idle, it stays with the last one, as best effort
        ("open:A open:B +k:1 +j:1 ack:k1 +k:2", "A<k1 B<j1 A<k2"),
        # a rewind frees what it takes back, but not what is before it
        ("open:A +k:1,2 open:B nack:k2", "A<k1,k2 A<k2"),
        # a new key goes to who has fewest
        ("open:A +k:1 open:B +j:1 +i:1", "A<k1 B<j1 A<i1"),
        # whoever lets a deadline pass loses the key
        ("open:A +k:1,2 open:B @10", "A<k1,k2 B<k1,k2"),
        ("open:A +k:1,2 open:B mod:k1=30 @10", "A<k1,k2 A<k2"),
        # the loss of a stream releases
        ("open:A +k:1,2 open:B ack:k1 close:A", "A<k1,k2 B<k2"),
        ("open:A +k:1,2 ack:k2 close:A open:B", "A<k1,k2 B<k1,k2"),
        # streams of one client are one subscriber
        ("open:A1=A +k:1 open:A2=A close:A1", "A1<k1 A2<k1"),
        ("open:A1=A +k:1 close:A1 open:B open:A2=A", "A1<k1 B<k1"),
        # a subscriber that comes back gets its idle keys back
        ("open:A open:B +k:1 ack:k1 close:A open:A +k:2", "A<k1 A<k2"),
    ],
)
def test_affinity(script: str, out: str) -> None:
    assert Play()(script) == out


def test_a_new_subscriber_gets_its_share_of_idle_keys_only() -> None:
    play = Play()
    names = [f"k{n}" for n in range(10)]
    play("open:A " + " ".join(f"+{name}:1" for name in names))
    play("open:B " + " ".join(f"ack:{name}1" for name in names[:8]))
    out = play(" ".join(f"+{name}:2" for name in names)).split()
    assert out[8:] == ["A<k82", "A<k92"]
    assert sum(word.startswith("B<") for word in out[:8]) == 5


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("open:A/2 +k:1,2,3", "A<k1,k2"),
        ("open:A/2 +k:1,2,3 ack:k1", "A<k1,k2 A<k3"),
        ("open:A/2 +:1,2,3 nack:2", "A<1,2 A<3"),
        ("open:A/1 +k:1 +j:1 open:B/1", "A<k1 B<j1"),
    ],
)
def test_flow_control_by_messages(script: str, out: str) -> None:
    assert Play()(script) == out


def test_flow_control_by_bytes() -> None:
    play = Play()
    play("open:A")
    next(iter(play.state.registry.subscriptions[SUBSCRIPTION].streams.values())).bytes_max = 5
    assert play("+k:11,22,33,44") == "A<k11,k22"  # 3 bytes each with the key: the limit is reached with the second
    assert play("ack:k11") == "A<k33"


def test_a_busy_key_does_not_starve_others() -> None:
    play = Play()
    play("+k:" + ",".join(str(number) for number in range(900)))
    play("+j:1")
    assert ",j1," in play("open:A/150")


def test_a_stream_of_an_unknown_subscription() -> None:
    play = Play()
    play.state.registry.delete_subscription(SUBSCRIPTION, 0.0)
    with pytest.raises(errors.ServiceError, match=r"NOT_FOUND: Resource not found \(resource=sub\)\."):
        play("open:A")


def test_a_deleted_subscription_ends_its_streams_and_pulls() -> None:
    play = Play()
    play("open:A pull:p")
    play.state.registry.delete_subscription(SUBSCRIPTION, 0.0)
    assert play("close:B") == "A!NOT_FOUND p!NOT_FOUND"


def test_detached_means_no_messages_and_no_pull() -> None:
    play = Play(ordered())
    play("open:A")
    play.state.registry.detach_subscription(SUBSCRIPTION, 0.0)
    assert play("+k:1") == "A!FAILED_PRECONDITION"
    with pytest.raises(errors.ServiceError, match="FAILED_PRECONDITION"):
        play("pull:p")
