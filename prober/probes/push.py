"""`push`: one message of a key is outstanding at a time, and no message overtakes a failed one.

The messages of a burst are published together, so that messages wait behind each but the last. Each is answered after a moment, during
which no other message of its key may arrive. The second message of each burst, and the last but one, are first answered with an error; the
same message must be redelivered. On one key in `UNANSWERED_EVERY` the first message is never answered: a failure, too, once its deadline
has passed. On the next key it is answered late, though in time.

Before the bursts, while no request has failed yet, a ramp measures the rate at which push keeps up on one key (`push_ramp`).

Google's emulator omits ordering keys from push requests. So an extra message is published first, to test for them.
"""

from __future__ import annotations

import asyncio
from asyncio import Event
from contextlib import suppress
from typing import Final

from prober.brokers.base import BrokerSession, Outgoing, Received
from prober.core.rules import Mode
from prober.errors import NotSupported
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import NOTHING_NACKED, NOTHING_REDELIVERED, Company, Experiment, SubscriptionPlan, Workload, each_key
from prober.probes.first_of_keys import FirstOfKeys
from prober.probes.unverified import UnverifiedTap
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

UNANSWERED_EVERY: Final = 10
LATE_S: Final = 2.0
AHEAD: Final = Outgoing("push-ahead", b"does the ordering key come along?")
AHEAD_S: Final = 5.0
"""Longest wait for that first message, in seconds. If it does not arrive, the test is inconclusive and the experiment starts."""
NO_KEYS: Final = "what the target pushes does not say its ordering key, so nothing can be said about the order of a key"


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish bursts on all keys, and answer push requests."""
    length = workload.burst_messages
    unanswered = {_key(number) for number in workload.numbers[::UNANSWERED_EVERY]}
    late = {_key(number) for number in workload.numbers[1::UNANSWERED_EVERY]}

    firsts = FirstOfKeys(context, Indicator.PUSH_LATENCY)
    ramp = PushRamp(context, workload)

    def decide(delivery: Delivery) -> None:
        if delivery.key == ramp.key:
            ramp.received(delivery)
            return
        firsts.received(delivery)
        moment_s = context.random.uniform(0.5, 1.5) * workload.ack_after_s
        first = not delivery.again
        if first and delivery.seq == 1 and delivery.key in unanswered:
            delivery.let_expire()
        elif first and delivery.seq == 1 and delivery.key in late:
            context.later(LATE_S, delivery.ack)
        elif first and 1 + (delivery.seq - 1) % length in _refused(length):
            context.later(moment_s, delivery.nack)
        else:
            context.later(moment_s, delivery.ack)

    await _require_keys(context)
    context.receive_pushes(decide)
    settled = await ramp.climb()
    if not settled:
        context.count("first_messages_left_out", workload.keys)
    await asyncio.gather(*(firsts.bursts(_key(number), workload, measured=settled) for number in workload.numbers))


class _Ahead(UnverifiedTap):
    """Waits for the message that tests for ordering keys; acknowledges messages left over from an earlier run."""

    def __init__(self, epoch: str) -> None:
        super().__init__(epoch, lambda _key, _stamp: None)
        self.key: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def received(self, session: BrokerSession, received: Received) -> None:
        """Acknowledge any message, since a nack would block its key; note the key of the test message."""
        session.ack(received)
        if received.data == AHEAD.data and not self.key.done():
            self.key.set_result(received.ordering_key)


async def _require_keys(context: ProbeContext) -> None:
    """Test the target for ordering keys. Raises NotSupported if push requests lack them."""
    ahead, resources = _Ahead(context.epoch), context.resources
    publisher = context.broker.publisher(resources.topic)
    stop = context.broker.pushes.receive(resources.subscription, ahead)
    try:
        await publisher.publish([AHEAD], resources.publish_timeout_s)
        with suppress(TimeoutError):
            await asyncio.wait_for(ahead.key, AHEAD_S)
    finally:
        stop()
        await publisher.close()
    if ahead.key.done() and not ahead.key.cancelled() and not ahead.key.result():
        raise NotSupported(NO_KEYS)


def _key(number: int) -> str:
    return f"push-{number}"


def _refused(length: int) -> frozenset[int]:
    """Return the positions in a burst that are nacked first; messages follow each."""
    return frozenset({2, length - 1} - {1})


def _failures(workload: Workload) -> int:
    refused = workload.keys * workload.bursts * len(_refused(workload.burst_messages))
    return refused + len(workload.numbers[::UNANSWERED_EVERY])


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once, and again if it failed; those of the ramp once."""
    requests = workload.keys * workload.bursts + RAMP_REQUESTS
    return Traffic(requests, workload.messages, workload.messages + _failures(workload))


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run: per message answered in time before a waiting message, and per failed request.

    The ramp has an extra key, on which the messages of each request wait behind each other.
    """
    unanswered = len(workload.numbers[::UNANSWERED_EVERY])
    return {
        "opportunities_order": workload.messages - workload.keys - 1,
        "publishes_confirmed": workload.messages,
        "opportunities_overlap": workload.messages - RAMP_REQUESTS - workload.keys - unanswered,
        "opportunities_push_failed": _failures(workload),
    }


# --- the ramp of `push`: the highest rate on one key at which push keeps up ---------------------------------------------------


RATES_PER_S: Final = (5, 10, 20, 40)
STEP_S: Final = 2.0
REQUESTS_PER_S: Final = 5
"""Publish requests per second, which share its messages: a key has one writer, which waits for each confirmation."""
WAITING_S: Final = 1.0
LATE_SHARE: Final = 0.2
"""Share of `STEP_S` by which publishing a step may take longer."""
SETTLE_S: Final = 10.0
"""Longest wait for outstanding messages at the end of the ramp, in seconds."""

RAMP_REQUESTS: Final = round(len(RATES_PER_S) * STEP_S * REQUESTS_PER_S)
RAMP_MESSAGES: Final = round(sum(RATES_PER_S) * STEP_S)
"""Messages of a ramp up to the largest rate; `REQUESTS` are its publish requests."""


class PushRamp:
    """Publishes the ramp on its key, and measures the rates at which push keeps up.

    One message of a key is outstanding at a time, so each message costs a round trip to the endpoint, and push may not keep up with a busy
    key. On a key of its own the ramp publishes at each of `RATES_PER_S` for `STEP_S` seconds, and acknowledges every message on receipt.
    Push *kept up* if all messages of a step were received at most `WAITING_S` after its last publish; then the next step starts. Otherwise
    it *fell behind*, and the ramp ends. So the highest rate of push lies between two measurements, or is at least the largest rate of the
    ramp.

    A step is *undecided* if publishing did not keep up, or if the prober's event loop lagged while messages were missing: neither proves
    anything about push. The ramp ends there, and the run counts it (`push_ramps_undecided`). No result of the ramp is a violation.
    """

    def __init__(self, context: ProbeContext, workload: Workload) -> None:
        self.key = f"push-ramp-{workload.part}"
        self._context, self._sizes = context, workload.sizes
        self._sent = 0
        self._missing: set[int] = set()
        self._nothing_missing = Event()

    def received(self, delivery: Delivery) -> None:
        """Acknowledge a message of the ramp."""
        delivery.ack()
        self._arrived(delivery.seq)

    async def climb(self) -> bool:
        """Run the steps and record the measurements. Return whether all messages were received.

        If they were, later steps of the probe wait for none of them.
        """
        for rate_per_s in RATES_PER_S:
            kept_up = await self._step(rate_per_s)
            if kept_up is None:
                self._context.count("push_ramps_undecided")
                break
            self._context.recording.measured(Figure.PUSH_KEPT_UP if kept_up else Figure.PUSH_FELL_BEHIND, rate_per_s)
            if not kept_up:
                break
        return await comes_within(SETTLE_S, self._nothing_missing)

    async def _step(self, rate_per_s: int) -> bool | None:
        """Publish for `STEP_S` at a rate, in messages per second. Return whether push kept up; None if undecided."""
        began_t = self._context.now()
        reached = await self._publish(rate_per_s // REQUESTS_PER_S) and self._context.now() - began_t <= (1 + LATE_SHARE) * STEP_S
        if await comes_within(WAITING_S, self._nothing_missing):
            return True if reached else None
        lagged = self._context.recording.lagged_s(self._context.now() - began_t) > 0.0
        return False if reached and not lagged else None

    async def _publish(self, messages: int) -> bool:
        """Publish the requests of a step, each of `messages` messages. Return whether all were confirmed."""
        all_confirmed = True
        async for due_t in self._context.ticks(round(STEP_S * REQUESTS_PER_S), 1 / REQUESTS_PER_S):
            seqs = range(self._sent + 1, self._sent + messages + 1)
            self._sent += messages
            self._missing.update(seqs)
            self._nothing_missing.clear()
            if await self._context.publish(self.key, messages, self._sizes, due_t) < messages:
                all_confirmed = False
                for seq in seqs:
                    self._arrived(seq)
        return all_confirmed

    def _arrived(self, seq: int) -> None:
        """Stop waiting for a message that was received, or was not confirmed."""
        self._missing.discard(seq)
        if not self._missing:
            self._nothing_missing.set()


PROBE = Experiment(
    name="push",
    guarantee="Push requests bring one message of a key at a time, and none past one that failed.",
    act=act,
    workload=Workload(keys=10, bursts=3, burst_messages=6, subscribers=1, ack_after_s=0.1, beside=RAMP_MESSAGES),
    least={"messages": 3},
    wire_only=True,  # a client library takes no pushes
    traffic=traffic,
    opportunities=opportunities,
    feeds={Indicator.PUSH_LATENCY: each_key},
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(3, 7)},
    requires={
        "deliveries_first": (
            "no message of the run was pushed, so nothing was verified; if this persists, check that Pub/Sub can reach the push endpoint"
        ),
        "nacks": NOTHING_NACKED,
        "rewinds": NOTHING_REDELIVERED,
    },
    subscriptions=(SubscriptionPlan(mode=Mode.PUSH),),
    company=Company.QUIET,
)
