"""All ordered, unfiltered subscriptions that were there from the start learn one and the same log."""

from __future__ import annotations

from prober.core.findings import Finding
from prober.core.rules import Rules
from tests.unit.core.cases import across, rules_of, words

TWO = "P1@0 P2@0 P3@0"  # nothing is confirmed, so that only the comparison can find anything
OTHER = "P1@0 P1[e2]@0"


def diverging(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.kind == "ORDER_DIVERGENCE"]


def test_the_same_log_is_no_divergence() -> None:
    assert words(across(("s", f"{TWO} A<1,2,3@1"), ("t", "B<1,2,3@2"))) == set()


def test_different_orders_are() -> None:
    found = across(("s", f"{TWO} A<1,2@1"), ("t", "B<2,1@2"))
    assert words(found, times=True) == {"V:ORDER_DIVERGENCE@2"}


def test_shadows_belong_to_the_log() -> None:
    found = across(("s", f"{TWO} A<a1(1)@1 A<b1(1)@1.1"), ("t", "B<b1(1)@2 B<a1(1)@2.1"))
    assert words(found) == {"V:ORDER_DIVERGENCE"}


def test_a_message_that_only_one_received() -> None:
    found = across(("s", f"{TWO} A<1,2,3@1"), ("t", "B<1@2 B<3@2.1"))
    assert words(found, times=True) == {"V:ORDER_DIVERGENCE@2.1"}


def test_one_finding_for_a_pair() -> None:
    assert len(diverging(across(("s", f"{TWO} A<1,2,3@1"), ("t", "B<2,1,3@2")))) == 1


def test_each_pair_is_told() -> None:
    found = across(("s", f"{TWO} A<1,2@1"), ("t", "B<2,1@2"), ("u", "C<2,1@3"))
    assert [(f.subscription, f.facts["other"]) for f in diverging(found)] == [("t", "s"), ("u", "s")]


def test_the_finding_names_both_and_its_proof() -> None:
    (finding,) = diverging(across(("s", f"{TWO} A<1,2@1"), ("t", "B<2,1@2")))
    assert finding.subscription == "t"
    assert finding.facts.items() >= {"seq": 2, "epoch": "e1", "other": "s", "other_seq": 1}.items()
    assert finding.witnesses == (6, 7, 8)  # both on the other one, the later of them here


def test_redeliveries_are_not_compared() -> None:
    assert words(across(("s", f"{TWO} A<1,2,3@1 A<1,2,3@3"), ("t", "B<1,2@2 B<2,3@3"))) == set()


def test_keys_are_not_compared() -> None:
    """The first message of one key is not that of another."""
    assert words(across(("s", f"{TWO} A<1@1"), ("t", "B<1@2"))) == set()


def test_a_filtered_subscription_is_not_compared() -> None:
    rules = {"t": Rules(filtered=True)}
    assert diverging(across(("s", f"{TWO} A<1,2,3@1"), ("t", "B<1@2 B<3@2.1"), by_subscription=rules)) == []
    assert diverging(across(("s", f"{TWO} A<1,2,3@3"), ("t", "B<1@2 B<3@2.1"), by_subscription=rules)) == []


def test_a_younger_subscription_is_not_compared() -> None:
    rules = {"t": Rules(subscription_predates_first_publish=False)}
    assert diverging(across(("s", f"{TWO} A<1,2,3@1"), ("t", "B<2,3@2"), by_subscription=rules)) == []
    assert diverging(across(("s", f"{TWO} A<1,2,3@3"), ("t", "B<2,3@2"), by_subscription=rules)) == []


def test_a_sought_subscription_is_not_compared_ever_again() -> None:
    assert diverging(across(("s", f"{TWO} A<1,2,3@100"), ("t", "B<1@1 seek 5@2 B<3@50"))) == []
    assert diverging(across(("s", f"{TWO} A<1,2,3@10"), ("t", "B<1@1 seek 5@2 B<3@50"))) == []


def test_nobody_is_compared_after_a_hole_in_the_record() -> None:
    assert diverging(across(("s", f"{TWO} A<1,2@1 hole @5 A<3@11"), ("t", "B<1,2@1 B<2@11"))) == []


def test_what_has_left_the_window_is_not_compared() -> None:
    rules = Rules(window=1)
    assert diverging(across(("s", f"{TWO} A<1,2@1"), ("t", "B<2@2"), rules=rules)) == []


def test_two_writers_may_be_seen_in_one_order_only() -> None:
    found = across(("s", f"{OTHER} A<1@1 A<f1(1)[e2]@1.1"), ("t", "B<f1(1)[e2]@2 B<1@2.1"))
    assert words(found) == {"V:ORDER_DIVERGENCE"}


CLOCKS = {"s": rules_of(clock_error_s=1.0)}


def test_what_may_have_been_overtaken_has_time_to_come() -> None:
    """By the clocks of two recorders the second may have been the first; that it may shows only when it has come."""
    published = "P1@0 ok1=a@0.1 P1[e2]@0.05 ok1=b@0.15"
    other = ("t", "B<b(1)[e2]@1 B<a(1)@1.1")
    assert diverging(across(("s", f"{published} A<a(1)@2 C<b(1)[e2]@2.5"), other, by_subscription=CLOCKS)) == []
    late = ("s", f"{published} A<a(1)@2 C<b(1)[e2]@3.5 end @500")
    assert words(diverging(across(late, other, by_subscription=CLOCKS)), times=True) == {"V:ORDER_DIVERGENCE@2"}


def test_what_could_not_be_placed_may_stand_before_what_others_learn_later() -> None:
    """With a window of 2 the late copy of 1 is not learned on one subscription; the other compares when that is long over."""
    line = "A<1,2,3@1 A<x(1)@1.4 A<4@1.5"
    rules = {"s": Rules(window=2)}
    found = across(("s", f"P1,2,3,4 {line}"), ("t", line.replace("A<", "B<").replace("@1", "@2")), by_subscription=rules)
    assert diverging(found) == []


def test_what_was_published_before_the_record_may_come_in_any_order() -> None:
    """It may have been received before as well: then these are rewinds."""
    assert diverging(across(("s", "P3@0 ok3=m3@0.1 A<2@1 A<1@1.1 A<2,3@1.2"), ("t", "B<1,2,3@3"))) == []
