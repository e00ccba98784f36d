"""One drill, from the planted fault to whoever is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from prober.clock import monotonic_s, wall_s
from prober.core.verdict import Verdict
from prober.drills.alerts import NoAnswer, Sighting
from prober.drills.chain import Chain
from prober.drills.exercise import Exercise
from prober.drills.following import Counted, Patience, came, gone, stayed_away
from prober.drills.plans import Plan
from prober.drills.results import DrillResult, Step, StepName, concluded
from prober.runs.result import RunResult

_NOT_FOLLOWED: Final = {
    StepName.RULE: "not followed: no URL of Prometheus is configured",
    StepName.ALERTMANAGER: "not followed: no URL of Alertmanager is configured",
    StepName.RECEIVER: "not followed: no port to receive pages on is configured",
}

_log = logging.getLogger(__name__)


class Drill:
    """One drill of a plan; carried out once."""

    def __init__(self, plan: Plan, chain: Chain, seed: int) -> None:
        self._plan, self._chain, self._seed = plan, chain, seed
        self._counted = Counted(chain.metrics)
        beyond = (
            (StepName.RULE, chain.prometheus),
            (StepName.ALERTMANAGER, chain.alertmanager),
            (StepName.RECEIVER, chain.receiver),
        )
        self._sightings: dict[StepName, Sighting] = {StepName.COUNTER: self._counted}
        self._sightings |= {name: sighting for name, sighting in beyond if sighting is not None}

    async def carry_out(self) -> DrillResult:
        """Plants, probes, follows, and tells the metrics. Raises nothing but cancellation: a mistake of ours is part of the result."""
        started_at, started_t = wall_s(), monotonic_s()
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
            sentence=self._plan.sentence,
            verdict=verdict,
            reason=reason,
            steps=steps,
            found=tuple(sorted(exercise.found)),
            struck=exercise.struck,
            started_at=started_at,
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
        finding, followed = self._judge(exercise, running.result()), following.result()
        return (finding, *(self._step(name, finding, followed) for name in StepName if name is not StepName.FINDING))

    async def _look_around(self) -> dict[StepName, Step]:
        """What can be said of steps beforehand: nobody answers, the alert of an earlier drill is in the way, there is no rule."""
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
        """Every step beyond the finding; none if there is no finding to follow."""
        await exercise.noticed.wait()
        if not self._plan.announced:
            await asyncio.wait([running])
            since_t, look = exercise.struck_t or monotonic_s(), stayed_away
        elif exercise.found_t is not None and exercise.struck_t is not None:
            since_t, look = exercise.struck_t, came
        else:
            return {}
        open_still = [(name, sighting) for name, sighting in self._sightings.items() if name not in decided]
        looks = (look(name, sighting, self._plan.name, self._patience(name), since_t) for name, sighting in open_still)
        return {**decided, **{step.name: step for step in await asyncio.gather(*looks)}}

    def _patience(self, name: StepName) -> Patience:
        """Our own counter is looked at once when it must have stayed: only others take their time."""
        patience = self._chain.patience
        return replace(patience, silence_s=0.0) if name is StepName.COUNTER else patience

    def _step(self, name: StepName, finding: Step, followed: Mapping[StepName, Step]) -> Step:
        if name not in self._sightings:
            return Step(name, Verdict.UNKNOWN, note=_NOT_FOLLOWED[name], followed=False)
        return followed.get(name, Step(name, Verdict.UNKNOWN, note=f"nothing to follow, since {finding.note}"))

    def _judge(self, exercise: Exercise, result: RunResult) -> Step:
        """The first step: whether what was announced was found, and nothing else."""
        name, announced, undecided = StepName.FINDING, self._plan.announced, f"the run is undecided: {result.reason}"
        if exercise.astray:
            where = "where nothing was planted" if announced else "although no promise was broken"
            return Step(name, Verdict.FAIL, note=f"{', '.join(sorted(exercise.astray))} was found {where}")
        if self._plan.fault is not None and exercise.struck_t is None:
            return Step(name, Verdict.UNKNOWN, note="the fault never struck")
        if not announced:
            return self._quiet(exercise, result, undecided)
        if exercise.found_t is not None and exercise.struck_t is not None:
            return Step(name, Verdict.PASS, exercise.found_t - exercise.struck_t)
        if result.verdict is Verdict.UNKNOWN:
            return Step(name, Verdict.UNKNOWN, note=undecided)
        return Step(name, Verdict.FAIL, note=f"none of {', '.join(announced)} was found")

    def _quiet(self, exercise: Exercise, result: RunResult, undecided: str) -> Step:
        if exercise.found:
            kinds = ", ".join(sorted(exercise.found))
            return Step(StepName.FINDING, Verdict.FAIL, note=f"{kinds} was found although no promise was broken")
        if result.verdict is Verdict.UNKNOWN:
            return Step(StepName.FINDING, Verdict.UNKNOWN, note=undecided)
        return Step(StepName.FINDING, Verdict.PASS)
