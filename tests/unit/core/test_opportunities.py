"""How often a violated guarantee could have been seen: each line of history says so, and with the right thing wrong it is reported."""

from __future__ import annotations

from typing import Any

import pytest

from prober.core.coverage import COUNTED, OPPORTUNITIES, opportunities_of
from prober.core.findings import Kind, Status
from prober.core.rules import Mode
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import all_of, counted, rules_of, verified

ACKED = "P1,2,3 A<1,2,3@1 A ack 2,3@1.5 A nack 1@1.6"
PULLED = "P1,2,3 pull a@0.5 pull b@0.6"
CONFIRMED = "P1,2 A<1,2@1 A ack 1,2@1.2 A ackOK 1,2@1.3"
DEAD = "P1 A<1@1 A nack 1@1.3 dlq m1@2"
HELD = "open B of client B@0 P1 A<1@1 P2@1.5 ok2=m2@1.6"
ONE_OPEN = "P1,2,3 r1<1@1 r1 ack 1@1.1"
FAILED = "P1,2,3 r1<1@1 r1 nack 1@1.1"
SLOW: dict[str, Any] = {"close_detection_max_s": 30.0}
PULL: dict[str, Any] = {"mode": Mode.PULL}
PUSH: dict[str, Any] = {"mode": Mode.PUSH}


def count(name: str, line: str, **rules: Any) -> int:
    return counted(line, **rules).get(name, 0)


def is_reported(line: str, **rules: Any) -> bool:
    return any(one.status is Status.VIOLATION for one in all_of(line, **rules))


def test_every_message_behind_another_is_an_opportunity_to_see_a_wrong_order() -> None:
    assert count("opportunities_order", "P1,2,3 A<1,2,3@1") == 2
    assert count("opportunities_order", "P1 A<1@1") == 0
    assert count("opportunities_order", "P1@0 P2@0.1 A<1,2@1 ok1=m1@2 ok2=m2@2.1") == 1  # both came before they were confirmed
    assert is_reported("P1,2 A<2,1@1")


def test_a_message_without_a_key_is_no_opportunity_of_what_only_keys_are_guaranteed() -> None:
    line = f"open B of client B@0 {ACKED} A<1,2,3@2 B<2,1@3"
    assert {"opportunities_order", "rewinds", "deliveries_among_several"} <= counted(line).keys()
    without_key = Verifier(rules_of())
    for event in history(line, key=""):
        without_key.observe(event)
    counters = without_key.counters
    assert counters["deliveries_without_key"] == counters["deliveries_first"] == 3
    assert not {name for name in counters if name.startswith(("opportunities_", "rewinds", "affinity_", "deliveries_among"))}


@pytest.mark.parametrize(
    ("line", "opportunities", "of_acked"),
    [
        (f"{ACKED} A<1,2,3@2", 1, 1),
        (f"{ACKED} A<1@2", 0, 0),  # nothing is known of what follows
        (f"{ACKED} A<1@2 A<1,2@3", 1, 0),  # when it began again the first time, it took the acknowledgements back
        ("P1,2,3 A<1,2,3@1 A nack 1@1.6 A<1,2,3@2", 1, 0),
        ("P1,2,3 A<1,2,3@1 A nack 1@1.6 A ack 2,3@1.7 A<1,2,3@2", 1, 0),  # by then they may have been dropped
        ("P1,2,3 A<1,2,3@1 A ack 1,2@1.5 A nack 3@1.6 A<3@2", 0, 0),  # nothing stands behind it
        (f"{ACKED} A<1,2,3@2 A ack 1,3@2.5 A nack 2@2.6 A<2,3@3", 2, 2),
        (f"{ACKED} seek 60@1.7 A<1,2,3@2", 0, 0),
        (f"open B of client B@0 {ACKED} B<1,2,3@2", 0, 0),  # what came to the other may have been sent in between
        (f"open B of client B@0 {ACKED} B<1,2,3@9", 1, 1),
        (f"{ACKED} close A@1.7 open B of client B@2 B<1,2,3@3", 0, 0),  # the stream was over: it had to begin again
    ],
)  # fmt: skip
def test_a_redelivery_that_goes_on_is_an_opportunity_to_see_a_skip(line: str, opportunities: int, of_acked: int) -> None:
    assert (count("opportunities_redelivery", line), count("opportunities_redelivery_acked", line)) == (opportunities, of_acked)
    assert is_reported(f"{ACKED} A<1,3@2")


