"""How faults are written, when they strike, and what the catalogue and the ledger say of them."""

from __future__ import annotations

import pytest

from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Fault, FaultError, Faults, parse_fault
from tests.unit.embedded.notation import faulty


def test_the_same_seed_meets_the_same_faults() -> None:
    outs = set()
    for seed in (1, 1, 2):
        play, _ = faulty(f"drop:p=0.5,seed={seed}")
        outs.add(play("open:A +k:" + ",".join(str(n) for n in range(50))))
    assert len(outs) == 2


@pytest.mark.parametrize(
    "text", ["drop", "drop:p=0.1", "stall_all:start=5,for=10", "jitter:p=0.25,count=3,key=a-*,start=1.5,for=2,seed=7"]
)
def test_faults_read_as_they_are_written(text: str) -> None:
    assert str(parse_fault(text)) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dorp", "no fault is called dorp; did you mean drop?"),
        ("drop:p=2", "p is a probability from 0 to 1, not 2"),
        ("drop:p=x", "drop: p is a number, not 'x'"),
        ("drop:p=nan", "p is a probability"),
        ("drop:count=0", "count is at least 1"),
        ("drop:count=1.5", "drop: count is a whole number, not '1.5'"),
        ("drop:q=1", "'q=1' is none of p=, count="),
        ("drop:p", "'p' is none of"),
        ("drop:start=-1", "start at least 0"),
        ("drop:for=0", "for more than 0"),
        ("", "no fault is called ''; "),
    ],
)
def test_what_is_no_fault(text: str, complaint: str) -> None:
    with pytest.raises(FaultError) as caught:
        parse_fault(text)
    assert complaint in str(caught.value)


def test_every_fault_of_the_catalogue_can_be_made_and_says_what_must_be_found() -> None:
    for name, description in CATALOGUE.items():
        assert Fault(name).name == name
        assert description.sentence.endswith(".")
        assert not (description.benign and description.findings)
        assert description.findings or description.shows
    benign = {name for name, description in CATALOGUE.items() if description.benign}
    assert benign == {
        "reply_lost",
        "partial_batch",
        "throttle_key",
        "dead_letter_late",
        "backoff_ignored",
        "stream_break",
        "jitter",
        "ack_lost",
        "duplicate_publish_same_id",
        "early_redelivery",
        "lost_pull_answer",
        "lost_tail",
        "slow_ack_extension",
        "forget_holds",
        "lease_short",
        "half_open_stream",
        "zombie_publish",
    }


def test_the_ledger_is_bounded_and_its_counts_are_not() -> None:
    faults = Faults([Fault("drop")])
    for n in range(10_050):
        assert faults.strike("drop", "s", "k", float(n), str(n))
    assert faults.ledger.counts["drop"] == 10_050
    assert len(faults.ledger.latest) == 10_000
