"""Every kind of finding in words: what happened, which guarantee that violates, and how sure it is."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from prober.core.findings import Facts, Finding, Kind, Status
from prober.evidence.explain import explain, further_reasons, reasons, reasons_heading
from tests.unit.core.cases import PULL, PUSH, across, findings, rules_of

ON_PULL = {"mode": PULL}
ON_PUSH = {"mode": PUSH}
ONCE = {"exactly_once": True}
ONE_REGION = {"publishes_recorded": False, "publish_time_error_s": 1.0}
STREAM = "P1,2,3 A<1,2,3@1"
FIRST = "P1@0 ok1=a1@0.05 P2@0.1 ok2=a2@0.15"
SECOND = "P1[e2]@0.5 ok1=b1@0.55 P2[e2]@0.6 ok2=b2@0.65"

ONE_EPOCH: tuple[tuple[Kind, str, dict[str, Any], str], ...] = (
    (Kind.ORDER_GAP, "P1,2,3 A<3@1", {}, "Pub/Sub delivered message 3 but had not delivered messages 1 and 2, published before it and confirmed. Messages of a key must be received in the order in which the service received them."),
    (Kind.ORDER_INVERSION, "P1@0 P2@0 ok1=m1@0.1 ok2=m2@0.1 A<2,1@1", {}, "Pub/Sub delivered message 1 for the first time after message 2, which was published later. Messages of a key must be received in the order in which the service received them."),
    (Kind.REALTIME_INVERSION, "P1@0 ok1=b1@0.05 P2@0.1 A<a2(2)@1 A<b1(1)@1.1", {}, "Pub/Sub delivered message 1 for the first time after message 2, although it confirmed message 1 at t=0.050 s, before the publish of message 2 began at t=0.100 s. Messages of a key must be received in the order in which the service received them."),
    (Kind.REDELIVERY_SKIP, f"{STREAM} A<1@2 A<3@3", {}, "Pub/Sub delivered message 3 to A right after message 1 and skipped message 2, which should have been redelivered in between. When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."),
    (Kind.REDELIVERY_SKIP, "P1,2,3 pull b@0.9 b<1,2,3@1 b ack 1,2,3@1.1 pull c@20 c<1@20.1 c ack 1@20.2 pull d@30 d<3@40", ON_PULL, "Pub/Sub delivered message 3 in pull response d right after message 1 and skipped message 2, which should have been redelivered in between. When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."),
    (Kind.REDELIVERY_SKIP, "P1,2,3 a<1@1 a ack 1@1.1 b<2@2 b ack 2@2.1 c<3@3 c ack 3@3.1 d<1@30 d ack 1@30.1 e<3@40", ON_PUSH, "Pub/Sub sent message 3 in push request e right after message 1 and skipped message 2, which should have been redelivered in between. When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."),
    (Kind.PULL_BATCH_ORDER, "P1,2,3 pull b@0.9 b<1,2,3@1 b ack 1,2,3@1.1 pull c@20 c<1,3@20.1", ON_PULL, "Inside pull response c Pub/Sub went from message 1 straight to message 3 and skipped message 2. The messages of a key inside one response must be consecutive."),
    (Kind.PULL_BATCH_ORDER, "P1,2 pull b@0.9 b<1,2@1 b ack 1,2@1.1 pull c@20 c<2,1@20.1", ON_PULL, "Inside pull response c Pub/Sub went back from message 2 to message 1. The messages of a key inside one response must be consecutive."),
    (Kind.PUSH_ADVANCE_PAST_NACK, "P1,2 a<1@1 a nack 1@1.1 b<2@20", ON_PUSH, "The push request for message 1 failed, but Pub/Sub sent message 2 next. After a failed push the next request must be for the same message or an earlier one."),
    (Kind.AFFINITY_SPLIT, "P1,2,3 A<1,2@1 B<3@2", {}, "Pub/Sub delivered message 3 to B while A was still holding messages 1 and 2. While messages of a key are outstanding, the key usually stays with their subscriber: Google documents that, and does not guarantee it."),
    (Kind.PULL_OVERLAP, "P1,2 pull b@0.9 b<1@1 pull c@1.1 c<2@2", ON_PULL, "Pub/Sub delivered message 2 in pull response c while message 1 in pull response b was still outstanding. Only one batch of messages of a key may be outstanding at a time."),
    (Kind.PUSH_OVERLAP, "P1,2 a<1@1 b<2@2", ON_PUSH, "Pub/Sub sent message 2 in push request b while push request a for message 1 was still open. Only one message of a key may be outstanding at a time."),
    (Kind.AFFINITY_MOVE, "P1,2 A<1@1 A ack 1@1.1 B<2@20", {}, "The key moved from A to B with message 2; nothing was outstanding."),
    (Kind.STUCK, "P1,2 A<1@1 A ack 1@1.1 end @500", {}, "Message 2 was published and confirmed but not delivered, and the key stalled for 120 s, since t=1.000 s. An accepted message must be delivered."),
    (Kind.LOST_OVERTAKEN, "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 end @500", {}, "Message 2 was published and confirmed but not delivered for 120 s, since message 3 overtook it at t=1.100 s. An accepted message must be delivered."),
    (Kind.REDELIVERY_STALL, f"{STREAM} A ack 1,2,3@1.4 A<1@2 end @500", {}, "A redelivery began but did not reach message 3, which had been delivered before, and the key stalled for 120 s, since t=2.000 s. When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."),
    (Kind.UNACKED_STALL, "P1 A<1@1 A nack 1@2 end @500", {}, "Message 1 was never acknowledged and had to be redelivered, but was not for 120 s, since the lease was over at t=66.000 s. A message that is not acknowledged must be delivered again."),
    (Kind.PHANTOM, "P1 A<q7(7)@1", {}, "Pub/Sub delivered message 7 (id q7), which was never published in epoch e1."),
    (Kind.GHOST, "P1@0 fail1@0.1 A<g1(1)@1", {}, "Pub/Sub delivered message 1 (id g1), although every attempt to publish it had definitely failed."),
    (Kind.ID_CONFLICT, "P1,2 A<1@1 A<m1(2)@2", {}, "Pub/Sub delivered id m1 first as message 1 and then as message 2."),
    (Kind.ID_CONFLICT, "P1 A<1!checksum@1", {}, "Pub/Sub delivered message 1 (id m1), but not as it was published: its checksum is wrong."),
    (Kind.ID_CONFLICT, "P1,2 A<m1(2)@2", {}, "Pub/Sub delivered message 2 under id m1, with which it confirmed the publish of message 1."),
    (Kind.ID_CONFLICT, "P1@0 A<m1(2)@0.5 P2@0.6 ok1=m1@0.7", {}, "Pub/Sub delivered message 2 under the id with which it confirmed the publish of message 1."),
    (Kind.FILTER_LEAK, "P1 A<1!filter@1", {}, "Pub/Sub delivered message 1 (id m1), which the subscription's filter excludes."),
    (Kind.EOD_REDELIVERY_AFTER_ACK, "P1 A<1@1 A ack 1@1.1 A ackOK 1@1.5 A<1@30", ONCE, "Pub/Sub confirmed the acknowledgement of message 1 (id m1) at t=1.500 s and delivered the message again after that. With exactly-once delivery a confirmed acknowledgement is final."),
    (Kind.EOD_REDELIVERY_WHILE_OUTSTANDING, "P1 A<1@1 B<1@2", ONCE, "Pub/Sub delivered message 1 (id m1) to B again while A was still holding it. With exactly-once delivery a message must not be redelivered while it is outstanding."),
    (Kind.EOD_REDELIVERY_WHILE_OUTSTANDING, "P1 pull b@0.9 b<1@1 pull c@1.5 c<1@2", ON_PULL | ONCE, "Pub/Sub delivered message 1 (id m1) in pull response c again while it was still outstanding in pull response b. With exactly-once delivery a message must not be redelivered while it is outstanding."),
    (Kind.EOD_REDELIVERY_WHILE_OUTSTANDING, "P1 b<1@1 c<1@2", ON_PUSH | ONCE, "Pub/Sub sent message 1 (id m1) in push request c again while push request b for it was still open. With exactly-once delivery a message must not be redelivered while it is outstanding."),
    (Kind.PUBLISHER_DUP, "P1 A<1@1 A<z1(1)@2", {}, "Pub/Sub stored message 1 once more, under another id (z1)."),
    (Kind.LATE_DUP, f"{STREAM} A<z1(1)@2", {}, "Pub/Sub stored message 1 once more, after later messages, under another id (z1)."),
    (Kind.DELIVERED_OUT_OF_ORDER, "A<1~1@1 A<3~9000000000@1.1 A<2~2500000000@1.2 A<4@1.3", ONE_REGION, "Pub/Sub delivered message 2 (id m2) for the first time after message 3 (id m3), and had stored the first of the two at 00:00:02.500 UTC, the second at 00:00:09.000 UTC. Messages of a key must be received in the order in which the service received them."),
    (Kind.PUBLISHED_OUT_OF_ORDER, "A<1~1@1 A<3~2500000000@1.1 A<2~9000000000@1.2 A<4@1.3", ONE_REGION, "Message 3 (id m3) reached Pub/Sub before message 2 (id m2): it stored them at 00:00:02.500 UTC and 00:00:09.000 UTC, and delivered them so. Pub/Sub kept the order; the publishers did not send the two in the order of their numbers, or sent the lower one once more after an attempt that had failed."),
    (Kind.SERVICE_DUP, "P1 A<1~7@1 A<1~8@2", {}, "Pub/Sub stored message 1 twice under one id (m1), with different publish times."),
)  # fmt: skip

TWO_EPOCHS: tuple[tuple[Kind, str, dict[str, Any], str], ...] = (
    (Kind.ORDER_GAP, f"{FIRST} {SECOND} A<a1(1)@1 A<b1(1)@2 end @90", {}, "Pub/Sub delivered message 1 of epoch e2 but had not delivered message 2 of epoch e1, published before it and confirmed. Messages of a key must be received in the order in which the service received them."),
    (Kind.ORDER_INVERSION, "P1,2@0 P1[e2]@0.5 P2[e2]@0.5 ok1=b1@0.6 ok2=b2@0.6 A<1,2@1 A<b2(2)@1.5 A<b1(1)@2", {}, "Pub/Sub delivered message 1 of epoch e2 for the first time after message 2 of epoch e2, which was published later. Messages of a key must be received in the order in which the service received them."),
    (Kind.REALTIME_INVERSION, f"{FIRST} {SECOND} A<b1(1)@1 A<a1(1)@1.1", {}, "Pub/Sub delivered message 1 of epoch e1 for the first time after message 1 of epoch e2, although it confirmed message 1 of epoch e1 at t=0.050 s, before the publish of message 1 of epoch e2 began at t=0.500 s. Messages of a key must be received in the order in which the service received them."),
    (Kind.REDELIVERY_SKIP, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<a1(1)@2 A<b2(2)@3", {}, "Pub/Sub delivered message 2 of epoch e2 to A right after message 1 of epoch e1 and skipped message 2 of epoch e1 and message 1 of epoch e2, which should have been redelivered in between. When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."),
    (Kind.PULL_BATCH_ORDER, f"{FIRST} {SECOND} pull b@0.9 b<a1(1)@1 b<a2(2)@1 b<b1(1)@1 b ack 1,2@1.1 pull c@20 c<a1(1)@20.1 c<b1(1)@20.1", ON_PULL, "Inside pull response c Pub/Sub went from message 1 of epoch e1 straight to message 1 of epoch e2 and skipped message 2 of epoch e1. The messages of a key inside one response must be consecutive."),
    (Kind.PULL_BATCH_ORDER, f"{FIRST} {SECOND} pull b@0.9 b<a1(1)@1 b<a2(2)@1 b<b1(1)@1 b ack 1,2@1.1 pull c@20 c<b1(1)@20.1 c<a1(1)@20.1", ON_PULL, "Inside pull response c Pub/Sub went back from message 1 of epoch e2 to message 1 of epoch e1. The messages of a key inside one response must be consecutive."),
    (Kind.PUSH_ADVANCE_PAST_NACK, f"{FIRST} {SECOND} a<a1(1)@1 a ack 1@1.1 b<a2(2)@2 b nack 2@2.1 c<b1(1)@20", ON_PUSH, "The push request for message 2 of epoch e1 failed, but Pub/Sub sent message 1 of epoch e2 next. After a failed push the next request must be for the same message or an earlier one."),
    (Kind.AFFINITY_SPLIT, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 B<b1(1)@2", {}, "Pub/Sub delivered message 1 of epoch e2 to B while A was still holding messages 1 and 2 of epoch e1. While messages of a key are outstanding, the key usually stays with their subscriber: Google documents that, and does not guarantee it."),
    (Kind.PULL_OVERLAP, f"{FIRST} {SECOND} pull b@0.9 b<a1(1)@1 b<a2(2)@1 pull c@1.1 c<b1(1)@2", ON_PULL, "Pub/Sub delivered message 1 of epoch e2 in pull response c while messages 1 and 2 of epoch e1 in pull response b were still outstanding. Only one batch of messages of a key may be outstanding at a time."),
    (Kind.PUSH_OVERLAP, f"P1@0 ok1=a1@0.05 {SECOND} a<a1(1)@1 b<b1(1)@2", ON_PUSH, "Pub/Sub sent message 1 of epoch e2 in push request b while push request a for message 1 of epoch e1 was still open. Only one message of a key may be outstanding at a time."),
    (Kind.AFFINITY_MOVE, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A ack 1,2@1.2 B<b1(1)@20", {}, "The key moved from A to B with message 1 of epoch e2; nothing was outstanding."),
    (Kind.STUCK, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A ack 1,2@1.2 end @500", {}, "Messages 1 and 2 of epoch e2 were published and confirmed but not delivered, and the key stalled for 120 s, since t=1.100 s. An accepted message must be delivered."),
    (Kind.LOST_OVERTAKEN, f"{FIRST} {SECOND} A<a1(1)@1 A<b1(1)@1.1 A<b2(2)@1.2 A ack 1,2@1.3 end @500", {}, "Message 2 of epoch e1 was published and confirmed but not delivered for 120 s, since message 1 of epoch e2 overtook it at t=1.100 s. An accepted message must be delivered."),
    (Kind.REDELIVERY_STALL, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<a1(1)@2 end @500", {}, "A redelivery began but did not reach message 2 of epoch e2, which had been delivered before, and the key stalled for 120 s, since t=2.000 s. When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."),
    (Kind.UNACKED_STALL, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 close A@3 open C of client C@60 end @500", {}, "Messages 1 and 2 of epoch e1 and messages 1 and 2 of epoch e2 were never acknowledged and had to be redelivered, but were not for 177 s, since the stream ended at t=3.000 s. A message that is not acknowledged must be delivered again."),
    (Kind.PHANTOM, f"{FIRST} {SECOND} A<a1(1)@1 A<q7(7)[e2]@2", {}, "Pub/Sub delivered message 7 (id q7), which was never published in epoch e2."),
    (Kind.GHOST, f"{FIRST} P1[e2]@0.5 fail1@0.6 A<a1(1)@1 A<g1(1)[e2]@2", {}, "Pub/Sub delivered message 1 of epoch e2 (id g1), although every attempt to publish it had definitely failed."),
    (Kind.ID_CONFLICT, f"{FIRST} {SECOND} A<a1(1)@1 A<a1(1)[e2]@2", {}, "Pub/Sub delivered id a1 first as message 1 of epoch e1 and then as message 1 of epoch e2."),
    (Kind.ID_CONFLICT, f"{FIRST} {SECOND} A<a1(1)@0.9 A<a2(2)@1 A<b1(1)!checksum@2", {}, "Pub/Sub delivered message 1 of epoch e2 (id b1), but not as it was published: its checksum is wrong."),
    (Kind.ID_CONFLICT, f"{FIRST} {SECOND} A<a1(1)@1 A<b2(1)[e1]@2", {}, "Pub/Sub delivered message 1 of epoch e1 under id b2, with which it confirmed the publish of message 2 of epoch e2."),
    (Kind.FILTER_LEAK, f"{FIRST} {SECOND} A<a1(1)@1 A<b1(1)!filter@2", {}, "Pub/Sub delivered message 1 of epoch e2 (id b1), which the subscription's filter excludes."),
    (Kind.EOD_REDELIVERY_AFTER_ACK, f"{FIRST} {SECOND} A<a1(1)@1 A ack 1@1.01 A ackOK 1@1.02 A<a2(2)@1.1 A ack 2@1.11 A ackOK 2@1.12 A<b1(1)@1.2 A ack 1@1.3 A ackOK 1@1.5 A<b1(1)@30", ONCE, "Pub/Sub confirmed the acknowledgement of message 1 of epoch e2 (id b1) at t=1.500 s and delivered the message again after that. With exactly-once delivery a confirmed acknowledgement is final."),
    (Kind.EOD_REDELIVERY_WHILE_OUTSTANDING, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 B<b1(1)@2", ONCE, "Pub/Sub delivered message 1 of epoch e2 (id b1) to B again while A was still holding it. With exactly-once delivery a message must not be redelivered while it is outstanding."),
    (Kind.PUBLISHER_DUP, f"{FIRST} P1[e2]@0.5 ok1=b1@0.6 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<z1(1)[e2]@2", {}, "Pub/Sub stored message 1 of epoch e2 once more, under another id (z1)."),
    (Kind.LATE_DUP, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3 A<z1(1)[e2]@2", {}, "Pub/Sub stored message 1 of epoch e2 once more, after later messages, under another id (z1)."),
    (Kind.SERVICE_DUP, f"{FIRST} {SECOND} A<a1(1)@1 A<a2(2)@1.1 A<b1(1)~7@1.2 A<b1(1)~8@2", {}, "Pub/Sub stored message 1 of epoch e2 twice under one id (b1), with different publish times."),
    (Kind.DELIVERED_OUT_OF_ORDER, "A<1[x]@1 A<3[x]@1.1 A<2[x]@1.2 A<4[x]@1.3", ONE_REGION, "Pub/Sub delivered message 2 (id m2) for the first time after message 3 (id m3). This is not certain: their publish times are not known, so nothing shows whether the publisher or the service exchanged them."),
    (Kind.PUBLISHED_OUT_OF_ORDER, "A<1[x]~1@1 A<3[x]~1000000000@1.1 A<2[x]~2000000000@1.2 A<4[x]@1.3", ONE_REGION, "Message 3 (id m3) reached Pub/Sub before message 2 (id m2): it stored them at 00:00:01.000 UTC and 00:00:02.000 UTC, and delivered them so. Pub/Sub kept the order; the publishers did not send the two in the order of their numbers, or sent the lower one once more after an attempt that had failed."),
)  # fmt: skip

MIDNIGHT = 1_600_041_600.0
"""A day of September 2020 begins, in seconds since 1970."""


def found(line: str, kind: Kind, **rules: Any) -> Finding:
    return next(finding for finding in findings(line, rules_of(**rules)) if finding.kind is kind)


def made(kind: Kind, facts: Facts, status: Status = Status.VIOLATION) -> Finding:
    return Finding(kind, status, "s", "k", 1.0, (1,), facts)


def said(finding: Finding, wall: float | None = None) -> str:
    """The sentences but for what was assumed."""
    return explain(finding, wall).partition(" Assumed: ")[0]


def diverged() -> Finding:
    return across(("s", "P1@0 P2@0 A<1,2@1"), ("t", "B<2,1@2"))[0]


class TestEveryKind:
    @pytest.mark.parametrize(("kind", "line", "rules", "text"), ONE_EPOCH)
    def test_with_one_epoch(self, kind: Kind, line: str, rules: dict[str, Any], text: str) -> None:
        assert said(found(line, kind, **rules)) == text

    @pytest.mark.parametrize(("kind", "line", "rules", "text"), TWO_EPOCHS)
    def test_with_two_epochs(self, kind: Kind, line: str, rules: dict[str, Any], text: str) -> None:
        assert said(found(line, kind, **rules)) == text

    def test_a_divergence(self) -> None:
        assert explain(diverged()) == (
            "Two subscriptions saw different orders: this one received message 2 where subscription s received message 1. "
            "All ordered subscriptions of a topic must see the same order."
        )

    def test_a_divergence_with_two_epochs(self) -> None:
        (finding, *_) = across(("s", "P1@0 P1[e2]@0 A<x1(1)[e1]@1 A<y1(1)[e2]@1.1"), ("t", "B<y1(1)[e2]@2 B<x1(1)[e1]@2.1"))
        assert said(finding).startswith(
            "Two subscriptions saw different orders: this one received message 1 of epoch e2 "
            "where subscription s received message 1 of epoch e1."
        )

    def test_a_divergence_of_which_only_the_place_is_known(self) -> None:
        text = said(made(Kind.ORDER_DIVERGENCE, {"seq": 2, "epoch": "e1", "other": "s"}))
        assert text.startswith(
            "Two subscriptions saw different orders: this one received message 2 at another place than subscription s did."
        )

    def test_none_is_left_out(self) -> None:
        assert {kind for kind, *_ in ONE_EPOCH} | {Kind.ORDER_DIVERGENCE} == set(Kind)
        assert {kind for kind, *_ in TWO_EPOCHS} | {Kind.ORDER_DIVERGENCE} == set(Kind)

    @pytest.mark.parametrize("finding", [*(found(line, kind, **rules) for kind, line, rules, _ in ONE_EPOCH), diverged()])
    def test_is_one_line_of_sentences_with_and_without_times_of_day(self, finding: Finding) -> None:
        for wall in (None, MIDNIGHT):
            text = explain(finding, wall)
            assert text.isprintable()
            assert text.endswith(".")
            assert "  " not in text
            assert (" UTC (t=" in text) == (wall is not None)

    def test_a_message_without_a_key_has_no_key_that_stands_still(self) -> None:
        finding = replace(found("P1,2 A<1@1 A ack 1@1.1 end @500", Kind.STUCK), key="")
        assert said(finding).startswith("Message 2 was published and confirmed but not delivered for 120 s")


class TestTimes:
    def test_a_wait_says_how_long_and_since_when(self) -> None:
        assert said(found("P1,2 A<1@1 A ack 1@1.1 end @500", Kind.STUCK), MIDNIGHT) == (
            "Message 2 was published and confirmed but not delivered, "
            "and the key stalled for 120 s, since 00:00:01 UTC (t=1.000 s). An accepted message must be delivered."
        )

    @pytest.mark.parametrize(
        ("kind", "line", "words"),
        [
            (
                Kind.LOST_OVERTAKEN,
                "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 end @500",
                "for 120 s, since message 3 overtook it at 02:13:06 UTC (t=1.100 s).",
            ),
            (Kind.REDELIVERY_STALL, f"{STREAM} A ack 1,2,3@1.4 A<1@2 end @500", "for 120 s, since 02:13:07 UTC (t=2.000 s)."),
            (
                Kind.UNACKED_STALL,
                "P1 A<1@1 A nack 1@2 end @500",
                "for 120 s, since the lease was over at 02:14:11 UTC (t=66.000 s).",
            ),
        ],
    )
    def test_every_wait(self, kind: Kind, line: str, words: str) -> None:
        at = MIDNIGHT + 2 * 3600 + 13 * 60 + 5
        assert words in said(found(line, kind), at)

    def test_events_are_distinguished_by_the_millisecond(self) -> None:
        finding = found("P1@0 ok1=b1@0.05 P2@0.1 A<a2(2)@1 A<b1(1)@1.1", Kind.REALTIME_INVERSION)
        assert said(finding, MIDNIGHT).startswith(
            "Pub/Sub delivered message 1 for the first time after message 2, although it confirmed message 1 at 00:00:00.050 UTC "
            "(t=0.050 s), before the publish of message 2 began at 00:00:00.100 UTC (t=0.100 s)."
        )

    def test_what_has_no_time_of_its_own_was_seen_at_one(self) -> None:
        finding = found(f"{STREAM} A<1@2 A<3@3", Kind.REDELIVERY_SKIP)
        assert said(finding, MIDNIGHT).endswith("acknowledged or not. Seen at 00:00:03 UTC (t=3.000 s).")
        assert "Seen at" not in said(finding)

    def test_a_confirmed_acknowledgement(self) -> None:
        finding = found("P1 A<1@1 A ack 1@1.1 A ackOK 1@1.5 A<1@30", Kind.EOD_REDELIVERY_AFTER_ACK, exactly_once=True)
        assert said(finding, MIDNIGHT).startswith(
            "Pub/Sub confirmed the acknowledgement of message 1 (id m1) at 00:00:01.500 UTC (t=1.500 s) and delivered the message again after that."
        )

    @pytest.mark.parametrize(
        ("seconds", "words"), [(120.0, "120 s"), (86_400.0, "86,400 s"), (9.96, "9.96 s"), (0.25, "0.25 s"), (12.6, "13 s")]
    )
    def test_durations_are_short(self, seconds: float, words: str) -> None:
        finding = found("P1,2 A<1@1 A ack 1@1.1 end @500", Kind.STUCK)
        assert f"for {words}, since" in explain(replace(finding, facts={**finding.facts, "seconds": seconds}))

    @pytest.mark.parametrize("wall", [1e30, -inf, inf])
    def test_a_clock_that_shows_nothing_real_is_left_out(self, wall: float) -> None:
        assert "since t=1.000 s." in explain(found("P1,2 A<1@1 A ack 1@1.1 end @500", Kind.STUCK), wall)


class TestDoubts:
    """What takes the place of the guarantee when something may explain the facts."""

    @pytest.mark.parametrize(
        ("kind", "line", "rules", "text"),
        [
            (Kind.FILTER_LEAK, "P1,2 A<1@1 seek 60@2 A<2!filter@10", {}, "a seek or purge may explain it."),
            (Kind.FILTER_LEAK, "P1,2 A<1@1 filter 60@2 A<2!filter@10", {}, "a change of the filter may explain it."),
            (Kind.FILTER_LEAK, "P1,2 A<1@1 hole @2 A<2!filter@2.1", {}, "a hole in the record may explain it."),
            (Kind.REDELIVERY_SKIP, f"{STREAM} seek 0.1@2 A<1@4 A<3@5", {}, "a seek or purge may explain it."),
            (Kind.AFFINITY_SPLIT, f"{STREAM} B<3@1.5 seek 5@1.6 end @500", {}, "a seek or purge may explain it."),
            (
                Kind.ORDER_GAP,
                "P1,2,3 A<1@1 seek 0.1@2 A<3@5",
                {},
                "a seek or purge may explain it.",
            ),
            (
                Kind.REDELIVERY_SKIP,
                f"{STREAM} A<1@2 A<3@3",
                {"dead_letter_max_attempts": 5},
                "the subscription has a dead-letter policy, and with one redelivery need not be consistent.",
            ),
        ],
    )
    def test_names_what_may_explain_it(self, kind: Kind, line: str, rules: dict[str, Any], text: str) -> None:
        assert said(found(line, kind, **rules)).endswith(f"This is not certain: {text}")

    def test_a_move_that_may_have_an_explanation(self) -> None:
        assert said(found("P1,2 A<1@1 A ack 1@1.1 B<2@2", Kind.AFFINITY_SPLIT)) == (
            "Pub/Sub delivered message 2 to B while A may still have been holding messages of the key. This is not certain: "
            "what was held may have been released by its acknowledgement, which was under way."
        )

    def test_a_pull_that_may_have_been_settled(self) -> None:
        line = "P1,2 pull b@0.9 b<1@1 b ack 1@1.1 pull c@1.2 c<2@2"
        assert said(found(line, Kind.PULL_OVERLAP, mode=PULL)).startswith(
            "Pub/Sub delivered message 2 in pull response c while messages in pull response b may still have been outstanding."
        )

    @pytest.mark.parametrize(
        ("line", "kind", "rules", "text"),
        [
            (
                "P1,2 b<2@20 b ack 2@20.1 a<1@21 stop @60",
                Kind.PUSH_OVERLAP,
                ON_PUSH,
                "Pub/Sub sent message 2 in push request b before message 1 in push request a, which came at t=21.000 s. "
                "It was sent first, or while push request a was open.",
            ),
            (
                "P1,2 pull a@0.9 pull b@0.9 b<2@1 a<1@1.1 stop @60",
                Kind.PULL_OVERLAP,
                ON_PULL,
                "Pub/Sub delivered message 2 in pull response b before message 1 in pull response a, which came at t=1.100 s. "
                "It was sent first, or while pull response a was outstanding.",
            ),
            (
                "P1,2 B<2@1 A<1@1.1 stop @60",
                Kind.AFFINITY_SPLIT,
                {},
                "Pub/Sub delivered message 2 to B before message 1 to A, which came at t=1.100 s. "
                "It was sent first, or while message 1 was on the way to A.",
            ),
        ],
    )
    def test_of_two_in_the_wrong_order_nobody_knows_which_was_sent_first(
        self, line: str, kind: Kind, rules: dict[str, Any], text: str
    ) -> None:
        assert said(found(line, kind, **rules)).startswith(text)

    def test_what_a_seek_back_restored_is_said_of_it(self) -> None:
        line = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 seek 1/0@20 A<3@31 A<2@32 A ack 2,3@33 end @500"
        assert said(found(line, Kind.REDELIVERY_SKIP)).startswith(
            "Pub/Sub delivered message 3 to A and skipped messages 1 and 2, which the seek back at t=20.000 s restored and which "
            "should have been delivered before it."
        )
        never = found("P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 seek 1/0@20 end @500", Kind.REDELIVERY_STALL)
        assert said(never).startswith(
            "A seek back at t=20.000 s restored message 3, which had been delivered before, but it was not redelivered"
        )

    def test_a_push_that_may_have_been_answered(self) -> None:
        line = "P1,2 a<1@1 a ack 1@1.1 b<2@1.2"
        assert said(found(line, Kind.PUSH_OVERLAP, mode=PUSH)).startswith(
            "Pub/Sub sent message 2 in push request b while push request a may still have been open."
        )


class TestAssumptions:
    def test_are_named_with_their_values(self) -> None:
        finding = found(f"{STREAM} A<1@2 A<3@3", Kind.REDELIVERY_SKIP, delivery_delay_max_s=inf)
        assert explain(finding).endswith(
            " Assumed: delivery_delay_max_s unbounded, clock_error_s 0, one record per message id (no publish times were recorded)."
        )

    def test_an_id_alone_is_not_taken_for_a_record_where_publish_times_are_recorded(self) -> None:
        finding = found("P1,2,3 A<1~1@1 A<2~2@1.1 A<3~3@1.2 A<1~1@2 A<3~3@3", Kind.REDELIVERY_SKIP)
        assert explain(finding).endswith(" Assumed: delivery_delay_max_s 5, clock_error_s 0.")

    def test_what_is_only_noted_assumes_nothing(self) -> None:
        assert "Assumed" not in explain(found("P1,2 A<1@1 A ack 1@1.1 B<2@20", Kind.AFFINITY_MOVE))


class TestReasons:
    def test_name_the_time_of_day_where_it_is_known(self) -> None:
        finding = replace(made(Kind.GHOST, {}), reasons=("not nacked: no nack is on record between t=1.000 s and t=2.500 s",))
        assert reasons(finding) == finding.reasons
        assert reasons(finding, MIDNIGHT) == (
            "not nacked: no nack is on record between 00:00:01.000 UTC (t=1.000 s) and 00:00:02.500 UTC (t=2.500 s)",
        )

    def test_facts_of_the_history_come_before_the_rules_of_the_run(self) -> None:
        by_rules = (
            "not dead-lettered: the subscription has no dead-letter policy",
            "not expired: the rules state no message retention",
        )
        finding = replace(made(Kind.GHOST, {}), reasons=(by_rules[0], "not nacked: no nack is on record", by_rules[1]))
        assert reasons(finding) == ("not nacked: no nack is on record", *by_rules)

    def test_a_doubt_is_not_named_twice(self) -> None:
        finding = replace(made(Kind.GHOST, {}), doubt="it may be late", reasons=("it may be late", "its stream may have ended"))
        assert further_reasons(finding) == ("its stream may have ended",)

    def test_the_heading_says_what_they_are(self) -> None:
        finding = made(Kind.GHOST, {})
        assert reasons_heading(finding) == "Excluded explanations"
        assert reasons_heading(replace(finding, doubt="it may be late")) == "Assumed by the best explanation"
