"""Single messages: what is delivered was published, unchanged, once, and belongs here."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from typing import Any

import pytest

from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, across, case, observe, only, words

OBSERVED: dict[str, Any] = {"attempts_observed": True}


@pytest.mark.parametrize(
    "one",
    [
        case("never published", "P1 A<1@1 A<q7(7)@1.1", "V:PHANTOM@1.1"),
        case("below the first that was published", "P5,6 A<q4(4)@1 A<5,6@1.1"),
        case("in a hole of the numbering", "P1 P3@0.1 ok3=m3@0.2 A<1@1 A<q2(2)@1.1", "V:PHANTOM"),
        case("in a hole that was filled later", "P1 P3@0.1 info3@0.2 P2@0.3 ok2=m2@0.4 A<1@1 A<2@1.1"),
        case("the subscription may be older than the record", "P5,6 A<q4(4)@1 A<5,6@1.1", subscription_predates_first_publish=False),
        case("above the last it may not", "P5,6 A<5,6@1 A<q7(7)@1.2", "V:PHANTOM", subscription_predates_first_publish=False),
        case("reported once", "P1 A<1@1 A<q7(7)@1.1 A<q7(7)@1.2", "V:PHANTOM@1.1"),
        case("not yet published", "P1 A<1@1 A<2@1.1 P2@1.2 ok2=m2@1.3", "V:PHANTOM@1.1"),
        case("a number of 31 digits in a stream of others", "A<q9(1000000000000000000000000000000)@1", publishes_recorded=False),
    ],
)  # fmt: skip
def test_phantom(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("failed, yet delivered", "P1 P2@0.2 fail2@0.21 A<1@1 A<g2(2)@1.1", "V:GHOST@1.1"),
        case("delivered, then failed", "P1 P2@0.2 A<1@1 A<g2(2)@1.1 fail2@1.2", "V:GHOST@1.2"),
        case("both attempts failed", "P1 P2@0.2 fail2@0.21 P2'gen1@0.3 fail2'gen1@0.4 A<1@1 A<g2(2)@1.1", "V:GHOST"),
        case("another attempt is open", "P1 P2@0.2 fail2@0.21 P2'gen1@0.3 A<1@1 A<g2(2)@1.1"),
        case("another attempt is unknown", "P1 P2@0.2 info2@0.21 P2'gen1@0.3 fail2'gen1@0.4 A<1@1 A<g2(2)@1.1"),
        case("another attempt is confirmed", "P1 P2@0.2 fail2@0.21 P2'gen1@0.3 ok2'gen1=m2@0.4 A<1,2@1"),
        case("delivered, failed, but an attempt is open", "P1 P2@0.2 P2'gen1@0.3 A<1@1 A<g2(2)@1.1 fail2@1.2"),
        case("delivered, failed, but unknown before", "P1 P2@0.2 info2@0.25 P2'gen1@0.3 A<1@1 A<g2(2)@1.1 fail2'gen1@1.2"),
        case("unknown", "P1 P2@0.2 info2@0.21 A<1@1 A<x2(2)@1.1"),
        case("unknown and abandoned", "P1 P2@0.2 info2@0.21 abandon2@0.22 A<1@1 A<x2(2)@1.1"),
        case("abandoned, then confirmed", "P1 P2@0.2 abandon2@0.4 ok2=x2@0.5 A<1@1 A<x2(2)@1.1"),
        case("abandoned with an open outcome", "P1 P2@0.2 abandon2@0.22 A<1@1 A<x2(2)@1.1"),
    ],
)  # fmt: skip
def test_ghost(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("one id, two messages", "P1,2 A<1@1 A<m1(2)@1.1", "V:ID_CONFLICT@1.1"),
        case("one id, two epochs", "P1 P1[e2]@0.2 ok1=f1@0.3 A<1@1 A<m1(1)[e2]@1.1", "V:ID_CONFLICT"),
        case("one id, one message", "P1,2 A<1,2@1 A<1,2@2"),
        case("a wrong checksum", "P1 A<1!checksum@1", "V:ID_CONFLICT"),
        case("a wrong key", "P1 A<1!ordering_key@1", "V:ID_CONFLICT"),
        case("on every delivery", "P1 A<1!checksum@1 A<1!checksum@2", "V:ID_CONFLICT@1 V:ID_CONFLICT@2"),
        case("the filter excludes it", "P1 A<1!filter@1", "V:FILTER_LEAK"),
        case("the filter passes every other number", "P1,2,3,4 A<2@1 A<3@1.1 A<4@1.2", "V:FILTER_LEAK@1.1", filter_every=2),
        case("a copy of what the filter excludes", "P1,2 A<x1(1)@1 A<2@1.1", "V:FILTER_LEAK@1", filter_every=2),
        case("what passes the filter is late", "P1,2 A<1@1 A ack 1@1.1 end @500", "V:FILTER_LEAK L:STUCK", filter_every=2),
        case("a wrong message is a message", "P1,2,3 A<1@1 A<2!checksum@1.1 A<3@1.2", "V:ID_CONFLICT@1.1"),
    ],
)  # fmt: skip
def test_content(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("a client's retry", "P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 A<a1(1)@1 A<b1(1)@1.1 A<b2(2)@1.2", "N:PUBLISHER_DUP"),
        case("a shadow behind its primary", "P1@0 P2@0 ok1=b1@0.3 ok2=b2@0.3 A<b1(1)@1 A<a1(1)@1.1 A<b2(2)@1.2", "N:PUBLISHER_DUP@1.1"),
        case("zombies", "P1,2,3 A<1,2,3@1 A<z1(1)@1.3 A<z3(3)@1.4", "N:LATE_DUP@1.3 N:PUBLISHER_DUP@1.4"),
        case("before its confirmation", "P1@0 A<a1(1)@1 A<b1(1)@1.1 ok1=b1@1.2", "N:PUBLISHER_DUP@1.1"),
        case("the only attempt has two records", "P1 A<1@1 A<z1(1)@1.1", "V:PUBLISHER_DUP", **OBSERVED),
        case("the only attempt has another record than it returned", "P1@0 ok1=b1@0.3 A<a1(1)@1", "V:PUBLISHER_DUP", **OBSERVED),
        case("the only attempt has two records, one late", "P1,2,3 A<1,2,3@1 A<z1(1)@1.3", "V:LATE_DUP", **OBSERVED),
        case("the only attempt has two records before it is confirmed", "P1@0 A<a1(1)@1 A<b1(1)@1.1", "V:PUBLISHER_DUP", **OBSERVED),
        case("two attempts, two records", "P1@0 info1@0.1 P1'gen1@0.2 ok1'gen1=b1@0.3 A<a1(1)@1 A<b1(1)@1.1", "N:PUBLISHER_DUP", **OBSERVED),
        case("two attempts, three records", "P1@0 info1@0.1 P1'gen1@0.2 ok'gen1=m1@0.3 A<a(1)@1 A<b(1)@1.1 A<1@1.2", "V:PUBLISHER_DUP", **OBSERVED),
        case("two attempts, the second record late", "P1@0 info1@0.1 P1'gen1@0.2 ok1'gen1=b1@0.3 P2,3 A<b1(1)@1 A<2,3@1.1 A<a1(1)@1.3", "N:LATE_DUP", **OBSERVED),
        case("the first attempt failed, and has a record", "P1 P2@0.2 fail2@0.3 P2'gen1@0.4 ok2'gen1=m2@0.45 A<1@1 A<z2(2)@1.1 A<2@1.2", "V:PUBLISHER_DUP", **OBSERVED),
        case("the first attempt failed twice, the second has one record", "P1 P2@0.2 fail2@0.3 fail2@0.31 P2'gen1@0.4 ok2'gen1=m2@0.45 A<1,2@1", **OBSERVED),
        case("one record, delivered again", "P1 A<1@1 A<1@2", **OBSERVED),
        case("republished after it had settled", "P1 A<1@1 P1'gen1@1.5 ok1'gen1=n1@1.6 A<n1(1)@2", "N:PUBLISHER_DUP", **OBSERVED),
        case("the record has a hole", "P1 hole @0.5 P2@10 ok2=m2@10.1 A<2@11 A<z1(1)@11.1 A<z2(2)@11.2", "I:ORDER_GAP", **OBSERVED),
    ],
)  # fmt: skip
def test_further_records(one: Case) -> None:
    one.check()


def test_two_subscriptions_receive_one_record_before_it_is_confirmed() -> None:
    found = across(("s", "P1@0 A<1@0.1 ok1=m1@0.2"), ("t", "B<1@0.15"), rules=Rules(attempts_observed=True))
    assert words(found, notes=True) == set()


def test_further_records_are_counted() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("P1,2,3 A<1,2,3@1 A<z1(1)@1.3 A<z2(2)@1.4 A<z1(1)@1.5"))
    assert verifier.counters["publisher_duplicates"] == 2


def test_each_names_the_message_and_its_proof() -> None:
    assert only("P1 A<1@1 A<q7(7)@1.1", "PHANTOM").facts == {"seq": 7, "epoch": "e1", "message_id": "q7"}
    ghost = only("P1 P2@0.2 fail2@0.21 A<1@1 A<g2(2)@1.1", "GHOST")
    assert (ghost.facts["seq"], ghost.witnesses) == (2, (4, 7))
    late = only("P1 P2@0.2 A<1@1 A<g2(2)@1.1 fail2@1.2", "GHOST")
    assert (late.facts["seq"], late.witnesses) == (2, (4, 6, 7))
    conflict = only("P1,2 A<1@1 A<m1(2)@1.1", "ID_CONFLICT")
    assert conflict.facts == {"seq": 2, "epoch": "e1", "message_id": "m1", "first_seq": 1, "first_epoch": "e1"}
    assert conflict.witnesses == (6, 7)
    assert only("P1 A<1!checksum@1", "ID_CONFLICT").facts["defect"] == "checksum"
