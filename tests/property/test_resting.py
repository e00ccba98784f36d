"""Putting keys away changes nothing: the same findings, counts and debts as if every key were kept as an object.

Only the order of what is found with one event may differ: what concerns every key, such as a seek, reaches those at rest later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prober.core import events as ev
from prober.core import resting
from prober.core.group import KeyGroup
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from prober.traces.trace import read_trace
from tests.judging import SUBSCRIPTION, judge
from tests.property.test_invariance import EVENTS, RULES, STEPS, Case, cases
from tests.simulation.legal import definite
from tests.simulation.service import Run, simulate_run
from tests.simulation.trace import show

VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("*.jsonl"))
SETTLING = st.sampled_from((0.0, 1.0, 30.0, 2000.0))

CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"window": 2},
    {"idle_after_s": 1.0},
    {"idle_after_s": 20.0, "window": 3},
    {"delivery_delay_max_s": inf},
    {"unacked_deadline_s": inf},
    {"subscription_predates_first_publish": False},
    {"filtered": True},
    {"idle_after_s": 3.0, "delivery_deadline_s": 4.0, "stall_deadline_s": 4.0, "unacked_deadline_s": 4.0},
)
"""Of the rules: what is forgotten early, and what never ends."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many keys may be warm, how many operations are remembered for the others, and how many bytes they may have.

    `idle`: idle keys are put away before there are too many.
    """

    warm: int
    missed: int = 256
    heavy: int = 1024
    idle: bool = True


NONE_AT_REST = Limits(1 << 30, idle=False)
LIMITS = st.builds(Limits, st.sampled_from((0, 1, 2, 3, 1 << 30)), st.sampled_from((1, 2, 256)), st.sampled_from((0, 1024)))


def told(rules: Rules, events: Iterable[ev.Event], limits: Limits, subscriptions: Sequence[str] = (SUBSCRIPTION,)) -> Any:
    """What the checker says to each event and at the end, what it counted, and whether something was owed before each event."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resting, "WARM_KEYS_MAX", limits.warm)
        patch.setattr(resting, "MISSED_MAX", limits.missed)
        patch.setattr(resting, "HEAVY_BYTES", limits.heavy)
        if not limits.idle:
            patch.setattr(KeyGroup, "idle", False)
        verifier = Verifier(rules, subscriptions=subscriptions)
        said = [(verifier.owed, sorted(map(repr, verifier.observe(event)))) for event in events]
        return said, sorted(map(repr, verifier.finish())), verifier.owed, verifier.counters


@st.composite
def disturbances(draw: st.DrawFn) -> list[tuple[float, ev.Event]]:
    """What concerns every key, each with its place in the history, from 0 to 1."""
    share = st.floats(0, 1)
    seeks = st.builds(ev.Sought, st.just(0.0), st.sampled_from((SUBSCRIPTION, "late")), SETTLING)
    sessions = st.builds(ev.Opened, st.just(0.0), st.just("late"), st.just("L"), st.just("L"))
    holes = st.builds(ev.Interrupted, st.just(0.0))
    return draw(st.lists(st.tuples(share, seeks | holes | sessions), max_size=6))


def disturbed(events: Sequence[ev.Event], by: Iterable[tuple[float, ev.Event]]) -> list[ev.Event]:
    """The history with these events in it; the last one stays the last."""
    *body, last = events
    more = [replace(event, t=share * last.t) for share, event in by]
    return [*sorted([*body, *more], key=lambda event: event.t), last]


@settings(max_examples=150)
@given(
    case=cases(keys=4),
    changes=st.sampled_from(CHANGES),
    by=disturbances(),
    limits=LIMITS,
    subscriptions=st.sampled_from(((SUBSCRIPTION,), (SUBSCRIPTION, "other"))),
)
def test_of_a_service(
    case: Case, changes: dict[str, Any], by: list[tuple[float, ev.Event]], limits: Limits, subscriptions: tuple[str, ...]
) -> None:
    run = case.run()
    rules, events = replace(run.rules, **changes), disturbed(run.events, by)
    assert told(rules, events, limits, subscriptions) == told(rules, events, NONE_AT_REST, subscriptions)


def renamed(event: ev.Event, name: str, later_s: float = 0.0) -> ev.Event:
    """The event on another key and other sessions, later."""
    changes = {field: f"{name} {getattr(event, field)}" for field in ("key", "session") if hasattr(event, field)}
    if isinstance(event, ev.Opened) and event.invoked_t is not None:
        event = replace(event, invoked_t=event.invoked_t + later_s)
    return replace(event, t=event.t + later_s, **changes)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(cases=st.lists(st.tuples(cases(keys=2), st.floats(0, 100)), min_size=2, max_size=4), limits=LIMITS)
