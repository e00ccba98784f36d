"""`redelivery`: when a message is redelivered, all later messages of its key are redelivered too, acknowledged or not.

A burst is published on each key. One message is held back while every later one is acknowledged; then the probe provokes its redelivery.
Then the next message is held back, and so on: each position of the burst in turn, so that one burst shows many redeliveries. Two causes
take turns, so that over all keys each position is tested with both:

    nacked      the message is nacked
    expired     its lease expires

Nacks are twice as frequent, since they take no time. Through a client library expired leases are: the later messages are delivered after
the held one is answered. After a nack the service redelivers them before they are acknowledged; an expiring lease leaves time for the
acknowledgements.

All this happens with a single subscriber: then the order of receipt is the order of sending, and the verdict needs no waiting. A second
burst follows at once. It reveals a redelivery that omitted the last messages of the first burst. Then more subscribers join, and one
message of the second burst, held back on each key, is redelivered because its stream ends. A stream carries all keys, so each cause is
tested on half of them:

    broken      the stream that carried it breaks
    killed      its subscriber leaves; another takes over

A second subscription has a retry policy; there the last message of each key is nacked, and the wait before its redelivery is measured
(`backoff`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final, NamedTuple

from prober.brokers.base import BrokerSession, Received, Subscriber
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import (
    CHECK_TARGET,
    NOTHING_NACKED,
    NOTHING_REDELIVERED,
    Experiment,
    SubscriptionPlan,
    Workload,
    each_key,
)
from prober.probes.payload import Stamp
from prober.probes.unverified import UnverifiedTap
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

LEASE_S: Final = 1
EXPIRES_EVERY: Final = 3
"""Number of redeliveries per expired lease; the others are nacks, which take no time."""
PLACES_MAX: Final = 8
"""Largest number of positions tested in a long burst: each redelivery repeats all later messages."""
HOLD_S: Final = 1.5
"""Longest wait for acknowledgements behind a held message, in seconds. A client library delivers later messages only afterwards."""
COMES_S: Final = 3.0
"""Longest wait for a message that is to be held back, in seconds."""
AGAIN_S: Final = 10.0
"""Longest wait for its redelivery before publishing continues, in seconds."""


class Cause(StrEnum):
    """The cause of a redelivery."""

    NACKED = "nacked"
    EXPIRED = "expired"
    BROKEN = "broken"
    KILLED = "killed"


class PlannedRedelivery(NamedTuple):
    """One planned redelivery: its cause, and the number of its message."""

    cause: Cause
    seq: int


class Trial:
    """One key: the messages to be redelivered, one after the other.

    held     the message that is held back.
    holding  set when a message is held.
    ready    set when every later message was acknowledged meanwhile.
    again    set when the message to be redelivered was redelivered.
    """

    def __init__(self, number: int, length: int) -> None:
        self.key = f"redelivery-{number}"
        self.length = length
        self.by_nack, self.by_disconnect = _steps(number, length)
        self.held: Delivery | None = None
        self.holding, self.ready, self.again = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._steps: list[PlannedRedelivery] = []
        self._end = self._later_acked = 0
        self._provoked = False
        self._patience_s = HOLD_S

    def expect(self, steps: Sequence[PlannedRedelivery], end: int) -> None:
        """Set the redeliveries to come, in a burst that ends with message `end`. Without steps, every message is acknowledged."""
        self._steps, self._end = list(steps), end
        self._await_next()
        for event in (self.holding, self.ready, self.again):
            event.clear()

    def _await_next(self) -> None:
        self.held, self._provoked, self._later_acked = None, False, 0

    def decide(self, delivery: Delivery) -> None:
        """Hold back the next message to be redelivered; acknowledge all others."""
        seq = self._steps[0].seq if self._steps else 0
        if delivery.seq == seq and not self._provoked:
            self.held = delivery
            self.holding.set()
        else:
            delivery.ack()
            if self.held is not None and delivery.seq > seq:
                self._later_acked += 1
            elif delivery.seq == seq:
                del self._steps[0]
                self._await_next()
                self.again.set()
        if self.held is not None and self._later_acked >= self._end - seq:
            self.ready.set()

    async def is_held(self) -> bool:
        """Wait for the message to hold, and for the acknowledgement of those behind it. Return whether it is held.

        If none of the later messages arrives meanwhile, further calls do not wait for them.
        """
        await comes_within(COMES_S, self.holding)
        if self.held is None or not self._steps:
            return False
        await comes_within(self._patience_s, self.ready)
        if not self._later_acked and self._steps[0].seq < self._end:
            self._patience_s = 0.0
        return True

    @property
    def in_turn(self) -> bool:
        """Whether later messages do not arrive while a message is held, as through a client library."""
        return not self._patience_s

    def provoke(self) -> Delivery | None:
        """Return the held message, or None; from now on its redelivery is due."""
        held, self.held = self.held, None
        if held is None:
            return None
        self._provoked = True
        for event in (self.holding, self.ready, self.again):
            event.clear()
        return held

    def let_go(self) -> None:
        """Acknowledge the held message, and all later deliveries: no redelivery is due."""
        if self.held is not None:
            self.held.ack()
        self.expect((), 0)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Provoke redeliveries on all keys concurrently, by nack or expired lease, then by ending streams."""
    trials = {trial.key: trial for trial in (Trial(number, _length(workload)) for number in workload.numbers)}
    broken = [trial for trial in trials.values() if trial.by_disconnect.cause is Cause.BROKEN]
    killed = [trial for trial in trials.values() if trial.by_disconnect.cause is Cause.KILLED]

    def decide(delivery: Delivery) -> None:
        trials[delivery.key].decide(delivery)

    backoff = BackoffTap(context, dict.fromkeys(trials, workload.bursts * _length(workload)))
    await context.attach(backoff, at=BACKOFF)
    subscribers = [await context.subscribe(decide)]
    await asyncio.gather(*(_by_nack(context, trial, workload) for trial in trials.values()))
    subscribers += [await context.subscribe(decide) for _ in range(workload.subscribers - 1)]
    await _break(broken, subscribers)
    _provoke(killed)
    await asyncio.gather(*(subscriber.close() for subscriber in subscribers))
    for _ in subscribers:
        await context.subscribe(decide)
    await backoff.measure()


