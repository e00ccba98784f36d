"""`scale`: order holds while keys and subscribers become more and more; how many messages a second a consumer gets done at each step.

Each step publishes equally many messages, on more keys than the step before: on `keys` to the power of 0, 1/3, 2/3 and 1, which is 1, 10,
100 and 1,000 by default. Subscribers join in equal parts before each step, while what was published before is still being delivered, so
that the service has keys to hand over. A consumer handles one message of a key at a time, which takes `ack_after_s`, and any number of keys
at once: only keys should bound how much it gets done.

*Throughput* of a step is its messages over the time from its first publish to its last acknowledgement. *Parallelism* is the throughput of
the second step over that of the first, for each of its keys: close to 1 where only keys bound it. In later steps a consumer takes so little
time that the way to the service and the prober's own speed matter more. This measures and is never a violation.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Final

from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import NOTHING_DELIVERED, ONE_SUBSCRIBER, Company, Experiment, Workload
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

THROUGHPUT: Final = (Figure.SCALE_ONE_KEY, Figure.SCALE_FEW_KEYS, Figure.SCALE_MANY_KEYS, Figure.SCALE_ALL_KEYS)
"""One for each step."""
STEPS: Final = len(THROUGHPUT)
SETTLE_S: Final = 30.0
"""How long a step may take beyond the time that its consumer needs."""
REQUEST_MESSAGES_MAX: Final = 20
PUBLISHING_MAX: Final = 50
"""Keys that are published on at the same time."""


def keys_of(step: int, workload: Workload) -> int:
    """How many keys a step has, counted from 0."""
    return round(math.pow(workload.keys, step / (STEPS - 1)))


def _counts(step: int, workload: Workload) -> list[int]:
    """How many messages each key of a step gets: together always as many as all keys have in a burst."""
    keys, messages = keys_of(step, workload), workload.keys * workload.burst_messages
    return [messages // keys + (place < messages % keys) for place in range(keys)]


class _Consumer:
    """Handles messages: of a key one after the other, of all keys at once."""

    def __init__(self, context: ProbeContext, takes_s: float) -> None:
        self._context, self._takes_s = context, takes_s
        self._waiting: dict[str, deque[Delivery]] = {}
        self._left: set[tuple[str, int]] = set()
        self._nothing_left = asyncio.Event()

    def expect(self, messages: set[tuple[str, int]]) -> None:
        """These are the messages of a step."""
        self._left = messages
        self._nothing_left.clear()

    def give_up(self, key: str, seqs: range) -> None:
        """These were not confirmed, so the step does not wait for them."""
        for seq in seqs:
            self._done(key, seq)

    async def finish(self, limit_s: float) -> bool:
        """Waits until everything of the step is acknowledged, at most so long; whether it is."""
        return await comes_within(limit_s, self._nothing_left)

    def decide(self, delivery: Delivery) -> None:
        """Puts a message behind the others of its key."""
        waiting = self._waiting.setdefault(delivery.key, deque())
        waiting.append(delivery)
        if len(waiting) == 1:
            self._handle(delivery.key)

    def _handle(self, key: str) -> None:
        self._context.later(self._takes_s, lambda: self._handled(key))

    def _handled(self, key: str) -> None:
        waiting = self._waiting[key]
        delivery = waiting.popleft()
        delivery.ack()
        self._done(key, delivery.seq)
        if waiting:
            self._handle(key)
        else:
            del self._waiting[key]

    def _done(self, key: str, seq: int) -> None:
        self._left.discard((key, seq))
        if not self._left:
            self._nothing_left.set()


async def act(context: ProbeContext, workload: Workload) -> None:
    """Runs the steps; stops behind one that did not finish in time, whose rate is not known."""
    consumer = _Consumer(context, workload.ack_after_s)
    joined, one_key = 0, 0.0
    for step, figure in enumerate(THROUGHPUT):
        publishing = asyncio.create_task(_publish(context, consumer, step, workload))
        began_t = context.now()
        for _ in range(joined, joined := max(1, workload.subscribers * (step + 1) // STEPS)):
            await context.subscribe(consumer.decide)
        await publishing
        keys, messages = keys_of(step, workload), workload.keys * workload.burst_messages
        if not await consumer.finish(SETTLE_S + messages / keys * workload.ack_after_s):
            return
        throughput = messages / (context.now() - began_t)
        context.count("steps_finished")
        context.recording.measured(figure, throughput)
        if step == 0:
            one_key = throughput
        elif step == 1:
            context.recording.measured(Figure.SCALE_PARALLELISM, throughput / (one_key * keys))


async def _publish(context: ProbeContext, consumer: _Consumer, step: int, workload: Workload) -> None:
    """Publishes a step, on some keys at the same time, and each key twice as fast as it is consumed."""
    counts = {f"scale-{step}-{workload.part}-{place}": count for place, count in enumerate(_counts(step, workload)) if count}
    consumer.expect({(key, seq) for key, count in counts.items() for seq in range(1, count + 1)})
    free = asyncio.Semaphore(PUBLISHING_MAX)

    async def publish(key: str, count: int) -> None:
        async with free:
            for first in range(1, count + 1, REQUEST_MESSAGES_MAX):
                length = min(REQUEST_MESSAGES_MAX, count + 1 - first)
                if await context.publish(key, length, workload.sizes) < length:
                    consumer.give_up(key, range(first, first + length))
                await asyncio.sleep(length * workload.ack_after_s / 2)

    await asyncio.gather(*(publish(key, count) for key, count in counts.items()))


def _requests(workload: Workload) -> int:
    return sum(-(-count // REQUEST_MESSAGES_MAX) for step in range(STEPS) for count in _counts(step, workload))


def traffic(workload: Workload) -> Traffic:
    """Every message comes once; a key is published on in requests of twenty messages."""
    return Traffic(_requests(workload), workload.messages, workload.messages)


def opportunities(workload: Workload) -> dict[str, int]:
    """One for each message behind the first of its key, and each may be lost."""
    firsts = sum(bool(count) for step in range(STEPS) for count in _counts(step, workload))
    return {"opportunities_order": workload.messages - firsts, "publishes_confirmed": workload.messages}


PROBE = Experiment(
    name="scale",
    guarantee="Order holds while keys and subscribers become more; what a consumer gets done with 1 to all keys is measured.",
    act=act,
    workload=Workload(keys=1000, bursts=STEPS, burst_messages=1, subscribers=8, ack_after_s=0.01),
    interval_s=1800.0,
    ack_deadline_s=30.0,
    least={"keys": 8, "subscribers": 2},
    traffic=traffic,
    opportunities=opportunities,
    simulated={"keys": range(20, 60)},
    # With one key a thousand messages wait for each other.
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    requires={
        "deliveries_first": NOTHING_DELIVERED,
        "deliveries_among_several": ONE_SUBSCRIBER,
        "steps_finished": (
            f"not even the messages of one key were handled within {SETTLE_S:g} s more than that takes, so nothing was measured; if this "
            "persists, reduce keys or messages of the probe, or give the prober more CPU"
        ),
    },
    company=Company.NONE,
)
