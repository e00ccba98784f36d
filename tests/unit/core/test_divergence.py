"""All ordered, unfiltered subscriptions that were there from the start learn one and the same log (docs/model.md, section 12)."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from prober.core.divergence_excuses import DEAD_LETTER, EXPIRED
from prober.core.findings import Finding, Kind
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from prober.evidence.explain import explain
from tests.notation import history
from tests.unit.core.cases import listed, merged, rules_of, verified

TWO = "P1@0 P2@0 P3@0"  # nothing is confirmed, so that only the comparison can find anything
OTHER = "P1@0 P1[e2]@0"
BROKEN = "V:ORDER_DIVERGENCE@"


def across(*lines: tuple[str, str], each: Mapping[str, Rules] | None = None, **rules: Any) -> tuple[list[Finding], Verifier]:
    """Histories of several subscriptions of one topic, each `(subscription, line)`; publish events in one of them suffice."""
    whole = rules_of(**rules)
    modes = {name: (each or {}).get(name, whole).mode for name, _ in lines}
    events = merged(*(history(line, modes[name], subscription=name) for name, line in lines))
    return verified(whole, events, modes, each)


def diverging(*lines: str, each: dict[str, Rules] | None = None, **rules: Any) -> list[Finding]:
    """What is said about several subscriptions: s, t and u."""
    found, _ = across(*zip("stu", lines, strict=False), each=each, **rules)
    return [finding for finding in found if finding.kind is Kind.ORDER_DIVERGENCE]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(f"{TWO} A<1,2,3@1", "B<1,2,3@2", id="the same log"),
        pytest.param(f"{TWO} A<1,2@1", "B<1,2,3@2", id="one is ahead"),
        pytest.param(f"{TWO} A<1,2,3@1 A<1,2,3@3", "B<1,2@2 B<2,3@3", id="redeliveries are not compared"),
        pytest.param(f"{TWO} A<1@1 A<a2(2)@1.1 A<2@1.2", "B<1@2 B<a2(2)@2.1 B<2@2.2", id="a publisher's duplicate belongs to the log"),
        pytest.param("P1/eu@0 P2/us@0 A<1,2@1", "B<2@2 B<1@2.1", id="regions are not compared"),
        pytest.param("P3@0 ok3=m3@0.1 A<2@1 A<1@1.1 A<1,2,3@1.2", "B<1,2,3@3", id="what was published before the record may come in any order"),
        pytest.param(f"{TWO} A<1~5@1 A<1~6@1.1 A<2@1.2", "B<1~5@2 B<2@2.1", id="the service stored a message twice for one of them"),
        pytest.param(f"{TWO} A<1@1 C<2@1.5 A<3@9", "B<2,1,3@2", id="two streams, of which either may have been sent first"),
        pytest.param("P1@0 ok1=a@0.1 P1[e2]@0.05 ok1=b@0.15 A<a(1)@2 C<b(1)[e2]@2.5", "B<b(1)[e2]@1 B<a(1)@1.1", id="the same where both were confirmed"),
        pytest.param(f"{OTHER} A<1@1 A<f1(1)[e3]@1.1 A<x(1)[e2]@1.2", "B<1@2 B<x(1)[e2]@2.2", id="what another run published is of no log"),
        pytest.param("P1/eu@0 ok1=m1@0.1 P2/eu@0.2 ok2=m2@0.3 P3/us@0.5 ok3=m3@0.6 C<1@10.5 A<2@10 C<z2(2)@10.6 stop @100", "B<1@1 B<z2(2)@1.1 B<2@1.2", id="a copy of a region that is not known, while a message was on hold that may stand behind it"),
        pytest.param("P1/eu@0 ok1=m1@0.1 P2/eu@0.2 ok2=m2@0.3 P3/eu@0.35 ok3=m3@0.4 P4/eu@0.45 ok4=m4@0.48 P5/us@0.5 ok5=m5@0.6 C<1,2@9 A<z2(2)@10 C<3@10.1 C<4@16 stop @100", "B<1,2,3@1 B<z2(2)@1.4 B<4@1.5", id="a copy of a region that is not known, and a message that may have been sent before it"),
        pytest.param(f"{TWO} A<1@1 A<q7(7)@1.1 A<3@1.2", "B<1@2 B<2@2.1 B<3@2.2", id="a phantom may have been anything"),
    ],
)  # fmt: skip
def test_no_divergence(one: str, other: str) -> None:
    assert diverging(one, other) == []


@pytest.mark.parametrize(
    ("one", "other", "t"),
    [
        pytest.param(f"{TWO} A<1,2@1", "B<2,1@2", 2, id="another order"),
        pytest.param(f"{TWO} A<1,2,3@1", "B<1@2 B<3@2.1", 2.1, id="one is missing"),
        pytest.param(f"{TWO} A<1@1 A<3@1.1", "B<1,2,3@2", 2.2, id="one is missing on the one that was first"),
        pytest.param(f"{TWO} A<1@1 A<a2(2)@1.1 A<3@1.2", "B<1@2 B<b2(2)@2.1 B<3@2.2", 2.2, id="as many, but others"),
        pytest.param(f"{TWO} A<a1(1)@1 A<b1(1)@1.1", "B<b1(1)@2 B<a1(1)@2.1", 2, id="duplicates in another order"),
        pytest.param(f"{OTHER} A<1@1 A<f1(1)[e2]@1.1", "B<f1(1)[e2]@2 B<1@2.1", 2, id="two writers"),
        pytest.param("P1/eu@0 P2/us@0 P3/eu@0 A<1,2,3@1", "B<2@2 B<3@2.1 B<1@2.2", 2.1, id="within a region"),
        pytest.param(f"{TWO} A<1@1 C<2@1.5 A<3@9", "B<3@20 B<2@20.1 B<1@20.2", 20, id="behind what may have been sent in any order"),
        pytest.param(f"{TWO} A<1@1 C<2@9", "B<2@20 B<1@20.1", 20, id="two streams, one long after the other"),
    ],
)  # fmt: skip
def test_a_divergence(one: str, other: str, t: float) -> None:
    assert listed(diverging(one, other)) == [f"{BROKEN}{t:g}"]
    assert listed(diverging(other.replace("@2", "@4"), one)) != []


def test_one_finding_for_a_pair() -> None:
    assert len(diverging(f"{TWO} A<1,2,3@1", "B<2,1,3@2")) == 1


def test_each_pair_is_reported() -> None:
    found = diverging(f"{TWO} A<1,2@1", "B<2,1@2", "C<2,1@3")
    assert [(one.subscription, one.facts["other"]) for one in found] == [("t", "s"), ("u", "s")]


def test_the_finding_names_both_and_its_proof() -> None:
    (one,) = diverging(f"{TWO} A<1,2@1", "B<2,1@2")
    assert one.subscription == "t"
    assert one.facts.items() >= {"seq": 2, "epoch": "e1", "message_id": "m2", "other": "s", "other_seq": 1}.items()
    assert one.witnesses == (6, 7, 8)  # both on the other one, the later of them here
    assert "received message 2" in explain(one)


def test_what_only_the_later_one_received_is_among_its_proof() -> None:
    (one,) = diverging(f"{TWO} A<1@1 A<3@1.1", "B<1,2,3@2")
    assert (one.facts["seq"], one.facts["other"], "other_seq" in one.facts) == (3, "s", False)
    assert one.witnesses == (7, 9, 10)
    assert "at another place" in explain(one)


@pytest.mark.parametrize(
    "rules",
    [Rules(filtered=True), Rules(filter_every=2), Rules(subscription_predates_first_publish=False)],
)
def test_who_need_not_receive_everything_is_not_compared(rules: Rules) -> None:
    assert diverging(f"{TWO} A<1,2,3@1", "B<1@2 B<3@2.1", each={"t": rules}) == []
    assert diverging(f"{TWO} A<1,2,3@3", "B<1@2 B<3@2.1", each={"t": rules}) == []


def test_a_control_operation_ends_the_comparison() -> None:
    assert diverging(f"{TWO} A<1,2,3@100", "B<1@1 seek 5@2 B<3@50") == []
    assert diverging(f"{TWO} A<1,2@1 hole @5 A<3@11", "B<1,2@1 B<2@11") == []


def test_without_an_ordering_key_there_is_no_order() -> None:
    events = merged(history(f"{TWO} A<1,2@1", key=""), history("B<2,1@2", subscription="t", key=""))
    found, verifier = verified(rules_of(), events, "st")
    assert found == []
    assert verifier.counters["opportunities_divergence"] == 0


def test_a_dead_letter_policy_may_have_removed_it() -> None:
    (one,) = diverging(f"{TWO} A<1,2,3@1", "B<1@2 B<3@2.1", dead_letter_max_attempts=5)
    assert one.doubt == DEAD_LETTER


def test_two_records_of_which_either_may_have_been_sent_first_follow_an_excuse() -> None:
    each = {"s": rules_of(), "t": rules_of(dead_letter_max_attempts=5)}
    assert listed(diverging(f"{TWO} P4@0 A<1,2,3,4@1", "B<3@2 C<2@2.1 B<3@30 end @60", each=each)) == ["I:ORDER_DIVERGENCE@2"]


def test_it_may_be_older_than_the_retention() -> None:
    (one,) = diverging("P1@0 P2@0 P3@90 A<1,2@1 A<3@91", "B<3@92 stop @93", message_retention_s=60)
    assert one.doubt == EXPIRED
    assert listed(diverging("P1@0 P2@80 P3@90 A<1@1 A<2,3@91", "B<1@2 B<3@92 stop @93", message_retention_s=60)) == [f"{BROKEN}92"]


def test_after_a_doubt_the_comparison_goes_on() -> None:
    line = "P1@0 P2@0 P3@90 P4@90 A<1,2@1 A<3,4@91"
    found = diverging(line, "B<4@92 B<3@92.1 stop @93", message_retention_s=60)
    assert listed(found) == [f"{BROKEN}92"]


def test_where_nobody_recorded_the_publishes_it_begins_with_the_first_record_in_common() -> None:
    """The record may begin in the middle, at another place for each subscription."""
    others: dict[str, Any] = {"publishes_recorded": False, "publish_time_error_s": 0.0}
    assert diverging("A<1,2,3@1", "B<2,3@2", **others) == []
    assert listed(diverging("A<1,2,3,4@1", "B<2@2 B<4@2.1", **others)) == [f"{BROKEN}2.1"]


def test_what_was_forgotten_is_not_compared() -> None:
    """One is so far ahead that it has forgotten what the other receives now; it begins anew at the next record in common."""
    publishes = " ".join(f"P{n}@0" for n in range(1, 61))
    ahead = " ".join(f"A<{n}@{n}" for n in range(1, 61))
    behind = "B<1@100 B<3@101 B<2@102 "
    assert diverging(f"{publishes} {ahead}", behind, window=8) == []
    assert listed(diverging(f"{publishes} {ahead}", f"{behind} B<57,58@103 B<60@104", window=8)) == [f"{BROKEN}104"]


def test_by_pull_and_push_it_shows_when_time_has_passed() -> None:
    modes = {"s": rules_of(mode=Mode.PULL), "t": rules_of(mode=Mode.PUSH)}
    lines = (f"{TWO} pull a@0.5 a<1@1 a<2@1 end @20", "r1<2@2 r1 ack 2@2.1 r2<1@9 end @20")
    assert listed(diverging(*lines, each=modes)) == [f"{BROKEN}2"]


def test_a_message_on_two_subscriptions_is_an_opportunity() -> None:
    for other, opportunities in (("B<1,2,3@2", 3), ("B<1@2", 1), ("B<1,2@2 B nack 1@2.5 B<1,2@3", 2), ("B<2,1,3@2", 1)):
        _, verifier = across(("s", "P1,2,3 A<1,2,3@1"), ("t", other))
        assert verifier.counters["opportunities_divergence"] == opportunities
    _, verifier = across(("s", "P1,2,3 A<1,2,3@1"), ("t", "B<1,2,3@2"), dead_letter_max_attempts=5)
    assert verifier.counters["opportunities_divergence"] == 0
