"""`scale`: order holds while keys and subscribers increase; the throughput of a consumer is measured at each step.

Each step publishes equally many messages, on more keys than the step before: on `keys` to the power of 0, 1/3, 2/3 and 1, which is 1, 10,
100 and 1,000 by default. A share of the subscribers joins at the start of each step, while its first messages are already being delivered,
so that the service has keys to hand over. A consumer handles one message of a key at a time, which takes `ack_after_s`, and any number of
keys at once: only the number of keys should bound its throughput.

*Throughput* of a step is its messages over the time from its first publish to its last acknowledgement. *Parallelism* is the throughput of
the second step over that of the first, per key of the second: close to 1 where only the keys bound it. In later steps the consumer takes so
little time that the round trip to the service and the prober's own speed matter more. Throughput is measured and never a violation.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from prober.probes.context import ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import NOTHING_DELIVERED, ONE_SUBSCRIBER, Company, Experiment, Workload
from prober.probes.slow_consumer import SlowConsumer
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

THROUGHPUT: Final = (Figure.SCALE_ONE_KEY, Figure.SCALE_FEW_KEYS, Figure.SCALE_MANY_KEYS, Figure.SCALE_ALL_KEYS)
"""Throughput measurement of each step."""
STEPS: Final = len(THROUGHPUT)
SETTLE_S: Final = 30.0
"""Longest duration of a step beyond the processing time of its consumer, in seconds."""
REQUEST_MESSAGES_MAX: Final = 20
PUBLISHING_MAX: Final = 50
"""Largest number of keys that are published on at the same time."""


def keys_of(step: int, workload: Workload) -> int:
    """Return the number of keys of a step; steps count from 0."""
    return round(math.pow(workload.keys, step / (STEPS - 1)))


def _counts(step: int, workload: Workload) -> list[int]:
    """Return the number of messages of each key of a step; their sum is that of one burst on all keys."""
    keys, messages = keys_of(step, workload), workload.keys * workload.burst_messages
    return [messages // keys + (place < messages % keys) for place in range(keys)]


async def act(context: ProbeContext, workload: Workload) -> None:
    """Run the steps; stop after a step that did not finish in time, whose rate is unknown."""
    consumer = SlowConsumer(context, lambda _key: workload.ack_after_s)
    joined, one_key = 0, 0.0
    for step, figure in enumerate(THROUGHPUT):
        publishing = asyncio.create_task(_publish(context, consumer, step, workload))
        began_t = context.now()
        for _ in range(joined, joined := max(1, workload.subscribers * (step + 1) // STEPS)):
            await context.subscribe(consumer.take)
        await publishing
        keys, messages = keys_of(step, workload), workload.keys * workload.burst_messages
        cut_short = await consumer.finish(SETTLE_S + messages / keys * workload.ack_after_s)
        if cut_short or consumer.backlog:
            return
        throughput = messages / (context.now() - began_t)
        context.count("steps_finished")
        context.recording.measured(figure, throughput)
        if step == 0:
            one_key = throughput
        elif step == 1:
            context.recording.measured(Figure.SCALE_PARALLELISM, throughput / (one_key * keys))


async def _publish(context: ProbeContext, consumer: SlowConsumer, step: int, workload: Workload) -> None:
    """Publish a step, on some keys at the same time, and on each key at twice the rate of its consumer."""
    counts = {f"scale-{step}-{workload.part}-{place}": count for place, count in enumerate(_counts(step, workload)) if count}
    for key, count in counts.items():
        consumer.expect(key, range(1, count + 1), context.now())
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
    """Return the traffic of a run: each message once; a request contains at most twenty messages of a key."""
    return Traffic(_requests(workload), workload.messages, workload.messages)


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run: per message behind the first of its key, and per message for loss."""
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
