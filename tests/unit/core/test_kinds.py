"""Every kind of finding is described, once, and what is said about it elsewhere agrees."""

from __future__ import annotations

from dataclasses import fields

from prober.core.findings import FAILING, Kind, Status
from prober.core.kinds import KINDS, Guarantee, Symptom, symptom_of
from prober.core.rules import Rules
from prober.evidence.advice import ADVICE, SURENESS


def test_every_kind_has_its_meaning_and_its_advice() -> None:
    assert list(KINDS) == list(ADVICE)
    assert set(KINDS) == set(Kind)
    assert {symptom_of(kind) for kind in Kind} | {Symptom.OUTAGE} == set(Symptom)
    assert set(SURENESS) == set(Status)
    assert {meaning.guarantee for meaning in KINDS.values()} == set(Guarantee)


def test_what_it_relies_on_are_bounds_of_the_rules() -> None:
    bounds = {field.name for field in fields(Rules)}
    assert {name for meaning in KINDS.values() for name in meaning.assumptions} <= bounds


def test_what_can_fail_a_run_can_also_be_in_doubt() -> None:
    for kind, meaning in KINDS.items():
        assert (Status.INDETERMINATE in meaning.statuses) is not FAILING.isdisjoint(meaning.statuses), kind
        assert meaning.indicator == "" or not FAILING.isdisjoint(meaning.statuses), kind


def test_sentences_are_sentences() -> None:
    for kind, meaning in KINDS.items():
        assert meaning.happened, kind
        assert not meaning.happened.endswith("."), kind
        assert meaning.broken == "" or meaning.broken[0].isupper(), kind
        assert meaning.broken == "" or meaning.broken.endswith("."), kind
        assert ADVICE[kind] == "" or ADVICE[kind][-1] in ".?", kind
    assert all(symptom.sentence for symptom in Symptom)
    assert all(guarantee.sentence for guarantee in Guarantee)
