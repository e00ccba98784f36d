"""`dead_letter`: failing messages are dead-lettered, and their key moves on.

A message that no subscriber can process goes to the dead-letter topic after its attempts.

The first message of each burst but the last is poisoned: every delivery of it is nacked. The others are acknowledged at each delivery, and
they are redelivered together with the poisoned message. Once the poisoned message is in the dead-letter topic, the next burst shows that
the key moves on. One key starts alone: if no message arrives in the dead-letter topic, the target does not forward, and the run is UNKNOWN.

The burst before the last of each key is poisoned as a whole. Their reordering at the dead-letter topic is measured by RFC 4737
(`prober.ordering`) and never reported as a violation: according to Google's documentation, order might not be kept there. That topic is
read through a subscription with ordering by one subscriber, so only their order in the topic counts.

The arrival of a message is recorded when it is read from the dead-letter topic. A missing message is counted (`dead_letters_missing`) and
is no finding: "forwarding is best effort".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from prober.core.events import DeadLettered, Delivered
from prober.errors import NotSupported
from prober.ordering.measurement import OrderMeasurement
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import CHECK_TARGET, NOTHING_NACKED, Experiment, SubscriptionPlan, Workload, opportunities_of_order
from prober.probes.payload import GENERATION, Stamp
from prober.probes.unverified import UnverifiedTap
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

ATTEMPTS: Final = 5
"""Deliveries of a message before it is forwarded; the service accepts no smaller number."""
LETTERS: Final = "ordered-letters"
"""Name of the subscription of the dead-letter topic."""
IDLE_S: Final = 600.0
FIRST_ARRIVES_S: Final = 30.0
ARRIVES_S: Final = 15.0
"""Longest time of a poisoned message to the dead-letter topic, in seconds: for the first, and for each other."""


class Trial:
    """One key of a run.

    published  number of messages published so far.
    poisoned   sequence numbers of the messages that are nacked.
    row        sequence numbers of the messages that were poisoned together.
    refusals   number of nacks of messages of the latest burst.
    """

    def __init__(self, number: int) -> None:
        self.key = f"dead-letter-{number}"
        self.published = self.refusals = 0
        self.poisoned: set[int] = set()
        self.row = range(0)
        self._refused: dict[tuple[int, str], Delivery] = {}
        self.arrived = asyncio.Event()

    def decide(self, delivery: Delivery) -> None:
        """Nack a poisoned message; acknowledge any other."""
        if delivery.seq in self.poisoned:
            self._refused[delivery.seq, delivery.received.attributes[GENERATION]] = delivery
            self.refusals += 1
            delivery.nack()
        else:
            delivery.ack()

    async def poison(self, context: ProbeContext, workload: Workload, arrives_s: float = ARRIVES_S, *, whole: bool = False) -> bool:
        """Publish a burst with its first message poisoned, or the `whole` of it.

        Return whether the poisoned messages arrive at the dead-letter topic in time.
        """
        burst = range(self.published + 1, self.published + 1 + workload.burst_messages)
        self.row = burst if whole else range(0)
        self.poisoned, self.refusals = set(burst if whole else burst[:1]), 0
        self.published += len(burst)
        self.arrived.clear()
        await context.publish(self.key, len(burst), workload.sizes)
        return await comes_within(arrives_s, self.arrived)

    def arrives(self, stamp: Stamp) -> bool:
        """Record a message of the dead-letter topic. Return whether it is the first copy.

        Later copies are acknowledged from now on.
        """
        delivery = self._refused.pop((stamp.seq, str(stamp.generation)), None)
        if delivery is not None:
            context = delivery.context
            context.record(DeadLettered(context.now(), delivery.subscription, delivery.key, delivery.received.message_id))
        if stamp.seq not in self.poisoned:
            return False
        self.poisoned.remove(stamp.seq)
        if not self.poisoned:
            self.arrived.set()
        return True


class _Letters:
    """Messages of the dead-letter topic, and the order of those poisoned together."""

    def __init__(self, context: ProbeContext, trials: Mapping[str, Trial]) -> None:
        self._context, self._trials = context, trials
        self._order = OrderMeasurement(ARRIVES_S, IDLE_S)

    def read(self, key: str, stamp: Stamp) -> None:
        trial = self._trials.get(key)
        if trial is not None and trial.arrives(stamp) and len(trial.row) > 1:
            place = trial.row.index(stamp.seq) + 1
            self._order.observe(Delivered(self._context.now(), LETTERS, key, "", stamp.epoch, place, ""))

    def measure(self) -> None:
        """Record the measurements, if messages that were poisoned together have arrived."""
        report = self._order.report()
        if report.received:
            self._context.recording.measured(Figure.DEAD_LETTERS_REORDERED, report.reordered_ratio)
            self._context.recording.measured(Figure.DEAD_LETTERS_EXTENT, report.extent_max)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Poison one message after the other on all keys concurrently.

    Raises NotSupported if the target has no dead-letter policy.
    """
    trials = {trial.key: trial for trial in map(Trial, workload.numbers)}

    def decide(delivery: Delivery) -> None:
        trials[delivery.key].decide(delivery)

    letters = _Letters(context, trials)
    await context.attach(UnverifiedTap(context.epoch, letters.read), at=LETTERS)
    for _ in range(workload.subscribers):
        await context.subscribe(decide)
    first = next(iter(trials.values()))
    if not await first.poison(context, workload, FIRST_ARRIVES_S):
        if first.refusals < ATTEMPTS:
            return  # the message is not delivered or not redelivered: the checker reports that
        raise NotSupported(
            f"a message that is nacked {ATTEMPTS} times did not arrive at the dead-letter topic within "
            f"{FIRST_ARRIVES_S:g} s: the target does not forward, or may not publish there"
        )
    await asyncio.gather(*(_bursts(context, trial, workload, 1 if trial is first else 0) for trial in trials.values()))
    letters.measure()


