"""The checker accepts histories that Google's documents allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from prober.core.events import Acked, Delivered, Event
from prober.core.findings import Finding
from prober.core.rules import Mode
from tests.documented.freedoms import SWITCHED_OFF, Freedom
from tests.documented.service import History, legal_history
from tests.verification import FAILURES, verify

SEEDS = {Mode.STREAMING: 120, Mode.PULL: 100, Mode.PUSH: 80}
BATCH = 20
EXCLUDED: dict[tuple[Mode, int], str] = {}
"""Seeds whose history the checker wrongly reports, with the class of `disputed.md`."""


def failures_of(history: History, events: list[Event] | None = None) -> list[Finding]:
    """Return the findings that fail a run."""
    rules = next(iter(history.rules.values()))
    findings = verify(rules, history.events if events is None else events, history.rules)
    return [finding for finding in findings if finding.status in FAILURES]


@cache
def freedoms_taken(mode: Mode, first: int) -> Counter[Freedom]:
    """Verify a batch of histories, and return the freedoms that they took."""
    used: Counter[Freedom] = Counter()
    for seed in range(first, first + BATCH):
        history = legal_history(mode, seed)
        used += history.used
        failures = failures_of(history)
        if (mode, seed) in EXCLUDED:
            assert failures, f"mode {mode}, seed {seed}: the checker accepts it now, so remove it from EXCLUDED"
        else:
            assert not failures, f"mode {mode}, seed {seed}: {failures[0]}"
    return used


BATCHES = [(mode, first) for mode, seeds in SEEDS.items() for first in range(0, seeds, BATCH)]
BATCHES += [(Mode.STREAMING, 1040)]  # a record that ends before a publish on a fast clock


@pytest.mark.parametrize(("mode", "first"), BATCHES)
def test_the_checker_accepts_legal_histories(mode: Mode, first: int) -> None:
    freedoms_taken(mode, first)


def test_every_freedom_is_taken() -> None:
    used = sum((freedoms_taken(mode, first) for mode, first in BATCHES), Counter[Freedom]())
    assert {freedom for freedom in Freedom if not used[freedom]} == set(SWITCHED_OFF)


def test_a_seed_names_one_history() -> None:
    assert legal_history(Mode.STREAMING, 1).events == legal_history(Mode.STREAMING, 1).events


@pytest.mark.parametrize("mode", Mode)
def test_times_do_not_decrease(mode: Mode) -> None:
    for seed in range(20):
        times = [event.t for event in legal_history(mode, seed).events]
        assert times == sorted(times), f"mode {mode}, seed {seed}"


@pytest.mark.parametrize("mode", Mode)
def test_messages_are_redelivered(mode: Mode) -> None:
    assert sum(len(list(redeliveries(legal_history(mode, seed).events))) for seed in range(20)) > 100


@pytest.mark.parametrize("mode", Mode)
def test_the_checker_reports_a_history_without_one_first_delivery(mode: Mode) -> None:
    """A message that no client ever received is lost: its deliveries and acknowledgements are deleted."""
    assert any(failures_of(history, without_message(history.events)) for history in plain_histories(mode))


@pytest.mark.parametrize("mode", [Mode.STREAMING, Mode.PULL])
def test_the_checker_reports_a_history_without_one_redelivery(mode: Mode) -> None:
    """A skip inside a redelivery is reported for some seeds; others explain it by a lost or later delivery."""
    assert any(
        failures_of(history, [*history.events[:number], *history.events[number + 1 :]])
        for history in plain_histories(mode)
        for number in redeliveries(history.events)
    )


def plain_histories(mode: Mode) -> Iterator[History]:
    """Yield accepted histories that are complete."""
    for seed in range(60):
        history = legal_history(mode, seed)
        if not history.settings.cut and (mode, seed) not in EXCLUDED:
            yield history


def redeliveries(events: list[Event]) -> Iterator[int]:
    """Yield the indices of deliveries whose message was delivered before on the subscription."""
    seen: set[tuple[str, str]] = set()
    for number, event in enumerate(events):
        if isinstance(event, Delivered):
            message = (event.subscription, event.message_id)
            if message in seen:
                yield number
            seen.add(message)


def without_message(events: list[Event]) -> list[Event]:
    """Delete the deliveries and acknowledgements of the first delivered message."""
    lost = next((event.message_id for event in events if isinstance(event, Delivered)), "")
    return [event for event in events if not (isinstance(event, Delivered | Acked) and event.message_id == lost)]
