"""Promise 1 where nobody recorded the publishes: publish times say on whose side the cause is. Publish times are in nanoseconds here."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.core.events import Acked, Delivered, Event, Opened
from prober.core.findings import Kind, Status
from prober.core.rules import Rules
from prober.core.unrecorded import GAPS_KEPT, HELD_MAX, NUMBERINGS_KEPT
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import Case, case, findings

OTHERS: dict[str, Any] = {"publishes_recorded": False}
ONE_REGION: dict[str, Any] = {**OTHERS, "publish_time_error_s": 0.0}
SECONDS: dict[str, Any] = {**OTHERS, "publish_time_error_s": 2.0}
OUT_OF_ORDER = {Kind.PUBLISHED_OUT_OF_ORDER, Kind.DELIVERED_OUT_OF_ORDER}


def others(what: str, line: str, says: str = "", **rules: Any) -> Any:
    return case(what, line, says, **(OTHERS | rules))


@pytest.mark.parametrize(
    "one",
    [
        others("swapped by the publisher", "A<1~1@1 A<3~2@1.1 A<2~3@1.2 A<4~4@1.3", "N:PUBLISHED_OUT_OF_ORDER@1.2"),
        others("the same with a bound", "A<1~1@1 A<3~2@1.1 A<2~3@1.2 A<4~4@1.3", "N:PUBLISHED_OUT_OF_ORDER@1.2", publish_time_error_s=0.0),
        others("nothing follows, and time passes", "A<1~1@1 A<3~2@1.1 A<2~3@1.2 end @70", "N:PUBLISHED_OUT_OF_ORDER@1.2"),
        others("two of them", "A<1~1@1 A<4~2@1.1 A<3~3@1.2 A<2~4@1.3 A<5~5@1.4", "N:PUBLISHED_OUT_OF_ORDER@1.2 N:PUBLISHED_OUT_OF_ORDER@1.3"),
        others("numbers of several publishers", "A<1[x]~1@1 A<9[y]~2@1.1 A<3[x]~3@1.2 A<2[x]~4@1.3 A<10[y]~5@1.4 A<4[x]~6@1.5", "N:PUBLISHED_OUT_OF_ORDER@1.3"),
    ],
)  # fmt: skip
def test_the_publisher_sent_them_so(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("delivered in another order than stored", "A<1~1@1 A<3~3@1.1 A<2~2@1.2 A<4~4@1.3", "V:DELIVERED_OUT_OF_ORDER@1.2", **ONE_REGION),
        case("by more than the bound", "A<1~1@1 A<3~5000000001@1.1 A<2~2@1.2 A<4~6000000000@1.3", "V:DELIVERED_OUT_OF_ORDER", **SECONDS),
        case("by less than the bound", "A<1~1@1 A<3~1000000001@1.1 A<2~2@1.2 A<4~6000000000@1.3", "I:DELIVERED_OUT_OF_ORDER", **SECONDS),
        case("stored at the same time", "A<1~1@1 A<3~2@1.1 A<2~2@1.2 A<4~4@1.3", "I:DELIVERED_OUT_OF_ORDER", **ONE_REGION),
        case("publish times are not known", "A<1@1 A<3@1.1 A<2@1.2 A<4@1.3", "I:DELIVERED_OUT_OF_ORDER", **ONE_REGION),
        case("the history ends at once", "A<1~1@1 A<3~3@1.1 A<2~2@1.2", "I:DELIVERED_OUT_OF_ORDER", **ONE_REGION),
        others("perhaps several regions", "A<1~1@1 A<3~5000000001@1.1 A<2~2@1.2 A<4~6000000000@1.3", "I:DELIVERED_OUT_OF_ORDER"),
    ],
)  # fmt: skip
def test_the_service_may_have_done_it(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        others("a client that retries", "A<a1(1)~1@1 A<a2(2)~1@1.1 A<b1(1)~2@1.2 A<b2(2)~2@1.3 A<3~3@1.4"),
        others("a first attempt that stored the last of a batch", "A<1~1@1 A<a3(3)~2@1.1 A<2~3@1.2 A<b3(3)~3@1.3 A<4~4@1.4"),
        others("the same, much later", "A<1~1@1 A<a3(3)~2@1.1 A<2~3@1.2 A<b3(3)~3@60 A<4~4@61"),
        others("what came before there was a subscription", "A<2~2@1 A<b1(1)~3@1.1 A<b2(2)~3@1.2 A<3~4@1.3"),
        others("a zombie of what came already", "A<1,2,3@1 A<z1(1)~8@1.4 A<z2(2)~8@1.5"),
        others("a publisher that begins again", "A<1,2,3@1 A<y1(1)~8@1.4 A<y2(2)~8@1.5 A<y3(3)~8@1.6 A<y4(4)~9@1.7"),
        others("a hole in the numbers", "A<1,2,5,6@1 A ack 1,2,5,6@2 end @500"),
        others("the history ends before the publisher has gone on", "A<1~1@1 A<3~2@1.1 A<2~3@1.2"),
        others("no numbers", "A<x(0)~3@1 A<y(0)~2@1.1"),
        others("two sessions at about the same time", "open A of client A open B of client A A<1~1@1 B<3~3@1.1 A<2~2@1.2 A<4~4@9", publish_time_error_s=0.0),
        others("numbers of two publishers with one name", "A<1,2,3@1 A<o1(1)@1.4 A<4@1.5 A<o2(2)@1.6 A<o3(3)@1.7 A<5@1.8"),
        others("idle for long, so it begins anew", "A<1~1@1 A<3~2@1.1 A ack 1,3@1.2 A<2~3@1000 A<4~4@1001", idle_after_s=900),
        case("another run's messages", "A<1@1 A<3~2@1.1 A<2~3@1.2 A<4@1.3"),
    ],
)  # fmt: skip
def test_legal(one: Case) -> None:
    one.check()
    assert [found.kind for found in findings(one.history, one.rules) if found.kind in OUT_OF_ORDER] == []


@pytest.mark.parametrize(
    "one",
    [
        case("a skip", "A<1,2,3@1 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1", "V:REDELIVERY_SKIP", **SECONDS),
        others("a skip, perhaps in several regions", "A<1,2,3@1 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1", "I:REDELIVERY_SKIP"),
        case("a whole run", "A<1,2,3@1 A nack 2@1.4 A<2@2 A<3@2.1 A<4@2.2 A ack 1,2,3,4@3 end @500", "", **SECONDS),
        case("never again", "A<1@1 A nack 1@1.1 end @500", "L:UNACKED_STALL", **SECONDS),
        case("a second holder", "A<1,2@1 A ack 1@1.4 B<3@2", "V:AFFINITY_SPLIT", **SECONDS),
        others("a second holder, perhaps in several regions", "A<1,2@1 A ack 1@1.4 B<3@2", "I:AFFINITY_SPLIT"),
        case("nothing is owed", "A<1@1 A ack 1@1.1 A<5@2 A ack 5@2.1 end @500", "", **SECONDS),
    ],
)  # fmt: skip
def test_redelivery_and_holders_need_no_record_of_publishes(one: Case) -> None:
    one.check()


def test_the_finding_names_both_messages_and_when_they_were_stored() -> None:
    found = findings("A<1~1@1 A<3~2000000000@1.1 A<x2(2)~3000000000@1.2 A<4~4@1.3", Rules(**OTHERS))
    (one,) = found
    assert (one.kind, one.status, one.witnesses) == (Kind.PUBLISHED_OUT_OF_ORDER, Status.INFO, (3, 4))
    assert (one.facts["seq"], one.facts["message_id"]) == (2, "x2")
    assert (one.facts["after"], one.facts["after_message_id"]) == (3, "m3")
    assert (one.facts["stored_at"], one.facts["after_stored_at"]) == (3.0, 2.0)


def _counters(line: str, **rules: Any) -> dict[str, int]:
    verifier = Verifier(Rules(**(OTHERS | rules)), subscriptions=["s"])
    for event in history(line):
        verifier.observe(event)
    verifier.finish()
    return verifier.counters


def test_what_was_seen_is_counted() -> None:
    counted = _counters("A<1~1@1 A<2~2@1.1 A<y1(1)~3@1.2 A<x(0)~3@1.3 A<3~4@1.4 A<0@1.5")
    wanted = {"deliveries_unrecorded": 6, "numberings": 1, "numbers_repeated": 1, "deliveries_unnumbered": 2}
    assert wanted.items() <= counted.items()
    assert "deliveries_first" not in counted
    assert _counters("A<2~1@1 A<y1(1)~2@1.1")["numbers_unjudged"] == 1
    assert "deliveries_foreign" not in counted


def test_bounds_are_counted() -> None:
    pairs = " ".join(f"A<{HELD_MAX + 9 - n}~{n}@{n}" for n in range(2, HELD_MAX + 8))
    assert _counters(f"A<1~1@1 A<{HELD_MAX + 9}~1@1.5 {pairs}", republish_max_s=1e6)["numbers_unjudged"] == HELD_MAX + 6
    gaps = " ".join(f"A<{2 * n}~{n}@{n}" for n in range(1, GAPS_KEPT + 4))
    assert _counters(f"{gaps} A<3~900@900 A<5~901@901", republish_max_s=0.0)["numbers_unjudged"] == 2
    names = " ".join(f"A<i{n}(5)[e{n}]~{n}@{n}" for n in range(1, NUMBERINGS_KEPT + 2))
    assert _counters(f"{names} A<x(4)[e1]~99@99")["numberings"] == NUMBERINGS_KEPT + 2


RECORDS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), max_size=14)


@given(RECORDS, st.booleans())
def test_what_is_delivered_as_it_was_stored_is_never_held_against_the_service(records: list[tuple[int, int]], seq: bool) -> None:
    """Whatever publishers do. Publish times are those of one log, messages come in its order."""
    t = 0
    events: list[Event] = [Opened(0.0, "s", "A", "A")]
    for number, (one, later) in enumerate(records):
        t += later
        events.append(Delivered(1.0 + number, "s", "k", "A", "", one if seq else 0, f"m{number}", publish_time=t))
    verifier = Verifier(Rules(**ONE_REGION), subscriptions=["s"])
    found = [finding for event in events for finding in verifier.observe(event)]
    found += verifier.finish()
    assert [finding for finding in found if finding.status in (Status.VIOLATION, Status.LIVENESS)] == []


def test_a_key_at_rest_keeps_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prober.core.resting.WARM_KEYS_MAX", 10)
    verifier = Verifier(Rules(**OTHERS, idle_after_s=1e9), subscriptions=["s"])
    events: list[Event] = [Opened(0.0, "s", "A", "A")]
    for place, seq in enumerate((1, 3, 2, 4)):
        for key in range(100):
            t, message_id = 1000.0 * place + key, f"{key}-{seq}"
            events.append(Delivered(t, "s", f"k{key}", "A", "", seq, message_id, publish_time=t))
            events.append(Acked(t, "s", f"k{key}", "A", message_id))
    found = [finding.kind for event in events for finding in verifier.observe(event)]
    assert found == [Kind.PUBLISHED_OUT_OF_ORDER] * 100
    assert verifier.counters["numberings"] == 100


@pytest.mark.parametrize(
    "one",
    [
        others("a message comes again alone", "A<1~1@1 A<2~2@1.1 A<3~3@1.2 A<1~1@1.3 A<4~4@1.4 A ack 1,2,3,4@1.5 end @500", redelivery_promised=False),
        others("and at another subscriber", "A<1~1@1 A<2~2@1.1 B<1~1@1.2 A<3~3@1.3 B ack 1@1.4 A ack 2,3@1.4 end @500", redelivery_promised=False),
        others("what comes first is judged", "A<1~1@1 A<3~2@1.1 A<1~1@1.2 A<2~3@1.3 A<4~4@1.4", "N:PUBLISHED_OUT_OF_ORDER@1.3", redelivery_promised=False),
    ],
)  # fmt: skip
def test_brokers_that_promise_no_redelivery_in_order(one: Case) -> None:
    one.check()
