"""Guarantee 1: first deliveries come in the order of the log, as far as the publisher's record tells it."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from prober.core.rules import Rules
from tests.unit.core.cases import Case, case, findings, only

TOGETHER = "P1@0 P2@0"  # two publishes at once: no real-time order between them
REPUBLISHED = "P1@0 info1@0.1 P2@0.2 ok2=m2@0.25 P1'gen1@0.3 ok1'gen1=m1@0.35"


@pytest.mark.parametrize(
    "one",
    [
        case("a hole in what passes the filter", "P1,2,3,4,5,6 A<2@1 A<6@1.1", "V:ORDER_GAP@1.1", filter_every=2),
        case("a hole", "P1,2,3 A<1@1 A<3@1.1", "V:ORDER_GAP@1.1"),
        case("the first is missing", "P1,2 A<2@1", "V:ORDER_GAP"),
        case("two holes", "P1,2,3,4,5 A<1@1 A<3@1.1 A<5@1.2", "V:ORDER_GAP@1.1 V:ORDER_GAP@1.2"),
        case("a hole between shadows", f"{TOGETHER} ok1=b1@0.3 ok2=b2@0.3 A<a1(1)@1 A<b2(2)@1.1", "V:ORDER_GAP"),
        case("a hole that the late confirmation of the missing one shows", f"{TOGETHER} ok2=m2@0.1 A<2@0.2 ok1=m1@0.3", "V:ORDER_GAP@0.3"),
        case("republished before the next was published", "P1@0 info1@0.1 P1'gen1@0.2 ok1'gen1=m1@0.25 P2@0.3 ok2=m2@0.35 A<2@1", "V:ORDER_GAP"),
        case("the first attempt is confirmed after all", "P1@0 P2@0.2 ok2=m2@0.25 P1'gen1@0.3 ok1=m1@0.35 A<2@1", "V:ORDER_GAP"),
        case("republished behind what overtook it, and overtaken again", f"{REPUBLISHED} P3@0.4 ok3=m3@0.45 A<2@1 A<3@1.1", "V:ORDER_GAP"),
        case("the same, confirmed when the next one had come", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.25 P1'gen1@0.3 P3@0.4 ok3=m3@0.45 A<2@1 A<3@1.1 ok1'gen1=m1@2", "V:ORDER_GAP@2"),
        case("two attempts confirmed, the first counts", "P1@0 P1'gen1@0 ok1=m1@0.1 P2@0 ok2=m2@0.1 ok1'gen1=n1@0.2 A<2@1 A<n1(1)@1.1", "V:ORDER_GAP"),
    ],
)  # fmt: skip
def test_gap(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("late", f"{TOGETHER} ok1=m1@0.3 ok2=m2@0.3 A<2@1 A<1@1.1", "V:ORDER_GAP@1 V:ORDER_INVERSION@1.1"),
        case("before any confirmation", f"{TOGETHER} A<2@0.1 A<1@0.2 ok1=m1@0.3 ok2=m2@0.3", "V:ORDER_INVERSION@0.2"),
        case("the higher one confirmed first", f"{TOGETHER} A<2@0.1 A<1@0.2 ok2=m2@0.3 ok1=m1@0.4", "V:ORDER_INVERSION@0.2"),
        case("late, then confirmed", f"{TOGETHER} ok2=m2@0.1 A<2@0.2 A<1@0.25 ok1=m1@0.3", "V:ORDER_INVERSION@0.25"),
        case("confirmed, then late", f"{TOGETHER} ok2=m2@0.1 A<2@0.2 ok1=m1@0.3 A<1@0.4", "V:ORDER_INVERSION@0.4"),
        case("primaries swapped behind their shadows", f"{TOGETHER} ok1=b1@0.3 ok2=b2@0.3 A<a1(1)@1 A<a2(2)@1.1 A<b2(2)@1.2 A<b1(1)@1.3", "V:ORDER_GAP V:ORDER_INVERSION"),
        case("all backwards", f"{TOGETHER} P3@0 A<3@0.1 A<2@0.2 A<1@0.3 ok1=m1@0.4 ok2=m2@0.5 ok3=m3@0.6", "V:ORDER_INVERSION@0.3"),
        case("below the furthest, not below the latest", f"{TOGETHER} P3@0 A<2@0.1 A<3@0.2 A<1@0.3 ok1=m1@0.4 ok2=m2@0.5 ok3=m3@0.6", "V:ORDER_INVERSION@0.3"),
        case("above the furthest, though one was late", f"{TOGETHER} P3@0 A<2@0.1 A<1@0.2 A<3@0.3 ok1=m1@0.4 ok2=m2@0.5 ok3=m3@0.6", "V:ORDER_INVERSION@0.3"),
        case("with a filter, once it has come", "P1,2,3 A<1@1 A<3@1.1 A<2@1.2", "V:ORDER_INVERSION@1.2", filtered=True),
        case("with a filter, on two streams at the same time", "open A of client a open B of client a P1,2,3 A<1@1 B<3@1.1 A<2@1.2", filtered=True),
        case("with a filter, on two streams one after the other", "open A of client a open B of client a P1,2,3 A<1@1 B<3@1.1 A<2@9", "V:ORDER_INVERSION@9", filtered=True),
        case("with a filter, lost on another stream", "open A of client a open B of client a P1,2,3 A<1@1 B<3@1.1 close A@1.2 B<2,3@9", filtered=True),
    ],
)  # fmt: skip
def test_inversion(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("a shadow before a publish that had completed", "P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 A<a2(2)@1 A<b1(1)@1.1 A<b2(2)@1.2", "V:REALTIME_INVERSION@1.1"),
        case("completed only after the other was invoked", "P1@0 P2@0.04 ok1=b1@0.05 ok2=b2@0.15 A<a2(2)@1 A<b1(1)@1.1 A<b2(2)@1.2"),
        case("completed at the very moment", "P1@0 ok1=b1@0.1 P2@0.1 ok2=b2@0.15 A<a2(2)@1 A<b1(1)@1.1 A<b2(2)@1.2"),
        case("within the clock error, and a writer has one clock", "P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 A<a2(2)@1 A<b1(1)@1.1 A<b2(2)@1.2", "V:REALTIME_INVERSION", clock_error_s=0.06),
        case("within the clock error, by another writer", "P1@0 ok1=b1@0.05 P1[e2]@0.1 ok1=b2@0.15 A<b2(1)@1 A<b1(1)@1.1", clock_error_s=0.06),
        case("beyond the clock error", "P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 A<a2(2)@1 A<b1(1)@1.1 A<b2(2)@1.2", "V:REALTIME_INVERSION", clock_error_s=0.04),
        case("the latest invocation of all counts", "P1@0 P2@0.1 ok1=m1@3 P3@5 ok2=b2@5.5 ok3=b3@5.6 A<a3(3)@6 A<a2(2)@6.1 A<1@6.2", "V:REALTIME_INVERSION"),
        case("a shadow behind it proves nothing", "P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 A<b1(1)@1 A<a2(2)@1.1 A<a1(1)@1.2 A<b2(2)@1.3"),
        case("its record came first, unconfirmed", "P1@0 A<1@0.02 ok1=m1@0.05 P2@0.1 ok2=m2@0.15 A<2@0.2"),
        case("seen before both confirmations", "P1@0 P2@0.1 A<a2(2)@0.2 A<1@0.3 ok1=m1@0.4 ok2=b2@0.5"),
        case("a republication is no later invocation", "P1@0 P2@0.1 info2@0.2 ok1=m1@0.25 P2'gen1@0.3 A<x2(2)@1 A<1@1.1 ok2'gen1=m2@1.2 A<2@1.3"),
        case("with a filter, across epochs", "P1,2 A<1@1 P1[e2]@5 ok1=e2m1@5.1 A<e2m1(1)@6.1 A<2@6.2", "V:REALTIME_INVERSION", filtered=True),
    ],
)  # fmt: skip
def test_realtime(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("in order", "P1,2,3 A<1,2,3@1"),
        case("an open outcome is no hole", "P1@0 P2@0.1 ok2=m2@0.15 A<2@1"),
        case("an unknown outcome is no hole", "P1@0 info1@0.05 P2@0.1 ok2=m2@0.15 A<2@1"),
        case("a failed publish is no hole", "P1@0 fail1@0.05 P2@0.1 ok2=m2@0.15 A<2@1"),
        case("an abandoned publish is no hole", "P1@0 info1@0.05 abandon1@0.06 P2@0.1 ok2=m2@0.15 A<2@1"),
        case("abandoned, then confirmed", "P1@0 info1@0.1 abandon1@0.2 P2@0.3 ok2=m2@0.35 A<2@1 A ack 2@1.1 ok1=m1@2 end @500"),
        case("overtaken, abandoned, then confirmed", "P1@0 info1@0.1 P2@0.3 ok2=m2@0.35 A<2@1 A ack 2@1.1 abandon1@1.5 ok1=m1@2 end @500"),
        case("abandoned and late", "P1@0 info1@0.1 abandon1@0.2 P2@0.3 ok2=m2@0.35 A<2@1 A<x1(1)@1.1"),
        case("abandoned, its answer and its record late", "P1@0 info1@0.1 abandon1@0.2 P2@0.3 ok2=m2@0.35 A<2@1 ok1=m1@1.05 A<1@1.1"),
        case("a republication is ordered where it was republished", f"{REPUBLISHED} A<2@1 A<1@1.1"),
        case("the same, delivered before its confirmation", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.25 P1'gen1@0.3 A<2@1 A<1@1.1 ok1'gen1=m1@1.2"),
        case("a republication that began after the next one had completed comes first", f"{REPUBLISHED} A<1@1 A<2@1.1", "V:REALTIME_INVERSION"),
        case("the filter excludes the missing one", "P1,2,3,4 A<2,4@1 A ack 2,4@1.2 end @500", filter_every=2),
        case("the filter excludes one that is confirmed late", "P1@0 P2@0 ok2=m2@0.1 A<2@0.2 A ack 2@0.3 ok1=m1@2 end @500", filter_every=2),
        case("the filter excludes one of which nobody knows whether it was stored", "P1@0 info1@0.05 P2@0.1 ok2=m2@0.15 A<2@1 A ack 2@1.1 end @500", filter_every=2),
        case("the filter may exclude the missing one", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 end @500", filtered=True),
        case("the filter may exclude the last one", "P1,2 A<1@1 A ack 1@1.2 end @500", filtered=True),
        case("many shadows", f"{TOGETHER} ok1=c1@0.3 ok2=c2@0.3 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<c1(1)@1.4 A<c2(2)@1.5"),
        case("a shadow of 2 overtakes 1", f"{TOGETHER} ok1=b1@0.3 ok2=b2@0.3 A<a2(2)@1 A<b1(1)@1.1 A<b2(2)@1.2"),
        case("zombies land late", "P1,2,3 A<1,2,3@1 A<z1(1)@1.3 A<z2(2)@1.4"),
        case("delivered before its confirmation", f"{TOGETHER} A<1@0.1 A<2@0.2 ok1=m1@0.3 ok2=m2@0.3"),
        case("the second of two attempts is confirmed too", "P1@0 P1'gen1@0.1 ok1'gen1=m1@0.2 ok1=n1@0.3 A<1@1 A<n1(1)@1.1"),
    ],
)  # fmt: skip
def test_no_violation_of_order(one: Case) -> None:
    one.check()


def test_a_gap_names_what_is_missing_and_its_proof() -> None:
    finding = only("P1,2,3,4 A<1@1 A<4@1.1", "ORDER_GAP")
    assert finding.facts.items() >= {"seq": 4, "epoch": "e1", "missing": (2, 3), "missing_count": 2, "missing_epoch": "e1"}.items()
    assert finding.witnesses == (4, 5, 6, 7, 9, 11)  # invoked and confirmed: 2 and 3; confirmed and delivered: 4
    assert finding.assumptions == {}


def test_an_inversion_names_the_late_one_whichever_is_confirmed_last() -> None:
    for line in (f"{TOGETHER} A<2@0.1 A<1@0.2 ok1=m1@0.3 ok2=m2@0.4", f"{TOGETHER} A<2@0.1 A<1@0.2 ok2=m2@0.3 ok1=m1@0.4"):
        finding = only(line, "ORDER_INVERSION")
        assert finding.facts.items() >= {"seq": 1, "epoch": "e1", "after": 2, "after_epoch": "e1"}.items()
        assert finding.witnesses == (4, 5, 6, 7)


def test_each_inversion_names_the_record_that_came_before_it() -> None:
    published = "P1@0 ok1=m1@0.05 P2@0.1 P3@0.11 ok2=m2@0.3 ok3=m3@0.31 P4@0.5 ok4=m4@0.6"
    line = f"{published} A<1@1 A<z3(3)@1.05 A<3@1.1 A<4@1.2 A<2@30"
    inversion, contradiction = only(line, "ORDER_INVERSION").facts, only(line, "REALTIME_INVERSION").facts
    assert (inversion["after"], inversion["after_id"]) == (3, "m3")
    assert (contradiction["after"], "after_id" in contradiction) == (4, False)


def test_a_contradiction_to_real_time_names_both_moments() -> None:
    finding = only("P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 A<a2(2)@1 A<b1(1)@1.1", "REALTIME_INVERSION", clock_error_s=0.01)
    assert (
        finding.facts.items()
        >= {
            "seq": 1,
            "epoch": "e1",
            "after": 2,
            "after_epoch": "e1",
            "confirmed_t": 0.05,
            "invoked_t": 0.1,
        }.items()
    )
    assert finding.witnesses == (3, 4, 6, 7)
    assert finding.assumptions == {"clock_error_s": 0.01}


def test_what_is_missing_is_reported_once() -> None:
    """The hole is in one finding, though more and more comes after it."""
    gaps = [f for f in findings("P1,2,3,4,5,6 A<1@1 A<4@1.1 A<5@1.2 A<6@1.3", Rules()) if f.kind == "ORDER_GAP"]
    assert [gap.facts["missing"] for gap in gaps] == [(2, 3)]
