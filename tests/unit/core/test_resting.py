"""Keys at rest: what is put away, what comes back, and that nothing is missed meanwhile."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from prober.core import resting
from prober.core.collector import Counts
from prober.core.events import Acked, Delivered, Event, Interrupted, Opened, Published, PublishInvoked, Sought
from prober.core.group import KeyGroup
from prober.core.rules import Assumptions, Rules
from prober.core.sessions import Session
from prober.core.subscription import Subscription
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import observe, words

SETTLED = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4"


@pytest.fixture(autouse=True)
def _one_key_is_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "WARM_KEYS_MAX", 1)


class Topic:
    """A checker with one key in question, `k`: another key that comes puts it away."""

    def __init__(self, line: str, **rules: Any) -> None:
        self.verifier = Verifier(Rules(**rules), subscriptions=("s",))
        self.names = (f"other {number}" for number in count())
        self.found = observe(self.verifier, history(line))

    def elsewhere(self, t: float) -> None:
        """Another key comes."""
        self.found += self.verifier.observe(PublishInvoked(t, next(self.names), "e", 1))

    def go_on(self, line: str) -> set[str]:
        """What is said about the history from here on; sessions are open already."""
        events = [event for event in history(line) if not isinstance(event, Opened) or event.t > 0]
        return words(observe(self.verifier, events))

    @property
    def at_rest(self) -> bool:
        return "k" in self.verifier._keys.resting()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SETTLED, "A<1@5 A<3@5.1", "V:REDELIVERY_SKIP"),
        (SETTLED, "A<1,2,3@5", ""),
        (SETTLED, "P5@5 ok5=m5@5.1 P6@5.2 ok6=m6@5.3 A<6@6", "V:ORDER_GAP"),
        (SETTLED, "P4@5 ok4=m2@5.1 A<4[e1]@6", ""),
        (SETTLED, "A<9@5", "V:PHANTOM"),
        (SETTLED, "A<m2(3)@5", "V:ID_CONFLICT"),
        ("P1 A<1@1 A ack 1@1.1 P2@1.2 fail2@1.3", "A<2@5", "V:GHOST"),
        ("P1 A<1@1 A ack 1@1.1 P2@1.2 info2@1.3", "A<2@5 ok2=m2@5.1", ""),
    ],
)  # fmt: skip
def test_a_key_comes_back_with_what_it_knew(before: str, after: str, expected: str) -> None:
    topic = Topic(before)
    topic.elsewhere(4.0)
    assert topic.at_rest
    assert topic.go_on(after) == set(expected.split())
    assert not topic.at_rest


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("P1", {}),
        ("P1,2 A<1@1 A ack 1@1.1", {}),
        ("P1 A<1@1", {}),
        ("P1 A<1@1 A nack 1@1.1", {}),
        ("P1 A<1@1", {"unacked_deadline_s": float("inf")}),
        ("P1,2 A<1,2@1 A ack 1,2@1.3 A<1@2 A ack 1@2.1", {}),
        ("P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2", {}),
        ("open B of client B P1,2,3 A<1,2,3@1 A<1@2 A<3@2.1 A<1,2,3@2.2 A ack 1,2,3@2.8", {"delivery_delay_max_s": float("inf")}),
        ("open B of client B P1,2,3 A<1,2@1 B<3@1.2 A ack 1,2@1.3 B ack 3@1.4", {"close_detection_max_s": 60.0}),
    ],
    ids=["undelivered", "a tail undelivered", "unacked", "refused", "unacked for ever", "a run", "a gap", "a skip on hold", "a split on hold"],
)  # fmt: skip
def test_a_key_with_something_to_decide_stays(line: str, rules: dict[str, float]) -> None:
    topic = Topic(line, **rules)
    topic.elsewhere(4.0)
    assert not topic.at_rest


def test_what_is_owed_is_found_in_time_among_keys_at_rest() -> None:
    topic = Topic("P1,2 A<1@1 A ack 1@1.1")
    for number in range(50):
        observe(topic.verifier, [*_settled(f"key {number}", 2.0 + number / 10)])
    topic.elsewhere(500.0)
    assert words(topic.found) == {"L:STUCK"}
    assert topic.verifier.owed


def test_keys_at_rest_are_counted_and_owe_nothing() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    assert topic.at_rest
    assert topic.verifier.finish() == []
    assert topic.verifier.counters["keys"] == 2
    assert not topic.verifier.owed


def test_busy_keys_are_put_away_when_they_have_come_to_rest() -> None:
    """All keys owe something when they come; later none does, and no key comes any more."""
    verifier = Verifier(Rules(idle_after_s=10.0), subscriptions=("s",))
    names = [f"key {number}" for number in range(20)]
    settled = {name: list(_settled(name, 1.0)) for name in names}
    observe(verifier, [Opened(0.0, "s", "A", "A"), *(events[number] for number in range(4) for events in settled.values())])
    assert len(verifier._groups) == len(names)
    for t in (50.0, 100.0):
        verifier.observe(Opened(t, "s", f"A{t}", "A"))
    assert not verifier._groups
    assert len(verifier._keys) == len(names)


@pytest.mark.parametrize("idle_after_s", [10.0, 75.0])
def test_an_idle_key_is_put_away_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch, idle_after_s: float) -> None:
    monkeypatch.setattr(resting, "WARM_KEYS_MAX", 1000)
    verifier = Verifier(Rules(idle_after_s=idle_after_s), subscriptions=("s",))
    observe(verifier, [Opened(0.0, "s", "A", "A"), *(event for number in range(20) for event in _settled(f"key {number}", 1.0))])
    verifier.observe(Opened(70.0, "s", "A1", "A"))
    assert len(verifier._groups) == (0 if idle_after_s < 60 else 20)
    assert len(verifier._keys) == 20


def test_a_seek_reaches_keys_at_rest() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    observe(topic.verifier, history("seek 60@5"))
    assert topic.at_rest
    found = observe(topic.verifier, [event for event in history("A<1@10 A<3@10.1") if isinstance(event, Delivered)])
    assert words(found) == {"I:REDELIVERY_SKIP"}


def test_a_seek_that_has_settled_meanwhile_excuses_nothing_new() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    observe(topic.verifier, history("seek 5@5"))
    said = topic.go_on("P4@20 ok4=m4@20.1 P5@20.2 ok5=m5@20.3 A<5@21")
    assert said == {"V:ORDER_GAP"}


def test_a_hole_reaches_keys_at_rest() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    observe(topic.verifier, history("hole@5"))
    assert topic.at_rest
    assert topic.go_on("open B of client B@5.5 B<3@6 B<1@6.1") == set()
    assert topic.verifier.counters["deliveries_unplaced"] == 2


PUBLISHED_LATER = "P4@30 ok4=m4@30.1 P5@30.2 ok5=m5@30.3 P6@30.4 ok6=m6@30.5 P7@90 ok7=m7@90.1 P8@90.2 ok8=m8@90.3"


@pytest.mark.parametrize("missed_max", [1, 2, 100])
def test_operations_are_told_in_their_order_and_once(missed_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are remembered or, being too many, told at once. The last one explains the gap at 32, and not that at 92."""
    monkeypatch.setattr(resting, "MISSED_MAX", missed_max)
    topic = Topic(SETTLED)
    for event in history(f"seek 1@5 hole@8 seek 60@9 {PUBLISHED_LATER} open B of client B@31 B<4@31.5 B<6@32 B<8@92"):
        if isinstance(event, Sought | Interrupted):
            topic.elsewhere(event.t)
            assert topic.at_rest
        topic.found += topic.verifier.observe(event)
    assert len(topic.verifier._keys._missed) < missed_max
    topic.found += topic.verifier.finish()
    assert words(topic.found) == {"I:ORDER_GAP", "V:ORDER_GAP"}


