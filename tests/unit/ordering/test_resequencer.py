"""The resequencer by example, one line a case. Its guarantees on arbitrary arrivals are in tests/property."""

from __future__ import annotations

from math import inf, nan

import pytest

from prober.ordering.resequencer import (
    ArrivalOutcome,
    Completed,
    EpochBegan,
    EpochEnded,
    GaveUp,
    OrderRange,
    Output,
    Reason,
    Refused,
    Released,
    Resequencer,
    ResequencerLimits,
    Waiting,
)

WAIT, IDLE = 10.0, 30.0
SHORT = ResequencerLimits(wait_timeout_s=WAIT, idle_timeout_s=IDLE)


def play(script: str, limits: ResequencerLimits = SHORT, bounds: OrderRange | None = None) -> str:
    """Arrivals and what comes out of them, both in one line.

    In:  `3` order 3 of group g, `b3` of group b; `@5` lets time pass to 5; `end` ends the input.
    Out: `3` released in order, `3!` overtook, `3?` waits, `3..5x` given up (`x:full`, `x:end`: not by timeout); refused are `3late`,
         `3dup`, `3late/dup`, `3low` and `3high`; `(` and `)` are the ends of an epoch (`):full`, `):end`), `done` is completion.
         Group g is not named.
    """
    resequencer: Resequencer[str] = Resequencer(limits)
    now = 0.0
    words: list[str] = []
    for token in script.split():
        if token.startswith("@"):
            now = float(token[1:])
            out = resequencer.advance(now)
        elif token == "end":
            out = resequencer.finish(now)
        else:
            group, order = (token[0], token[1:]) if token[0].isalpha() else ("g", token)
            out = resequencer.arrive(now, group, int(order), token, bounds)
        words += map(written, out)
    return " ".join(words)


MARKS = {
    ArrivalOutcome.IN_ORDER: "",
    ArrivalOutcome.OVERTOOK: "!",
    ArrivalOutcome.LATE: "late",
    ArrivalOutcome.DUPLICATE: "dup",
    ArrivalOutcome.LATE_OR_DUPLICATE: "late/dup",
    ArrivalOutcome.BEFORE_START: "low",
    ArrivalOutcome.ABOVE_MAXIMUM: "high",
}
REASONS = {Reason.TIMEOUT: "", Reason.CAPACITY: ":full", Reason.FINISHED: ":end"}


def written(output: Output[str]) -> str:
    group = "" if output.group == "g" else output.group
    match output:
        case EpochBegan():
            return f"{group}("
        case EpochEnded(reason=reason):
            return f"{group}){REASONS[reason]}"
        case Completed():
            return f"{group}done"
        case Waiting(order=order):
            return f"{group}{order}?"
        case GaveUp(first=first, last=last, reason=reason):
            return f"{group}{first}x{REASONS[reason]}" if first == last else f"{group}{first}..{last}x{REASONS[reason]}"
        case Released(order=order, outcome=outcome) | Refused(order=order, outcome=outcome):
            return f"{group}{order}{MARKS[outcome]}"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        # in order, early
        ("1 2 3", "( 1 2 3"),
        ("1 3 2", "( 1 3? 2 3"),
        ("3 2 1", "( 3? 2? 1 2 3"),
        ("1 4 2 3", "( 1 4? 2 3 4"),
        ("1 4 6 2 3 5", "( 1 4? 6? 2 3 4 5 6"),
        # gave up waiting: at the deadline, not before
        ("1 3 @9.9", "( 1 3?"),
        ("1 3 @10", "( 1 3? 2x 3!"),
        ("1 4 5 @10 6", "( 1 4? 5? 2..3x 4! 5 6"),
        ("1 3 @5 5 @10 @15", "( 1 3? 5? 2x 3! 4x 5!"),
        ("1 3 @5 4 @10", "( 1 3? 4? 2x 3! 4"),
        ("1 3 5 7 @10", "( 1 3? 5? 7? 2x 3! 4x 5! 6x 7!"),
        # a wait counts from its own arrival; what is below goes first even if it came later
        ("1 7 @5 3 4 @10", "( 1 7? 3? 4? 2x 3! 4 5..6x 7!"),
        ("1 7 @5 9 @10 @14.9 8 @15", "( 1 7? 9? 2..6x 7! 8 9"),
        ("1 3 @10 2", "( 1 3? 2x 3! 2late"),
        # an arrival at the deadline comes too late, and one just before it in time
        ("1 3 @9.9 2", "( 1 3? 2 3"),
        # late, duplicate and before the start are distinguished
        ("1 2 1", "( 1 2 1dup"),
        ("1 3 3 2 3", "( 1 3? 3dup 2 3 3dup"),
        ("1 5 @10 3 3 2 4 1 5", "( 1 5? 2..4x 5! 3late 3dup 2late 4late 1dup 5dup"),
        ("0 1 -1", "( 0low 1 -1low"),
        # idle: 30 s after the last arrival or release, never while something waits
        ("1 @29.9", "( 1"),
        ("1 @30", "( 1 )"),
        ("1 @30 1", "( 1 ) ( 1"),
        ("1 @30 2", "( 1 ) ( 2?"),
        ("1 @20 1 @49.9", "( 1 1dup"),
        ("1 @20 1 @50", "( 1 1dup )"),
        ("1 @29 3 @38.9", "( 1 3?"),
        ("1 @29 3 @39 @68.9", "( 1 3? 2x 3!"),
        ("1 @29 3 @39 @69", "( 1 3? 2x 3! )"),
        ("1 3 @100 2", "( 1 3? 2x 3! ) ( 2?"),
        # groups know nothing of each other; timers fire in time order
        ("a1 b1 a3 b2 a2", "a( a1 b( b1 a3? b2 a2 a3"),
        ("a2 @5 b2 @100", "a( a2? b( b2? a1x a2! b1x b2! a) b)"),
        ("a1 @25 b2 @100", "a( a1 b( b2? a) b1x b2! b)"),
        # the end
        ("1 3 5 end", "( 1 3? 5? 2x:end 3! 4x:end 5! ):end"),
        ("a1 @1 b1 @2 a2 end", "a( a1 b( b1 a2 b):end a):end"),
        ("1 end 1", "( 1 ):end ( 1"),
    ],
)
def test_what_comes_out(script: str, expected: str) -> None:
    assert play(script) == expected


