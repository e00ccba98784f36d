"""Random use of the embedded service: whatever subscribers do, order, one holder, deadlines and completeness hold.

The model here is written from the documentation alone and shares nothing with the service or with the checker: it knows what was sent
to whom and which answers were given, and says of every delivery whether it is allowed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.embedded import resources
from prober.embedded.behaviour import Behaviour
from prober.embedded.errors import ServiceError
from prober.embedded.messages import (
    AnswerPull,
    CancelPush,
    Confirm,
    Delivery,
    EndStream,
    HalfOpen,
    LostDeliveries,
    Message,
    PublishDraft,
    Push,
    Send,
)
from prober.embedded.state import State, StreamAnswers, StreamRequest

TOPIC = "projects/p/topics/top"
NAME = "projects/p/subscriptions/sub"
KEYS = ("a", "b", "c")
DEADLINE_S = 10
CLIENTS = ("A", "B", "C")


@dataclass
class KeyModel:
    """What is known of one key: the last position sent, the highest ever, who holds what until when."""

    last: int = 0
    highest: int = 0
    held: dict[int, tuple[str, float]] = field(default_factory=dict)
    acked: set[int] = field(default_factory=set)


class Model:
    """Says whether a delivery is allowed."""

    def __init__(self) -> None:
        self.keys = {key: KeyModel() for key in KEYS}
        self.loose_held: dict[int, tuple[str, float]] = {}
        self.loose_seen: set[int] = set()

    def delivered(self, key: str, position: int, holder: str, deadline: float) -> None:
        if not key:
            assert position not in self.loose_held, "redelivered although outstanding"
            self.loose_held[position] = (holder, deadline)
            self.loose_seen.add(position)
            return
        model = self.keys[key]
        assert position <= model.last + 1, f"{key}{position} skips after {model.last}"
        if position != model.last + 1 or position in model.held:
            assert position not in model.held, f"rewind to {key}{position}, which is outstanding"
            assert position not in model.acked, f"rewind to {key}{position}, which is acknowledged"
            model.held = {other: hold for other, hold in model.held.items() if other < position}
            model.acked = {other for other in model.acked if other < position}
        elsewhere = {other: hold for other, hold in model.held.items() if hold[0] != holder}
        assert not elsewhere, f"{key}{position} goes to {holder} although {elsewhere} are outstanding"
        model.last = position
        model.highest = max(model.highest, position)
        model.held[position] = (holder, deadline)

    def acked(self, key: str, position: int) -> None:
        if not key:
            self.loose_held.pop(position, None)
        elif self.keys[key].held.pop(position, None):
            self.keys[key].acked.add(position)

    def freed(self, key: str, position: int) -> None:
        """Refused, or its deadline passed. What is outstanding after it is taken back with it."""
        if not key:
            self.loose_held.pop(position, None)
        elif position in self.keys[key].held:
            model = self.keys[key]
            model.held = {other: hold for other, hold in model.held.items() if other < position}
            model.acked = {other for other in model.acked if other < position}

    def passed(self, now: float) -> None:
        for key, model in (("", None), *self.keys.items()):
            held = self.loose_held if model is None else model.held
            for position in sorted(position for position, (_, deadline) in held.items() if deadline <= now):
                self.freed(key, position)

    def closed(self, holder: str) -> None:
        for key, model in (("", None), *self.keys.items()):
            held = self.loose_held if model is None else model.held
            for position in sorted(position for position, (owner, _) in held.items() if owner == holder):
                self.freed(key, position)


class Run:
    """A service, its subscribers with their whims, and the model that watches."""

    def __init__(
        self,
        seed: int,
        *,
        push: bool = False,
        exactly_once: bool = False,
        backoff: bool = False,
        behaviour: Behaviour | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self.exactly_once = exactly_once
        self.now = 0.0
        self.model = Model()
        self.state = State(behaviour=behaviour)
        self.published = dict.fromkeys(("", *KEYS), 0)
        self.outstanding: dict[str, tuple[str, int, str]] = {}  # by acknowledgement id: key, position, holder
        self.limits: dict[str, int] = {}
        self.pulls = 0
        self.state.registry.create_topic(resources.Topic(TOPIC))
        policy = resources.RetryPolicy(0.5, 4.0) if backoff else None
        config = resources.PushConfig("http://127.0.0.1:1/" if push else "")
        subscription = resources.Subscription(
            NAME,
            TOPIC,
            push_config=config,
            enable_message_ordering=True,
            retry_policy=policy,
            enable_exactly_once_delivery=exactly_once,
        )
        self.state.registry.create_subscription(subscription, 0.0)

    # --- what may happen --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        key = self.rng.choice(("", *KEYS))
        first = self.published[key] + 1
        self.published[key] += self.rng.randint(1, 4)
        self.state.publish(TOPIC, [PublishDraft(b"%d" % n, {}, key) for n in range(first, self.published[key] + 1)], self.now)

    def wait(self) -> None:
        self.now += self.rng.choice((0.01, 0.5, 3.0, 11.0))

    def open(self) -> None:
        client = self.rng.choice(CLIENTS)
        stream = f"{client}:{self.rng.randint(0, 1)}:{self.rng.getrandbits(30)}"
        if sum(other.startswith(stream[:3]) for other in self.limits) == 0:
            self.limits[stream] = self.rng.choice((0, 1, 3))
            self.state.open_stream(stream, StreamRequest(NAME, DEADLINE_S, client, self.limits[stream]), self.now)

    def close(self) -> None:
        if self.limits:
            stream = self.rng.choice(sorted(self.limits))
            self.lost(stream)
            self.state.close_stream(stream, self.now)

    def lost(self, stream: str) -> None:
        """A stream is gone."""
        del self.limits[stream]
        if not self.exactly_once:
            self.model.closed(stream)
            self.outstanding = {ack_id: hold for ack_id, hold in self.outstanding.items() if hold[2] != stream}

    def pull(self) -> None:
        self.pulls += 1
        self.state.pull(f"pull {self.pulls}", NAME, self.rng.randint(1, 5), self.now, wait_s=1.0)

    def ack(self) -> None:
        self._answer(self.rng.randint(1, 4), refuse=False)

    def nack(self) -> None:
        self._answer(1, refuse=True)

    def _answer(self, count: int, *, refuse: bool) -> None:
        ids = self.rng.sample(sorted(self.outstanding), min(count, len(self.outstanding)))
        for ack_id in ids:
            if ack_id not in self.outstanding:
                continue  # an answer before this one has ended it
            key, position, holder = self.outstanding[ack_id]
            accepted = self._say(ack_id, holder, refuse=refuse)
            if not accepted:
                continue
            del self.outstanding[ack_id]
            (self.model.freed if refuse else self.model.acked)(key, position)
            self.check()

    def _say(self, ack_id: str, holder: str, *, refuse: bool) -> bool:
        try:
            if holder.startswith("push"):
                self.state.push_answered(NAME, ack_id, self.now, accepted=not refuse)
            elif refuse:
                self.state.modify_ack_deadline(NAME, [ack_id], 0, self.now)
            elif holder in self.limits and not self.exactly_once:
                self.state.answer_stream(holder, StreamAnswers([ack_id]), self.now)
            else:
                self.state.acknowledge(NAME, [ack_id], self.now)
        except ServiceError:
            if not self.exactly_once:
                raise
            return False
        return True

    # --- what comes out ---------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        self.model.passed(self.now)
        for effect in self.state.advance(self.now):
            match effect:
                case Send(stream, deliveries):
                    self._received(stream, deliveries)
                case AnswerPull(pull, deliveries):
                    self._received(pull, deliveries)
                case Push(push=push, delivery=delivery):
                    self._received(f"push {push}", [delivery])
                case CancelPush(push):
                    self.outstanding.pop(push, None)
                case EndStream(stream) | HalfOpen(stream):
                    self.lost(stream)
                case LostDeliveries(holder, messages):
                    self.never_arrive(holder, messages)
                case Confirm():
                    raise AssertionError(effect)
        for stream, limit in self.limits.items():
            held = sum(holder == stream for _, _, holder in self._really_outstanding())
            assert not limit or held <= limit, f"{stream} has {held} of {limit}"

    def _really_outstanding(self) -> list[tuple[str, int, str]]:
        found = []
        for key, position, holder in self.outstanding.values():
            held = self.model.loose_held if not key else self.model.keys[key].held
            if position in held and held[position][0] == self._holder(key, holder):
                found.append((key, position, holder))
        return found

    def _received(self, holder: str, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            key, position = delivery.message.ordering_key, self.position_of(delivery.message)
            self.model.delivered(key, position, self._holder(key, holder), self.now + DEADLINE_S)
            self._drop_position(key, position)
            self.outstanding[delivery.ack_id] = (key, position, holder)

    def position_of(self, message: Message) -> int:
        """Its place among all that were stored with its key."""
        return int(message.data)

    def stored(self, key: str) -> int:
        """How many messages of a key there are."""
        return self.published[key]

    def never_arrive(self, holder: str, messages: Sequence[Message]) -> None:
        """These were sent and lost."""
        raise AssertionError(f"an honest service loses nothing: {holder}, {messages}")

    def _holder(self, key: str, holder: str) -> str:
        if not self.exactly_once or not key:
            return holder
        return holder[:1] if holder[1:2] == ":" else holder  # a client keeps its keys when its stream is lost

    def _drop_position(self, key: str, position: int) -> None:
        self.outstanding = {
            ack_id: hold
            for ack_id, hold in self.outstanding.items()
            if hold[0] != key or (hold[1] != position if not key else hold[1] < position)
        }

    # --- the end ----------------------------------------------------------------------------------------------------------------

    def drain(self, *, push: bool, by_pull: bool) -> None:
        """With a willing subscriber everything is delivered and acknowledged."""
        if not push and not by_pull:
            self.limits["Z:0:0"] = 0
            self.state.open_stream("Z:0:0", StreamRequest(NAME, DEADLINE_S, "Z"), self.now)
        for _ in range(500):  # a subscriber that takes one message at a time needs as many rounds
            if not any(True for _ in self.state.registry.subscriptions[NAME].entries()):
                break
            if by_pull:
                self.pull()
            self.check()
            for ack_id in sorted(self.outstanding, key=lambda name: self.outstanding[name][1]):
                key, position, holder = self.outstanding[ack_id]
                if self._say(ack_id, holder, refuse=False):
                    del self.outstanding[ack_id]
                    self.model.acked(key, position)
            self.now += 2.0
        self.check()
        assert self.model.loose_seen == set(range(1, self.stored("") + 1))
        assert {key: model.highest for key, model in self.model.keys.items()} == {key: self.stored(key) for key in KEYS}
        assert list(self.state.registry.subscriptions[NAME].entries()) == []
        assert self.state.registry.subscriptions[NAME].leases == {}


STREAMING = ("publish", "publish", "wait", "open", "close", "ack", "ack", "nack")
PULLING = ("publish", "publish", "wait", "pull", "pull", "ack", "ack", "nack")
PUSHING = ("publish", "wait", "ack", "ack", "nack")


def play(run: Run, steps: list[str]) -> None:
    for step in steps:
        getattr(run, step)()
        run.check()


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.sampled_from(STREAMING), max_size=60), backoff=st.booleans())
def test_streaming(seed: int, steps: list[str], backoff: bool) -> None:
    run = Run(seed, backoff=backoff)
    play(run, ["open", *steps])
    run.drain(push=False, by_pull=False)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.sampled_from(STREAMING), max_size=60))
def test_streaming_exactly_once(seed: int, steps: list[str]) -> None:
    run = Run(seed, exactly_once=True)
    play(run, ["open", *steps])
    run.drain(push=False, by_pull=False)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.sampled_from(PULLING), max_size=60))
def test_pulling(seed: int, steps: list[str]) -> None:
    run = Run(seed)
    play(run, steps)
    run.drain(push=False, by_pull=True)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.sampled_from(PUSHING), max_size=60))
def test_pushing(seed: int, steps: list[str]) -> None:
    run = Run(seed, push=True)
    play(run, steps)
    run.drain(push=True, by_pull=False)


@pytest.mark.parametrize("seed", range(20))
def test_long_runs(seed: int) -> None:
    rng = random.Random(seed)
    run = Run(seed, backoff=seed % 2 == 0)
    play(run, ["open", *rng.choices((*STREAMING, "pull"), k=600)])
    run.drain(push=False, by_pull=False)


def test_the_model_notices() -> None:
    model = Model()
    model.delivered("a", 1, "A", 10.0)
    with pytest.raises(AssertionError, match="skips"):
        model.delivered("a", 3, "A", 10.0)
    with pytest.raises(AssertionError, match="goes to B"):
        model.delivered("a", 2, "B", 10.0)
    with pytest.raises(AssertionError, match="which is outstanding"):
        model.delivered("a", 1, "A", 10.0)
    model.acked("a", 1)
    with pytest.raises(AssertionError, match="which is acknowledged"):
        model.delivered("a", 1, "A", 10.0)