async def _bursts(context: ProbeContext, trial: Trial, workload: Workload, done: int) -> None:
    for left in range(workload.bursts - 1 - done, 0, -1):
        if not await trial.poison(context, workload, whole=left == 1):
            break
    context.count("dead_letters_missing", len(trial.poisoned))
    await context.publish(trial.key, workload.burst_messages, workload.sizes)


def _forwarded(workload: Workload) -> int:
    return workload.keys * (workload.bursts - 2 + workload.burst_messages)


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message of each burst but the last is delivered as often as it is nacked.

    Forwarded messages are published again, and received from the dead-letter topic.
    """
    again = (ATTEMPTS - 1) * workload.burst_messages * workload.keys * (workload.bursts - 1)
    return Traffic(workload.keys * workload.bursts, workload.messages, workload.messages + again + 2 * _forwarded(workload))


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run: each forwarded message has others of its key behind it."""
    return opportunities_of_order(workload) | {"opportunities_dead_letter": _forwarded(workload)}


PROBE = Experiment(
    name="dead_letter",
    guarantee="A message that is nacked repeatedly goes to the dead-letter topic, and its key moves on.",
    act=act,
    workload=Workload(keys=10, bursts=11, burst_messages=2, subscribers=2),
    interval_s=120.0,
    traffic=traffic,
    opportunities=opportunities,
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    requires={
        "nacks": NOTHING_NACKED,
        "dead_lettered": (
            "no message arrived at the dead-letter topic, so forwarding was not verified; if this persists, check that the Pub/Sub "
            "service account may publish to that topic and acknowledge on the subscription"
        ),
        "opportunities_dead_letter": (
            "no message was delivered behind a dead-lettered one, so it was not verified that keys move on; " + CHECK_TARGET
        ),
    },
    subscriptions=(
        SubscriptionPlan(dead_letter_max_attempts=ATTEMPTS),
        SubscriptionPlan(LETTERS, of_dead_letters=True, unverified=True),
    ),
)
