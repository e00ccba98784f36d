"""Every kind of finding in words: what happened, which promise that breaks, and how sure it is."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from prober.core.explain import explain
from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Mode, Rules
from tests.unit.core.cases import across, findings

STREAM = "P1,2,3 A<1,2,3@1"
HISTORIES: dict[Kind, tuple[str, dict[str, Any], str]] = {
    Kind.ORDER_GAP: ("P1,2,3 A<3@1", {}, "Message 3 was delivered although messages 1 and 2, published before it and confirmed, had not been delivered. Messages of a key must be received in the order in which the service received them."),
    Kind.ORDER_INVERSION: ("P1@0 P2@0 ok1=m1@0.1 ok2=m2@0.1 A<2,1@1", {}, "Message 1 was first delivered after message 2, which was published later. Messages of a key must be"),
    Kind.REALTIME_INVERSION: ("P1@0 ok1=b1@0.05 P2@0.1 A<a2(2)@1 A<b1(1)@1.1", {}, "Message 1 was first delivered after message 2, although its publish had been confirmed (at t=0.050 s) before the publish of 2 began (at t=0.100 s)."),
    Kind.REDELIVERY_SKIP: (f"{STREAM} A<1@2 A<3@3", {}, "Message 3 was delivered to A right after message 1; message 2 should have come again in between. When a message is redelivered, all later messages"),
    Kind.PULL_BATCH_ORDER: ("P1,2,3 pull b@0.9 b<1,2,3@1 b ack 1,2,3@1.1 pull c@20 c<1,3@20.1", {"mode": Mode.PULL}, "Inside one pull response message 3 follows message 1, leaving out message 2. The messages of a key inside one response must be consecutive."),
    Kind.PUSH_ADVANCE_PAST_NACK: ("P1,2 a<1@1 a nack 1@1.1 b<2@20", {"mode": Mode.PUSH}, "Push delivered message 2 although the request for message 1 before it had failed. After a failed push"),
    Kind.AFFINITY_SPLIT: ("P1,2,3 A<1,2@1 B<3@2", {}, "Message 3 was delivered to B while A was still holding messages 1 and 2. While messages of a key are outstanding, the key must stay where they are."),
    Kind.PULL_OVERLAP: ("P1,2 pull b@0.9 b<1@1 pull c@1.1 c<2@2", {"mode": Mode.PULL}, "Message 2 was delivered to c while b was still holding message 1. Only one batch"),
    Kind.PUSH_OVERLAP: ("P1,2 a<1@1 b<2@2", {"mode": Mode.PUSH}, "Message 2 was delivered to b while a was still holding message 1. Only one message"),
    Kind.AFFINITY_MOVE: ("P1,2 A<1@1 A ack 1@1.1 B<2@20", {}, "The key moved from A to B with message 2; nothing was outstanding."),
    Kind.STUCK: ("P1,2 A<1@1 A ack 1@1.1 end @500", {}, "Message 2, published and confirmed, had not been delivered since t=1.000 s. An accepted message must be delivered. Assumed: delivery_deadline_s 120."),
    Kind.LOST_OVERTAKEN: ("P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 end @500", {}, "Message 2, published and confirmed, was overtaken by message 3 at t=1.100 s and has not been delivered since. An accepted"),
    Kind.REDELIVERY_STALL: (f"{STREAM} A ack 1,2,3@1.4 A<1@2 end @500", {}, "A redelivery began but never reached message 3, which had been delivered before; the key has stood still since t=2.000 s."),
    Kind.UNACKED_STALL: ("P1 A<1@1 A nack 1@2 end @500", {}, "Message 1 had never been acknowledged and had to come again from t=2.000 s on, but did not. A message that is not acknowledged"),
    Kind.PHANTOM: ("P1 A<q7(7)@1", {}, "Message 7 (id q7) was delivered but never published in epoch e1."),
    Kind.GHOST: ("P1@0 fail1@0.1 A<g1(1)@1", {}, "Message 1 was delivered although every attempt to publish it had definitely failed."),
    Kind.ID_CONFLICT: ("P1,2 A<1@1 A<m1(2)@2", {}, "Message id m1 came first as message 1 and now as message 2."),
    Kind.FILTER_LEAK: ("P1 A<1!filter@1", {}, "Message 1 (id m1) was delivered although the subscription's filter excludes it."),
    Kind.EOD_REDELIVERY_AFTER_ACK: ("P1 A<1@1 A ack 1@1.1 A ackOK 1@1.5 A<1@30", {"exactly_once": True}, "Message 1 (id m1) was delivered again after the service had confirmed its acknowledgement at t=1.500 s. With exactly-once delivery a confirmed acknowledgement is final."),
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: ("P1 A<1@1 B<1@2", {"exactly_once": True}, "Message 1 (id m1) was delivered to B again while A was still holding it. With exactly-once delivery a message must not come again while it is outstanding."),
    Kind.SERVICE_DUP: ("P1 A<1~7@1 A<1~8@2", {}, "The service stored message 1 twice under one id (m1), with different publish times."),
    Kind.PUBLISHER_DUP: ("P1 A<1@1 A<z1(1)@2", {}, "Message 1 is in the log once more, under a further id (z1)."),
    Kind.LATE_DUP: ("P1,2,3 A<1,2,3@1 A<z1(1)@2", {}, "Message 1 is in the log once more, under a further id (z1)."),
}  # fmt: skip


def found(kind: Kind) -> Finding:
    if kind is Kind.ORDER_DIVERGENCE:
        return across(("s", "P1@0 P2@0 A<1,2@1"), ("t", "B<2,1@2"))[0]
    line, rules, _ = HISTORIES[kind]
    return next(finding for finding in findings(line, Rules(**rules)) if finding.kind is kind)


@pytest.mark.parametrize("kind", HISTORIES)
def test_each_kind_in_words(kind: Kind) -> None:
    assert explain(found(kind)).startswith(HISTORIES[kind][2])


def test_a_divergence_in_words() -> None:
    assert explain(found(Kind.ORDER_DIVERGENCE)) == (
        "Two subscriptions saw different orders: where this one received message 2, subscription s received message 1. "
        "All ordered subscriptions of a topic must see the same order."
    )


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_words_for_one_line(kind: Kind) -> None:
    text = explain(found(kind))
    assert "\n" not in text
    assert text.endswith(".")


def test_a_doubt_takes_the_place_of_the_promise() -> None:
    text = explain(findings("P1,2 A<1@1 filter 60@2 A<2!filter@10", Rules())[-1])
    assert text == (
        "Message 2 (id m2) was delivered although the subscription's filter excludes it. "
        "This is not certain: a change of the filter may explain it."
    )


def test_bounds_are_named_where_one_was_assumed() -> None:
    (finding,) = (f for f in findings(f"{STREAM} A<1@2 A<3@3", Rules(delivery_delay_max_s=inf)) if f.kind is Kind.REDELIVERY_SKIP)
    assert explain(finding).endswith(
        "Assumed: delivery_delay_max_s unbounded, clock_error_s 0, message ids taken for one record each, since no publish times were recorded."
    )


def test_what_is_only_noted_assumes_nothing() -> None:
    assert "Assumed" not in explain(found(Kind.AFFINITY_MOVE))


def test_wrong_content_is_named() -> None:
    (finding,) = findings("P1 A<1!checksum@1", Rules())
    assert explain(finding) == "Message 1 (id m1) is not what was published: wrong checksum."


@pytest.mark.parametrize("line", ["P1,2 A<m1(2)@2", "P1@0 A<m1(2)@0.5 P2@0.6 ok1=m1@0.7"])
def test_an_id_that_a_publish_got(line: str) -> None:
    told = [explain(one) for one in findings(line, Rules()) if one.kind is Kind.ID_CONFLICT]
    assert any(one.startswith("Message 2 came under the id with which the publish of message 1 was confirmed.") for one in told)


def test_a_step_back_in_a_response_is_not_the_next_one() -> None:
    line = "P1,2 pull b@0.9 b<1,2@1 b ack 1,2@1.1 pull c@20 c<2,1@20.1"
    finding = next(f for f in findings(line, Rules(mode=Mode.PULL)) if f.kind is Kind.PULL_BATCH_ORDER)
    assert explain(finding).startswith("Inside one pull response message 1 follows message 2, which is not the next one.")


def test_a_move_that_may_have_an_explanation() -> None:
    finding = findings("P1,2 A<1@1 A ack 1@1.1 B<2@2", Rules())[0]
    assert explain(finding).startswith(
        "Message 2 was delivered to B while A may still have been holding messages of the key. This is not certain: what was held"
    )


def test_a_skip_after_something_unknown() -> None:
    finding = Finding(
        Kind.REDELIVERY_SKIP,
        Status.VIOLATION,
        "s",
        "k",
        1.0,
        (1,),
        {"seq": 5, "after": 0, "skipped": (4,), "skipped_count": 1, "subscriber": "A"},
    )
    assert explain(finding).startswith("Message 5 was delivered to A right after what was sent before; message 4 should")


@pytest.mark.parametrize(
    ("missing", "count", "words"),
    [
        ((3,), 1, "message 3,"),
        ((3, 4, 6), 3, "messages 3, 4 and 6,"),
        ((3, 4, 5, 6), 4, "messages 3, 4, 5 and 6,"),
        ((3, 4, 5, 6, 7), 5, "messages 3, 4, 5 and 2 more,"),
        (tuple(range(3, 23)), 1_020, "messages 3, 4, 5 and 1,017 more,"),
    ],
)
def test_lists_are_short(missing: tuple[int, ...], count: int, words: str) -> None:
    finding = Finding(
        Kind.ORDER_GAP, Status.VIOLATION, "s", "k", 1.0, (1,), {"seq": 99, "missing": missing, "missing_count": count}
    )
    assert f"although {words} published before it" in explain(finding)
