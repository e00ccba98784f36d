"""`publish`: the order in which a publisher hands messages over, whatever becomes of its requests; two subscriptions see one order.

Two publishers, each with a client of its own, take turns on every key. Each turn is another thing that happens to publishers:

    singly      every message is a request of its own; through a client library all are under way at once.
    by both     both publish the same messages at the same time, as an application does that fails over too early.
    again       messages that were confirmed are published again, then new ones: 1, 2, 1, 2, 3.
    hurried     the publisher waits less long for an answer than it usually takes, so that the outcome is mostly unknown; and they are
                published again.
    refused     an empty message, which no service may take, fails, and what is in its request with it. A client library stops the key:
                what is published next fails as well, until publishing is resumed.

Copies of a message are no breach, wherever they land. What was confirmed has to come in the order in which it was handed over, what
provably failed must not come, and both subscriptions have to see the same: copies, too, and in the same places. What the client
library does with a key on which a publish has failed is no event, so it is counted and not verified: `publishes_stopped`,
`publishes_past_a_failure` (what is right at the wire, where nothing stops a key) and `keys_resumed`.

A third subscription has a filter that every other message of each key passes: these have to come there, in order, and no others.
"""

from __future__ import annotations

import asyncio
from typing import Final

from prober.brokers.base import Confirmed, Outgoing, Rejected
from prober.probes.context import Delivery, ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import CHECK_TARGET, Company, Experiment, SubscriptionPlan, Workload
from prober.probes.publishing import GENERATIONS_MAX, unsettled
from prober.slo.indicators import Indicator