def test_with_a_dead_letter_policy_it_is_none() -> None:
    assert count("opportunities_redelivery", f"{ACKED} A<1,2,3@2", dead_letter_max_attempts=5) == 0


def test_with_exactly_once_delivery_what_was_confirmed_may_be_left_out() -> None:
    line = "P1,2,3 A<1,2,3@1 A ack 2@1.5 A ackOK 2@1.6 A nack 1@1.7 A<1,2,3@9"
    assert count("opportunities_redelivery", line, exactly_once=True) == 0
    assert count("opportunities_redelivery", line.replace("ack 2", "ack 3").replace("ackOK 2", "ackOK 3"), exactly_once=True) == 1


@pytest.mark.parametrize(
    ("line", "rewinds", "to_acked", "inside"),
    [
        ("P1,2,3 A<1,2,3@1", 0, 0, 0),
        ("P1,2,3 A<1,2,3@1 A<2,3@2", 1, 0, 0),
        ("P1,2,3 A<1,2,3@1 A ack 2@1.5 A<2,3@2", 1, 1, 0),
        ("P1,2,3 A<1,2,3@1 A<1,2@2 A<1,2,3@3", 2, 0, 1),
        ("P1,2 A<1,2@1 A<2@2 A<2@3", 2, 0, 0),
    ],
)
def test_where_the_key_begins_again_is_counted(line: str, rewinds: int, to_acked: int, inside: int) -> None:
    found = counted(line)
    assert [found.get(name, 0) for name in ("rewinds", "rewinds_to_acked", "rewinds_inside_a_run")] == [rewinds, to_acked, inside]


@pytest.mark.parametrize(
    ("line", "expiries"),
    [
        ("P1 A<1@1 A<1@62", 1),
        ("P1 A<1@1 A<1@30", 0),
        ("P1 A<1@1 A nack 1@2 A<1@62", 0),
        ("P1 A<1@1 A modack 1 60s@30 A<1@62", 0),
        ("P1 A<1@1 A modack 1 60s@30 A<1@91", 1),
    ],
)
def test_a_lease_that_runs_out_is_counted(line: str, expiries: int) -> None:
    assert count("lease_expiries", line) == expiries


@pytest.mark.parametrize(
    ("line", "opportunities"),
    [
        (f"{HELD} A<2@2", 1),
        ("P1 A<1@1 P2@1.5 ok2=m2@1.6 A<2@2", 0),  # nobody else is there
        (f"{HELD} A ack 1@1.7 A<2@2", 0),  # nothing is held
        ("open B of client B@0 P1,2 A<1,2@1", 0),  # sent together: one decision
        (f"{HELD} A<2@2 close A@3", 0),  # it may have been dead already
        (f"{HELD} A<2@2 close B@200", 1),
        (f"{HELD} B<2@2", 0),
        ("open A1 of client A@0 open A2 of client A@0 P1 A1<1@1 P2@1.5 ok2=m2@1.6 A2<2@2", 0),  # two streams of one client
    ],
)  # fmt: skip
def test_what_comes_to_the_holder_while_another_is_there_is_an_opportunity_to_see_a_split(line: str, opportunities: int) -> None:
    assert count("opportunities_affinity", line, **SLOW) == opportunities
    assert is_reported(f"{HELD} B<2@2 end @500", **SLOW)


