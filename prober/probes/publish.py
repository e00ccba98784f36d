"""`publish`: messages keep the publisher's order whatever the outcome of its requests; two subscriptions see the same order.

Two publishers, each with a client of its own, take turns on every key. Each turn is a different situation of publishers:

    singly      every message is a request of its own; a client library sends all of them concurrently.
    by both     both publish the same messages at the same time, as an application that fails over too early.
    again       confirmed messages are published again, then new ones: 1, 2, 1, 2, 3.
    hurried     the publisher's timeout is shorter than a usual answer takes, so that the outcome is mostly unknown; the messages are
                published again.
    refused     an empty message, which the service must reject, fails together with its request. A client library stops the key: later
                publishes fail as well, until publishing is resumed.

Copies of a message are no violation, wherever they appear. Confirmed messages must arrive in the order of publishing, provably failed
messages must not arrive, and both subscriptions must see the same messages in the same order, including copies. The client library's
handling of a key after a failed publish is no event, so it is counted and not verified: `publishes_stopped`, `publishes_past_a_failure`
(correct at the wire, where a key is never stopped) and `keys_resumed`.

A third subscription has a filter that every other message of each key passes: only these must arrive there, in order.
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
"""Bounds of the timeout in a hurry, as shares of the duration of the last confirmed request."""
HURRIES_MORE: Final = (0.1, 0.01, 0.001)
"""Shares for further bursts on one key while no outcome of the run is unknown: on a busy machine, answer times vary widely."""
HURRIED_STORED_SHARE: Final = 0.5
"""Share of the hurried messages that is stored, and then delivered twice; measured on the embedded server."""


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish on all keys at once, and acknowledge all messages of all subscriptions."""
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
    """Publish a burst, wait for `share` of the last answer time, and publish it again."""
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
"""Number of bursts' worth of messages that all turns publish together: one, two, two, two and three."""


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run.

    Every stored message is delivered on two subscriptions, every other one also on the filtered one. One burst that fails and a part of the
    hurried messages are not stored.
    """
    cycles, messages = workload.keys * (workload.bursts // BURSTS_EACH), workload.burst_messages
    stored = round(cycles * messages * (BURSTS_EACH - 2 + HURRIED_STORED_SHARE))
    return Traffic(cycles * (messages + BURSTS_EACH - 1), cycles * messages * BURSTS_EACH, 2 * stored + stored // 2)


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run, by counter.

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
    # It makes publishes fail on purpose, and its timeouts for answers are too short.
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
