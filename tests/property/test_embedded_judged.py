"""The judge against the accused: the checker finds every fault of the embedded service, and nothing in the honest or benign one.

Publishers, subscribers and time are simulated from a seed; the two sides meet only here. What a fault must be found as is what the
fault catalogue announces to users, so these runs also keep that page honest.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

import pytest

from prober.core import events
from prober.core.findings import Finding, Status
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from prober.embedded import resources
from prober.embedded.behaviour import FaultyBehaviour
from prober.embedded.errors import ServiceError
from prober.embedded.faults import CATALOGUE, Fault, Faults
from prober.embedded.messages import AnswerPull, CancelPush, Delivery, Effect, EndStream, PublishDraft, Push, Send
from prober.embedded.state import State, StreamRequest

TOPIC = "projects/p/topics/top"
NAME = "projects/p/subscriptions/sub"
SHORT = "s"
KEYS = ("a", "b", "c", "d")
DEADLINE_S = 20
BUSY_S = 40.0
PATIENCE_S = 60.0
PULL_TIMEOUT_S = 1.5
SEEDS = range(3)
CHANCES = {
    "stall_key": 0.02,  # later on, when there is something to be missed
    "stall_all": 0.02,
    "redeliver_single": 1.0,  # or an honest rewind soon after it makes up for what was left out
    "redeliver_unacked_only": 1.0,
}


class World:
    """One service, one publisher that repeats what failed, three subscribers with whims, and the checker."""

    def __init__(self, seed: int, mode: Mode, faults: Faults, *, exactly_once: bool = False) -> None:
        self.chance = random.Random(seed)
        self.mode = mode
        self.now = 0.0
        self.findings: list[Finding] = []
        self.state = State(behaviour=FaultyBehaviour(faults))
        push = resources.PushConfig("http://127.0.0.1:1/" if mode is Mode.PUSH else "")
        self.state.registry.create_topic(resources.Topic(TOPIC))
        subscription = resources.Subscription(
            NAME,
            TOPIC,
            push_config=push,
            ack_deadline_s=DEADLINE_S,
            enable_message_ordering=True,
            enable_exactly_once_delivery=exactly_once,
        )
        self.state.registry.create_subscription(subscription, 0.0)
        self._exactly_once = exactly_once
        self._verifier = Verifier(self._rules(), subscriptions=(SHORT,))
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count(1)
        self._last = dict.fromkeys(KEYS, 0)
        self._repeating: set[str] = set()
        self._streams: dict[str, str] = {}
        self._waiting: set[str] = set()

    def _rules(self) -> Rules:
        return Rules(
            mode=self.mode,
            delivery_delay_max_s=1.0,
            ack_deadline_s=DEADLINE_S,
            ack_lag_max_s=1.0,
            exactly_once=self._exactly_once,
            delivery_deadline_s=PATIENCE_S,
            stall_deadline_s=PATIENCE_S,
            unacked_deadline_s=PATIENCE_S,
        )

    def run(self) -> list[Finding]:
        """Be busy, drain, and give what is found that would fail a run."""
        self._later(0.0, self._publish_some)
        if self.mode is Mode.STREAMING:
            for client in "ABC":
                self._open(client)
            self._later(1.0, self._break_some)
        elif self.mode is Mode.PULL:
            for _ in range(3):
                self._pull()
        end = BUSY_S + 4 * PATIENCE_S
        while self.now < end:
            self.now = max(self.now, min(self.state.next_wakeup(self.now), self._agenda[0][0] if self._agenda else end, end))
            while self._agenda and self._agenda[0][0] <= self.now:
                heapq.heappop(self._agenda)[2]()
            for effect in self.state.advance(self.now):
                self._carry_out(effect)
        self._note(events.Ended(self.now, True))
        self.findings += self._verifier.finish()
        return [finding for finding in self.findings if finding.status in (Status.VIOLATION, Status.LIVENESS)]

    def _later(self, after_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + after_s, next(self._numbers), action))

    def _note(self, event: events.Event) -> None:
        self.findings += self._verifier.observe(event)

    # --- the publisher ----------------------------------------------------------------------------------------------------------

    def _publish_some(self) -> None:
        if self.now > BUSY_S:
            return
        key = self.chance.choice(KEYS)
        if key not in self._repeating:
            first = self._last[key] + 1
            self._last[key] += self.chance.randint(1, 4)
            self._publish(key, range(first, self._last[key] + 1), 0)
        self._later(self.chance.expovariate(3.0), self._publish_some)

    def _publish(self, key: str, numbers: Sequence[int], generation: int) -> None:
        for seq in numbers:
            self._note(events.PublishInvoked(self.now, key, "e", seq, generation))
        try:
            drafts = [PublishDraft(b"%d:%d" % (seq, generation), {}, key) for seq in numbers]
            ids = self.state.publish(TOPIC, drafts, self.now)
        except ServiceError:
            for seq in numbers:
                self._note(events.PublishUnknown(self.now, key, "e", seq, generation))
            self._repeating.add(key)
            self._later(0.3, lambda: self._publish(key, numbers, generation + 1))
            return
        self._repeating.discard(key)
        for seq, message_id in zip(numbers, ids, strict=True):
            self._note(events.Published(self.now, key, "e", seq, message_id, generation))

    # --- the subscribers --------------------------------------------------------------------------------------------------------

    def _open(self, client: str) -> None:
        stream = self._streams[client] = f"{client}-{next(self._numbers)}"
        limit = self.chance.choice((0, 0, 5))
        self.state.open_stream(stream, StreamRequest(NAME, DEADLINE_S, client, limit), self.now)
        self._note(events.Opened(self.now, SHORT, stream, client, max_outstanding_messages=limit))

    def _lost(self, client: str) -> None:
        stream = self._streams.pop(client)
        self.state.close_stream(stream, self.now)
        self._note(events.Closed(self.now, SHORT, stream))
        self._later(self.chance.uniform(0.1, 2.0), lambda: self._open(client))

    def _break_some(self) -> None:
        if self.now > BUSY_S:
            return
        client = self.chance.choice("ABC")
        if client in self._streams and self.chance.random() < 0.5:
            self._lost(client)
        self._later(self.chance.expovariate(0.15), self._break_some)

    def _pull(self) -> None:
        pull = f"pull {next(self._numbers)}"
        self._waiting.add(pull)
        self._note(events.Opened(self.now, SHORT, pull, pull))
        self.state.pull(pull, NAME, self.chance.randint(1, 10), self.now, wait_s=1.0)
        self._later(PULL_TIMEOUT_S, lambda: self._pull_ended(pull, lost=True))

    def _pull_ended(self, pull: str, *, lost: bool) -> None:
        """It was answered, or its time is up."""
        if pull in self._waiting:
            self._waiting.remove(pull)
            self.state.cancel_pull(pull)
            self._note(events.Closed(self.now, SHORT, pull, lost))
            self._later(0.05, self._pull)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(stream, deliveries):
                self._received(stream, deliveries)
            case EndStream(stream):
                self._lost(stream.partition("-")[0])
            case AnswerPull(pull, deliveries, error):
                self._received(pull, deliveries)
                self._pull_ended(pull, lost=error is not None)
            case Push(push=push, delivery=delivery):
                self._note(events.Opened(self.now, SHORT, push, push))
                self._received(push, [delivery])
            case CancelPush(push):
                self._note(events.Closed(self.now, SHORT, push))

    def _received(self, session: str, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            message = delivery.message
            seq, generation = map(int, message.data.split(b":"))
            key, stored_ns = message.ordering_key, round(message.publish_time * 1e9)
            self._note(events.Delivered(self.now, SHORT, key, session, "e", seq, message.id, generation, publish_time=stored_ns))
            whim = 0.0 if self.now > BUSY_S else self.chance.random()
            refuse = whim > 0.9 and (whim < 0.96 or self.mode is Mode.PUSH)
            if whim <= 0.9 or refuse:  # otherwise its deadline passes
                self._later(self.chance.uniform(0.01, 0.6), partial(self._answer, session, delivery, refuse))

    def _answer(self, session: str, delivery: Delivery, refuse: bool) -> None:
        if self.mode is Mode.STREAMING and session not in self._streams.values():
            return
        fact = events.Nacked if refuse else events.Acked
        key, message_id = delivery.message.ordering_key, delivery.message.id
        self._note(fact(self.now, SHORT, key, session, message_id))
        if self.mode is Mode.PUSH:
            self._note(events.Closed(self.now, SHORT, session))
            self.state.push_answered(NAME, session, self.now, accepted=not refuse)
            return
        try:
            if refuse:
                self.state.modify_ack_deadline(NAME, [delivery.ack_id], 0, self.now)
                return
            self.state.acknowledge(NAME, [delivery.ack_id], self.now)
            if self._exactly_once:
                self._note(events.AckConfirmed(self.now, SHORT, key, session, message_id))
        except ServiceError as error:
            if any(reason.startswith("TRANSIENT") for reason in error.reasons.values()):
                self._later(0.5, lambda: self._answer(session, delivery, refuse))


def judged(seed: int, mode: Mode, fault: str = "", *, exactly_once: bool = False) -> tuple[int, set[str]]:
    """How often the fault struck, and what was found that would fail a run."""
    faults = Faults([Fault(fault, CHANCES.get(fault, 0.3), seed=seed)] if fault else [])
    found = World(seed, mode, faults, exactly_once=exactly_once).run()
    return faults.ledger.counts[fault], {str(finding.kind) for finding in found}


MODES = pytest.mark.parametrize("mode", [Mode.STREAMING, Mode.PULL, Mode.PUSH])


@MODES
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_in_the_honest_service(mode: Mode, seed: int) -> None:
    assert judged(seed, mode) == (0, set())


@pytest.mark.parametrize("mode", [Mode.STREAMING, Mode.PULL])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_with_exactly_once_delivery(mode: Mode, seed: int) -> None:
    assert judged(seed, mode, exactly_once=True) == (0, set())


@MODES
@pytest.mark.parametrize("fault", CATALOGUE)
def test_a_fault_is_found_as_announced(mode: Mode, fault: str) -> None:
    announced = set(CATALOGUE[fault].findings)
    for seed in SEEDS:
        struck, found = judged(seed, mode, fault)
        if announced and struck:
            assert found & announced, f"seed {seed}: {fault} struck {struck} times, found: {found or 'nothing'}"
        else:
            assert not found, f"seed {seed}: {fault} struck {struck} times, found: {found}"


@pytest.mark.parametrize("fault", CATALOGUE)
def test_a_fault_strikes(fault: str) -> None:
    mode = Mode.PULL if fault == "lost_pull_answer" else Mode.STREAMING
    assert any(judged(seed, mode, fault)[0] for seed in SEEDS)
