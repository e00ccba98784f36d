"""`hot_key`: order under a load that rises to the limit of 1 MB/s a key, and the rate at which the backlog begins.

In steps of equal length, messages are published on each key at a quarter, a half, three quarters and all of the rate, and acknowledged at
once. Then a last burst is published without subscribers, so that a backlog has to be drained. The checker verifies order all the time. With
one key the probe loads a key, with several a topic.

*Refusals begin* in the first step in which the service did not confirm every message. With `beyond_key_limit` the rate may exceed the
limit. Refused messages are retried a few times, then abandoned, and never count against the service: no document states the accepted rate
above the limit.

The *backlog begins* in the first step at whose end more bytes were unacknowledged than were published within the last `WAITING_S`: messages
were not only in transit but queued. A publisher that does not reach the rate of a step proves nothing about higher rates: reported rates
are those reached. The probe measures and reports no violations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import NOTHING_DELIVERED, Company, Experiment, Workload, opportunities_of_order
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

STEPS: Final = 4
TICK_S: Final = 0.1
WAITING_S: Final = 1.0
KEY_BYTES_PER_S_MAX: Final = 1_000_000
"""Limit of the service for one ordering key, in bytes per second (documentation, "Quotas and limits"); it refuses more."""
BEYOND_MAX: Final = 4
"""Largest multiple of that limit at which a run may publish."""
SETTLE_S: Final = 10.0
"""Longest wait for outstanding messages after the last step, in seconds."""

RECOVERY_S: Final = 2.0
"""Rest of the key between refusals and the last burst, in seconds: the limit is per second."""


class RampStep(NamedTuple):
    """A step of the ramp.

    seconds         duration.
    published       payload bytes published; likewise `acknowledged` and `unconfirmed`.
    waiting_before  unacknowledged payload bytes at its start; `waiting_after`: at its end.
    """

    seconds: float
    published: int
    acknowledged: int
    waiting_before: int
    waiting_after: int
    unconfirmed: int = 0

    @property
    def queues(self) -> bool:
        """Whether there was a backlog at its end."""
        return self.waiting_after * self.seconds > self.published * WAITING_S


def figures_of(steps: Sequence[RampStep]) -> dict[Figure, float]:
    """Return the rates at which refusals and the backlog began, and the rates of one step.

    That is the step in which the backlog began, else the fastest. `REFUSALS_BEGIN` and `BACKLOG_BEGINS` are missing if neither began;
    without published messages the result is empty.
    """
    refused = next((step for step in steps if step.unconfirmed and step.seconds > 0.0), None)
    begun = {} if refused is None else {Figure.REFUSALS_BEGIN: (refused.published + refused.unconfirmed) / refused.seconds}
    return begun | _of_backlog(steps)


def _of_backlog(steps: Iterable[RampStep]) -> dict[Figure, float]:
    done = [step for step in steps if step.published and step.seconds > 0.0]
    if not done:
        return {}
    queueing = next((step for step in done if step.queues), None)
    reported = queueing or max(done, key=lambda step: step.published / step.seconds)
    rate = reported.published / reported.seconds
    figures = {
        Figure.HOT_KEY_PUBLISHED: rate,
        Figure.HOT_KEY_ACKNOWLEDGED: reported.acknowledged / reported.seconds,
        Figure.HOT_KEY_BACKLOG_GROWTH: (reported.waiting_after - reported.waiting_before) / reported.seconds,
    }
    return figures if queueing is None else {Figure.BACKLOG_BEGINS: rate, **figures}


class _Load:
    """Published and acknowledged payload bytes, each message counted once."""

    def __init__(self, context: ProbeContext, workload: Workload) -> None:
        self.published = self.acknowledged = self.unconfirmed = 0
        self._context, self._workload = context, workload
        self._sent: dict[str, int] = {}
        self._waiting: dict[tuple[str, int], int] = {}
        self._nothing_waits = asyncio.Event()
        self._nothing_waits.set()

    def decide(self, delivery: Delivery) -> None:
        self.acknowledged += self._waiting.pop((delivery.key, delivery.seq), 0)
        delivery.ack()
        if not self._waiting:
            self._nothing_waits.set()

    async def publish(self, key: str, count: int) -> None:
        """Publish messages of a key together; stop waiting for unconfirmed messages."""
        sizes, first = self._workload.sizes, self._sent.get(key, 0) + 1
        self._sent[key] = first + count - 1
        sent = {(key, seq): sizes[seq % len(sizes)] for seq in range(first, first + count)}
        self._waiting |= sent
        self._nothing_waits.clear()
        if await self._context.publish(key, count, sizes) == count:
            self.published += sum(sent.values())
        else:
            unconfirmed = sum(self._waiting.pop(message, 0) for message in sent)
            self.published += sum(sent.values()) - unconfirmed
            self.unconfirmed += unconfirmed
            if not self._waiting:
                self._nothing_waits.set()

    async def step(self, keys: list[str], number: int) -> RampStep:
        workload = self._workload
        count, rate = number * workload.burst_messages, number / STEPS * workload.rate / workload.keys
        began_t, before = self._context.now(), RampStep(0.0, self.published, self.acknowledged, 0, self.waiting, self.unconfirmed)
        await asyncio.gather(*(self._at_rate(key, count, rate) for key in keys))
        seconds = self._context.now() - began_t
        published, acknowledged = self.published - before.published, self.acknowledged - before.acknowledged
        unconfirmed = self.unconfirmed - before.unconfirmed
        return RampStep(seconds, published, acknowledged, before.waiting_after, self.waiting, unconfirmed)

    @property
    def waiting(self) -> int:
        """Payload bytes sent and not acknowledged."""
        return sum(self._waiting.values())

    async def settle(self) -> bool:
        """Wait until all messages are acknowledged. Return False after `SETTLE_S`."""
        return await comes_within(SETTLE_S, self._nothing_waits)

    async def _at_rate(self, key: str, count: int, rate: float) -> None:
        """Publish `count` messages of a key at a rate; a late publisher sends more at once, never ahead of the schedule."""
        sent, began_t = 0, self._context.now()
        while sent < count:
            await asyncio.sleep(TICK_S)
            due = count if rate <= 0.0 else min(count, round((self._context.now() - began_t) * rate))
            if due > sent:
                await self.publish(key, due - sent)
                sent = due


async def act(context: ProbeContext, workload: Workload) -> None:
    """Load the keys step by step, then let a backlog drain, and record the measurements."""
    load = _Load(context, workload)
    keys = [f"hot-{number}" for number in workload.numbers]
    subscribers = [await context.subscribe(load.decide) for _ in range(workload.subscribers)]
    for figure, value in figures_of([await load.step(keys, number) for number in range(1, STEPS + 1)]).items():
        context.recording.measured(figure, value)
    await load.settle()
    if load.unconfirmed:
        await asyncio.sleep(RECOVERY_S)
    for subscriber in subscribers:
        await subscriber.close()
    await asyncio.gather(*(load.publish(key, workload.burst_messages) for key in keys))
    backlog, began_t = load.waiting, context.now()
    await context.subscribe(load.decide)
    if backlog and await load.settle():
        context.count("backlogs_drained")
        context.recording.measured(Figure.HOT_KEY_DRAINED, backlog / (context.now() - began_t))


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once.

    A request contains the messages due within `TICK_S`; the last burst is one request.
    """
    ramp_s = STEPS * STEPS * workload.burst_messages * workload.keys / workload.rate if workload.rate else STEPS * TICK_S
    requests = workload.keys * (round(ramp_s / TICK_S) + 1)
    return Traffic(min(requests, workload.messages), workload.messages, workload.messages)