def test_a_subscription_that_shows_itself_late_is_owed_by_keys_at_rest() -> None:
    """A seek of the first subscription excuses what it did not deliver, so the key is at rest; the second one is still owed it."""
    topic = Topic("P1 A<1@1 A ack 1@1.1 P2@1.2 ok2=m2@1.3 seek 1@2")
    topic.elsewhere(10.0)
    assert topic.at_rest
    topic.verifier.observe(Opened(11.0, "late", "L", "L"))
    topic.elsewhere(500.0)
    assert {(finding.kind, finding.subscription) for finding in topic.found} == {("STUCK", "late")}


def test_the_window_of_a_key_that_rested_long_is_given_up() -> None:
    topic = Topic(SETTLED, idle_after_s=100.0)
    topic.elsewhere(4.0)
    topic.elsewhere(900.0)
    assert topic.at_rest
    assert topic.go_on("A<1@1000") == set()
    assert topic.verifier.counters["deliveries_unplaced"] == 1


def test_a_heavy_key_at_rest_gives_it_up_in_time() -> None:
    seqs = range(1, 201)
    topic = Topic("")
    topic.verifier.observe(Opened(0.0, "s", "A", "A"))
    for seq in seqs:
        observe(topic.verifier, _settled("k", seq / 100, seq))
    topic.elsewhere(4.0)
    assert topic.verifier._keys.is_heavy("k")
    for t in (500.0, 1500.0, 1501.0):
        topic.elsewhere(t)
    assert topic.at_rest
    assert not topic.verifier._keys.is_heavy("k")


def test_it_is_given_up_before_a_seek_that_comes_later() -> None:
    topic = Topic(SETTLED, idle_after_s=100.0)
    topic.elsewhere(4.0)
    topic.elsewhere(900.0)
    assert topic.at_rest
    assert topic.go_on("seek 500@901 A<1@1000") == set()
    assert topic.verifier.counters["deliveries_unplaced"] == 1