def test_of_several_services_at_once(cases: list[tuple[Case, float]], limits: Limits) -> None:
    """Their keys interleave, each begins when it likes, and all are judged by the rules of the first."""
    mode = cases[0][0].mode
    runs = [(replace(case, mode=mode, fault=None).run(), later_s) for case, later_s in cases]
    events = [renamed(event, f"{number}", later_s) for number, (run, later_s) in enumerate(runs) for event in run.events[:-1]]
    events.sort(key=lambda event: event.t)
    assert told(runs[0][0].rules, events, limits) == told(runs[0][0].rules, events, NONE_AT_REST)


@settings(max_examples=300)
@given(rules=RULES, soup=st.lists(st.tuples(STEPS, EVENTS), max_size=60), limits=LIMITS)
def test_of_anything(rules: Rules, soup: list[tuple[float, ev.Event]], limits: Limits) -> None:
    now, events = 0.0, []
    for step, event in soup:
        now += step
        events.append(replace(event, t=now))
    assert told(rules, events, limits, ("a",)) == told(rules, events, NONE_AT_REST, ("a",))


def merged_vectors() -> dict[Rules, list[ev.Event]]:
    """The recorded histories with the same rules as one history each, on keys of their own."""
    histories: dict[Rules, list[ev.Event]] = {}
    for path in VECTORS:
        with read_trace(path) as trace:
            histories.setdefault(trace.header.rules, []).extend(renamed(event, path.stem) for event in trace)
    return {rules: sorted(events, key=lambda event: event.t) for rules, events in histories.items()}


@pytest.mark.parametrize("warm", range(4))
def test_of_the_recorded_histories(warm: int) -> None:
    """As they are, and with a seek, a hole and a late subscription somewhere."""
    random = Random(warm)
    for rules, events in merged_vectors().items():
        by: list[tuple[float, ev.Event]] = [
            (random.random(), ev.Sought(0.0, SUBSCRIPTION, random.choice((1.0, 30.0)))),
            (random.random(), ev.Interrupted(0.0)),
            (random.random(), ev.Opened(0.0, "late", "L", "L")),
        ]
        for count in range(len(by) + 1):
            history = disturbed(events, by[:count])
            assert told(rules, history, Limits(warm)) == told(rules, history, NONE_AT_REST)


def test_the_recorded_histories_meet() -> None:
    """Several of them have the same rules, or they would not be on several keys."""
    assert any(len({event.key for event in events if isinstance(event, ev.Delivered)}) > 10 for events in merged_vectors().values())


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_forgetting_keys_accuses_nobody(seed: int) -> None:
    """What comes on a key that was forgotten may come again, in another order than the first time.

    A simulated history may begin in the middle or be of several regions, where nobody says so: such a one is of no use here.
    """
    run = simulate_run(seed, Mode.STREAMING)
    events = [event for event in run.events if not isinstance(event, _PUBLISHES)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resting, "WARM_KEYS_MAX", 1)
        known, forgetting = (definite(judge(of_others(run.rules, bound), events, _all(run, bound))) for bound in (0, 1))
    assume(not known)
    assert not forgetting, f"seed {seed}, key {forgetting[0].key}:\n{show(events, forgetting[0].key)}"


def of_others(rules: Rules, keys_max: int) -> Rules:
    """The rules of a subscription where nobody recorded the publishes."""
    return replace(rules, keys_max=keys_max, publishes_recorded=False, attempts_observed=False, publish_time_error_s=0.0)


def _all(run: Run, keys_max: int) -> dict[str, Rules]:
    return {name: of_others(rules, keys_max) for name, rules in run.rules_by_subscription.items()}


_PUBLISHES = (ev.PublishInvoked, ev.Published, ev.PublishFailed, ev.PublishUnknown, ev.PublishAbandoned)


def test_no_more_keys_are_remembered_than_may_be() -> None:
    verifier = Verifier(Rules(keys_max=1_500, publishes_recorded=False), subscriptions=["s"])
    verifier.observe(ev.Opened(0.0, "s", "A", "A"))
    for number in range(10_000):
        t, key = 1.0 + number / 1e3, f"key-{number}"
        verifier.observe(ev.Delivered(t, "s", key, "A", "", 1, f"m{number}", publish_time=number))
        verifier.observe(ev.Acked(t, "s", key, "A", f"m{number}"))
    verifier.finish()
    assert verifier.counters["keys"] == 1_500
    assert verifier.counters["keys_forgotten"] == 8_500
    assert len(verifier._queue) <= resting.DUE_SLACK + (resting.DUE_PER_KEY + 1) * 1_500
