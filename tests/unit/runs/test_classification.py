"""What a run remembers to classify deliveries: nothing of what is settled but message ids, and those within a bound."""

from __future__ import annotations

import pytest

from prober.runs import classification
from prober.runs.classification import Classifier
from tests.notation import history
from tests.unit.sinks.metrics.test_measurements import Scrape

RETRIED = "P1@0 info1@1 A<a1(1)@1.5 P1'gen1@2 ok1'gen1=b1@3 A<b1(1)@4"


def classified(line: str) -> Classifier:
    classifier = Classifier("e1")
    for event in history(line):
        classifier.classify(event)
    return classifier


@pytest.mark.parametrize("line", ["P1,2,3 A<1,2,3@1", "P1@0 A<1@1 ok1=m1@2", RETRIED])
def test_what_is_settled_is_forgotten(line: str) -> None:
    one = classified(line)
    assert not one._unconfirmed
    assert not one._undelivered


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ('deliveries_total kind="first"', 1),
        ('deliveries_total kind="publisher_duplicate"', 1),
        ("publish_latency_seconds_sum", 3),
        ("end_to_end_latency_seconds_sum", 1.5),
    ],
)
def test_a_message_that_was_delivered_before_it_was_published_again(series: str, expected: float) -> None:
    assert Scrape(RETRIED)[series] == expected


def test_a_second_confirmation_has_no_latency() -> None:
    scrape = Scrape("P1@0 ok1=m1@1 ok1=m2@5")
    assert scrape['publishes_total outcome="confirmed"'] == 2
    assert scrape["publish_latency_seconds_count"] == 1


def test_what_was_never_published_is_no_duplicate() -> None:
    assert Scrape("P1 A<1@1 A<9@2 A<x9(9)@3")['deliveries_total kind="first"'] == 3


def test_a_delivery_of_which_the_kind_is_forgotten_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classification, "RECEIVED_KEPT_MAX", 2)
    line = "P1,2,3 A<1,2,3@1 A<1@5 A<3@5.1"
    assert classified(line).unclassified == 1
    scrape = Scrape(line)
    assert scrape['deliveries_total kind="first"'] == 3
    assert scrape['deliveries_total kind="redelivery"'] == 1
    assert scrape['deliveries_total kind="publisher_duplicate"'] == 0