@pytest.mark.parametrize(
    ("script", "bounds", "expected"),
    [
        ("5 6", OrderRange(5), "( 5 6"),
        ("4 0 1", OrderRange(0), "( 4? 0 1"),
        ("-2 -3 -1", OrderRange(-2), "( -2 -3low -1"),
        ("-1 @10 -2", OrderRange(-2), "( -1? -2x -1! -2late"),
        ("1 2 3 4 3", OrderRange(1, 3), "( 1 2 3 done 4high 3dup"),
        ("1 3 2 3", OrderRange(1, 3), "( 1 3? 2 3 done 3dup"),
        ("1 3 @10 2 2", OrderRange(1, 3), "( 1 3? 2x 3! done 2late 2dup"),
        ("4 1 @30 1", OrderRange(1, 3), "( 4high 1 ) ( 1"),
        ("7 7 8", OrderRange(7, 7), "( 7 done 7dup 8high"),
    ],
)
def test_initial_and_maximum_order(script: str, bounds: OrderRange, expected: str) -> None:
    assert play(script, bounds=bounds) == expected


@pytest.mark.parametrize(
    ("script", "limits", "expected"),
    [
        # one wait too many in a group: the missing ones before its lowest are given up
        ("1 4 6 8", ResequencerLimits(waiting_per_group=2), "( 1 4? 6? 8? 2..3x:full 4!"),
        ("1 6 8 3", ResequencerLimits(waiting_per_group=2), "( 1 6? 8? 3? 2x:full 3!"),
        # one wait too many in all: the longest wait ends
        ("a2 b2 c2", ResequencerLimits(waiting=2), "a( a2? b( b2? c( c2? a1x:full a2!"),
        ("a9 b2 a5 b1", ResequencerLimits(waiting=2), "a( a9? b( b2? a5? a1..4x:full a5! a6..8x:full a9! b1 b2"),
        # one group too many: the one longest without activity, a waiting one only if all wait
        ("a1 b1 a2 c1 b2", ResequencerLimits(groups=2), "a( a1 b( b1 a2 b):full c( c1 a):full b( b2?"),
        ("a2 b1 c1", ResequencerLimits(groups=2), "a( a2? b( b1 b):full c( c1"),
        ("a2 b2 c1", ResequencerLimits(groups=2), "a( a2? b( b2? a1x:full a2! a):full c( c1"),
        # one remembered gap too many: below it late and duplicate cannot be distinguished
        (
            "3 5 7 1 3 4",
            ResequencerLimits(waiting_per_group=1, gaps_per_group=1),
            "( 3? 5? 1..2x:full 3! 7? 4x:full 5! 1late/dup 3dup 4late",
        ),
    ],
)
def test_at_a_bound_patience_ends_and_no_message_is_lost(script: str, limits: ResequencerLimits, expected: str) -> None:
    assert play(script, limits) == expected