@pytest.mark.parametrize("warm", [1, 100])
def test_it_is_kept_while_a_seek_settles_whether_a_subscriber_is_there_or_not(warm: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would make a difference when the clock was looked at, and a key at rest does not look at it."""
    monkeypatch.setattr(resting, "WARM_KEYS_MAX", warm)
    topic = Topic(f"{SETTLED} close A@2 seek 500@3", idle_after_s=10.0)
    topic.elsewhere(100.0)
    topic.elsewhere(200.0)
    assert topic.at_rest == (warm == 1)
    topic.go_on("open B of client B@201 B<1@202")
    assert topic.verifier.counters["deliveries_redelivery"] == 1


def test_a_session_that_ends_meanwhile_is_over_for_the_key() -> None:
    """The messages that it may still hold were acknowledged, so the key may move once its stream is closed."""
    topic = Topic("open B of client B P1,2 A<1,2@1 A ack 1,2@1.4")
    topic.elsewhere(4.0)
    observe(topic.verifier, history("close A@5"))
    (track,) = topic.verifier._group("k").checkers[0]._tracks
    assert track.session.closed_t == 5.0


def test_open_sessions_are_shared_and_let_go() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    shared = topic.verifier._keys._shared
    (session,) = (thing for thing in shared.things.values() if isinstance(thing, Session))
    assert session is topic.verifier._subscriptions["s"].session("A", 0.0)
    (track,) = topic.verifier._group("k").checkers[0]._tracks
    assert track.session is session
    assert not any(isinstance(thing, Session) for thing in shared.things.values())


def test_a_copy_has_everything_of_its_own_but_what_is_shared() -> None:
    """What is shared by mistake would be changed by two; what is copied by mistake would not be changed where it should."""
    topic = Topic(
        "open B of client B P1,2,3,4 A<1,2@1 A ack 1,2@1.2 B<3,4@20 B ack 3,4@20.2 P5@20.3 info5@20.4 close B@21",
        exactly_once=True, dead_letter_max_attempts=5,
    )  # fmt: skip
    keys = topic.verifier._keys
    group = topic.verifier._group("k")
    before = {id(thing): thing for thing in _parts(group)}
    topic.elsewhere(40.0)
    returned = keys.take("k")
    assert returned is not None
    common = {type(before[id(thing)]) for thing in _parts(returned.group) if id(thing) in before}
    method = type(topic.verifier.observe)
    assert common == {Subscription, Assumptions, Rules, Counts, Session, method}
    assert {type(thing) for thing in before.values()} <= {type(thing) for thing in _parts(returned.group)} | {tuple}


def _parts(group: KeyGroup) -> Iterator[object]:
    """What can be reached from a key without going through what is shared."""
    seen: set[int] = set()
    ahead: list[object] = [group]
    while ahead:
        thing = ahead.pop()
        if id(thing) in seen or isinstance(thing, (type, str, int, float, bytes, frozenset)) or thing is None or thing == ():
            continue
        seen.add(id(thing))
        yield thing
        if type(thing) not in resting._SHARED and not isinstance(thing, Session):
            ahead += gc.get_referents(thing)


def _settled(key: str, t: float, seq: int = 1) -> Iterator[Event]:
    message_id = f"{key} {seq}"
    yield PublishInvoked(t, key, "e", seq)
    yield Published(t, key, "e", seq, message_id)
    yield Delivered(t, "s", key, "A", "e", seq, message_id)
    yield Acked(t, "s", key, "A", message_id)


def test_a_key_at_rest_takes_less_than_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    bytes_per_key = []
    for warm in (10_000, 1):
        monkeypatch.setattr(resting, "WARM_KEYS_MAX", warm)
        verifier = Verifier(Rules(), subscriptions=("s",))
        names = [f"key {number}" for number in range(1000)]
        gc.collect()
        tracemalloc.start()
        for name in names:
            observe(verifier, _settled(name, 1.0))
        verifier._queue.clear()
        gc.collect()  # gives back what Python keeps of tuples that are gone, for the next ones
        bytes_per_key.append(tracemalloc.get_traced_memory()[0] / len(names))
        tracemalloc.stop()
    assert bytes_per_key[1] < 0.1 * bytes_per_key[0]


def test_a_key_with_a_long_chain_of_open_publishes_stays() -> None:
    """They follow each other, and putting them away goes through them one within the other."""
    verifier = Verifier(Rules(idle_after_s=1.0), subscriptions=("s",))
    for seq in range(1, 3001):
        verifier.observe(PublishInvoked(0.01 * seq, "long", "e", seq))
    verifier.observe(Sought(60.0, "s", 1.0))
    for t in range(100, 1000, 10):
        verifier.observe(PublishInvoked(float(t), "other", "e", t))
    assert "long" in verifier._keys.warm
