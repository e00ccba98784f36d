"""What is recognised as usual is verified as it would be the long way, and nearly all of an easy history is recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import pytest

from benchmarks.histories import HISTORIES, History
from prober.core import usual
from prober.core.events import Delivered, Event
from prober.core.findings import Finding
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from tests.documented.service import legal_history
from tests.simulation.faults import Fault
from tests.simulation.service import simulate_run

EASY = [history for history in HISTORIES if history.name in {"one subscriber", "eight subscribers", "pull", "push"}]
FAULTS = tuple(Fault)


def verified(rules: Mapping[str, Rules], events: Sequence[Event]) -> tuple[list[Finding], Counter[str]]:
    verifier = Verifier(next(iter(rules.values())), subscriptions=rules, rules_by_subscription=rules)
    found = [finding for event in events for finding in verifier.observe(event)]
    return [*found, *verifier.finish()], verifier.counters


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("seed", range(1, 4))
def test_the_long_way_says_the_same(mode: Mode, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    legal, documented = simulate_run(seed, mode), legal_history(mode, seed)
    broken = simulate_run(seed, mode, FAULTS[7 * seed])
    histories: list[tuple[Mapping[str, Rules], Sequence[Event]]] = [(documented.rules, documented.events)]
    histories += [(run.rules_by_subscription, run.events) for run in (legal, broken)]
    shortly = [verified(*history) for history in histories]
    monkeypatch.setattr(usual, "goes_on_with", lambda *_: False)
    assert [verified(*history) for history in histories] == shortly


@pytest.mark.parametrize("history", EASY, ids=lambda history: history.name)
def test_deliveries_of_an_easy_history_are_usual(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    recognised, goes_on_with = Counter[bool](), usual.goes_on_with
    monkeypatch.setattr(usual, "goes_on_with", lambda *delivery: (recognised.update([known := goes_on_with(*delivery)]), known)[1])
    events = list(islice(history.events(), 10_000))
    verified({"s": Rules(mode=history.mode)}, events)
    assert recognised[True] > 0.95 * sum(isinstance(event, Delivered) for event in events)
