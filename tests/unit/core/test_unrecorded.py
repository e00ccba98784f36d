"""Streams whose publishes nobody recorded (docs/model.md, section 13). Publish times are in nanoseconds here."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from prober.core.events import Delivered, Event, Opened
from prober.core.findings import Kind, Status
from prober.core.rules import Mode, Rules
from prober.core.unrecorded import CLOSE, CUT, GAPS_KEPT, HELD_MAX, NO_TIME, NUMBERINGS_KEPT, SAME_TIME, UNBOUNDED
from tests.unit.core.cases import all_of, counted, listed, verified

OTHERS: dict[str, Any] = {"publishes_recorded": False}
ONE_REGION: dict[str, Any] = {**OTHERS, "publish_time_error_s": 0.0}
SECONDS: dict[str, Any] = {**OTHERS, "publish_time_error_s": 2.0}
OLDER: dict[str, Any] = {**ONE_REGION, "subscription_predates_first_publish": False}
OUT_OF_ORDER = {Kind.PUBLISHED_OUT_OF_ORDER, Kind.DELIVERED_OUT_OF_ORDER}


def case(what: str, line: str, expected: str = "", **rules: Any) -> ParameterSet:
    return pytest.param(line, expected.split(), OTHERS | rules, id=what)


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("swapped by the publisher", "A<1~1@1 A<3~2@1.1 A<2~3@1.2 A<4~4@1.3", "N:PUBLISHED_OUT_OF_ORDER@1.2"),
        case("the same with a bound", "A<1~1@1 A<3~2@1.1 A<2~3@1.2 A<4~4@1.3", "N:PUBLISHED_OUT_OF_ORDER@1.2", publish_time_error_s=0.0),
        case("nothing follows, and time passes", "A<1~1@1 A<3~2@1.1 A<2~3@1.2 end @70", "N:PUBLISHED_OUT_OF_ORDER@1.2"),
        case("two of them", "A<1~1@1 A<4~2@1.1 A<3~3@1.2 A<2~4@1.3 A<5~5@1.4", "N:PUBLISHED_OUT_OF_ORDER@1.2 N:PUBLISHED_OUT_OF_ORDER@1.3"),
        case("numbers of several publishers", "A<1[x]~1@1 A<9[y]~2@1.1 A<3[x]~3@1.2 A<2[x]~4@1.3 A<10[y]~5@1.4 A<4[x]~6@1.5", "N:PUBLISHED_OUT_OF_ORDER@1.3"),
        case("what comes first is verified, whatever is redelivered", "A<1~1@1 A<3~2@1.1 A<1~1@1.2 A<2~3@1.3 A<4~4@1.4", "N:PUBLISHED_OUT_OF_ORDER@1.3", redelivery_promised=False),
    ],
)  # fmt: skip
def test_the_publisher_sent_them_so(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert listed(all_of(line, **rules)) == expected


@pytest.mark.parametrize(
    ("line", "rules", "doubt"),
    [
        pytest.param("A<1~1@1 A<3~3@1.1 A<2~2@1.2 A<4~4@1.3", ONE_REGION, "", id="in another order than stored"),
        pytest.param("A<1~1@1 A<3~5000000001@1.1 A<2~2@1.2 A<4~6000000000@1.3", SECONDS, "", id="by more than the bound"),
        pytest.param("A<1~1@1 A<3~1000000001@1.1 A<2~2@1.2 A<4~6000000000@1.3", SECONDS, CLOSE, id="by less than the bound"),
        pytest.param("A<1~1@1 A<3~2@1.1 A<2~2@1.2 A<4~4@1.3", ONE_REGION, SAME_TIME, id="stored at the same time"),
        pytest.param("A<1@1 A<3@1.1 A<2@1.2 A<4@1.3", ONE_REGION, NO_TIME, id="publish times are not known"),
        pytest.param("A<1~1@1 A<3~3@1.1 A<2~2@1.2", ONE_REGION, CUT, id="the history ends at once"),
        pytest.param("A<1~1@1 A<3~5000000001@1.1 A<2~2@1.2 A<4~6000000000@1.3", OTHERS, UNBOUNDED, id="perhaps several regions"),
        pytest.param("A<1~1@1 B<3~3@2 A<2~2@9 A<4~4@10", ONE_REGION, "", id="two sessions, one long after the other"),
    ],
)  # fmt: skip
def test_the_service_did_it_or_may_have(line: str, rules: dict[str, Any], doubt: str) -> None:
    (one,) = (one for one in all_of(line, **rules) if one.kind in OUT_OF_ORDER)
    assert (one.kind, one.doubt) == (Kind.DELIVERED_OUT_OF_ORDER, doubt)
    assert one.status is (Status.INDETERMINATE if doubt else Status.VIOLATION)


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("a client that retries", "A<a1(1)~1@1 A<a2(2)~1@1.1 A<b1(1)~2@1.2 A<b2(2)~2@1.3 A<3~3@1.4"),
        case("a first attempt that stored the last of a batch", "A<1~1@1 A<a3(3)~2@1.1 A<2~3@1.2 A<b3(3)~3@1.3 A<4~4@1.4"),
        case("the same, much later", "A<1~1@1 A<a3(3)~2@1.1 A<2~3@1.2 A<b3(3)~3@60 A<4~4@61"),
        case("what came before there was a subscription", "A<2~2@1 A<b1(1)~3@1.1 A<b2(2)~3@1.2 A<3~4@1.3"),
        case("a late copy of what came already", "A<1,2,3@1 A<z1(1)~8@1.4 A<z2(2)~8@1.5"),
        case("a publisher that begins again", "A<1,2,3@1 A<y1(1)~8@1.4 A<y2(2)~8@1.5 A<y3(3)~8@1.6 A<y4(4)~9@1.7"),
        case("numbers that never come", "A<1,2,5,6@1 A ack 1,2,5,6@2 end @500"),
        case("the history ends before the publisher has gone on", "A<1~1@1 A<3~2@1.1 A<2~3@1.2"),
        case("no numbers", "A<x(0)~3@1 A<y(0)~2@1.1"),
        case("two sessions at about the same time", "open A of client C open B of client C A<1~1@1 B<3~3@1.1 A<2~2@1.2 A<4~4@9", publish_time_error_s=0.0),
        case("two sessions, within the error of their clocks", "open A of client C open B of client C A<1~1@1 B<3~3@2 A<2~2@9 A<4~4@20", publish_time_error_s=0.0, clock_error_s=2.5),
        case("two publishers with one name", "A<1,2,3@1 A<o1(1)@1.4 A<4@1.5 A<o2(2)@1.6 A<o3(3)@1.7 A<5@1.8"),
        case("idle for long, so it begins anew", "A<1~1@1 A<3~2@1.1 A ack 1,3@1.2 A<2~3@1000 A<4~4@1001", idle_after_s=900),
        case("a hole in the record", "A<1~1@1 A<3~3@1.1 hole @1.2 A<2~2@1.3 A<4~4@1.4", publish_time_error_s=0.0),
        case("a seek", "A<1~1@1 A<3~3@1.1 seek 5@1.2 A<2~2@1.3 A<4~4@1.4", publish_time_error_s=0.0),
    ],
)  # fmt: skip
def test_legal(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    found = all_of(line, **rules)
    assert listed(one for one in found if one.kind in OUT_OF_ORDER and one.doubt != CUT) == expected
    assert [one for one in found if one.status in (Status.VIOLATION, Status.LIVENESS)] == []


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("a skip", "A<1,2,3@1 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1", "V:REDELIVERY_SKIP@2.1", **SECONDS),
        case("a skip, perhaps in several regions", "A<1,2,3@1 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1", "I:REDELIVERY_SKIP@2.1"),
        case("a whole run", "A<1,2,3@1 A nack 2@1.4 A<2@2 A<3@2.1 A<4@2.2 A ack 1,2,3,4@3 end @500", "", **SECONDS),
        case("a second holder", "A<1,2@1 A ack 1@1.4 B<3@2", "V:AFFINITY_SPLIT@2", **SECONDS),
        case("a second batch", "pull a@0.5 a<1@1 pull b@1.5 b<2@2", "V:PULL_OVERLAP@2", **SECONDS, mode="pull"),
        case("after a confirmed acknowledgement", "A<1@1 A ack 1@1.2 A ackOK 1@1.3 A<1@30", "V:EOD_REDELIVERY_AFTER_ACK@30", **SECONDS, exactly_once=True),
        case("nothing is pending", "A<1@1 A ack 1@1.1 A<5@2 A ack 5@2.1 end @500", "", **SECONDS),
        case("of no other broker", "A<1~1@1 A<2~2@1.1 A<3~3@1.2 A<1~1@1.3 A<4~4@1.4 A ack 1,2,3,4@1.5 end @500", "", redelivery_promised=False),
    ],
)  # fmt: skip
def test_redelivery_holders_and_exactly_once_delivery_need_no_record_of_publishes(
    line: str, expected: list[str], rules: dict[str, Any]
) -> None:
    safety = [one for one in all_of(line, **rules) if "STALL" not in one.kind]
    assert listed(safety) == expected


def test_the_finding_names_both_messages_and_when_they_were_stored() -> None:
    (one,) = all_of("A<1~1@1 A<3~2000000000@1.1 A<x2(2)~3000000000@1.2 A<4~4@1.3", **OTHERS)
    assert (one.kind, one.status, one.witnesses) == (Kind.PUBLISHED_OUT_OF_ORDER, Status.INFO, (3, 4))
    assert (one.facts["seq"], one.facts["message_id"]) == (2, "x2")
    assert (one.facts["after"], one.facts["after_message_id"]) == (3, "m3")
    assert (one.facts["stored_at"], one.facts["after_stored_at"]) == (3.0, 2.0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("A<3~30@1 A<2~20@2 A<3~30@2.1 A<4~40@3", [], id="an older message comes"),
        pytest.param("A<3~30@1 A<4~40@1.1 A<2~20@2 A<4~40@2.1 A<5~50@2.2", [], id="no skip follows from it"),
        pytest.param("A<3@1 A<4@1.1 A<2@2 A<4@2.1 A<5@2.2", [], id="the same where only numbers are known"),
        pytest.param("A<3,4@1 seek 5@2 A<1,2,3,4@9 A<1,2,4@10", [], id="the same behind a seek"),
        pytest.param("A<3~30@1 A<5~50@2 A<4~40@9 A<6~60@10", ["V:DELIVERED_OUT_OF_ORDER@9"], id="what is not older is verified"),
        pytest.param("A<3~30@1 A<5~50@2 A<4~40@3 A<6~60@10", ["V:DELIVERED_OUT_OF_ORDER@3"], id="also soon after, on the same session"),
        pytest.param("A<3~30@1 A<4,5@1.1 A nack 3@2 A<3~30@3 A<5@3.1", ["V:REDELIVERY_SKIP@3.1"], id="what came in order has to be redelivered so"),
    ],
)  # fmt: skip
def test_what_is_older_than_the_record_may_come_at_any_time(line: str, expected: list[str]) -> None:
    safety = [one for one in all_of(line, **OLDER) if "STALL" not in one.kind]
    assert listed(safety) == expected


def test_by_push_it_may_have_been_acknowledged_before_the_record() -> None:
    line = "r1<2@1 r1 nack 2@1.1 r2<3@2"
    assert [one for one in all_of(line, **OLDER, mode=Mode.PUSH) if one.status is Status.VIOLATION] == []
    assert "V:PUSH_ADVANCE_PAST_NACK@2" in listed(all_of(line, **ONE_REGION, mode=Mode.PUSH))


def test_what_left_the_window_may_be_redelivered() -> None:
    """It is not known any more, so it is no new record; what has a higher number is."""
    ahead = " ".join(f"A<{n}~{n}@{n}" for n in range(1, 61))
    again = f"{ahead} A<1~1@70 A<2~2@70.1 A<61~61@71 A<z61(61)~62@72"
    rules: dict[str, Any] = {**ONE_REGION, "window": 8}
    assert all_of(again, **rules) == []
    assert counted(again, **rules)["deliveries_unplaced"] == 2
    assert counted(again, **rules)["deliveries_unrecorded"] == 62


def test_what_was_seen_is_counted() -> None:
    found = counted("A<1~1@1 A<2~2@1.1 A<y1(1)~3@1.2 A<x(0)~3@1.3 A<3~4@1.4 A<0@1.5", **OTHERS)
    wanted = {"deliveries_unrecorded": 6, "numberings": 1, "numbers_repeated": 1, "deliveries_unnumbered": 2}
    assert wanted.items() <= found.items()
    assert found.keys().isdisjoint({"deliveries_first", "deliveries_foreign"})
    assert counted("A<2~1@1 A<y1(1)~2@1.1", **OTHERS)["numbers_unverified"] == 1


def test_bounds_are_counted() -> None:
    pairs = " ".join(f"A<{HELD_MAX + 9 - n}~{n}@{n}" for n in range(2, HELD_MAX + 8))
    line = f"A<1~1@1 A<{HELD_MAX + 9}~1@1.5 {pairs}"
    assert counted(line, **OTHERS, republish_max_s=1e6)["numbers_unverified"] == HELD_MAX + 6
    gaps = " ".join(f"A<{2 * n}~{n}@{n}" for n in range(1, GAPS_KEPT + 4))
    assert counted(f"{gaps} A<3~900@900 A<5~901@901", **OTHERS, republish_max_s=0.0)["numbers_unverified"] == 2
    names = " ".join(f"A<i{n}(5)[e{n}]~{n}@{n}" for n in range(1, NUMBERINGS_KEPT + 2))
    assert counted(f"{names} A<x(4)[e1]~99@99", **OTHERS)["numberings"] == NUMBERINGS_KEPT + 2


RECORDS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), max_size=14)


@given(RECORDS, st.booleans())
def test_what_is_delivered_as_it_was_stored_is_never_held_against_the_service(records: list[tuple[int, int]], seq: bool) -> None:
    """Whatever publishers do. Publish times are those of one log, messages come in its order."""
    t = 0
    events: list[Event] = [Opened(0.0, "s", "A", "A")]
    for number, (one, later) in enumerate(records):
        t += later
        events.append(Delivered(1.0 + number, "s", "k", "A", "", one if seq else 0, f"m{number}", publish_time=t))
    found, _ = verified(Rules(**ONE_REGION), events)
    assert [one for one in found if one.status in (Status.VIOLATION, Status.LIVENESS)] == []
