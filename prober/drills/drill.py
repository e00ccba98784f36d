"""One drill, from the planted fault to its page.

It uses the probe, the runner, the recorder and the checker of the service, on an embedded server with a planted fault. The server runs in
this process, for this drill only. The drill touches no target of the configuration. It is the only sink of the run: no metric about a
service, no objective, no status store and no history receives it.

The drill follows its findings to the page, and verifies that no page is sent without a finding.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf
from types import MappingProxyType
from typing import Final, TypeAlias

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint
from prober.brokers.push.nowhere import NOWHERE
from prober.clock import monotonic_s, wall_s
from prober.config.models import ProbeSettings, Schedule, TargetSettings
from prober.config.sections import PushSettings
from prober.core.findings import FAILING, Finding
from prober.core.verdict import Verdict
from prober.drills.chain import Chain, NoAnswer, Patience, Sighting, Step, StepName, concluded
from prober.drills.plans import DrillPlan
from prober.embedded.faults import Ledger
from prober.embedded.server import EmbeddedServer
from prober.probes.catalogue import ProbeName
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.runs.sink import RunBegun, RunEnded
from prober.schedule.connections import PushReceivers
from prober.schedule.instances import PlannedInstance
from prober.sinks.metrics import DrillMetrics, families

PLACE: Final = "drill"
_ONCE: Final = Schedule(interval=timedelta(days=1))
_LEASE: Final = timedelta(seconds=10)
_SETTINGS: Final = MappingProxyType(
    {
        # Too little load to affect the service's probes, and enough for every fault to be injected.
        ProbeName.ORDERING: ProbeSettings(schedule=_ONCE, keys=6, messages=10, rate=400, subscribers=3, ack_deadline=_LEASE),
        ProbeName.REDELIVERY: ProbeSettings(schedule=_ONCE, keys=4, messages=5, subscribers=2, ack_deadline=_LEASE),
        ProbeName.PULL: ProbeSettings(schedule=_ONCE, keys=6, messages=10, subscribers=3, ack_deadline=_LEASE),
        ProbeName.PUSH: ProbeSettings(schedule=_ONCE, keys=6, messages=6, subscribers=1, ack_deadline=_LEASE),
        ProbeName.PUBLISH: ProbeSettings(schedule=_ONCE, keys=6, messages=3, subscribers=1, ack_deadline=_LEASE),
        ProbeName.ISOLATION: ProbeSettings(
            schedule=_ONCE, keys=4, messages=2, subscribers=2, processing_time=timedelta(seconds=1), ack_deadline=_LEASE
        ),
        ProbeName.DEAD_LETTER: ProbeSettings(schedule=_ONCE, keys=4, messages=2, subscribers=2, ack_deadline=_LEASE),
        ProbeName.EXACTLY_ONCE: ProbeSettings(schedule=_ONCE, keys=6, messages=4, subscribers=2, ack_deadline=_LEASE),
        ProbeName.HOT_KEY: ProbeSettings(
            schedule=_ONCE, keys=1, messages=50, rate=100, sizes=(9_500,), subscribers=1, ack_deadline=_LEASE
        ),
        ProbeName.LONG_LIVED: ProbeSettings(schedule=_ONCE, keys=6, messages=5, subscribers=2, ack_deadline=_LEASE),
        ProbeName.SCALE: ProbeSettings(schedule=_ONCE, keys=27, messages=4, subscribers=2, ack_deadline=_LEASE),
        ProbeName.CONTROL_PLANE: ProbeSettings(schedule=_ONCE, keys=4, messages=5, subscribers=1, ack_deadline=_LEASE),
    }
)
_NOT_FOLLOWED: Final = {
    StepName.RULE: "not followed: no URL of Prometheus is configured",
    StepName.ALERTMANAGER: "not followed: no URL of Alertmanager is configured",
    StepName.RECEIVER: "not followed: no port to receive pages on is configured",
}

_Seen: TypeAlias = str | NoAnswer | None

_log = logging.getLogger(__name__)
EARLIER_S: Final = 300.0
"""Maximum wait for the end of an earlier drill's alert; its rule keeps it firing for three minutes."""