def test_opportunities_long_ago_are_not_taken_back() -> None:
    """They are kept in few counts, however many they are."""
    publishes = " ".join(f"P{n}@{n} ok{n}=m{n}@{n + 0.1} A<{n}@{n + 0.5}" for n in range(2, 400))
    line = f"open B of client B@0 P1@0 ok1=m1@0.1 A<1@0.5 {publishes} close B@399.9"
    assert count("opportunities_affinity", line, **SLOW, ack_deadline_s=600.0) == pytest.approx(398 - 31, abs=2)


@pytest.mark.parametrize(
    ("line", "opportunities"),
    [
        ("P1 A<1@1 P2@1.5 ok2=m2@1.6 A<2@2", 1),
        ("P1 A<1@1 A ack 1@1.2 P2@1.5 ok2=m2@1.6 A<2@2", 0),  # nothing is held
        ("P1,2 A<1,2@1", 0),  # sent together: one decision
        ("P1 A<1@1 P2@1.5 ok2=m2@1.6 A<2@61", 0),  # the lease may be over
    ],
)
def test_what_comes_while_something_is_held_is_an_opportunity_to_see_that_again(line: str, opportunities: int) -> None:
    assert count("opportunities_outstanding", line, exactly_once=True) == opportunities
    assert count("opportunities_outstanding", line) == 0


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        (f"{ONE_OPEN} r2<2@2", 0),
        (f"{FAILED} r2<1@2", 1),
        (f"{FAILED} r2<1@2 r2 nack 1@2.1 r3<1@3 r3 ack 1@3.1 r4<2@4", 2),
        ("P1 r1<1@1 r1 nack 1@1.1 r2<1@2", 0),  # nothing waits behind it
        ("P1,2 r1<1@1 r1 ack 1@1.1 r2<1@2 r2 nack 1@2.1 r3<1@3", 0),  # the acknowledgement may have counted
        (f"{FAILED} r2<2@2", 0),
        (f"{FAILED} seek 60@1.2 r2<1@2 r2 ack 1@2.1 r3<2@3", 0),
    ],
)
def test_a_push_that_failed_and_is_repeated_is_an_opportunity(line: str, failed: int) -> None:
    assert count("opportunities_push_failed", line, **PUSH) == failed
    assert is_reported(f"{FAILED} r2<2@2", **PUSH)


@pytest.mark.parametrize(
    ("line", "opportunities"),
    [
        (f"{PULLED} a<1@1 a ack 1@1.5", 1),
        (f"{PULLED} a<1@1 a nack 1@1.5", 1),
        (f"{PULLED} a<1,2@1 a ack 1@1.5", 0),  # it is not over yet
        (f"{PULLED} a<1,2@1 a ack 1,2@1.5", 1),
        (f"{PULLED} a<1,2,3@1 a ack 1,2,3@1.5", 0),  # nothing else was there
        (f"{PULLED} a<1@1 a ack 1@61", 0),  # its lease may be over
        ("P1,2 pull a@0.5 a<1@1 a ack 1@1.5", 0),  # nobody else asked
        (f"{PULLED} seek 60@0.9 a<1@1 a ack 1@1.5", 0),
    ],
)
def test_a_batch_that_is_over_before_the_next_is_an_opportunity_to_see_an_overlap(line: str, opportunities: int) -> None:
    assert count("opportunities_overlap", line, **PULL) == opportunities
    assert is_reported(f"{PULLED} a<1@1 b<2@1.4 a ack 1@1.5", **PULL)


def test_so_is_a_push_request_behind_which_more_waits() -> None:
    assert count("opportunities_overlap", f"{ONE_OPEN} r2<2@2 r2 ack 2@2.1", **PUSH) == 2
    assert is_reported("P1,2,3 r1<1@1 r2<2@1.05 r1 ack 1@1.1", **PUSH)


