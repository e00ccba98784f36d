"""What must not change a verdict: names, the origin of time, other keys, the passing of time, what is still to come.

And what must not break the checker: anything. Sound and broken services are both verified, so that there are findings to compare.
`FULL_PROPERTIES=1` tries many more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any, TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prober.core import events as ev
from prober.core.findings import EPOCHS, Finding, Kind, Status
from prober.core.overdue import HELD_ELSEWHERE
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from tests.nightly import AT_NIGHT
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.service import Run, simulate_run
from tests.simulation.swarm import swarm
from tests.verification import SUBSCRIPTION, verify

Verdict: TypeAlias = tuple[Any, ...]

EXAMPLES = 1_000 if AT_NIGHT else 10
WAITING = (Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.UNACKED_STALL, Kind.REDELIVERY_STALL)


@dataclass(frozen=True, slots=True)
class Case:
    """Names a run: printed instead of its events when something fails."""

    mode: Mode
    fault: Fault | None
    seed: int
    keys: int | None = None

    def run(self) -> Run:
        options = swarm(self.seed, self.mode)
        options = replace(options, keys=self.keys) if self.keys else options
        return simulate_run(self.seed, self.mode, self.fault, options)


def cases(keys: int | None = None) -> st.SearchStrategy[Case]:
    pairs = [(mode, fault) for mode in Mode for fault in (None, *FAULTS[mode])]
    return st.builds(lambda pair, seed: Case(pair[0], pair[1], seed, keys), st.sampled_from(pairs), st.integers(0, 10_000))


def essence(findings: Iterable[Finding], events: Sequence[ev.Event]) -> Counter[Verdict]:
    """Findings without what depends on the numbering of the events: the witnesses are the events themselves."""
    return Counter(
        (
            finding.kind,
            finding.status,
            finding.subscription,
            finding.key,
            tuple(repr(events[number - 1]) for number in finding.witnesses),
            tuple(sorted((name, repr(fact)) for name, fact in finding.facts.items())),
            finding.doubt,
        )
        for finding in findings
    )


def safety_and_kinds(findings: Iterable[Finding], events: Sequence[ev.Event]) -> tuple[Counter[Verdict], set[Verdict]]:
    """The findings; of liveness only whether there are any, since overdue messages are reported together when the clock is looked at.

    The doubt that another key's messages cast on a wait is reported only if the clock is looked at before the proof is there.
    """
    parted: tuple[list[Finding], list[Finding]] = ([], [])
    for finding in (one for one in findings if one.doubt != HELD_ELSEWHERE):
        parted[finding.status is Status.LIVENESS].append(finding)
    return essence(parted[False], events), {(finding.kind, finding.key) for finding in parted[True]}


def explained(rules: Rules, events: Iterable[ev.Event]) -> list[Finding]:
    """The findings; not of a run whose orders were too many: when the bounded effort is used up depends on when the clock is looked at."""
    verifier = Verifier(rules, subscriptions=(SUBSCRIPTION,))
    findings = [finding for event in events for finding in verifier.observe(event)]
    findings.extend(verifier.finish())
    assume(not verifier.counters["unexplained"])
    return findings


def of_key(key: str, events: Iterable[ev.Event]) -> list[ev.Event]:
    """The events of a key, with those of sessions and of the subscription, and all deliveries, which show that a session is alive."""
    return [event for event in events if isinstance(event, ev.Delivered) or getattr(event, "key", key) == key]


@settings(max_examples=EXAMPLES)
@given(case=cases(keys=3))
def test_keys_are_verified_apart(case: Case) -> None:
    """Keys do not matter to each other, but for the doubt that a held one casts on waiting, and what their deliveries say of a session.

    No window is given up: when one is depends on what is waited for, and with it what is known of late copies.
    """
    assume(case.fault is not Fault.ID_SWAP)  # see the test below
    together, apart = together_and_apart(case)
    assert together == apart


@pytest.mark.xfail(strict=True, reason="with other keys a wrong order is reported on another delivery, or once more")
@pytest.mark.parametrize(
    "case",
    [Case(Mode.PUSH, Fault.ID_SWAP, 1232, keys=3), Case(Mode.STREAMING, Fault.PHANTOM_THEN_SWAP, 90, keys=3)],
    ids=["swapped ids", "a phantom, then a swap"],
)
def test_a_wrong_order_beside_wrong_ids_is_reported_alike(case: Case) -> None:
    together, apart = together_and_apart(case)
    assert together == apart


def together_and_apart(case: Case) -> tuple[Counter[Verdict], Counter[Verdict]]:
    """What is found when all keys are verified by one checker, and when each has its own."""
    run = case.run()
    rules = replace(run.rules, idle_after_s=inf)
    apart = Counter[Verdict]()
    for key in {event.key for event in run.events if isinstance(event, ev.PublishInvoked | ev.Delivered)}:
        alone = of_key(key, run.events)
        apart.update(without_doubt((finding for finding in explained(rules, alone) if finding.key == key), alone))
    return without_doubt(explained(rules, run.events), run.events), apart


def without_doubt(findings: Iterable[Finding], events: Sequence[ev.Event]) -> Counter[Verdict]:
    """What is found, however sure it is and however many epochs there were when it was reported; nothing of messages that wait."""
    reported = (replace(finding, facts={**finding.facts, EPOCHS: 0}) for finding in findings if finding.kind not in WAITING)
    verdicts = essence(reported, events)
    found = Counter[Verdict]()
    for (kind, _, *rest, _), count in verdicts.items():
        found[kind, *rest] += count
    return found


@settings(max_examples=EXAMPLES)
@given(case=cases(), share=st.floats(0, 1))
def test_what_is_decided_stays_decided(case: Case, share: float) -> None:
    """The findings after a part of the record are the first findings of the whole, in whatever portions it is fed."""
    run = case.run()
    verifier = Verifier(run.rules, subscriptions=(SUBSCRIPTION,))
    cut = int(share * len(run.events))
    first = [finding for event in run.events[:cut] for finding in verifier.observe(event)]
    again = Verifier(run.rules, subscriptions=(SUBSCRIPTION,))
    whole = [finding for event in run.events for finding in again.observe(event)]
    assert whole[: len(first)] == first
    rest = [finding for event in run.events[cut:] for finding in verifier.observe(event)]
    assert first + rest == whole
    assert list(verifier.finish()) == list(again.finish())


@settings(max_examples=EXAMPLES)
@given(case=cases(), seed=st.integers(0, 100), pace=st.sampled_from((0.5, 5.0, 50.0)))
def test_the_passing_of_time_decides_nothing_else(case: Case, seed: int, pace: float) -> None:
    """Events of a key of its own in between only make the checker look at its clock more often; in a hole nothing is recorded."""
    run = case.run()
    ticks = [
        ev.PublishInvoked(pace * number + seed / 101, "tick", "e", number) for number in range(1, int(run.events[-1].t / pace))
    ]
    holes = [(one.t, other.t) for one, other in pairwise(run.events) if isinstance(other, ev.Interrupted)]
    recorded = [tick for tick in ticks[:5000] if not any(start_t < tick.t < end_t for start_t, end_t in holes)]
    ticked = sorted([*run.events[:-1], *recorded], key=lambda event: event.t)
    ticked.append(run.events[-1])
    plainly = safety_and_kinds(explained(run.rules, run.events), run.events)
    assert plainly == safety_and_kinds(explained(run.rules, ticked), ticked)


@settings(max_examples=EXAMPLES)
@given(case=cases())
def test_the_origin_of_time_does_not_matter(case: Case) -> None:
    run = case.run()
    now, later = ([_shifted(event, by) for event in run.events] for by in (0.0, 4096.0))
    assert _shape(verify(run.rules, now)) == _shape(verify(run.rules, later))


def _shifted(event: ev.Event, by: float) -> ev.Event:
    """At whole 2 ** -20 s, which can be shifted exactly: else two events a delay apart may be a bit nearer, or further."""
    if isinstance(event, ev.Opened) and event.invoked_t is not None:
        event = replace(event, invoked_t=round(event.invoked_t * 2**20) / 2**20 + by)
    return replace(event, t=round(event.t * 2**20) / 2**20 + by)


def _shape(findings: Iterable[Finding]) -> list[Verdict]:
    return [(finding.kind, finding.status, finding.key, finding.witnesses) for finding in findings]


@settings(max_examples=EXAMPLES)
@given(case=cases())
def test_names_do_not_matter(case: Case) -> None:
    """Sessions, subscribers, ids and epochs are only compared for equality: their alphabetical order means nothing."""
    run = case.run()
    names: dict[str, str] = {}

    def renamed(event: ev.Event) -> ev.Event:
        changes = {
            field: names.setdefault(getattr(event, field), f"{10**6 - len(names)}")
            for field in ("session", "subscriber", "message_id", "epoch")
            if hasattr(event, field)
        }
        return replace(event, **changes)  # type: ignore[arg-type]

    assert _shape(verify(run.rules, run.events)) == _shape(verify(run.rules, [renamed(event) for event in run.events]))


# --- nothing is raised ---

NAMES = st.sampled_from(("", "a", "b", "c", "\x00", "ключ"))
SEQS = st.sampled_from((0, 1, 2, 3, 4, -1, 10**30))
GENERATIONS = st.sampled_from((0, 1, -1))
IDS = st.sampled_from(("", "m1", "m2", "m3", "m4"))
SPANS = st.sampled_from((0.0, 1.0, 1e9, inf))
TIMES = st.just(0.0)
PUBLICATION = (TIMES, NAMES, NAMES, SEQS)
ANSWER = (TIMES, NAMES, NAMES, NAMES, IDS)
EVENTS: st.SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.PublishInvoked, *PUBLICATION, GENERATIONS),
    st.builds(ev.Published, *PUBLICATION, IDS, GENERATIONS),
    st.builds(ev.PublishFailed, *PUBLICATION, GENERATIONS),
    st.builds(ev.PublishUnknown, *PUBLICATION, GENERATIONS),
    st.builds(ev.PublishAbandoned, *PUBLICATION, GENERATIONS),
    st.builds(ev.Opened, TIMES, NAMES, NAMES, NAMES, st.none() | st.sampled_from((0.0, -1e9, 1e9))),
    st.builds(ev.Closed, TIMES, NAMES, NAMES),
    st.builds(
        ev.Delivered,
        TIMES,
        NAMES,
        NAMES,
        NAMES,
        NAMES,
        SEQS,
        IDS,
        GENERATIONS,
        st.sampled_from((0, 1, 5, 10**30)),
        st.none() | NAMES,
        st.booleans(),
    ),
    st.builds(ev.Acked, *ANSWER),
    st.builds(ev.Nacked, *ANSWER),
    st.builds(ev.AckConfirmed, *ANSWER),
    st.builds(ev.LeaseModified, *ANSWER, SPANS),
    st.builds(ev.DeadLettered, TIMES, NAMES, NAMES, IDS),
    st.builds(ev.Sought, TIMES, NAMES, SPANS),
    st.builds(ev.FilterChanged, TIMES, NAMES, SPANS),
    st.builds(ev.Interrupted, TIMES),
    st.builds(ev.Ended, TIMES, st.booleans()),
)
RULES = st.builds(
    Rules,
    mode=st.sampled_from(Mode),
    delivery_delay_max_s=SPANS,
    clock_error_s=SPANS,
    ack_deadline_s=SPANS,
    ack_lag_max_s=SPANS,
    close_detection_max_s=SPANS,
    exactly_once=st.booleans(),
    dead_letter_max_attempts=st.sampled_from((0, 1, 5)),
    window=st.sampled_from((1, 2, 1024)),
    delivery_deadline_s=SPANS,
    stall_deadline_s=SPANS,
    unacked_deadline_s=SPANS,
    subscription_predates_first_publish=st.booleans(),
    attempts_observed=st.booleans(),
    idle_after_s=SPANS,
)
STEPS = st.sampled_from((0.0, 0.0, 1e-9, 0.5, 7.0, 1e5))


def feed(rules: Rules, events: Sequence[ev.Event]) -> list[Finding]:
    verifier = Verifier(rules, subscriptions=("a",))
    findings: list[Finding] = []
    for event in events:
        findings.extend(verifier.observe(event))
    findings.extend(verifier.finish())
    findings.extend(verifier.finish())
    return findings


def check_form(findings: Iterable[Finding], events: Sequence[ev.Event]) -> None:
    for finding in findings:
        assert finding.witnesses == tuple(sorted(set(finding.witnesses)))
        assert finding.witnesses
        assert 1 <= finding.witnesses[0] <= finding.witnesses[-1] <= len(events)


@settings(max_examples=500 if AT_NIGHT else 150)
@given(rules=RULES, soup=st.lists(st.tuples(STEPS, EVENTS), max_size=40))
def test_nothing_is_raised(rules: Rules, soup: list[tuple[float, ev.Event]]) -> None:
    now, events = 0.0, []
    for step, event in soup:
        now += step
        events.append(replace(event, t=now))
    check_form(feed(rules, events), events)


@given(rules=RULES, soup=st.lists(st.tuples(st.sampled_from((0.0, 5.0, -3.0, inf, -inf)), EVENTS), max_size=20))
def test_nothing_is_raised_when_time_makes_no_sense(rules: Rules, soup: list[tuple[float, ev.Event]]) -> None:
    check_form(feed(rules, [replace(event, t=t) for t, event in soup]), soup)  # type: ignore[arg-type]


@settings(max_examples=EXAMPLES)
@given(rules=RULES, case=cases())
def test_wrong_assumptions_raise_nothing(rules: Rules, case: Case) -> None:
    run = case.run()
    check_form(verify(rules, run.events), run.events)