def rate_problem(workload: Workload) -> str:
    """Return the error in a ramp that does not load a key, or exceeds the limit of the service; empty if it is right."""
    if not workload.rate:
        return "must be more than 0: it is the load that the hot_key probe works up to"
    each = workload.rate / workload.keys * workload.mean_size
    if each <= KEY_BYTES_PER_S_MAX * (BEYOND_MAX if workload.beyond_key_limit else 1):
        return ""
    if workload.beyond_key_limit:
        return f"{each:,.0f} bytes a second on each key are more than {BEYOND_MAX} times its limit of {KEY_BYTES_PER_S_MAX:,}: take less"
    return (
        f"{workload.rate:,.10g} messages a second over all keys are {each:,.0f} bytes a second on each, and the service takes at "
        f"most {KEY_BYTES_PER_S_MAX:,}: take a lower rate, smaller sizes or more keys, or set beyond_key_limit to see it refuse"
    )


PROBE = Experiment(
    name="hot_key",
    guarantee="Order holds on a key of up to 1 MB/s and while a backlog drains; where the backlog begins is measured.",
    act=act,
    workload=Workload(keys=1, bursts=11, burst_messages=100, rate=100.0, sizes=(9_500,), subscribers=1),
    interval_s=3600.0,
    least={"messages": 2},
    paced=True,
    rate_problem=rate_problem,
    traffic=traffic,
    opportunities=opportunities_of_order,
    # It loads a key as much as the service allows, or more.
    disturbs=frozenset({Indicator.PUBLISH_AVAILABILITY, Indicator.PUBLISH_LATENCY, Indicator.END_TO_END_LATENCY}),
    requires={
        "deliveries_first": NOTHING_DELIVERED,
        "backlogs_drained": (
            f"no backlog drained within {SETTLE_S:g} s, so its rate was not measured; if this persists, reduce messages or sizes of the "
            "probe, or give the prober more CPU"
        ),
    },
    company=Company.NONE,
)
