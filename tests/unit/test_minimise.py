"""Histories are reduced to the smallest that still prove a finding, the same finding, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prober.core.events import Event
from prober.core.findings import Finding, Kind, Status
from prober.core.minimise import Minimal, Numbered, identity, judged, minimise
from prober.core.rules import Mode, Rules
from prober.history.trace import read_trace
from tests.notation import history

VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("*.jsonl"))
RULES = Rules()
KNOWN = ("s",)


def numbered(events: Sequence[Event]) -> list[Numbered]:
    return list(enumerate(events, 1))


def findings(events: Sequence[Numbered], rules: Rules) -> list[Finding]:
    """All but information."""
    return [finding for _, finding in judged(events, rules, KNOWN) if finding.status is not Status.INFO]


def only(events: Sequence[Numbered], kind: Kind, rules: Rules = RULES) -> Finding:
    (finding,) = (finding for finding in findings(events, rules) if finding.kind is kind)
    return finding


def reduced(line: str, kind: Kind, rules: Rules = RULES) -> Minimal:
    events = numbered(history(line, rules.mode))
    minimal = minimise(events, only(events, kind, rules), rules, subscriptions=KNOWN)
    assert minimal is not None
    return minimal


def check_minimal(events: list[Numbered], finding: Finding, rules: Rules) -> None:
    minimal = minimise(events, finding, rules, subscriptions=KNOWN)
    assert minimal is not None
    assert minimal.complete
    assert set(minimal.events) <= set(events)
    before = {identity(one) for one in findings(events, rules)}

    def is_proof(candidate: Sequence[Numbered]) -> bool:
        found = findings(candidate, rules)
        same = (one for one in found if identity(one) == identity(finding) and set(one.witnesses) <= set(finding.witnesses))
        return any(same) and before.issuperset(map(identity, found))

    assert is_proof(minimal.events)
    assert not any(is_proof([*minimal.events[:i], *minimal.events[i + 1 :]]) for i in range(len(minimal.events)))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_reduced_trace_proves_the_same_and_no_event_can_go(path: Path) -> None:
    with read_trace(path) as trace:
        events = numbered(list(trace))
    for finding in findings(events, trace.header.rules):
        check_minimal(events, finding, trace.header.rules)


def test_what_happened_before_and_after_is_left_out() -> None:
    calm = " ".join(f"A<{seq}@{seq} A ack {seq}@{seq}.5" for seq in range(1, 40))
    publishes = ",".join(map(str, range(1, 50)))
    minimal = reduced(f"P{publishes} {calm} A<41@50 A<40@51 A<42@52", Kind.ORDER_GAP)
    assert [type(event).__name__ for _, event in minimal.events] == [
        "PublishInvoked",
        "Published",
        "PublishInvoked",
        "Published",
        "Delivered",
    ]
    assert minimal.finding.facts["missing"] == (40,)


def test_numbers_are_those_of_the_original_history() -> None:
    events = numbered(history("P1,2,3 A<1@1 A<3@1.1 end @500"))
    shifted = [(number + 1000, event) for number, event in events]
    finding = only(events, Kind.ORDER_GAP)
    expected = tuple(number + 1000 for number in finding.witnesses)
    minimal = minimise(shifted, replace(finding, witnesses=expected), RULES, subscriptions=KNOWN)
    assert minimal is not None
    assert minimal.finding.witnesses == expected
    assert {number for number, _ in minimal.events} >= set(expected)


def test_other_keys_and_subscriptions_are_left_out() -> None:
    line = "P1,2,3 A<1@1 A<3@1.1"
    mixed = sorted(history(line) + history(line, key="k2") + history(line, subscription="s2"), key=lambda event: event.t)
    events = numbered(mixed)
    (finding,) = (
        one for one in findings(events, RULES) if one.subscription == "s" and one.key == "k" and one.kind is Kind.ORDER_GAP
    )
    minimal = minimise(events, finding, RULES, subscriptions=KNOWN)
    assert minimal is not None
    assert {getattr(event, "key", "k") for _, event in minimal.events} == {"k"}
    assert {getattr(event, "subscription", "s") for _, event in minimal.events} == {"s"}


def test_a_finding_across_subscriptions_keeps_both() -> None:
    publishes = "P1@0 P2@0 info1@0.1 info2@0.1"
    one = history(f"{publishes} A<x1(1)@1 A<x2(2)@1.1")
    other = history("B<x2(2)@2 B<x1(1)@2.1", subscription="s2")
    events = numbered(sorted(one + other, key=lambda event: event.t))
    finding = next(one for one in findings(events, RULES) if one.kind is Kind.ORDER_DIVERGENCE)
    minimal = minimise(events, finding, RULES, subscriptions=KNOWN)
    assert minimal is not None
    assert {event.subscription for _, event in minimal.events if hasattr(event, "subscription")} == {"s", "s2"}


def test_an_event_that_keeps_another_finding_away_stays() -> None:
    """Without its confirmation, message 3 would not overtake anything; without its publish it would be a phantom."""
    minimal = reduced("P1,2,3 A<1@1 A<3@1.1", Kind.ORDER_GAP)
    assert [one.kind for one in findings(minimal.events, RULES)] == [Kind.ORDER_GAP]


def test_a_history_that_does_not_prove_the_finding_gives_none() -> None:
    events = numbered(history("P1,2,3 A<1@1 A<3@1.1"))
    finding = only(events, Kind.ORDER_GAP)
    assert minimise(events[:-1], finding, RULES, subscriptions=KNOWN) is None
    assert minimise([], finding, RULES, subscriptions=KNOWN) is None


def test_the_budget_bounds_the_runs() -> None:
    line = "P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1"
    events = numbered(history(line))
    finding = only(events, Kind.REDELIVERY_SKIP)
    spent = minimise(events, finding, RULES, runs_max=8, subscriptions=KNOWN)
    assert spent is not None
    assert not spent.complete
    assert spent.runs <= 9
    assert identity(spent.finding) == identity(finding)
    assert minimise(events, finding, RULES, events_max=len(events) - 1, subscriptions=KNOWN) is None


def test_modes_with_one_session_per_response() -> None:
    line = "P1,2,3,4 pull b1@0.9 b1<1@1 b1<2@1 pull b2@1.5 b2<3@1.6 b2<4@1.6"
    minimal = reduced(line, Kind.PULL_OVERLAP, Rules(mode=Mode.PULL))
    assert len(minimal.events) == 6
