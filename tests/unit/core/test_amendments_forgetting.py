"""Forgetting hides, never invents.

What would break an implementation that forgets the oldest: an epoch that is in use all the time, an epoch of which something is still
under way, a subscription that slept while others went on, a key that was idle.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import PULL, Definite, across, definitely, legal, wrong

BASE_S = 10


def epochs(count: int, first: int = 1, *, begin: int = BASE_S) -> str:
    """That many epochs of one message, a second apart, each delivered and acknowledged."""
    words = []
    for number in range(first, first + count):
        t = begin + number
        words.append(f"P1[x{number}]@{t} ok1=x{number}m@{t}.1 A<x{number}m(1)@{t}.5 A ack 1@{t}.6")
    return " ".join(words)


def flow(first: int, last: int, *, begin: int = 0) -> str:
    """Messages of one epoch, a second apart, each delivered and acknowledged."""
    return " ".join(
        f"P{seq}@{begin + seq} ok{seq}=m{seq}@{begin + seq}.1 A<{seq}@{begin + seq}.5 A ack {seq}@{begin + seq}.6"
        for seq in range(first, last + 1)
    )


MANY = 600


@pytest.mark.parametrize(
    "one",
    [
        legal("many epochs", epochs(MANY)),
        legal("many epochs with a small window", epochs(MANY), window=4),
        legal("a message of the first is redelivered", f"{epochs(MANY)} A<x1m(1)@700", window=4),
        legal("a message of the first comes only now, unconfirmed", f"P1[x0]@1 P2[x0]@1 ok1=x0m1@1.1 A<x0m1(1)@1.5 A ack 1@1.6 {epochs(MANY)} A<x0m2(2)@700 A ack 2@701"),
        legal("an epoch pauses while many others come", f"{flow(1, 20)} {epochs(300, 1, begin=20)} {flow(21, 40, begin=350)}"),
        legal("a key that was idle", f"{flow(1, 5)} A<3@2000 A<4@2000.1 A<5@2000.2 P6@2001 ok6=m6@2001.1 A<6@2001.5"),
        legal("a key that was idle, and a message from before its window", f"{flow(1, 40)} {' '.join(f'A<{seq}@{3000 + seq}' for seq in range(3, 41))} P41@3050 ok41=m41@3050.1 A<41@3050.5", window=4),
        legal("a late copy from before the window", f"{flow(1, 40)} A<z3(3)@45 P41@46 ok41=m41@46.1 A<41@46.5", window=4),
        legal("pull", "P1@0 ok1=m1@0.1 pull b@0.2 b<1@0.3 b ack 1@0.4 " + " ".join(f"P1[x{n}]@{20 * n} ok1=x{n}m@{20 * n}.1 pull b{n}@{20 * n}.2 b{n}<x{n}m(1)@{20 * n}.3 b{n} ack 1@{20 * n}.4" for n in range(1, 301)) + " pull c@6100 c<1@6100.1", mode=PULL, window=4),
    ],
)  # fmt: skip
def test_what_was_forgotten_is_not_held_against_anybody(one: Definite) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        wrong("a gap in the last epoch", f"{epochs(MANY)} P1[y]@700 ok1=y1@700.1 P2[y]@700.2 ok2=y2@700.3 A<y2(2)@701", "V:ORDER_GAP"),
        wrong("a phantom in the last epoch", f"{epochs(MANY)} A<q9(9)[x{MANY}]@700", "V:PHANTOM"),
        wrong("a skip over the last epochs", f"{epochs(MANY)} A<x{MANY - 2}m(1)@700 A<x{MANY}m(1)@700.1", "V:REDELIVERY_SKIP"),
        wrong("a gap in an epoch that was in use all the time", " ".join(f"{epochs(1, n)} P{n}@{BASE_S + n}.2 ok{n}=m{n}@{BASE_S + n}.3 A<{n}@{BASE_S + n}.7 A ack {n}@{BASE_S + n}.8" for n in range(1, 501)) + " P501@600 ok501=m501@600.1 P502@600.2 ok502=m502@600.3 A<502@601", "V:ORDER_GAP"),
        wrong("a new epoch that has the number of an old one", f"{epochs(257)} P1[z]@400 ok1=z1@400.1 P2[z]@400.2 ok2=z2@400.3 A<z2(2)@401 A<z1(1)@401.1", "V:ORDER_GAP|V:ORDER_INVERSION"),
        wrong("a gap after a key was idle", f"{flow(1, 5)} P6@2001 ok6=m6@2001.1 P7@2001.2 ok7=m7@2001.3 A<7@2002", "V:ORDER_GAP"),
    ],
)  # fmt: skip
def test_what_is_remembered_is_verified(one: Definite) -> None:
    one.check()


def asleep(resumed: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Subscription t takes two of 60 messages, sleeps, and then takes what `resumed` says."""
    return ("s", flow(1, 60)), ("t", f"B<1@1.7 B<2@2.7 B ack 1,2@3 close B@3.5 open B2 of client B@80 {resumed}")


def test_a_subscription_that_slept_gets_its_backlog() -> None:
    definitely(across(*asleep(" ".join(f"B2<{seq}@{80 + seq / 10:g}" for seq in range(3, 61)))))


def test_a_subscription_that_slept_is_compared_again() -> None:
    """Nothing was confirmed, so that only the comparison of the last two can find anything."""
    backlog = " ".join(f"B2<{seq}@{80 + seq / 10:g}" for seq in range(3, 61))
    awake, sleeper = asleep(backlog)
    lines = (awake[0], f"{awake[1]} P61@90 P62@90 P63@90 A<61,62,63@91"), (sleeper[0], f"{sleeper[1]} B2<61,63,62@91")
    definitely(across(*lines), "V:ORDER_DIVERGENCE")