async def _by_nack(context: ProbeContext, trial: Trial, workload: Workload) -> None:
    """Provoke redeliveries in the first burst, and hold a message of the second."""
    trial.expect(trial.by_nack, trial.length)
    await context.publish(trial.key, trial.length, workload.sizes)
    for step in trial.by_nack:
        if not await trial.is_held() or (held := trial.provoke()) is None:
            break
        if (step.cause is Cause.NACKED) is not trial.in_turn:
            held.nack()
        else:
            held.shorten_lease(LEASE_S)
        await comes_within(AGAIN_S, trial.again)
        if not trial.again.is_set():
            break
    trial.let_go()
    trial.expect([trial.by_disconnect], 2 * trial.length)
    for _ in range(1, workload.bursts):
        await context.publish(trial.key, trial.length, workload.sizes)
    await trial.is_held()


async def _break(broken: Sequence[Trial], subscribers: Iterable[Subscriber]) -> None:
    """Break the streams, which carry all keys, and wait for the redeliveries.

    Messages held on the other keys are held again when they are redelivered.
    """
    provoked = _provoke(broken)
    await asyncio.gather(*(subscriber.break_stream() for subscriber in subscribers))
    for held in provoked:
        held.let_expire()  # a client library would keep it over the break, and extend its lease again and again
    await asyncio.gather(*(comes_within(AGAIN_S, trial.again) for trial in broken))


def _provoke(trials: Sequence[Trial]) -> list[Delivery]:
    """Return the held messages of these keys; their redelivery is due from now on."""
    provoked = [trial.provoke() for trial in trials]
    for trial, held in zip(trials, provoked, strict=True):
        if held is None:
            trial.let_go()
    return [held for held in provoked if held is not None]


def _length(workload: Workload) -> int:
    """Return the number of messages of a burst: at least a first, a middle and a last one."""
    return max(3, workload.burst_messages)


