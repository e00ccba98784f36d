"""`affinity`: while messages of a key are outstanding, the key stays at one subscriber.

Subscribers join and leave while bursts are published. Of each burst the first message is held back until the next burst has begun to
come, so each burst after the first meets a key of which something is certainly outstanding. Everything else is acknowledged after a
moment. Now and then all of a key is acknowledged before the next burst, so that it falls idle, which is when it may move.

Whoever leaves takes the proof along: what its stream carried may have been lost before. So half of the subscribers stay to the end. The
others leave one after the other, and new ones join in their place; while the second half of the bursts is published nobody leaves.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from prober.config.models import ProbeName
from prober.config.workloads import BURSTS
from prober.probes.context import Delivery, Experiment, ProbeContext, Workload
from prober.probes.cost import Traffic

IDLE_SHARE: Final = 0.2
"""How often a key falls idle before its next burst."""
HOLD_S: Final = 1.5
"""How long to wait for the rest of a burst while its first message is held back. A client library delivers it only after that."""
REDELIVERED_SHARE: Final = 0.08
"""Of the messages, about so many come again since a subscriber left that held them; measured on the embedded server."""


class Bursts:
    """The bursts of one key: the first message of the latest is held back.

    begun       how many were published.
    came        the latest has come, as far as it does while its first message is held.
    """

    def __init__(self, context: ProbeContext, key: str, workload: Workload) -> None:
        self._context, self._key, self._workload = context, key, workload
        self.begun = 0
        self._held: Delivery | None = None
        self._holds = True
        self._came = asyncio.Event()

    async def publish(self) -> None:
        """Publishes one after the other."""
        workload, dice = self._workload, self._context.random
        while self.begun < workload.bursts:
            self.begun += 1
            self._came.clear()
            await self._context.publish(self._key, workload.burst_messages, workload.sizes)
            await self._until_it_came()
            if dice.random() < IDLE_SHARE:
                self._release()
                await asyncio.sleep(3.0 * workload.ack_after_s)
            else:
                await asyncio.sleep(dice.uniform(0.5, 1.5) * workload.ack_after_s)
        self._holds = False
        self._release()

    async def _until_it_came(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._came.wait(), HOLD_S)
        if self._holds and not self._came.is_set():
            self._holds = False  # it does not come, or not before what is held is answered: that holds up nothing but the run
            self._release()

    def decide(self, delivery: Delivery) -> None:
        """Holds the first message of a burst back, and acknowledges the one that was held; anything else after a moment."""
        length = self._workload.burst_messages
        first, latest = 1 + (delivery.seq - 1) // length * length, 1 + (self.begun - 1) * length
        if delivery.seq == latest and self._holds:
            held, self._held = self._held, delivery
            if held is not None and held.seq < delivery.seq:
                self._acknowledge_late(held)
        else:
            self._acknowledge_late(delivery)
        if first == latest and delivery.seq == latest + length - 1:
            self._came.set()

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._acknowledge_late(held)

    def _acknowledge_late(self, delivery: Delivery) -> None:
        self._context.later(self._context.random.uniform(0.5, 1.5) * self._workload.ack_after_s, delivery.ack)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publishes on all keys while subscribers come and go."""
    keys = {key: Bursts(context, key, workload) for key in (f"affinity-{number}" for number in workload.numbers)}

    def decide(delivery: Delivery) -> None:
        keys[delivery.key].decide(delivery)

    count = max(2, workload.subscribers)
    members = [await context.subscribe(decide) for _ in range(count)]
    publishing = asyncio.gather(*(bursts.publish() for bursts in keys.values()))
    try:
        while not publishing.done():
            await asyncio.sleep(workload.ack_after_s)
            begun = sum(bursts.begun for bursts in keys.values()) / len(keys)
            if len(members) < count:
                members.append(await context.subscribe(decide))
            elif begun <= workload.bursts / 2:
                await members.pop(count // 2).close()
    finally:
        await publishing


def traffic(workload: Workload) -> Traffic:
    """Every message comes once, and some again at another subscriber."""
    published = PROBE.messages(workload)
    return Traffic(workload.keys * workload.bursts, published, round(published * (1 + REDELIVERED_SHARE)))


def chances(workload: Workload) -> dict[str, int]:
    """One for each burst of the second half that meets what is held, on average."""
    return {"chances_affinity": round(workload.keys * (workload.bursts // 2) * (1 - IDLE_SHARE))}


PROBE = Experiment(
    name="affinity",
    promise="While messages of a key are outstanding, the key stays at one subscriber.",
    act=act,
    workload=Workload(bursts=BURSTS[ProbeName.AFFINITY], burst_messages=4, subscribers=4, ack_after_s=0.2),
    requires={
        "deliveries_among_several": "there were never two subscribers at once",
        "sessions_closed": "no subscriber left",
    },
)
