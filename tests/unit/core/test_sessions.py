"""Sessions that are opened, closed and named again."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from tests.unit.core.cases import PULL, Case, case


@pytest.mark.parametrize(
    "one",
    [
        case("the name of a session is used again: the old one is over", "P1,2 A<1@1 open A of client A@2 A<1@2.5 B<2@9", "I:AFFINITY_SPLIT V:AFFINITY_SPLIT"),
        case("what the old one held is released", "P1,2,3 A<1,2@1 open A of client C@2 A<1@2.5", "I:AFFINITY_SPLIT"),
        case("used again by another subscriber: a move", "P1,2,3 A<1@1 A ack 1@1.1 open A of client C@2 A<2@20"),
        case("nothing on the new one was sent before it opened", "open A of client A open B of client B P1,2,3,4 A<1,2,3@1 A ack 1,2@1.4 B<1@20 B ack 1@20.1 open A of client A@20.2 A<4@20.3", "V:REDELIVERY_SKIP I:AFFINITY_SPLIT"),
        case("the old one is still what came before", "P1,2,3 A<1,2@1 open A of client A@2 A<3@2.5", "I:AFFINITY_SPLIT"),
        case("pull: the second response of a name is another batch", "P1,2,3 pull b@0.9 b<1,2@1 b ack 1,2@1.1 pull b@20 b<1,2,3@20.1", mode=PULL),
        case("a session closed twice", "P1,2 A<1@1 A ack 1@1.1 close A@1.2 close A@1.3 B<2@30"),
        case("a session closed that never opened", "close Z@0.5 P1,2 A<1,2@1"),
        case("answers on an unknown session", "P1,2 A<1@1 Z ack 1@1.1 Z nack 2@1.2 Z ackOK 1@1.3 Z modack 1 10s@1.4 A<2@2"),
        case("answers to an unknown message", "P1,2 A<1@1 A ack 9@1.1 A modack 9 10s@1.2 A ackOK 9@1.3 dlq m9@1.4 A<2@2"),
        case("a refusal of an unknown message may have released everything", "P1,2 A<1@1 A nack 9@1.1 B<1@8", "I:AFFINITY_SPLIT"),
    ],
)  # fmt: skip
def test_sessions(one: Case) -> None:
    one.check()


# --- all sessions of a key ---------------------------------------------------------------------------------------------------
