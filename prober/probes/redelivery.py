"""`redelivery`: when a message is redelivered, all later messages of its key are redelivered too, acknowledged or not.

For each cause of a redelivery and each place in a run there is a key of its own. A burst is published; the message in question is held
back while every later one is acknowledged, and then made to come again:

    refused     it is refused (nack)
    expired     its lease ends
    broken      the stream that carried it breaks
    killed      its subscriber goes away; another takes over

What comes again is acknowledged, and a second burst follows, so that a skip after the run shows as well. Refusals and leases are tried
while there is one subscriber only: then the order of arrival is the order of sending, and the verdict needs no waiting. For broken
streams and killed subscribers others join, to take over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import cycle, product

from prober.brokers.base import Subscriber
from prober.config.models import ProbeName
from prober.config.workloads import BURSTS
from prober.probes.context import Delivery, Experiment, ProbeContext, Workload
from prober.probes.cost import Traffic

LEASE_S = 1
HOLD_S = 1.5
"""How long a message is held back for the later ones to be acknowledged. A client library delivers them only after it is answered."""
AGAIN_S = 10.0
"""How long to wait for it to come again before publishing goes on."""


class Cause(StrEnum):
    """What makes the message come again."""

    REFUSED = "refused"
    EXPIRED = "expired"
    BROKEN = "broken"
    KILLED = "killed"


class Trial:
    """One key: which message is to come again and why."""

    def __init__(self, number: int, cause: Cause, seq: int, length: int) -> None:
        self.cause = cause
        self.key = f"redelivery-{number}-{cause}-{seq}"
        self.seq = seq
        self.length = length
        self.held: Delivery | None = None
        self.holds = True
        self.later_acked = 0
        self.ready = asyncio.Event()
        self.again = asyncio.Event()

    def decide(self, delivery: Delivery) -> None:
        """Holds the chosen message back the first time; acknowledges everything else, and the chosen one when it comes again."""
        if delivery.seq == self.seq and not delivery.again and self.held is None and self.holds:
            self.held = delivery
        else:
            delivery.ack()
            self.later_acked += delivery.seq > self.seq
            if delivery.seq == self.seq:
                self.again.set()
        if self.held is not None and self.later_acked >= self.length - self.seq:
            self.ready.set()


async def act(context: ProbeContext, workload: Workload) -> None:
    """Runs the gentle trials side by side, then those that break streams one after the other: a stream carries all keys."""
    length = _length(workload)
    trials = {trial.key: trial for trial in _trials(workload.numbers, length)}

    def decide(delivery: Delivery) -> None:
        trials[delivery.key].decide(delivery)

    subscribers = [await context.subscribe(decide)]
    gentle = [trial for trial in trials.values() if trial.cause in (Cause.REFUSED, Cause.EXPIRED)]
    await asyncio.gather(*(_provoke(context, trial, workload, ()) for trial in gentle))
    subscribers += [await context.subscribe(decide) for _ in range(workload.subscribers - 1)]
    for trial in trials.values():
        if trial.cause is Cause.BROKEN:
            await _provoke(context, trial, workload, subscribers)
        if trial.cause is Cause.KILLED:
            await _provoke(context, trial, workload, subscribers)
            subscribers = [await context.subscribe(decide) for _ in subscribers]


def _length(workload: Workload) -> int:
    """How many messages a burst has: a first, a middle and a last one at the least."""
    return max(3, workload.burst_messages)


def _trials(numbers: Sequence[int], length: int) -> list[Trial]:
    """Each cause with each place in turn; the causes change fastest, so that few keys still meet all of them."""
    combinations = cycle((cause, seq) for seq, cause in product((1, (length + 1) // 2, length), Cause))
    return [Trial(number, cause, seq, length) for number, (cause, seq) in zip(numbers, combinations, strict=False)]


async def _provoke(context: ProbeContext, trial: Trial, workload: Workload, subscribers: Sequence[Subscriber]) -> None:
    await context.publish(trial.key, trial.length, workload.sizes)
    await _within(HOLD_S, trial.ready)
    trial.holds = False  # one that comes later is acknowledged: nobody would make it come again
    if trial.held is not None:
        await _cause(trial.cause, trial.held, subscribers)
        if trial.cause is not Cause.KILLED:
            await _within(AGAIN_S, trial.again)
    for _ in range(1, workload.bursts):
        await context.publish(trial.key, trial.length, workload.sizes)


async def _cause(cause: Cause, held: Delivery, subscribers: Sequence[Subscriber]) -> None:
    match cause:
        case Cause.REFUSED:
            held.nack()
        case Cause.EXPIRED:
            held.shorten_lease(LEASE_S)
        case Cause.BROKEN:
            await asyncio.gather(*(subscriber.break_stream() for subscriber in subscribers))
            held.let_expire()  # a client library would keep it over the break, and make its lease longer and longer
        case Cause.KILLED:
            await asyncio.gather(*(subscriber.close() for subscriber in subscribers))


async def _within(limit_s: float, event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), limit_s)


def traffic(workload: Workload) -> Traffic:
    """Every message comes once, and those of the first burst again from the chosen one on."""
    published, length = PROBE.messages(workload), _length(workload)
    again = sum(length - trial.seq + 1 for trial in _trials(workload.numbers, length))
    return Traffic(workload.keys * workload.bursts, published, published + again)


PROBE = Experiment(
    name="redelivery",
    promise="When a message is redelivered, all later messages of its key are redelivered too, acknowledged or not.",
    act=act,
    workload=Workload(keys=12, bursts=BURSTS[ProbeName.REDELIVERY], burst_messages=5, subscribers=2),
    requires={
        "rewinds": "nothing was redelivered",
        "redeliveries_of_acked": "no redelivery passed an acknowledged message",
        "nacks": "nothing was refused",
        "sessions_closed": "no stream broke",
    },
    messages=lambda workload: workload.keys * workload.bursts * _length(workload),
)
