"""Random use of the embedded service with faults: benign ones break no promise, the others do, as an independent model sees it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from prober.embedded.conduct import Admission
from prober.embedded.errors import ServiceError
from prober.embedded.fault_catalogue import CATALOGUE
from prober.embedded.faults import Fault, Faults
from prober.embedded.faulty import FaultyConduct
from prober.embedded.messages import Draft
from tests.property.test_embedded_state import PULLING, STREAMING, Run, play

HARMLESS = sorted(name for name, description in CATALOGUE.items() if not description.findings)
HARMFUL = sorted(name for name, description in CATALOGUE.items() if description.findings)
SEEDS = 15


class Watched(FaultyConduct):
    """Tells how much of the last publish request was stored, which its publisher does not learn."""

    stored = 0

    def admit(self, topic: str, drafts: Sequence[Draft], now: float) -> Admission:
        admission = super().admit(topic, drafts, now)
        self.stored = admission.stored
        return admission


class FaultyRun(Run):
    """A run that knows what a publisher or a subscriber cannot know, from the ledger."""

    def __init__(self, seed: int, fault: str, *, backoff: bool = False) -> None:
        self.faults = Faults([Fault(fault, probability=0.2, seed=seed)])
        self.watched = Watched(self.faults)
        super().__init__(seed, backoff=backoff, conduct=self.watched)

    def publish(self) -> None:
        before = dict(self.published)
        try:
            super().publish()
        except ServiceError:
            (key,) = (key for key, count in self.published.items() if count != before[key])
            self.published[key] = before[key] + self.watched.stored

    def _say(self, ack_id: str, holder: str, *, refuse: bool) -> bool:
        lost = self.faults.ledger.counts["ack_lost"]
        return super()._say(ack_id, holder, refuse=refuse) and self.faults.ledger.counts["ack_lost"] == lost

    def settle(self, *, by_pull: bool) -> None:
        """Take the faults back and drain."""
        for armed in self.faults.all():
            self.faults.disarm(armed.number)
        self.state.reconsider(self.now)
        self.drain(push=False, by_pull=by_pull)


def run_with(fault: str, seed: int, words: Sequence[str], *, drain: bool = True) -> int:
    """A long run with a fault; how often it struck."""
    run = FaultyRun(seed, fault, backoff=seed % 2 == 0)
    play(run, ["open", *random.Random(seed).choices(words, k=400)])
    if drain:
        run.settle(by_pull="open" not in words)
    return run.faults.ledger.counts[fault]


@pytest.mark.parametrize("words", [STREAMING, PULLING], ids=["streaming", "pulling"])
@pytest.mark.parametrize("fault", HARMLESS)
def test_a_harmless_fault_breaks_no_promise(fault: str, words: Sequence[str]) -> None:
    struck = sum(run_with(fault, seed, words) for seed in range(SEEDS))
    assert struck or (fault == "stream_break" and words is PULLING)


@pytest.mark.parametrize("fault", HARMFUL)
def test_any_other_fault_breaks_one(fault: str) -> None:
    noticed = 0
    for seed in range(SEEDS):
        try:
            run_with(fault, seed, STREAMING, drain=not fault.startswith("stall"))
        except AssertionError:
            noticed += 1
    if fault.startswith("stall") or fault == "duplicate_id":
        assert noticed == 0  # silence is no wrong delivery, and the model does not look at ids
    else:
        assert noticed > SEEDS / 2, f"only {noticed} of {SEEDS} runs"


@pytest.mark.parametrize("fault", [name for name in HARMFUL if name.startswith("stall")])
def test_what_a_fault_has_silenced_is_delivered_when_it_is_taken_back(fault: str) -> None:
    assert sum(run_with(fault, seed, STREAMING) for seed in range(SEEDS))