SECOND: Final = "second"
FILTERED: Final = "filtered"
PUBLISHERS: Final = 2
HURRY_MIN, HURRY_MAX = 0.2, 1.2
"""How long an answer is waited for in a hurry, as shares of what the last one took."""
HURRIES_MORE: Final = (0.1, 0.01, 0.001)
"""The same for further bursts on one key, as long as every outcome of the run is known: on a busy machine answers come in any time."""
HURRIED_STORED_SHARE: Final = 0.5
"""So much of what is published in a hurry is stored, and then comes twice; measured on the embedded server."""


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publishes on all keys at once, and acknowledges what comes on all subscriptions."""
    for subscription in ("", SECOND, FILTERED):
        for _ in range(workload.subscribers):
            await context.subscribe(Delivery.ack, at=subscription)
    keys = [f"publish-{number}" for number in workload.numbers]
    await asyncio.gather(*(_take_turns(context, key, workload) for key in keys))
    for share in HURRIES_MORE:
        if not context.publishing.unknown:
            await _hurry(context, keys[0], 0, workload, share)


async def _take_turns(context: ProbeContext, key: str, workload: Workload) -> None:
    for cycle in range(workload.bursts // BURSTS_EACH):
        for number, turn in enumerate(TURNS, cycle):
            await turn(context, key, number % PUBLISHERS, workload)


async def _singly(context: ProbeContext, key: str, by: int, workload: Workload) -> None:
    await context.publishing.publish_singly(key, workload.burst_messages, workload.sizes, by=by)


async def _by_both(context: ProbeContext, key: str, by: int, workload: Workload) -> None:
    del by
    await context.publishing.publish_by_all(key, workload.burst_messages, workload.sizes, publishers=PUBLISHERS)


async def _again(context: ProbeContext, key: str, by: int, workload: Workload) -> None:
    publishing, seqs = context.publishing, context.publishing.next_seqs(key, workload.burst_messages)
    await publishing.settle(key, seqs, workload.sizes, by=by)
    await publishing.settle(key, seqs, workload.sizes, by=by, generation=GENERATIONS_MAX)


async def _hurried(context: ProbeContext, key: str, by: int, workload: Workload) -> None:
    await _hurry(context, key, by, workload, context.random.uniform(HURRY_MIN, HURRY_MAX))


async def _hurry(context: ProbeContext, key: str, by: int, workload: Workload, share: float) -> None:
    """Publishes a burst, waits for the answer for this share of the time that the last one took, and publishes it again."""
    publishing, seqs = context.publishing, context.publishing.next_seqs(key, workload.burst_messages)
    await publishing.attempt(key, seqs, workload.sizes, by=by, timeout_s=publishing.answered_in_s * share)
    await publishing.resume(key, by)
    await publishing.settle(key, seqs, workload.sizes, by=by, generation=1)


async def _refused(context: ProbeContext, key: str, by: int, workload: Workload) -> None:
    publishing, sizes = context.publishing, workload.sizes
    beside_it, behind_it = (publishing.next_seqs(key, workload.burst_messages) for _ in range(2))
    *failed, refused = await publishing.attempt(key, beside_it, sizes, by=by, beside=[Outgoing(key, b"")])
    followed = await publishing.attempt(key, behind_it, sizes, by=by)
    await publishing.resume(key, by)
    for seqs, outcomes in ((beside_it, failed), (behind_it, followed)):
        await publishing.settle(key, unsettled(seqs, [outcomes]), sizes, by=by, generation=1)
    resumed = await publishing.publish(key, workload.burst_messages, sizes, by=by)
    if isinstance(refused, Rejected):
        context.count("publishes_refused")
        if isinstance(followed[0], Rejected):
            context.count("publishes_stopped")
        elif isinstance(followed[0], Confirmed):
            context.count("publishes_past_a_failure")
        if resumed:
            context.count("keys_resumed")


TURNS: Final = (_singly, _by_both, _again, _hurried, _refused)
BURSTS_EACH: Final = 10
"""How often the turns together publish as many messages as a burst has: one, two, two, two and three times."""


def traffic(workload: Workload) -> Traffic:
    """Everything that is stored comes on two subscriptions, every other message of it also on the filtered one.

    Not stored are one burst that fails, and some of what is hurried.
    """
    cycles, messages = workload.keys * (workload.bursts // BURSTS_EACH), workload.burst_messages
    stored = round(cycles * messages * (BURSTS_EACH - 2 + HURRIED_STORED_SHARE))
    return Traffic(cycles * (messages + BURSTS_EACH - 1), cycles * messages * BURSTS_EACH, 2 * stored + stored // 2)


def opportunities(workload: Workload) -> dict[str, int]:
    """Opportunities of a run, by counter.

    Not counted: the first message of a key on any subscription, the order of copies, and messages without a provable confirmation.
    """
    confirmed = (workload.bursts // BURSTS_EACH) * workload.burst_messages * (len(TURNS) + 1)
    stored = round(confirmed * (BURSTS_EACH - 2) / (len(TURNS) + 1))
    return {
        "opportunities_order": workload.keys * (2 * (confirmed - 1) + confirmed // 2 - 1),
        "opportunities_filter": workload.keys * (confirmed // 2),
        "opportunities_divergence": workload.keys * stored,
        "publishes_confirmed": workload.keys * stored,
    }


PROBE = Experiment(
    name="publish",
    guarantee="What a publisher hands over comes in that order whatever becomes of its requests, and two subscriptions see one order.",
    act=act,
    workload=Workload(keys=8, bursts=20, burst_messages=3, subscribers=1),
    least={"messages": 2},
    traffic=traffic,
    opportunities=opportunities,
    # It has publishes fail on purpose, and waits too short a time for their answers.
    disturbs=frozenset({Indicator.PUBLISH_AVAILABILITY, Indicator.PUBLISH_LATENCY, Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(3, 7)},
    requires={
        "publishes_refused": (
            "the target rejected no empty message, or did not answer, so a failed publish was not exercised; if this persists, publish "
            "a message without data and attributes yourself"
        ),
        "keys_resumed": f"no publish was confirmed after a failed one, so resuming a key was not verified; {CHECK_TARGET}",
        "publishes_unknown": (
            "no publish timed out, so the retry of a publish without an answer was not exercised; if this persists, report it with the "
            "run's counters"
        ),
        "publisher_duplicates": f"no repeated publish was delivered twice, so duplicates were not exercised; {CHECK_TARGET}",
        "opportunities_filter": f"no message that the filter excludes was confirmed, so the filter was not verified; {CHECK_TARGET}",
        "opportunities_divergence": f"no message was delivered on both subscriptions, so their order was not compared; {CHECK_TARGET}",
    },
    subscriptions=(SubscriptionPlan(), SubscriptionPlan(SECOND), SubscriptionPlan(FILTERED, filtered=True)),
    company=Company.BURSTS,
)
