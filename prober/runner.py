"""A run: prepare, act, drain, judge.

*Prepare* creates the topic and the subscription, labelled as ours. *Act* is the probe. *Drain* waits until nothing is owed any more, or
until every deadline has passed, so that silence means something. *Judge* settles what is on hold and gives the verdict.

The verdict is three-valued. FAIL needs a finding. UNKNOWN says why: something is still owed, the experiment never met the situation
that it is about, the target could not be reached, or we made a mistake ourselves; none of that is held against the service, and
none is called health.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex

from prober.brokers.base import Broker, SubscriptionSettings, TopicSettings
from prober.clock import monotonic_s
from prober.core.events import Ended
from prober.core.rules import Rules
from prober.core.verdict import Verdict, verdict_of
from prober.errors import BrokerError
from prober.judgement import Made
from prober.probes.base import Probe, Workload
from prober.recorder import Listener, Recording
from prober.stage import Place, Stage

OURS = {"managed-by": "ordering-keys-prober"}
"""The label of everything that we create; nothing without it is ever deleted."""

TICK_S = 0.05
MARGIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Target:
    """Where probes run: a project of a service, reached through one vantage. `rules` are the bounds for that vantage."""

    name: str
    project: str
    vantage: str
    rules: Rules
    publish_timeout_s: float = 5.0
    act_timeout_s: float = 300.0


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run found. `reason` says in one line why the verdict is UNKNOWN or FAIL, empty for PASS."""

    probe: str
    target: str
    vantage: str
    verdict: Verdict
    reason: str
    duration_s: float
    findings: tuple[Made, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)


async def run(
    probe: Probe,
    broker: Broker,
    target: Target,
    *,
    workload: Workload | None = None,
    seed: int = 0,
    listeners: Iterable[Listener] = (),
    clock: Callable[[], float] = monotonic_s,
) -> RunResult:
    """One run of a probe on a target. Raises nothing but cancellation: what goes wrong is part of the result."""
    started = clock()
    run_id = f"{probe.name}-{token_hex(4)}"
    place = _place(target, run_id)
    recording = Recording({place.subscription: target.rules}, clock, listeners)
    reason = ""
    try:
        await _prepare(broker, place)
        try:
            async with Stage(broker, place, recording, run_id, seed) as stage:
                await asyncio.wait_for(probe.act(stage, workload or probe.workload), target.act_timeout_s)
                await _drain(recording, target.rules)
                recording.finish()
        finally:
            await _clean_up(broker, place)
    except TimeoutError:
        reason = f"the experiment did not end within {target.act_timeout_s:g} s"
    except BrokerError as error:
        reason = str(error)
    except Exception as error:  # a mistake of ours must not end the service, nor count against the target
        reason = f"internal error: {error!r}"
    findings = tuple(recording.finish())
    failed = recording.tally.failed
    reason = reason or _vacuous(probe, recording)
    verdict = verdict_of(failed=failed, owed=bool(reason) or recording.verifier.owed)
    return RunResult(
        probe.name,
        target.name,
        target.vantage,
        verdict,
        _reason(verdict, reason, findings),
        clock() - started,
        findings,
        dict(recording.counters),
    )


def _place(target: Target, run_id: str) -> Place:
    return Place(
        topic=f"projects/{target.project}/topics/okp-{run_id}",
        subscription=f"projects/{target.project}/subscriptions/okp-{run_id}",
        ack_deadline_s=int(target.rules.ack_deadline_s),
        publish_timeout_s=target.publish_timeout_s,
    )


async def _prepare(broker: Broker, place: Place) -> None:
    await broker.admin.create_topic(place.topic, TopicSettings(labels=OURS))
    settings = SubscriptionSettings(place.topic, ordering=True, ack_deadline_s=place.ack_deadline_s, labels=OURS)
    await broker.admin.create_subscription(place.subscription, settings)


async def _drain(recording: Recording, rules: Rules) -> None:
    """Waits until nothing is owed, or for as long as it takes every deadline to pass; then the history has ended."""
    longest_s = max(rules.delivery_deadline_s, rules.stall_deadline_s, rules.ack_deadline_s + rules.unacked_deadline_s)
    give_up_t = recording.now() + longest_s + MARGIN_S
    while recording.verifier.owed and not recording.tally.failed and recording.now() < give_up_t:
        await asyncio.sleep(TICK_S)
    recording.record(Ended(recording.now(), drained=True))


async def _clean_up(broker: Broker, place: Place) -> None:
    for name in (place.subscription, place.topic):
        try:
            await broker.admin.delete(name, OURS)
        except BrokerError:
            return  # unreachable: what is left carries our label, and the next clean-up finds it


def _vacuous(probe: Probe, recording: Recording) -> str:
    """Why the run proved nothing, empty if it met everything that it is about."""
    missing = [what for name, what in probe.requires.items() if not recording.counters[name]]
    return "; ".join(missing)


def _reason(verdict: Verdict, reason: str, findings: Iterable[Made]) -> str:
    if verdict is Verdict.PASS:
        return ""
    if verdict is Verdict.UNKNOWN:
        return reason or "something is still owed to a subscriber"
    kinds = sorted({made.finding.kind for made in findings if made.finding.status in ("violation", "liveness")})
    return ", ".join(kinds)


def for_library(rules: Rules) -> Rules:
    """The bounds for what is recorded in a client library's callbacks: delays are unbounded there, and attempts are hidden."""
    return replace(rules, delivery_delay_max_s=float("inf"), attempts_observed=False)
