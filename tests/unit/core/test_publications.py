"""The publisher's record: unknown is never turned into known, what is settled is dropped, what is forgotten proves nothing."""

from __future__ import annotations

from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import merged, observe, say, words
from tests.verification import verify


def test_too_many_records_before_an_outcome_are_not_verified() -> None:
    shadows = " ".join(f"A<x{n}(1)@0.{100 + n}" for n in range(40))
    line = f"P1@0 P2@0 {shadows} A<m1(1)@0.2 ok1=m1@0.5 ok2=m2@0.5 A<2@1 A ack 2@1.1"
    assert say(line) == set()


def test_many_subscriptions_receive_a_message_before_it_is_confirmed() -> None:
    names = [f"s{n}" for n in range(40)]
    verifier = Verifier(Rules(), subscriptions=names)
    published = history("P1@0 P2@0.01 ok1=m1@0.5 ok2=m2@0.51")
    received = (history(f"A<1@0.{100 + n} A ack 1@0.6 A<2@1", subscription=name) for n, name in enumerate(names))
    assert words([*observe(verifier, merged(published, *received)), *verifier.finish()], notes=True) == set()


def test_counters_of_publishing() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("P1 P2@1 info2@1.1 abandon2@1.2 P3@2 fail3@2.1"))
    counted = {name: count for name, count in verifier.counters.items() if name.startswith("publishes_")}
    assert counted == {
        "publishes_invoked": 3,
        "publishes_confirmed": 1,
        "publishes_unknown": 1,
        "publishes_abandoned": 1,
        "publishes_rejected": 1,
    }
    assert verify(Rules(), history("ok1=m1@1 info2@1.1 fail3@1.2 abandon4@1.3")) == []
