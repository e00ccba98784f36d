"""`dead_letter`: a message that nobody can process goes to the dead-letter topic after its attempts, and its key moves on.

The first message of each burst but the last is poisoned: it is refused whenever it comes. The others are acknowledged whenever they come,
and they come again with it. When the poisoned one has arrived at the dead-letter topic, the next burst shows that the key moves on, and
those of the other keys that they do. One key begins alone: if nothing arrives there, the target does not forward, and nothing can be said.

That a message arrived is recorded when it is read from the dead-letter topic. One that does not is counted (`dead_letters_missing`) and no
finding: "forwarding is best effort".
"""

from __future__ import annotations

import asyncio
from typing import Final

from prober.errors import NotSupported
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import CHECK_TARGET, NOTHING_NACKED, Experiment, SubscriptionPlan, Workload, chances_of_order
from prober.probes.payload import GENERATION, Stamp
from prober.probes.unjudged import UnjudgedTap
from prober.slo.indicators import Indicator

ATTEMPTS: Final = 5
"""How often a message is delivered before it is forwarded; the service accepts no less."""
LETTERS: Final = "letters"
"""What the subscription of the dead-letter topic is called."""
FIRST_ARRIVES_S: Final = 30.0
ARRIVES_S: Final = 15.0
"""How long a poisoned message may take to the dead-letter topic: the first, and each other."""


class Trial:
    """One key. `published`: how many messages were so far; `poisoned`: the number of the one that is refused, 0 if none is.

    `refusals`: how often that was.
    """

    def __init__(self, number: int) -> None:
        self.key = f"dead-letter-{number}"
        self.published = self.poisoned = self.refusals = 0
        self._refused: dict[tuple[int, str], Delivery] = {}
        self.arrived = asyncio.Event()

    def decide(self, delivery: Delivery) -> None:
        """Refuses the poisoned one, acknowledges the others."""
        if delivery.seq == self.poisoned:
            self._refused[delivery.seq, delivery.received.attributes[GENERATION]] = delivery
            self.refusals += 1
            delivery.nack()
        else:
            delivery.ack()

    async def poison(self, context: ProbeContext, workload: Workload, arrives_s: float) -> bool:
        """Publishes a burst, and waits for the poisoned message to arrive at the dead-letter topic; whether it did."""
        self.poisoned, self.refusals = self.published + 1, 0
        self.published += workload.burst_messages
        self.arrived.clear()
        await context.publish(self.key, workload.burst_messages, workload.sizes)
        return await comes_within(arrives_s, self.arrived)

    def arrives(self, stamp: Stamp) -> None:
        """A message has come to the dead-letter topic. If it was published again, the other one is acknowledged from now on."""
        delivery = self._refused.pop((stamp.seq, str(stamp.generation)), None)
        if delivery is not None:
            delivery.context.dead_lettered(delivery)
        if stamp.seq == self.poisoned:
            self.poisoned = 0
            self.arrived.set()


async def act(context: ProbeContext, workload: Workload) -> None:
    """Poisons one message after the other on all keys side by side. Raises NotSupported if the target has no dead-letter policy."""
    trials = {trial.key: trial for trial in map(Trial, workload.numbers)}

    def decide(delivery: Delivery) -> None:
        trials[delivery.key].decide(delivery)

    def arrived(key: str, stamp: Stamp) -> None:
        if key in trials:
            trials[key].arrives(stamp)

    await context.attach(UnjudgedTap(context.epoch, arrived), at=LETTERS)
    for _ in range(workload.subscribers):
        await context.subscribe(decide)
    first = next(iter(trials.values()))
    if not await first.poison(context, workload, FIRST_ARRIVES_S):
        if first.refusals < ATTEMPTS:
            return  # it does not come, or not again: that is the checker's
        raise NotSupported(
            f"a message that is refused {ATTEMPTS} times did not come to the dead-letter topic within "
            f"{FIRST_ARRIVES_S:g} s: the target does not forward, or may not publish there"
        )
    await asyncio.gather(*(_bursts(context, trial, workload, 1 if trial is first else 0) for trial in trials.values()))


async def _bursts(context: ProbeContext, trial: Trial, workload: Workload, done: int) -> None:
    for _ in range(done, workload.bursts - 1):
        if not await trial.poison(context, workload, ARRIVES_S):
            context.count("dead_letters_missing")
            break
    await context.publish(trial.key, workload.burst_messages, workload.sizes)


def _forwarded(workload: Workload) -> int:
    return workload.keys * (workload.bursts - 1)


def traffic(workload: Workload) -> Traffic:
    """Each burst but the last comes as often as its first message is refused; that is published once more, and received from there."""
    again = (ATTEMPTS - 1) * workload.burst_messages * _forwarded(workload)
    return Traffic(workload.keys * workload.bursts, workload.messages, workload.messages + again + 2 * _forwarded(workload))


def chances(workload: Workload) -> dict[str, int]:
    """Each message that is forwarded has others of its key behind it."""
    return chances_of_order(workload) | {"chances_dead_letter": _forwarded(workload)}


PROBE = Experiment(
    name="dead_letter",
    promise="A message that is refused again and again goes to the dead-letter topic, and its key moves on.",
    act=act,
    workload=Workload(keys=10, bursts=11, burst_messages=2, subscribers=2),
    interval_s=120.0,
    traffic=traffic,
    chances=chances,
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    requires={
        "nacks": NOTHING_NACKED,
        "dead_lettered": (
            "no message arrived at the dead-letter topic, so forwarding was not verified; if this persists, check that the Pub/Sub "
            "service account may publish to that topic and acknowledge on the subscription"
        ),
        "chances_dead_letter": (
            "no message was delivered behind a dead-lettered one, so it was not verified that keys move on; " + CHECK_TARGET
        ),
    },
    subscriptions=(
        SubscriptionPlan(dead_letter_max_attempts=ATTEMPTS),
        SubscriptionPlan(LETTERS, ordering=False, of_dead_letters=True),
    ),
)
