"""`isolation`: how much a key that is not acknowledged delays the others.

Three phases of equal length. In the first, messages of all keys are acknowledged as they come. In the second, what comes of one key is
held, within leases that the client makes longer, as by a subscriber that takes its time. Then that is acknowledged, and in the third all
is as in the first. Between phases it waits until everything of the other keys has come.

The service may delay other keys meanwhile ("unacknowledged messages of a key can delay other keys"), so this measures and does not
accuse. The *delay* of a message of another key that was sent while the key was held is how much longer it took than 90 % of those sent
before and after; what took no longer was not delayed. What never comes has no delay, and is the checker's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.experiment import CHECK_TARGET, Experiment, Workload, chances_of_order
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

SETTLE_S: Final = 10.0
"""How long to wait at the end of a phase for what has not come yet."""
USUAL_SHARE: Final = 0.9


class Phase(IntEnum):
    """When a message was sent, by what is done with the key."""

    BEFORE = 0
    HELD = 1
    AFTER = 2


FIGURES: Final = {
    Phase.BEFORE: Figure.LATENCY_BEFORE_HOLD,
    Phase.HELD: Figure.LATENCY_DURING_HOLD,
    Phase.AFTER: Figure.LATENCY_AFTER_HOLD,
}


class Receipt(NamedTuple):
    """A message of another key: when it was to be sent, when it came, in seconds of the recorder's clock."""

    sent_t: float
    received_t: float

    @property
    def latency_s(self) -> float:
        """How long it took."""
        return self.received_t - self.sent_t


def delays_s(held: Sequence[Receipt], usual: Sequence[Receipt]) -> list[float]:
    """By how much each was delayed while the key was held, given those that were sent before and after, of which there is one at least."""
    ordered = sorted(receipt.latency_s for receipt in usual)
    usual_s = ordered[ceil(USUAL_SHARE * len(ordered)) - 1]
    return [max(0.0, receipt.latency_s - usual_s) for receipt in held]


class _Phases:
    """What was sent and came of the other keys, phase by phase, and what is held of the one."""

    def __init__(self, context: ProbeContext, key: str) -> None:
        self.key = key
        self.phase = Phase.BEFORE
        self.receipts: dict[Phase, list[Receipt]] = {phase: [] for phase in Phase}
        self._context = context
        self._sent: dict[tuple[str, int], tuple[Phase, float]] = {}
        self._holding = False
        self._held: list[Delivery] = []
        self._nothing_owed, self._something_held = asyncio.Event(), asyncio.Event()

    def decide(self, delivery: Delivery) -> None:
        """Holds what comes of the one key while it is to be held, acknowledges everything else."""
        if delivery.key == self.key and self._holding:
            self._held.append(delivery)
            self._something_held.set()
            self._context.count("deliveries_held")
            return
        if (sent := self._sent.pop((delivery.key, delivery.seq), None)) is not None:
            phase, sent_t = sent
            self.receipts[phase].append(Receipt(sent_t, self._context.now()))
            if not self._sent:
                self._nothing_owed.set()
        delivery.ack()

    def begin(self, phase: Phase) -> None:
        """From here on what is sent belongs to this phase."""
        self.phase, self._holding = phase, phase is Phase.HELD

    async def publish(self, key: str, workload: Workload) -> None:
        """Publishes the bursts of a key in this phase."""
        length = workload.burst_messages
        first = 1 + self.phase * (workload.bursts // len(Phase)) * length
        async for due_t in self._context.ticks(workload.bursts // len(Phase), workload.ack_after_s):
            if key != self.key:
                self._sent |= {(key, seq): (self.phase, due_t) for seq in range(first, first + length)}
                self._nothing_owed.clear()
            first += length
            await self._context.publish(key, length, workload.sizes, due_t)

    async def settle(self) -> None:
        """Lets the key go, once something of it was held, then waits until everything of the others has come, each for a bounded time."""
        if self._holding:
            await comes_within(SETTLE_S, self._something_held)
        self._holding = False
        held, self._held = self._held, []
        for delivery in held:
            delivery.ack()
        if self._sent:
            await comes_within(SETTLE_S, self._nothing_owed)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publishes on all keys, before, while and after one of them is held; then says what that did to the others."""
    keys = [f"isolation-{number}" for number in workload.numbers]
    phases = _Phases(context, keys[0])
    for _ in range(workload.subscribers):
        await context.subscribe(phases.decide)
    for phase in Phase:
        phases.begin(phase)
        await asyncio.gather(*(phases.publish(key, workload) for key in keys))
        await phases.settle()
    _measure(context, phases)


def _measure(context: ProbeContext, phases: _Phases) -> None:
    receipts = phases.receipts
    for phase, figure in FIGURES.items():
        if receipts[phase]:
            context.recording.measured(figure, median(receipt.latency_s for receipt in receipts[phase]))
    if usual := receipts[Phase.BEFORE] + receipts[Phase.AFTER]:
        held = receipts[Phase.HELD]
        for receipt, delay_s in zip(held, delays_s(held, usual), strict=True):
            context.recording.took(Indicator.HEAD_OF_LINE_DELAY, delay_s, receipt.sent_t, receipt.received_t)
        context.count("delays_measured", len(held))


def delayed(workload: Workload) -> int:
    """The messages of a burst without those of the keys that are held, one in each part; with too few keys, which is refused, one."""
    return max(1, workload.keys - workload.parts) * workload.burst_messages


PROBE = Experiment(
    name="isolation",
    promise="A key that is not acknowledged does not hold up the others: measured, since the service may delay them.",
    act=act,
    workload=Workload(keys=9, bursts=18, burst_messages=2, subscribers=2, ack_after_s=0.5),
    interval_s=300.0,
    least={"keys": 2},
    chances=chances_of_order,
    feeds={Indicator.HEAD_OF_LINE_DELAY: delayed},
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    requires={
        "deliveries_held": f"no message was held, so the delay of other keys was not measured; {CHECK_TARGET}",
        "delays_measured": (
            "no message of other keys was delivered while one was held, or none before and after, so their delay was not measured; "
            "if this persists, set keys of the probe to 2 or more, or give the prober more CPU"
        ),
    },
)
