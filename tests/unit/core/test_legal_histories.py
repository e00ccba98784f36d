"""Legal histories that an earlier version of the checker reported as violations, one line per case."""

from __future__ import annotations

from typing import Any

import pytest
from _pytest.mark import ParameterSet

from prober.core.findings import FAILING
from tests.unit.core.cases import PULL, PUSH, all_of, listed

EXTENDED = " ".join(f"A modack 2 60s@{t}" for t in range(5, 300, 50))


def case(what: str, line: str, **rules: Any) -> ParameterSet:
    return pytest.param(line, rules, id=what)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        case(
            "a pull response holds messages of one region while others deliver another region",
            f"P1/us@0 ok1=m1@0.1 P2/us@0.2 ok2=m2@0.3 P3/eu@0.2 ok3=m3@0.4 pull a@0.9 a<1@1 pull b@2 b<3@2.1 b ack 3@2.2 pull c@3 "
            f"{' '.join(f'a modack 1 60s@{t}' for t in range(50, 300, 50))} a ack 1@300 end @310",
            mode=PULL,
        ),
        case(
            "a client extends a lease after its stream has ended",
            f"open A of client c P1,2 A<1,2@1 A nack 1@1.1 close A@2 open B of client c@3 {EXTENDED} B<1,2@360 B ack 1,2@361 end @500",
        ),
        case(
            "the first delivery of a new subscription is a copy that the service stored later",
            "P1,2,3 open A of client A@4 P4@5 ok4=m4@5.1 A<1~7@6 A<4~8@7",
            subscription_predates_first_publish=False,
        ),
        case(
            "a client extends a lease after a redelivery elsewhere, and another key waits",
            f"P1,2 A<1@1 A ack 1@1.1 A<2@1.2 B<2@3 B ack 2@3.1 {EXTENDED} A ack 2@300 on k2 P1@5 ok1=k2m1@5.1 A<1@310 A ack 1@311 end @500",
        ),
        case(
            "an attempt before the record stored a record that is delivered late",
            "P1'gen1@1 ok'gen1=b1@1.1 P2@1.2 ok2=b2@1.3 A<b1(1)@2 A<b2(2)@2.1 A<w1(1)@3 A<b1(1)@3.1 A<b2(2)@3.2 P3@4 ok3=m3@4.1 A<3@5",
            subscription_predates_first_publish=False,
        ),
        case(
            "a seek comes before the answer to the last request, by clocks that differ",
            "P1,2 r1<1@5 r2<2@5.05 r1 ack 1@5.2 r2 ack 2@5.2 seek 60@5.25",
            mode=PUSH,
            clock_error_s=0.3,
        ),
        case(
            "a message expires while it is held",
            "P1@0 ok1=m1@0.1 P2@50 ok2=m2@50.1 pull a@0.5 a<1@40 pull b@45 b<2@75",
            mode=PULL,
            message_retention_s=60,
        ),
        case(
            "a seek comes before the end of the stream that lost a redelivery",
            "P1,2,3,4 open B of client B A<1,2,3@1 A ack 2@1.3 A ack 3@1.31 A nack 1@1.4 A<1@2 A ack 1@2.1 B<4@8 seek 60@9 close A@20",
            close_detection_max_s=30,
        ),
        case("a number below the first recorded one", "P7,8 info5@0.5 P4'gen1@1 A<x6(6)@2"),
    ],
)
def test_a_legal_history_has_no_violation(line: str, rules: dict[str, Any]) -> None:
    assert listed(one for one in all_of(line, **rules) if one.status in FAILING) == []