def test_the_articles_example() -> None:
    """Neil Kolban's walk through EnforceOrder: 1 and 2 pass, 4 waits, a second 2 is skipped, 4 overtakes the lost 3."""
    assert play("1 2 4 2 @10") == "( 1 2 4? 2dup 3x 4!"


def test_outputs_carry_times_epochs_and_items() -> None:
    resequencer: Resequencer[str] = Resequencer(SHORT)
    assert resequencer.arrive(1.0, "g", 2, "two") == [
        EpochBegan(1.0, "g", 1, OrderRange()),
        Waiting(1.0, "g", 1, order=2, expected=1, deadline=11.0, item="two"),
    ]
    assert resequencer.arrive(4.0, "g", 1, "one") == [
        Released(4.0, "g", 1, order=1, outcome=ArrivalOutcome.IN_ORDER, waited_s=0.0, item="one"),
        Released(4.0, "g", 1, order=2, outcome=ArrivalOutcome.IN_ORDER, waited_s=3.0, item="two"),
    ]
    assert resequencer.arrive(5.0, "g", 6, "six")[-1] == Waiting(5.0, "g", 1, order=6, expected=3, deadline=15.0, item="six")
    assert resequencer.advance(100.0) == [  # timers fire at their own times, however late the call
        GaveUp(15.0, "g", 1, first=3, last=5, reason=Reason.TIMEOUT),
        Released(15.0, "g", 1, order=6, outcome=ArrivalOutcome.OVERTOOK, waited_s=10.0, item="six"),
        EpochEnded(45.0, "g", 1, reason=Reason.TIMEOUT, expected=7, missing=3),
    ]
    assert resequencer.arrive(101.0, "g", 0, "zero") == [
        EpochBegan(101.0, "g", 2, OrderRange()),
        Refused(101.0, "g", 2, order=0, outcome=ArrivalOutcome.BEFORE_START, item="zero"),
    ]


def test_bounds_are_fixed_by_the_first_message_of_an_epoch() -> None:
    resequencer: Resequencer[None] = Resequencer(SHORT)
    resequencer.arrive(0.0, "g", 5, None, OrderRange(5, 9))
    resequencer.arrive(0.0, "g", 6, None, OrderRange(5, 9))
    resequencer.arrive(0.0, "g", 7, None)
    resequencer.arrive(0.0, "g", 8, None, OrderRange(1))
    assert resequencer.expected("g") == 9
    resequencer.arrive(99.0, "g", 1, None, OrderRange(1))
    assert resequencer.expected("g") == 2
    assert resequencer.expected("other") is None


@pytest.mark.parametrize("now", [4.0, -inf, nan])
def test_time_never_goes_back(now: float) -> None:
    resequencer: Resequencer[None] = Resequencer(SHORT)
    resequencer.arrive(5.0, "g", 1, None)
    released = resequencer.arrive(now, "g", 2, None)
    assert released == [Released(5.0, "g", 1, order=2, outcome=ArrivalOutcome.IN_ORDER, waited_s=0.0, item=None)]


def test_without_timeouts_all_waits_last() -> None:
    resequencer: Resequencer[None] = Resequencer(ResequencerLimits(wait_timeout_s=inf, idle_timeout_s=inf))
    resequencer.arrive(0.0, "a", 1, None)
    resequencer.arrive(0.0, "b", 2, None)
    assert resequencer.advance(1e12) == resequencer.advance(inf) == []


def test_a_jump_to_a_far_order_costs_no_memory() -> None:
    assert play(f"{10**18} @10 {10**17} 7 7") == f"( {10**18}? 1..{10**18 - 1}x {10**18}! {10**17}late 7late 7dup"


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="maximum must not be below initial"):
        OrderRange(2, 1)
    with pytest.raises(ValueError, match="timeouts must be positive"):
        ResequencerLimits(wait_timeout_s=0)
    with pytest.raises(ValueError, match="at least 1"):
        ResequencerLimits(waiting=0)
