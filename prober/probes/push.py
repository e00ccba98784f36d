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
from contextlib import suppress
from typing import Final

from prober.brokers.base import BrokerSession, Outgoing, Received
from prober.core.rules import Mode
from prober.errors import NotSupported
from prober.probes import push_ramp
from prober.probes.context import Delivery, ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import (
    NOTHING_NACKED,
    NOTHING_REDELIVERED,
    Company,
    Experiment,
    SubscriptionPlan,
    Workload,
    each_key,
)
from prober.probes.first_of_keys import FirstOfKeys
from prober.probes.push_ramp import PushRamp
from prober.probes.unverified import UnverifiedTap
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
    await asyncio.gather(*(_bursts(context, _key(number), workload, firsts if settled else None) for number in workload.numbers))


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


async def _bursts(context: ProbeContext, key: str, workload: Workload, firsts: FirstOfKeys | None) -> None:
    if firsts is not None:
        firsts.due(key)
    for _ in range(workload.bursts):
        await context.publish(key, workload.burst_messages, workload.sizes)
        await asyncio.sleep(context.random.uniform(0.5, 1.5) * workload.ack_after_s)


def _refused(length: int) -> frozenset[int]:
    """Return the positions in a burst that are nacked first; messages follow each."""
    return frozenset({2, length - 1} - {1})


def _failures(workload: Workload) -> int:
    """Return the number of requests that fail."""
    refused = workload.keys * workload.bursts * len(_refused(workload.burst_messages))
    return refused + len(workload.numbers[::UNANSWERED_EVERY])


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once, and again if it failed; those of the ramp once."""
    requests = workload.keys * workload.bursts + push_ramp.REQUESTS
    return Traffic(requests, workload.messages, workload.messages + _failures(workload))


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run: per message answered in time before a waiting message, and per failed request.

    The ramp has an extra key, on which the messages of each request wait behind each other.
    """
    unanswered = len(workload.numbers[::UNANSWERED_EVERY])
    return {
        "opportunities_order": workload.messages - workload.keys - 1,
        "publishes_confirmed": workload.messages,
        "opportunities_overlap": workload.messages - push_ramp.REQUESTS - workload.keys - unanswered,
        "opportunities_push_failed": _failures(workload),
    }


PROBE = Experiment(
    name="push",
    guarantee="Push requests bring one message of a key at a time, and none past one that failed.",
    act=act,
    workload=Workload(keys=10, bursts=3, burst_messages=6, subscribers=1, ack_after_s=0.1, beside=push_ramp.MESSAGES),
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
