"""What a drill leaves behind: how far its fault was followed, step by step, and what that means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from prober.core.verdict import Verdict, worst


class StepName(StrEnum):
    """The way of a fault to whoever is told, in this order."""

    FINDING = "finding"
    COUNTER = "counter"
    RULE = "rule"
    ALERTMANAGER = "alertmanager"
    RECEIVER = "receiver"


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    verdict   PASS: it came, or stayed away where it had to. FAIL: the contrary. UNKNOWN: it could not be seen.
    took_s    seconds from when the fault first struck until the step was seen; None if nothing came.
    note      what is to be known about it, in one line; empty for most that passed.
    followed  False if the configuration does not say where to look. Such a step is UNKNOWN, and not held against the drill.
    """

    name: StepName
    verdict: Verdict
    took_s: float | None = None
    note: str = ""
    followed: bool = True


@dataclass(frozen=True, slots=True)
class DrillResult:
    """One finished drill.

    drill       its name; `sort` is what its fault breaks, `sentence` what it does.
    verdict     PASS only if every step that was followed passed; FAIL if one failed.
    reason      why it is FAIL or UNKNOWN, in one line; empty for PASS.
    steps       all of them, in their order.
    found       kinds of the findings that accused the drill's server.
    struck      how often the fault struck.
    started_at  seconds since 1970.
    seed        repeats what was random.
    internal_error   it ended by a mistake of ours.
    """

    drill: str
    sort: str
    sentence: str
    verdict: Verdict
    reason: str
    steps: tuple[Step, ...]
    found: tuple[str, ...]
    struck: int
    started_at: float
    duration_s: float
    seed: int
    internal_error: bool = False

    @property
    def not_followed(self) -> tuple[StepName, ...]:
        """The steps that the configuration leaves out."""
        return tuple(step.name for step in self.steps if not step.followed)

    @property
    def steps_s(self) -> Mapping[str, float | None]:
        """How long each step that was followed took."""
        return {step.name: step.took_s for step in self.steps if step.followed}


def concluded(steps: Sequence[Step]) -> tuple[Verdict, str]:
    """What the steps mean together, and why it is no PASS: the first step that says so, since the others only follow from it."""
    followed = [step for step in steps if step.followed]
    verdict = worst(step.verdict for step in followed)
    if verdict is Verdict.PASS:
        return verdict, ""
    return verdict, next((f"{step.name}: {step.note}" for step in followed if step.verdict is verdict), "nothing was followed")
