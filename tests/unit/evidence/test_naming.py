"""How messages are named in the sentences about a finding: numbers, with epochs and ids where numbers alone are not true."""

# ruff: noqa: E501 - a sentence is one line

from __future__ import annotations

import pytest

from prober.core.findings import Facts, Kind
from tests.unit.evidence.test_explain import found, made, said


class TestRecords:
    """A sequence number that stands for several records."""

    def test_what_was_skipped_is_another_record_of_what_came_before(self) -> None:
        line = "P1@0 ok1=a1@0.1 P2@0.2 ok2=a2@0.3 A<a1(1)@1 A<z1(1)@1.1 A<a2(2)@1.2 A<a1(1)@2 A<a2(2)@3"
        assert said(found(line, Kind.REDELIVERY_SKIP)).startswith(
            "Pub/Sub delivered message 2 to A right after message 1 (id a1) and skipped message 1 (id z1), which should"
        )

    def test_the_delivered_one_is_named_with_its_id(self) -> None:
        line = "P1@0 ok1=a1@0.1 P2@0.2 ok2=a2@0.3 A<a1(1)@1 A<a2(2)@1.1 A<z2(2)@1.2 A<a1(1)@2 A<z2(2)@3"
        assert said(found(line, Kind.REDELIVERY_SKIP)).startswith(
            "Pub/Sub delivered message 2 (id z2) to A right after message 1 and skipped message 2 (id a2), which should"
        )

    @pytest.mark.parametrize(
        ("line", "kind", "words"),
        [
            (
                "P1@0 ok1=a1@0.1 P2@0.2 ok2=a2@0.3 P3@0.4 ok3=a3@0.5 A<a1(1)@1 A<z2(2)@1.1 A<a3(3)@1.2 stop @50",
                Kind.ORDER_GAP,
                "Pub/Sub delivered message 3 but had not delivered message 2 (id a2), published before it",
            ),
            (
                "P1@0 ok1=a1@0.1 P2@0.2 ok2=a2@0.3 P3@0.4 ok3=a3@0.5 A<a1(1)@1 A<a2(2)@1.1 A<z2(2)@1.2 B<a3(3)@2 stop @50",
                Kind.AFFINITY_SPLIT,
                "Pub/Sub delivered message 3 to B while A was still holding messages 1, 2 (id a2) and 2 (id z2).",
            ),
            (
                "P1@0 ok1=a1@0.1 P2@0.2 ok2=a2@0.3 A<a1(1)@1 A ack 1@1.1 A<a2(2)@1.2 A<z2(2)@1.3 A ack 2@1.4 end @500",
                Kind.UNACKED_STALL,
                "Message 2 (id a2) was never acknowledged",
            ),
        ],
    )
    def test_an_id_is_named_where_a_number_has_several_records(self, line: str, kind: Kind, words: str) -> None:
        assert said(found(line, kind)).startswith(words)

    def test_several_of_several(self) -> None:
        facts: Facts = {
            "seq": 5,
            "epoch": "e1",
            "message_id": "b5",
            "after": 2,
            "skipped": (3, 1, 2, 3),
            "skipped_count": 4,
            "subscriber": "A",
        }
        assert said(made(Kind.REDELIVERY_SKIP, facts)).startswith(
            "Pub/Sub delivered message 5 to A right after message 2 and skipped messages 3 and 1 and other records of messages 2 and 3, which"
        )

    def test_what_is_held_may_be_what_was_redelivered(self) -> None:
        finding = found("P1,2 A<1,2@1 B<1@2", Kind.AFFINITY_SPLIT)
        assert said(finding) == (
            "Pub/Sub delivered message 1 (id m1) to B while A was still holding messages 1 and 2. This is not certain: "
            "the service may redeliver from the lowest message held, or below, before its lease is over."
        )


class TestLists:
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
    def test_are_short(self, missing: tuple[int, ...], count: int, words: str) -> None:
        finding = made(Kind.ORDER_GAP, {"seq": 99, "missing": missing, "missing_count": count})
        assert f"but had not delivered {words} published before it" in said(finding)

    def test_of_several_epochs_are_distinguished(self) -> None:
        facts: Facts = {"seq": 9, "epoch": "e3", "after": 1, "after_epoch": "e1", "skipped": (2, 3, 1, 2, 1), "subscriber": "A"}
        facts = {**facts, "skipped_epochs": ("e1", "e1", "e2", "e2", "e3"), "skipped_count": 25}
        assert said(made(Kind.REDELIVERY_SKIP, facts)).startswith(
            "Pub/Sub delivered message 9 of epoch e3 to A right after message 1 of epoch e1 "
            "and skipped messages 2 and 3 of epoch e1, message 1 of epoch e2 and 22 more, which"
        )

    def test_an_epoch_that_was_forgotten_is_not_named(self) -> None:
        facts: Facts = {"seqs": (1, 2), "count": 2, "epoch": "", "seqs_epochs": ("", "e2"), "since_t": 1.0, "seconds": 120.0}
        assert said(made(Kind.UNACKED_STALL, facts)).startswith(
            "Message 1 and message 2 of epoch e2 were never acknowledged and had to"
        )

    def test_a_skip_after_something_unknown(self) -> None:
        facts: Facts = {"seq": 5, "after": 0, "skipped": (4,), "skipped_count": 1, "subscriber": "A"}
        assert said(made(Kind.REDELIVERY_SKIP, facts)).startswith(
            "Pub/Sub delivered message 5 to A and skipped message 4, which should have been redelivered before it."
        )

    def test_a_step_inside_a_response_after_something_unknown(self) -> None:
        facts: Facts = {"seq": 5, "after": 0, "skipped": (4,), "skipped_count": 1, "subscriber": "b"}
        assert said(made(Kind.PULL_BATCH_ORDER, facts)).startswith(
            "Inside pull response b Pub/Sub went from an earlier message straight to message 5 and skipped message 4."
        )
