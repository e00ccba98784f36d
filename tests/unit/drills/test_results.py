"""What the steps of a drill mean together."""

from __future__ import annotations

import pytest

from prober.core.verdict import Verdict
from prober.drills.results import DrillResult, Step, StepName, concluded

PASSED = Step(StepName.FINDING, Verdict.PASS, 0.5)
FAILED = Step(StepName.RULE, Verdict.FAIL, note="did not come within 60 s")
UNSEEN = Step(StepName.ALERTMANAGER, Verdict.UNKNOWN, note="nobody answers")
LEFT_OUT = Step(StepName.RECEIVER, Verdict.UNKNOWN, note="not followed: no port", followed=False)


@pytest.mark.parametrize(
    ("steps", "verdict", "reason"),
    [
        ((PASSED,), Verdict.PASS, ""),
        ((PASSED, LEFT_OUT), Verdict.PASS, ""),
        ((PASSED, UNSEEN), Verdict.UNKNOWN, "alertmanager: nobody answers"),
        ((PASSED, FAILED, UNSEEN, LEFT_OUT), Verdict.FAIL, "rule: did not come within 60 s"),
        ((LEFT_OUT,), Verdict.UNKNOWN, "nothing was followed"),
    ],
)
def test_a_drill_passes_if_every_step_that_was_followed_did(steps: tuple[Step, ...], verdict: Verdict, reason: str) -> None:
    assert concluded(steps) == (verdict, reason)


def test_what_was_not_followed_is_listed_and_has_no_seconds() -> None:
    result = DrillResult("drop", "integrity", "A.", Verdict.PASS, "", (PASSED, LEFT_OUT), (), 1, 0.0, 1.0, 0)
    assert result.not_followed == (StepName.RECEIVER,)
    assert result.steps_s == {"finding": 0.5}