@dataclass(frozen=True, slots=True)
class DrillResult:
    """Result of a drill.

    drill       its name; `sort`: the guarantee that its fault breaks.
    verdict     PASS only if every followed step passed; FAIL if one failed.
    reason      reason for FAIL or UNKNOWN, in one line; empty for PASS.
    steps       all steps, in their order.
    found       kinds of findings that report a violation of the drill's server.
    injected    number of injections of the fault.
    seed        seed that repeats the random choices.
    internal_error   an internal error of the prober ended the drill.
    """

    drill: str
    sort: str
    verdict: Verdict
    reason: str
    steps: tuple[Step, ...]
    found: tuple[str, ...]
    injected: int
    duration_s: float
    seed: int
    internal_error: bool = False

    @property
    def not_followed(self) -> tuple[StepName, ...]:
        """Steps that the configuration leaves out."""
        return tuple(step.name for step in self.steps if not step.followed)

    @property
    def steps_s(self) -> Mapping[str, float | None]:
        """Duration of each followed step."""
        return {step.name: step.took_s for step in self.steps if step.followed}


class Drill:
    """One drill of a plan, for one execution."""

    def __init__(self, plan: DrillPlan, chain: Chain, seed: int) -> None:
        self._plan, self._chain, self._seed = plan, chain, seed
        self._counted = CounterSighting(chain.metrics)
        beyond = (
            (StepName.RULE, chain.prometheus),
            (StepName.ALERTMANAGER, chain.alertmanager),
            (StepName.RECEIVER, chain.receiver),
        )
        self._sightings: dict[StepName, Sighting] = {StepName.COUNTER: self._counted}
        self._sightings |= {name: sighting for name, sighting in beyond if sighting is not None}

    async def carry_out(self) -> DrillResult:
        """Run the drill, report it to the metrics and return its result, which includes an internal error. Raises only on cancellation."""
        started_t = monotonic_s()
        exercise = Exercise(self._plan, self._seed, self._chain.metrics)
        fault: Exception | None = None
        try:
            steps = await self._steps(exercise)
        except Exception as error:
            fault, steps = error, tuple(Step(name, Verdict.UNKNOWN, note=f"internal error: {error!r}") for name in StepName)
            _log.error("internal error in the drill %s", self._plan.name, exc_info=error)
        verdict, reason = concluded(steps)
        result = DrillResult(
            drill=self._plan.name,
            sort=self._plan.sort,
            verdict=verdict,
            reason=reason,
            steps=steps,
            found=tuple(sorted(exercise.found)),
            injected=exercise.injected,
            duration_s=monotonic_s() - started_t,
            seed=self._seed,
            internal_error=fault is not None or exercise.internal_error,
        )
        self._chain.metrics.ended(result.drill, verdict, result.steps_s, wall_s())
        return result

    async def _steps(self, exercise: Exercise) -> tuple[Step, ...]:
        decided = await self._look_around()
        self._counted.expect(self._plan.name)
        if self._chain.receiver is not None:
            self._chain.receiver.expect(self._plan.name)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(exercise.carry_out())
            following = tasks.create_task(self._follow(exercise, running, decided))
        finding, followed = self._verify(exercise, running.result()), following.result()
        return (finding, *(self._step(name, finding, followed) for name in StepName if name is not StepName.FINDING))

    async def _look_around(self) -> dict[StepName, Step]:
        """Return the steps that are decided beforehand: no answer, an earlier alert, or a missing rule."""
        alerts = {name: self._sightings[name] for name in (StepName.RULE, StepName.ALERTMANAGER) if name in self._sightings}
        troubles = await gone(alerts.items(), self._plan.name, self._chain.patience)
        decided = {name: Step(name, Verdict.UNKNOWN, note=trouble) for name, trouble in troubles.items()}
        if self._chain.prometheus is not None and StepName.RULE not in decided:
            verdict = Verdict.FAIL if self._plan.announced else Verdict.UNKNOWN
            try:
                missing = await self._chain.prometheus.missing_rule()
            except NoAnswer as error:
                verdict, missing = Verdict.UNKNOWN, str(error)
            decided |= {StepName.RULE: Step(StepName.RULE, verdict, note=missing)} if missing else {}
        return decided

    async def _follow(
        self, exercise: Exercise, running: asyncio.Task[RunResult], decided: Mapping[StepName, Step]
    ) -> Mapping[StepName, Step]:
        """Return every step after the finding; none if there is no finding to follow."""
        await exercise.noticed.wait()
        if not self._plan.announced:
            await asyncio.wait([running])
            since_t, look = exercise.injected_t or monotonic_s(), stayed_away
        elif exercise.found_t is not None and exercise.injected_t is not None:
            since_t, look = exercise.injected_t, came
        else:
            return {}
        open_still = [(name, sighting) for name, sighting in self._sightings.items() if name not in decided]
        looks = (look(name, sighting, self._plan.name, self._patience(name), since_t) for name, sighting in open_still)
        return {**decided, **{step.name: step for step in await asyncio.gather(*looks)}}

    def _patience(self, name: StepName) -> Patience:
        """Return the time limits of a step. The prober's own counter needs only a single check for the absence of findings."""
        patience = self._chain.patience
        return replace(patience, silence_s=0.0) if name is StepName.COUNTER else patience

    def _step(self, name: StepName, finding: Step, followed: Mapping[StepName, Step]) -> Step:
        if name not in self._sightings:
            return Step(name, Verdict.UNKNOWN, note=_NOT_FOLLOWED[name], followed=False)
        return followed.get(name, Step(name, Verdict.UNKNOWN, note=f"nothing to follow, since {finding.note}"))

    def _verify(self, exercise: Exercise, result: RunResult) -> Step:
        """Return the first step: whether the run made an expected finding, and no other."""
        name, announced = StepName.FINDING, self._plan.announced
        if exercise.astray:
            where = "where nothing was planted" if announced else "although no guarantee was violated"
            return Step(name, Verdict.FAIL, note=f"{', '.join(sorted(exercise.astray))} was found {where}")
        if self._plan.fault is not None and exercise.injected_t is None:
            return Step(name, Verdict.UNKNOWN, note="the fault was never injected")
        if not announced and exercise.found:
            kinds = ", ".join(sorted(exercise.found))
            return Step(name, Verdict.FAIL, note=f"{kinds} was found although no guarantee was violated")
        if exercise.found_t is not None and exercise.injected_t is not None:
            return Step(name, Verdict.PASS, exercise.found_t - exercise.injected_t)
        if result.verdict is Verdict.UNKNOWN:
            return Step(name, Verdict.UNKNOWN, note=f"the run is undecided: {result.reason}")
        return Step(name, Verdict.FAIL, note=f"none of {', '.join(announced)} was found") if announced else Step(name, Verdict.PASS)