@pytest.mark.parametrize(
    ("line", "opportunities"),
    [
        (f"{CONFIRMED} end @7", 2),
        (f"{CONFIRMED} end @6", 0),  # nothing that was sent after them can have come
        (f"{CONFIRMED} stop @7", 0),
        (f"{CONFIRMED} A ackOK 1@1.6 end @7", 2),
        (f"{CONFIRMED} close A@1.7 open B of client B@1.8", 2),  # whatever comes there was sent later
        (f"{CONFIRMED} open B of client B@1.8", 0),
        (f"{CONFIRMED} P3@10 ok3=m3@10.1 A<3@11 A ack 3@11.1 A ackOK 3@11.2 stop @12", 2),
        (f"seek 60@0.5 {CONFIRMED} end @70", 0),
    ],
)
def test_a_confirmed_acknowledgement_is_an_opportunity_when_it_was_listened_for_long_enough(line: str, opportunities: int) -> None:
    assert count("opportunities_confirmed", line, exactly_once=True) == opportunities


@pytest.mark.parametrize(
    ("line", "opportunities"),
    [
        (f"{DEAD} P2@3 ok2=m2@3.1 A<2@4", 1),
        (DEAD, 0),  # nothing else was there
        ("P1,2 A<1,2@1 A ack 2@1.2 A nack 1@1.3 dlq m1@2", 0),
        ("P1,2 dlq m1@0.9 A<2@4", 0),  # it never came, so the key did not stand behind it
    ],
)
def test_a_key_that_moves_on_after_a_dead_letter_is_an_opportunity_to_see_it_stand_still(line: str, opportunities: int) -> None:
    assert count("opportunities_dead_letter", line, dead_letter_max_attempts=5) == opportunities


@pytest.mark.parametrize(
    ("came", "opportunities"),
    [("2,3,4", 3), ("1,2,3,4", 3), ("2,4", 1), ("3,4", 1), ("2,3,2,3,4", 4), ("2,3,4,2,3,4", 3)],
)
def test_each_message_that_a_seek_provably_brings_back_is_an_opportunity(came: str, opportunities: int) -> None:
    before = "P1,2,3,4 A<1,2,3,4@1 A ack 1,2,3,4@1.5 close A@19"
    assert count("opportunities_seek", f"{before} seek 5/0.05@20 open B of client B@26 B<{came}@27") == opportunities
    assert count("opportunities_seek", f"{before} seek 5@20 open B of client B@26 B<{came}@27") == 0
    assert count("opportunities_seek", f"{before} seek 5/0.05@20 open B of client B@22 B<1@24 B<{came}@27") == 0  # it came before


def test_sessions_beside_each_other_are_counted() -> None:
    line = "open B of client B@0 P1,2 A<1@1 close B@1.05 A<2@1.1"
    assert count("deliveries_among_several", line) == 1
    assert count("pulls_concurrent", f"{PULLED} pull c@0.7 a<1@1", **PULL) == 2


def test_what_was_confirmed_before_a_subscription_showed_itself_is_pending_there() -> None:
    found, _ = verified(rules_of(), history("P1,2 A<2@1"), ())
    assert [one.kind for one in found] == [Kind.ORDER_GAP]


def test_a_copy_that_the_service_stored_is_no_publishers_duplicate() -> None:
    found = counted("P1,2 A<1~10@1 A<2~11@1.1 A<1~12@1.2 A<1~12@3", attempts_observed=True)
    assert (found["service_duplicates"], found.get("publisher_duplicates", 0)) == (1, 0)


def test_in_words_also_what_there_was_none_of() -> None:
    words = opportunities_of({"opportunities_order": 3, "publishes_confirmed": 4})
    assert list(words.values()) == [3, *[0] * 11, 4]
    assert opportunities_of({"publishes_confirmed": 4}) == {}, "a run before they were counted"
    assert {name for name in OPPORTUNITIES if name.startswith("opportunities_")} == {
        name for name in COUNTED if name.startswith("opportunities_")
    }