def _places(length: int) -> list[int]:
    """Return the positions of a burst that are tested: all, or a selection from the first to the last."""
    count = min(length, PLACES_MAX)
    return [1 + step * (length - 1) // (count - 1) for step in range(count)]


def _steps(number: int, length: int) -> tuple[list[PlannedRedelivery], PlannedRedelivery]:
    """Return the redeliveries on the key of a number: in its first burst, and in its second."""
    places = _places(length)
    by_nack = [
        PlannedRedelivery(Cause.NACKED if (number + turn) % EXPIRES_EVERY else Cause.EXPIRED, seq)
        for turn, seq in enumerate(places)
    ]
    cause = Cause.KILLED if number // len(places) % 2 else Cause.BROKEN
    return by_nack, PlannedRedelivery(cause, length + places[number % len(places)])


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: two bursts on each key, with their redeliveries.

    The first burst is redelivered from each position on, the second from one. The second subscription receives all messages, and the last
    of each key `NACKS` more times.
    """
    length = _length(workload)
    steps = [
        step
        for by_nack, by_disconnect in (_steps(number, length) for number in workload.numbers)
        for step in (*by_nack, by_disconnect)
    ]
    killed = [step for step in steps if step.cause is Cause.KILLED]  # they are redelivered when streams break, too
    again = sum(length - (step.seq - 1) % length for step in (*steps, *killed))
    published = workload.keys * workload.bursts * length
    return Traffic(workload.keys * workload.bursts, published, 2 * published + again + NACKS * workload.keys)


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run: one for each tested position with messages behind it."""
    each = workload.keys * (len(_places(_length(workload))) - 1)
    return {"opportunities_redelivery": each, "opportunities_redelivery_acked": each}


# --- delay until the service redelivers a nacked message, on a subscription with a retry policy -------------------------------


BACKOFF: Final = "backoff"
"""Name of the subscription with the retry policy."""
MINIMUM_S: Final = 1.0
MAXIMUM_S: Final = 4.0
"""Bounds of the retry policy, in seconds."""
TOLERANCE: Final = 0.1
"""Share of the minimum backoff by which a redelivery may be early without being counted as early."""
NACKS: Final = 2
"""Number of nacks of the last message of a key."""
SETTLE_S: Final = 10.0
"""Longest wait for the redeliveries after the end of publishing, in seconds."""


@dataclass(slots=True)
class _Nacked:
    """Last message of a key: its id, number of nacks, and time and session of the latest nack."""

    message_id: str
    nacks: int = 0
    t: float = 0.0
    session: BrokerSession | None = None


def early_ratio(waits_s: Sequence[float]) -> float:
    """Return the share of redeliveries before the minimum backoff; `waits_s` is not empty."""
    return sum(wait_s < MINIMUM_S * (1.0 - TOLERANCE) for wait_s in waits_s) / len(waits_s)


class BackoffTap(UnverifiedTap):
    """Nacks the last message of each key, measures the waits, and acknowledges all other messages.

    The last message of each key is nacked `NACKS` times, so each redelivery is of that message alone. A wait is the time from sending the
    nack to the next receipt of the message. It includes the network round trip, so the service waited less: a wait below the policy's
    minimum backoff was too short. A wait counts only if nack and receipt belong to the same session: if the session ended, the nack may
    have been lost with it.

    Google's documentation calls the policy best effort, so waits are measured and never a violation.

    For one subscriber, on the event loop.
    """

    def __init__(self, context: ProbeContext, last: Mapping[str, int]) -> None:
        """Create the tap. `last`: sequence number of the last message of each key."""
        super().__init__(context.epoch)
        self._context, self._last = context, last
        self._nacked: dict[str, _Nacked] = {}
        self._left = set(last)
        self._nothing_left = asyncio.Event()
        self._waits_s: list[float] = []

    def of_run(self, session: BrokerSession, received: Received, stamp: Stamp) -> None:
        """Answer a message of the run, and measure its wait if it was nacked before."""
        key, now = received.ordering_key, self._context.now()
        self._context.count("backoff_deliveries")
        if stamp.seq != self._last.get(key):
            session.ack(received)
            return
        nacked = self._nacked.setdefault(key, _Nacked(received.message_id))
        if nacked.message_id != received.message_id or nacked.nacks > NACKS:
            session.ack(received)  # a copy of the message, or a redelivery after the measurement
            return
        if nacked.session is session:
            self._waits_s.append(now - nacked.t)
        nacked.nacks, nacked.t, nacked.session = nacked.nacks + 1, now, session
        if nacked.nacks <= NACKS:
            session.nack(received)
            return
        session.ack(received)
        self._left.discard(key)
        if not self._left:
            self._nothing_left.set()

    async def measure(self) -> None:
        """Wait for the redeliveries, then record the measurements if there are any."""
        await comes_within(SETTLE_S, self._nothing_left)
        if waits_s := self._waits_s:
            measured = self._context.recording.measured
            self._context.count("backoffs_measured", len(waits_s))
            measured(Figure.BACKOFF_EARLY, early_ratio(waits_s))
            measured(Figure.BACKOFF_MEDIAN, median(waits_s))
            measured(Figure.BACKOFF_LONGEST, max(waits_s))


PROBE = Experiment(
    name="redelivery",
    guarantee="When a message is redelivered, all later messages of its key are redelivered too, acknowledged or not.",
    act=act,
    workload=Workload(keys=12, bursts=2, burst_messages=6, subscribers=2),
    least={"messages": 3, "keys": 3},
    traffic=traffic,
    opportunities=opportunities,
    feeds={Indicator.REDELIVERY: each_key, Indicator.REDELIVERY_LATENCY: each_key},
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(6, 9), "subscribers": range(2, 6)},
    requires={
        "nacks": NOTHING_NACKED,
        "rewinds": NOTHING_REDELIVERED,
        "redeliveries_of_acked": (
            "no acknowledged message was redelivered behind an unacknowledged one, so that case was not verified; " + CHECK_TARGET
        ),
        "sessions_closed": f"no stream was closed, so redelivery after a disconnect was not exercised; {CHECK_TARGET}",
    },
    subscriptions=(SubscriptionPlan(), SubscriptionPlan(BACKOFF, backoff_s=(MINIMUM_S, MAXIMUM_S), unverified=True)),
)