class Exercise:
    """One run of a plan's probe on a server with the fault, which collects findings during the run.

    noticed   set at the first expected finding, and at the end in any case.
    found_t   time of the first expected finding, on the monotonic clock; None if there is none.
    found     kinds of findings that report a violation; `astray`: those on keys without a planted fault.
    internal_error   an internal error of the prober ended the run.
    """

    def __init__(self, plan: DrillPlan, seed: int, metrics: DrillMetrics) -> None:
        self.noticed = asyncio.Event()
        self.found_t: float | None = None
        self.found: set[str] = set()
        self.astray: set[str] = set()
        self.internal_error = False
        self._plan, self._seed, self._metrics = plan, seed, metrics
        self._ledger = Ledger()
        # The server's clock starts at wall time, for its message ids, and advances with the monotonic clock.
        self._offset_s = wall_s() - monotonic_s()
        faults = () if plan.fault is None else (replace(plan.fault, seed=seed),)
        self._server = EmbeddedServer(0, faults, now=lambda: self._offset_s + monotonic_s())

    async def carry_out(self) -> RunResult:
        """Run the probe and return the result. Raises OSError if there is no port for the server."""
        try:
            async with AsyncExitStack() as resources:
                server = await resources.enter_async_context(self._server)
                self._ledger = server.faults.ledger
                endpoint = Endpoint(server.address, secure=False)
                instance = self._instance()
                receivers = await resources.enter_async_context(PushReceivers(PushSettings(), PLACE))
                pushes = await receivers.of(instance.target, endpoint, server.signer) if instance.is_pushed else NOWHERE
                broker = await connect(endpoint, Vantage.WIRE, pushes=pushes)
                resources.push_async_callback(broker.close)
                run = instance.run_once(endpoint, broker, PLACE, self._seed)
                run.begin(ProbeInstance(PLACE, instance.probe, instance.vantage, inf), [self])
                return await run.carry_out()
        finally:
            self.noticed.set()

    @property
    def injected(self) -> int:
        """Number of injections of the fault so far."""
        return self._ledger.counts.total()

    @property
    def injected_t(self) -> float | None:
        """Time of the earliest recorded injection, on the monotonic clock; None if there is none."""
        injected = self._ledger.latest
        return injected[0].t - self._offset_s if injected else None

    def _instance(self) -> PlannedInstance:
        settings = _SETTINGS[self._plan.probe]
        target = TargetSettings(name=PLACE, probes={self._plan.probe: settings})
        return PlannedInstance(target, self._plan.probe, settings, Vantage.WIRE)

    def begin(self, run: RunBegun) -> Exercise:
        """Return the exercise itself as the listener of its run."""
        return self

    def event(self, seen: Observation) -> None:
        """Collect the findings of an event."""
        self._take_in(seen.findings)

    def ended(self, end: RunEnded) -> None:
        """Collect the findings that only the end of the run decided."""
        self.internal_error = end.result.internal_error
        self._take_in(end.findings)

    def _take_in(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._metrics.of(self._plan.name).count(families.DRILL_FINDINGS, finding.kind, finding.status)
            self._weigh(finding)

    def _weigh(self, finding: Finding) -> None:
        if finding.status not in FAILING:
            return
        self.found.add(finding.kind)
        if not self._plan.planted_on(finding.key):
            self.astray.add(finding.kind)
        elif finding.kind in self._plan.announced and self.found_t is None:
            self.found_t = monotonic_s()
            self.noticed.set()


class CounterSighting:
    """Station that shows whether a scrape reports more findings of a drill than before the drill."""

    def __init__(self, metrics: DrillMetrics) -> None:
        self._metrics = metrics
        self._before: dict[str, float] = {}

    def expect(self, drill: str) -> None:
        """Record the current number of findings."""
        self._before[drill] = self._metrics.scraped(drill, FAILING)

    async def sees(self, drill: str) -> str | None:
        """Return an empty remark if the number has increased, None if not."""
        return "" if self._metrics.scraped(drill, FAILING) > self._before[drill] else None


async def gone(sightings: Iterable[tuple[StepName, Sighting]], drill: str, patience: Patience) -> dict[StepName, str]:
    """Wait until no station shows an earlier alert of the drill; return the remaining obstacles by step."""
    found = await asyncio.gather(*(_gone(name, sighting, drill, patience) for name, sighting in sightings))
    return {name: trouble for name, trouble in found if trouble}


async def _gone(name: StepName, sighting: Sighting, drill: str, patience: Patience) -> tuple[StepName, str]:
    *_, last = await _looks(sighting, drill, patience, EARLIER_S, lambda seen: not isinstance(seen, str))
    if isinstance(last, str):
        return name, "the alert of an earlier drill has not ended"
    return name, "" if last is None else str(last)


async def came(name: StepName, sighting: Sighting, drill: str, patience: Patience, since_t: float) -> Step:
    """Wait for a required signal and return the step.

    UNKNOWN only if the last check got no answer; `since_t` is the time of the fault's injection.
    """
    *_, last = await _looks(sighting, drill, patience, patience.deadline_s)
    if isinstance(last, str):
        return Step(name, Verdict.PASS, patience.clock() - since_t, last)
    if last is not None:
        return Step(name, Verdict.UNKNOWN, note=str(last))
    return Step(name, Verdict.FAIL, note=f"did not come within {patience.deadline_s:g} s")


async def stayed_away(name: StepName, sighting: Sighting, drill: str, patience: Patience, since_t: float) -> Step:
    """Watch for a forbidden signal and return the step. UNKNOWN if any check got no answer: the signal may have been missed."""
    every = await _looks(sighting, drill, patience, patience.silence_s)
    if isinstance(every[-1], str):
        return Step(name, Verdict.FAIL, patience.clock() - since_t, "came although no guarantee was violated")
    troubles = [str(seen) for seen in every if seen is not None]
    return Step(name, Verdict.UNKNOWN, note=troubles[-1]) if troubles else Step(name, Verdict.PASS)


async def _looks(
    sighting: Sighting,
    drill: str,
    patience: Patience,
    limit_s: float,
    is_last: Callable[[_Seen], bool] = lambda seen: isinstance(seen, str),
) -> list[_Seen]:
    """Check a station until `is_last`, or for `limit_s`; return what each check saw, or why it got no answer."""
    give_up_t = patience.clock() + limit_s
    every: list[_Seen] = []
    while True:
        try:
            every.append(await sighting.sees(drill))
        except NoAnswer as error:
            every.append(error)
        if is_last(every[-1]) or patience.clock() >= give_up_t:
            return every
        await asyncio.sleep(patience.look_s)
