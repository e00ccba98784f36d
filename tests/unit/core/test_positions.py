"""The learned log by itself, and what a small window does to the verdicts: it may hide, it never invents."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf
from random import Random
from typing import Any

import pytest

from prober.core.positions import ACKED, NO_STAMP, REMOVED, SHARED, STRANGE, STRANGERS_KEPT, LearnedLog
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, across, case, observe, words


def learned(count: int, window: int = 4) -> LearnedLog:
    """Message n has token n, sequence number n, is delivered by event 10 n and was invoked at n - 0.5 s."""
    log = LearnedLog(window)
    for n in range(1, count + 1):
        assert log.learn(n, NO_STAMP, 0, n, 10 * n, n - 0.5) == n
    return log


def test_positions_are_counted_in_the_order_of_learning() -> None:
    log = learned(3)
    assert [log.find(token) for token in (1, 2, 3, 4)] == [1, 2, 3, 0]
    assert (log.floor, log.frontier) == (0, 3)
    assert (log.token(2), log.epoch(2), log.seq(2), log.number(2), log.invoked_t(2)) == (2, 0, 2, 20, 1.5)


def test_the_window_moves_on() -> None:
    log = learned(6)
    assert (log.floor, log.frontier) == (2, 6)
    assert [log.find(token) for token in range(1, 7)] == [0, 0, 3, 4, 5, 6]
    assert [log.holds(position) for position in (2, 3, 6, 7)] == [False, True, True, False]


def test_what_left_the_window_is_retired_by_its_number() -> None:
    log = learned(6)
    assert [log.is_retired(99, 0, seq) for seq in (1, 2, 3)] == [True, True, False]
    assert not log.is_retired(99, 1, 1)
    log.retire(1, 7)
    log.retire(1, 5)
    assert [log.is_retired(99, 1, seq) for seq in (7, 8)] == [True, False]


def test_forgetting_retires_everything() -> None:
    log = learned(3)
    log.forget()
    assert (log.floor, log.frontier, log.find(3)) == (3, 3, 0)
    assert [log.is_retired(99, 0, seq) for seq in (3, 4)] == [True, False]
    assert log.learn(9, NO_STAMP, 0, 4, 1, 8.0) == 4
    assert log.find(9) == 4


def test_flags() -> None:
    log = learned(3)
    log.mark(2, ACKED)
    log.mark(2, REMOVED)
    assert [log.flags(position) for position in (1, 2, 3)] == [0, ACKED | REMOVED, 0]
    for n in range(4, 8):
        log.learn(n, NO_STAMP, 0, n, n, 0.0)
    assert log.flags(6) == 0  # in the slot where 2 was


def test_flags_survive_growth() -> None:
    log = learned(8, window=1000)
    log.mark(3, ACKED)
    for n in range(9, 200):
        log.learn(n, NO_STAMP, 0, n, n, 0.0)
    assert log.flags(3) == ACKED
    assert [log.find(token) for token in (1, 3, 199)] == [1, 3, 199]
    assert (log.number(3), log.invoked_t(3), log.seq(3)) == (30, 2.5, 3)


def test_between_leaves_out_what_was_removed_or_is_forgotten() -> None:
    log = learned(6)
    assert log.between(3, 6) == [4, 5]
    assert log.between(0, 5) == [3, 4]
    assert log.between(5, 99) == [6]
    log.mark(4, REMOVED)
    assert log.between(3, 6) == [5]
    assert log.may_follow(5, 3)
    assert not log.may_follow(6, 3)
    assert log.may_follow(1, 3)


def test_between_leaves_out_what_may_be_older_than_the_retention() -> None:
    log = learned(4)
    assert log.between(0, 5, 1.6) == [3, 4]
    assert log.between(0, 5, 3.6) == []


def test_what_was_removed_or_may_be_dead_lettered_may_be_passed_over() -> None:
    log = LearnedLog(4, 3)
    for n in (1, 2, 3):
        log.learn(n, NO_STAMP, 0, n, n, 0.0)
    log.mark(1, REMOVED)
    log.count_attempt(2, 2)
    assert [log.may_be_dead_lettered(position) for position in (1, 2, 3)] == [False, True, False]
    assert (log.may_follow(3, 0), log.may_follow(3, 1), log.may_follow(4, 1)) == (True, True, False)


def stamped(*records: tuple[int, int], window: int = 4) -> LearnedLog:
    """Records by token and stamp, in the order of their positions."""
    log = LearnedLog(window)
    for position, (token, stamp) in enumerate(records, 1):
        assert log.learn(token, stamp, 0, position, position, 0.0) == position
    return log


def test_one_id_with_two_publish_times_is_two_records() -> None:
    log = stamped((7, 11), (8, 12), (7, 13))
    assert log.find(7) == 3
    assert [log.find_record(3, 7, stamp) for stamp in (11, 13, 12)] == [1, 3, 0]


def test_a_record_without_a_publish_time_may_be_any() -> None:
    log = stamped((7, 11), (7, 13))
    assert log.find_record(2, 7, NO_STAMP) == 2
    unstamped = stamped((7, NO_STAMP), (8, NO_STAMP))
    assert unstamped.find_record(1, 7, 11) == 1
    mixed = stamped((7, NO_STAMP), (8, 12))
    assert mixed.find_record(1, 7, 11) == 1


def test_a_record_beyond_the_window_is_not_found() -> None:
    log = stamped((7, 11), (8, 12), (7, 13), window=2)
    assert [log.find_record(3, 7, stamp) for stamp in (11, 13)] == [0, 3]


def test_publish_times_survive_growth() -> None:
    log = LearnedLog(1000)
    for n in range(1, 300):
        log.learn(n % 50, 1000 + n, 0, n, n, 0.0)
    assert [log.find_record(log.find(9), 9, 1000 + n) for n in (9, 59, 259, 8)] == [9, 59, 259, 0]


def test_the_positions_that_share_an_id() -> None:
    log = stamped((7, 11), (8, 12), (7, 13))
    assert log.positions_of(3) == [3]
    log.mark(3, SHARED)
    assert log.positions_of(3) == [3, 1]
    narrow = stamped((7, 11), (8, 12), (7, 13), window=2)
    narrow.mark(3, SHARED)
    assert narrow.positions_of(3) == [3]


def test_more_than_256_epochs_are_told_apart() -> None:
    log = LearnedLog(1000)
    for n in range(600):
        log.learn(n, NO_STAMP, n, 1, n, 0.0)
    assert [log.epoch(position) for position in (1, 44, 256, 257, 258, 300, 600)] == [0, 43, 255, 256, 257, 299, 599]
    assert log.epoch(301) == log.epoch(45) + 256  # in their time all of one byte
    assert (log.seq(600), log.number(600)) == (1, 599)


def test_a_window_of_more_than_256_epochs_moves_on() -> None:
    log = LearnedLog(4)
    for n in range(600):
        log.learn(n, NO_STAMP, n, 5, n, 0.0)
    assert [log.is_retired(99, epoch, 5) for epoch in (44, 300, 595, 596)] == [True, True, True, False]
    log.forget_epoch(300)
    assert [log.is_retired(99, epoch, 5) for epoch in (44, 300, 595)] == [True, False, True]


def test_a_record_that_nothing_can_have_stored_retires_no_number() -> None:
    """Or a phantom with a high number would hide everything that comes after it."""
    log = LearnedLog(2)
    log.learn(77, NO_STAMP, 0, 1000, 1, 0.0)
    log.mark(1, STRANGE)
    for n in (2, 3, 4):
        log.learn(n, NO_STAMP, 0, n, n, 0.0)
    assert [log.is_retired(99, 0, seq) for seq in (2, 3, 1000)] == [True, False, False]
    assert log.is_retired(77, 0, 1000)  # itself it is known again


def test_of_such_records_only_the_latest_are_known_again() -> None:
    log = LearnedLog(1)
    for n in range(STRANGERS_KEPT + 2):
        log.learn(1000 + n, NO_STAMP, 0, 5, n, 0.0)
        log.mark(n + 1, STRANGE)
    known = [log.is_retired(1000 + n, 0, 5) for n in range(STRANGERS_KEPT + 1)]
    assert known == [False] + STRANGERS_KEPT * [True]


def test_attempts_are_counted_with_a_policy_only() -> None:
    log = LearnedLog(4, 3)
    log.learn(1, NO_STAMP, 0, 1, 1, 0.0)
    assert not log.may_be_dead_lettered(1)
    log.count_attempt(1, 0)
    assert not log.may_be_dead_lettered(1)
    log.count_attempt(1, 0)
    assert log.may_be_dead_lettered(1)
    plain = LearnedLog(4)
    plain.count_attempt(1, 9)
    assert not plain.may_be_dead_lettered(1)


def test_the_service_may_have_counted_more() -> None:
    log = LearnedLog(4, 5)
    log.count_attempt(1, 3)
    assert not log.may_be_dead_lettered(1)
    log.count_attempt(1, 1)
    assert log.may_be_dead_lettered(1)


def test_the_first_confirmation_is_kept() -> None:
    log = learned(3)
    assert log.confirmation(2) is None
    log.confirm(2, 5.0, 50)
    log.confirm(2, 6.0, 60)
    assert log.confirmation(2) == (5.0, 50)
    log.forget_confirmations()
    assert log.confirmation(2) is None


def test_attempts_and_confirmations_do_not_outlive_the_window_for_long() -> None:
    log = LearnedLog(4, 3)
    for n in range(1, 100):
        log.learn(n, NO_STAMP, 0, n, n, 0.0)
        log.count_attempt(n, 9)
        log.confirm(n, float(n), n)
    assert not log.may_be_dead_lettered(1)
    assert log.may_be_dead_lettered(99)
    assert log.confirmation(1) is None
    assert log.confirmation(99) == (99.0, 99)


def test_numbers_beyond_32_bits() -> None:
    log = learned(2)
    log.learn(3, NO_STAMP, 0, 1 << 40, 1 << 41, 0.0)
    log.learn(4, NO_STAMP, 0, 1 << 70, 4, 0.0)
    assert (log.seq(2), log.number(2)) == (2, 20)
    assert (log.seq(3), log.number(3)) == (1 << 40, 1 << 41)
    assert log.find(4) == 4


@pytest.mark.parametrize("window", [1, 2, 3, 7, 8, 9, 100, 33_000])
def test_finding_agrees_with_a_list(window: int) -> None:
    """Tokens that collide, windows of any size, and after the window has moved on; the widest needs wider links."""
    random = Random(window)
    log = LearnedLog(window)
    tokens = [random.randrange(1 << 48) << random.choice((0, 0, 15)) for _ in range(window + 500)]
    for position, token in enumerate(tokens, 1):
        assert log.learn(token, NO_STAMP, 0, position, position, 0.0) == position
        if position % 97 == 0:
            for known in random.sample(range(1, position + 1), 5):
                assert log.find(tokens[known - 1]) == (known if known > log.floor else 0)
            assert log.find((1 << 62) + position) == 0
    assert log.frontier - log.floor == min(window, len(tokens))


def test_links_do_not_lead_astray_after_65_536_positions() -> None:
    log = LearnedLog(8)
    for position in range(1, 70_000):
        log.learn(position * 8, NO_STAMP, 0, position, position, 0.0)  # all in one bucket
    assert [log.find(p * 8) for p in (69_991, 69_992, 69_999, 4_456, 69_999 - 65_536)] == [0, 69_992, 69_999, 0, 0]


SMALL: dict[str, Any] = {"window": 2}
SIX = "P1,2,3,4,5,6 A<1,2,3,4,5,6@1 A ack 1,2,3,4,5,6@1.6"


@pytest.mark.parametrize(
    "one",
    [
        case("a run from beyond the window", f"{SIX} A<1,2,3,4,5,6@9", **SMALL),
        case("a run with a hole beyond the window", f"{SIX} A<1@9 A<3@9.1 A<4,5,6@9.2", **SMALL),
        case("a run that comes back into the window", f"{SIX} A<4@9 A<6@9.1", **SMALL),
        case("a hole inside the window", f"{SIX} A<5@9 A<6@9.1 P7@10 ok7=m7@10.1 P8@10.2 ok8=m8@10.3 A<7@11 A<8@11.1 A<7@12 A<8@12.1", **SMALL),
        case("a new message after one from beyond", f"{SIX} A<1@9 P7@10 ok7=m7@10.1 A<7@11", **SMALL),
        case("a hole that the window could not see", f"{SIX} A<1@9 A<6@9.1 end @100", **SMALL),
        case("the next one is judged again", f"{SIX} A<1@9 A<5@9.1 P7@10 ok7=m7@10.1 A<7@11", "V:REDELIVERY_SKIP", **SMALL),
        case("late, its number far behind", "P1@0 P2@0 P3@0 P4@0 P5@0 ok1=m1@0.1 ok2=m2@0.1 ok3=m3@0.1 ok4=m4@0.1 ok5=m5@0.1 A<2,3,4,5@1 A<1@2", "V:ORDER_GAP V:ORDER_INVERSION", **SMALL),
        case("late and unconfirmed, its number far behind", "P1@0 info1@0.1 P2,3,4,5,6 A<2,3,4,5,6@1 A<x1(1)@2 A<6@3", **SMALL),
        case("a shadow far behind", f"{SIX} A<z1(1)@9 A<6@9.1", **SMALL),
        case("a shadow behind the window's end", f"{SIX} A<z5(5)@9 A<z4(4)@9.1", **SMALL),
        case("another attempt is open", "P1@0 P1'gen1@0.1 ok'gen1=m1@0.2 P2,3,4,5,6 A<1,2,3,4,5,6@1 A<1,2,3,4,5,6@9", **SMALL),
        case("late, republished and not yet confirmed", "P1@0 info1@0.1 P2,3,4,5,6 A<2,3,4,5,6@1 A ack 2,3,4,5,6@1.6 P1'gen1@2 A<m1(1)@2.1 A ack 1@2.15 ok'gen1=m1@2.2 end @500", **SMALL),
        case("late, and never came", "P1@0 info1@0.1 P2,3,4,5,6 A<2,3,4,5,6@1 A ack 2,3,4,5,6@1.6 P1'gen1@2 ok'gen1=m1@2.2 end @500", "L:STUCK", **SMALL),
        case("nothing is owed to what is beyond", "P1,2,3,4 A<1,2,3,4@1 A ack 3,4@1.6 end @500", **SMALL),
        case("a holder of what is beyond holds nothing for certain", "P1,2,3,4,5 A<1,2,3@1 A ack 3@1.4 B<4@8", "I:AFFINITY_SPLIT", window=1),
    ],
)  # fmt: skip
def test_a_small_window(one: Case) -> None:
    one.check()


def test_the_window_of_one_subscription_while_another_waits() -> None:
    """That a publish is still on record, because another subscription waits for it, does not make it new here."""
    assert words(across(("s", f"{SIX} A<1,2,3,4,5,6@9"), ("t", "end @10"), rules=Rules(window=2))) == set()


def test_what_cannot_be_placed_is_counted() -> None:
    verifier = Verifier(Rules(window=2))
    observe(verifier, history(f"{SIX} A<1,2,5@9"))
    assert (verifier.counters["deliveries_unplaced"], verifier.counters["deliveries_redelivery"]) == (2, 1)


IDLE: dict[str, Any] = {"idle_after_s": 200}
SETTLED = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4"
LATER = "open T of client A@1000 open U of client A@1001"


@pytest.mark.parametrize(
    "one",
    [
        case("what comes again after that begins a run unjudged", f"{SETTLED} {LATER} A<1@1002 A<3@1003", **IDLE),
        case("a key that is not idle yet is judged", f"{SETTLED} open T of client A@190 A<1@195 A<3@196", "V:REDELIVERY_SKIP", **IDLE),
        case("a key that holds something keeps it", f"P1,2,3 A<1,2,3@1 A ack 2,3@1.4 A modack 1 2000s@1.5 {LATER} A<1@1002 A<3@1003", "V:REDELIVERY_SKIP", unacked_deadline_s=inf, **IDLE),
        case("new messages are judged as ever", f"{SETTLED} P4@900 ok4=m4@900.1 P5@900.2 ok5=m5@900.3 {LATER} A<5@1002", "V:ORDER_GAP", delivery_deadline_s=2000, idle_after_s=200),
        case("a new message in order", f"{SETTLED} {LATER} P4@1002 ok4=m4@1002.1 A<4@1003", **IDLE),
        case("the key may be anywhere", f"{SETTLED} {LATER} B<3@1002 P4@1003 ok4=m4@1003.1 B<4@1004", **IDLE),
        case("runs are judged again", f"{SETTLED} {LATER} P4@1002 ok4=m4@1002.1 P5@1002.2 ok5=m5@1002.3 P6@1002.4 ok6=m6@1002.5 A<4,5,6@1003 A<4@1004 A<6@1005", "V:REDELIVERY_SKIP", **IDLE),
        case("late, unknown and republished", "P1@0 info1@0.1 P2@0.2 ok2=m2@0.3 A<2@1 A ack 2@1.1 open T of client A@1000 P1'gen1@1001 A<1@1002 A ack 1@1002.1 ok'gen1=m1@1003 end @1500", **IDLE),
        case("an open attempt does not make it new", f"P1@0 P1'gen1@0.1 ok'gen1=m1@0.2 P2,3 A<1,2,3@1 A ack 1,2,3@1.4 {LATER} A<1,2,3@1002", **IDLE),
        case("a hole before it is still a hole", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 open T of client A@1000 A<2@1001", "V:ORDER_GAP V:ORDER_INVERSION V:REALTIME_INVERSION L:LOST_OVERTAKEN", **IDLE),
    ],
)  # fmt: skip
def test_an_idle_key_gives_up_its_window(one: Case) -> None:
    one.check()
