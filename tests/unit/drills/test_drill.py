"""How long somebody looks, and what it means to see, not to see, and to get no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

import pytest

from prober.core.verdict import Verdict
from prober.drills.chain import NoAnswer, Patience, Step, StepName
from prober.drills.drill import EARLIER_S, came, gone, stayed_away
from prober.simulation.virtual_time import VirtualTime

RULE = StepName.RULE
Result = TypeVar("Result")


class Reported:
    """Sees what a test says that is there at a time; times in seconds from the start."""

    def __init__(self, there: Callable[[float], bool], mute: Callable[[float], bool] = lambda _t: False, note: str = "") -> None:
        self._there, self._mute, self._note = there, mute, note

    async def sees(self, _drill: str) -> str | None:
        now = asyncio.get_running_loop().time()
        if self._mute(now):
            raise NoAnswer("nobody answers")
        return self._note if self._there(now) else None


def passing(look: Callable[[Patience], Coroutine[None, None, Result]]) -> Result:
    """The result of a look in virtual time."""
    loop = VirtualTime()
    try:
        return loop.run_until_complete(look(Patience(60.0, 30.0, clock=loop.time)))
    finally:
        loop.close()


def test_what_comes_passes_with_its_seconds_since_the_fault_was_injected() -> None:
    step = passing(lambda patience: came(RULE, Reported(lambda t: t >= 7.0), "drop", patience, -3.0))
    assert (step.verdict, step.took_s, step.note) == (Verdict.PASS, 10.0, "")


def test_what_is_held_back_is_seen_and_said() -> None:
    assert (
        passing(lambda patience: came(RULE, Reported(lambda _: True, note="held back"), "drop", patience, 0.0)).note == "held back"
    )


def test_what_does_not_come_in_time_failed() -> None:
    step = passing(lambda patience: came(RULE, Reported(lambda t: t > 60.0), "drop", patience, 0.0))
    assert step == Step(RULE, Verdict.FAIL, note="did not come within 60 s")


def test_it_failed_only_if_somebody_could_have_seen_it_in_the_end() -> None:
    mute_at_first = Reported(lambda _: False, mute=lambda t: t < 50.0)
    assert passing(lambda patience: came(RULE, mute_at_first, "drop", patience, 0.0)).verdict is Verdict.FAIL
    mute_in_the_end = Reported(lambda _: False, mute=lambda t: t > 50.0)
    step = passing(lambda patience: came(RULE, mute_in_the_end, "drop", patience, 0.0))
    assert step == Step(RULE, Verdict.UNKNOWN, note="nobody answers")


@pytest.mark.parametrize(
    ("reported", "step"),
    [
        (Reported(lambda _: False), Step(RULE, Verdict.PASS)),
        (Reported(lambda t: t > 30.0), Step(RULE, Verdict.PASS)),
        (Reported(lambda t: t >= 29.0), Step(RULE, Verdict.FAIL, 29.0, "came although no guarantee was violated")),
        (Reported(lambda _: False, mute=lambda t: t == 3.0), Step(RULE, Verdict.UNKNOWN, note="nobody answers")),
    ],
)
def test_what_must_not_come_is_watched_all_the_time(reported: Reported, step: Step) -> None:
    assert passing(lambda patience: stayed_away(RULE, reported, "drop", patience, 0.0)) == step


def test_an_alert_of_an_earlier_drill_is_waited_for_to_end() -> None:
    def troubles(reported: Reported) -> dict[StepName, str]:
        return passing(lambda patience: gone([(RULE, reported)], "drop", patience))

    assert troubles(Reported(lambda t: t < 180.0)) == {}
    assert troubles(Reported(lambda t: t <= EARLIER_S)) == {RULE: "the alert of an earlier drill has not ended"}
    assert troubles(Reported(lambda t: t < 180.0, mute=lambda t: t > 5.0)) == {RULE: "nobody answers"}
