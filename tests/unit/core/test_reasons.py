"""What a finding says about its explanation: the assumptions of the best one, or what rules each alternative out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prober.core.collector import REASON_LENGTH_MAX, REASONS_MAX
from prober.core.events import Opened
from prober.core.excuses import BESIDE
from prober.core.facts import Ends
from prober.core.findings import Finding, Kind, Status
from prober.core.hold_excuses import _OF_END
from prober.core.rules import Mode
from prober.core.verifier import Verifier
from prober.evidence import minimise
from prober.traces.trace import read_trace
from tests.nightly import nightly_but
from tests.notation import history
from tests.sentences import untrue
from tests.unit.core.cases import all_of, rules_of, verified
from tests.unit.core.test_divergence import across
from tests.unit.evidence.test_minimise import check_minimal, numbered, only

VECTORS = sorted((Path(__file__).parents[2] / "vectors").glob("*.jsonl"))
BY_DAY = [path for path in VECTORS if not path.stem.startswith("t111-")]  # its six findings take as long as all others
PULL, PUSH = {"mode": Mode.PULL}, {"mode": Mode.PUSH}

EVERYWHERE = {
    "not sent in another order",
    "not explained by a seek, purge, filter change or hole in the record",
    "not published in several regions",
}
BEHIND = {"not an unknown outcome", "not stored later"}
ABSENT = {"not expired", "not delivered unrecorded", "not lost on another stream", "not dead-lettered", "not filtered out"}
PASSED = {
    "not a restart of the redelivery",
    "not dead-lettered",
    "not left out after a confirmed acknowledgement",
    "not lost on another stream",
    "not expired",
}
HELD = {
    "not released by its lease",
    "not nacked",
    "not released by a redelivery",
}
UNDROPPED = {"not released by a control operation", "not acknowledged before", "not dead-lettered", "not expired"}
ON_STREAM = {
    "not released with its stream",
    "not acknowledged",
    "not answered in another session",
    "not lost on another stream",
    "not handed over",
}
PUSHED = {"not acknowledged", "not dead-lettered", "not expired", "not older than the record"}
CLOCK = {
    "not expired",
    "not delayed by a missing stream or used up flow control",
    "not delayed by a seek, purge, filter change or hole in the record",
    "not delayed by a lost session",
    "not delayed by deliveries from before the record",
    "not delayed by the retry policy",
    "not delayed by flow control of the subscriber that holds the key",
    "not delayed by a change of the subscriber",
    "not delayed by a lease that was extended after a delivery elsewhere",
    "not delayed by outstanding messages of other keys",
}

CASES: list[tuple[Kind, str, dict[str, Any], set[str]]] = [
    (Kind.ORDER_GAP, "P1,2,3 A<1@1 A<3@1.1 stop @2", {}, EVERYWHERE | BEHIND | ABSENT | {"not a duplicate"}),
    (
        Kind.ORDER_INVERSION,
        "P1@0 P2@0 ok1=m1@0.3 ok2=m2@0.3 A<2@1 A<1@1.1",
        {},
        EVERYWHERE | BEHIND | {"not a duplicate", "not a missing message"},
    ),
    (
        Kind.REALTIME_INVERSION,
        "P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 A<a1(1)@1 A<a2(2)@1.1 A<b1(1)@1.2 A<b2(2)@1.3",
        {},
        EVERYWHERE | BEHIND | {"not a missing message"},
    ),
    (
        Kind.REDELIVERY_SKIP,
        "P1,2,3,4 A<1,2,3@1 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1",
        {},
        EVERYWHERE | PASSED | {"not lost on its way"},
    ),
    (
        Kind.REDELIVERY_SKIP,
        "P1,2,3,4 A<1,2,3@1 A ack 1@1.4 A nack 2@1.5 A<2@2 A<4@2.1",
        {},
        EVERYWHERE | PASSED | {"not acknowledged"},
    ),
    (
        Kind.PULL_BATCH_ORDER,
        "P1,2,3 pull b1@0.9 b1<1,2,3@1 b1 ack 1,2,3@1.1 pull b2@20 b2<1,3@20.1",
        PULL,
        EVERYWHERE | PASSED - {"not lost on another stream"} | {"not lost in another session", "not lost on its way"},
    ),
    (Kind.AFFINITY_SPLIT, "P1,2,3 A<1,2@1 A ack 1@1.4 B<3@2 stop @60", {}, EVERYWHERE | HELD | UNDROPPED | ON_STREAM),
    (
        Kind.PULL_OVERLAP,
        "P1,2,3,4 pull b1@0.9 b1<1,2@1 pull b2@1.5 b2<3,4@1.6 stop @30",
        PULL,
        EVERYWHERE | HELD | UNDROPPED | {"not acknowledged", "not answered in another session", "not lost in another session"},
    ),
    (
        Kind.PUSH_OVERLAP,
        "P1,2 r1<1@1 r2<2@2 r2 ack 2@2.1 r1 ack 1@5 stop @30",
        PUSH,
        EVERYWHERE | PUSHED | HELD | {"not answered in another session"},
    ),
    (Kind.PUSH_ADVANCE_PAST_NACK, "P1,2 r1<1@1 r1 nack 1@1.1 r2<2@20 r2 ack 2@20.1", PUSH, EVERYWHERE | PUSHED),
    (
        Kind.EOD_REDELIVERY_WHILE_OUTSTANDING,
        "P1,2 A<1,2@1 A<1,2@20",
        {"exactly_once": True},
        EVERYWHERE - {"not published in several regions"}
        | HELD
        | {"not released with its stream", "not acknowledged", "not handed over", "not dead-lettered", "not lost on its way"},
    ),
    (
        Kind.EOD_REDELIVERY_AFTER_ACK,
        "P1,2 A<1,2@1 A ack 1,2@1.3 A ackOK 1,2@1.5 A<1,2@30",
        {"exactly_once": True},
        {
            "not sent before the confirmation",
            "not part of the redelivery of an earlier message",
            "not explained by a seek, purge, filter change or hole in the record",
        },
    ),
    (Kind.STUCK, "P1,2,3 A<1,2@1 A ack 1,2@1.3 end @500", {}, CLOCK | {"not dead-lettered", "not filtered out"}),
    (Kind.LOST_OVERTAKEN, "P1,2,3 A<1@1 A<3@1.1 end @500", {}, CLOCK | {"not dead-lettered", "not filtered out"}),
    (
        Kind.REDELIVERY_STALL,
        "P1,2,3 A<1,2,3@1 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A ack 2@2.1 end @500",
        {},
        CLOCK
        | {
            "not dead-lettered",
            "not first delivered out of order",
            "not lost on its way",
            "not published in several regions",
        },
    ),
    (
        Kind.UNACKED_STALL,
        "P1,2 A<1,2@1 A ack 1@1.3 A nack 2@1.4 end @500",
        {},
        CLOCK | {"not dead-lettered", "not acknowledged"},
    ),
    (
        Kind.GHOST,
        "P1 P2@0.2 fail2@0.21 A<1@1 A<g2(2)@1.1",
        {},
        {"not an unknown outcome", "not explained by a seek, purge, filter change or hole in the record"},
    ),
    (
        Kind.PHANTOM,
        "P1 A<1@1 A<q7(7)@1.1",
        {},
        {
            "not published before the record began",
            "not explained by a seek, purge, filter change or hole in the record",
        },
    ),
]


def found(line: str, kind: Kind, **rules: Any) -> Finding:
    return next(one for one in all_of(line, **rules) if one.kind is kind)


def alternatives_of(finding: Finding) -> set[str]:
    """The reasons without their facts."""
    return {reason.partition(":")[0] for reason in finding.reasons}


@pytest.mark.parametrize(("kind", "line", "rules", "alternatives"), CASES, ids=[f"{kind}: {line}" for kind, line, *_ in CASES])
def test_a_definite_finding_names_every_alternative(kind: Kind, line: str, rules: dict[str, Any], alternatives: set[str]) -> None:
    finding = found(line, kind, **rules)
    assert finding.status in (Status.VIOLATION, Status.LIVENESS)
    assert alternatives_of(finding) == alternatives
    assert all(reason.startswith("not ") and ": " in reason for reason in finding.reasons)
    assert len(finding.reasons) == len(alternatives) <= REASONS_MAX


def test_the_facts_are_those_of_the_record() -> None:
    finding = found("P1,2,3 A<1,2@1 A ack 1@1.4 A modack 2 100s@1.5 B<3@2 stop @60", Kind.AFFINITY_SPLIT)
    assert (
        "not released by its lease: that of message 2, delivered at t=1.100 s, lasts until t=60.100 s at least" in finding.reasons
    )
    assert "not nacked: no nack of message 2, as delivered at t=1.100 s, is on record before t=2.000 s" in finding.reasons
    skip = found("P1,2,3,4 A<1,2,3@1 A ack 1@1.4 A nack 2@1.5 A<2@2 A<4@2.1", Kind.REDELIVERY_SKIP)
    assert any(
        one.startswith("not acknowledged: no acknowledgement of message 3 is on record before t=2.1") for one in skip.reasons
    )


SWAPPED = [
    ("P1,2,3 r2<2@20 r2 ack 2@20.1 r1<1@21 r1 ack 1@21.1 end @500", PUSH),
    ("P1,2,3 pull a@0.9 pull b@0.9 b<2@1 a<1@1.1 b ack 2@1.2 a ack 1@1.3 stop @60", PULL),
    ("P1,2,3 B<2@1 A<1@1.1 B ack 2@1.2 A ack 1@1.3 stop @60", {}),
    ("P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 seek 1/0@20 A<3@31 A<2@32 A ack 2,3@33 end @500", {}),
    ("P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 seek 1/0@20 A<1@30 A<3@31 A<2@32 A ack 1,2,3@33 end @500", {}),
    (
        "P1@0 ok1=a1@0.1 P2@0.2 ok2=a2@0.3 P3@0.4 ok3=a3@0.5 A<a1(1)@1 A<a2(2)@1.1 A ack 2@1.2 A<z2(2)@1.3 A<a1(1)@2 A<a3(3)@3 end @500",
        {},
    ),
    ("P1,2 A<1~10@1 A<2~11@1.1 A<1~12@1.2 A ack 1@1.3 A<2~11@2 A<1~10@3 A<1~12@4 end @500", {}),
]


@pytest.mark.parametrize(("line", "rules"), SWAPPED, ids=[line for line, _ in SWAPPED])
def test_reasons_state_what_is_in_the_record(line: str, rules: dict[str, Any]) -> None:
    events = history(line, rules_of(**rules).mode)
    found, _ = verified(rules_of(**rules), events)
    failing = [one for one in found if one.status is not Status.INFO]
    assert failing
    assert [reason for one in failing for reason in untrue(events, one)] == []


def test_a_record_is_named_with_its_epoch_and_its_id_where_the_number_is_not_enough() -> None:
    published = "P1@0 ok1=a1@0.1 P1[e2]@0.2 ok1=b1@0.3 P2[e2]@0.4 ok2=b2@0.5"
    line = f"{published} A<a1(1)@1 A<b1(1)@1.1 A<z1(1)[e2]@1.2 A<b2(2)@1.3 A<a1(1)@2 A<b2(2)@3"
    skip = found(line, Kind.REDELIVERY_SKIP)
    assert (
        "not a restart of the redelivery: that goes back, and message 2 of epoch e2 is behind message 1 of epoch e2 (id b1), "
        "which is behind message 1 of epoch e1"
    ) in skip.reasons


def test_an_indeterminate_finding_names_its_doubt_first() -> None:
    line = "P1,2,3,4 A<1,2,3@1 A ack 2@1.3 A ack 3@1.31 A nack 1@1.4 A<1@2 A ack 1@2.1 close A@3 B<4@8"
    skip = found(line, Kind.REDELIVERY_SKIP)
    assert skip.status is Status.INDETERMINATE
    assert skip.reasons == (skip.doubt,)


def test_other_assumptions_of_the_explanation_follow_the_doubt() -> None:
    line = "P1,2,3,4,5 A<1,2,3@1 A ack 1@1.3 A ack 2@1.31 A ack 3@1.32 A<1@2 A ack 1@2.1 close A@3 A2<4@3.1 B<5@3.2 B<1@3.3 B<5@3.4"
    several = [one for one in all_of(line, close_detection_max_s=5.0) if one.status is Status.INDETERMINATE]
    assert several
    assert all(one.reasons[0] == one.doubt for one in several)


def test_an_informational_finding_has_none() -> None:
    move = found("P1,2 A<1,2@1 A ack 1,2@1.4 P3@30 ok3=m3@30.1 B<3@31", Kind.AFFINITY_MOVE)
    assert move.reasons == ()


def test_divergence_names_its_alternatives() -> None:
    one, other = "P1,2 A<1@1 A<2@1.1", "A<2@1 A<1@1.1"
    both, _ = across(("s", one), ("u", other), close_detection_max_s=0.0)
    diverged = [finding for finding in both if finding.kind is Kind.ORDER_DIVERGENCE and finding.status is Status.VIOLATION]
    assert diverged
    assert {"not dead-lettered", "not expired", "not lost on another stream"} <= alternatives_of(diverged[0])


def test_time_that_does_not_count_is_named() -> None:
    stuck = found("P1,2 pull b1@0.9 b1<1@1 b1 ack 1@1.1 pull b2@50 end @400", Kind.STUCK, **PULL)
    assert stuck.status is Status.LIVENESS
    (missing,) = (one for one in stuck.reasons if one.startswith("not delayed by a missing session: "))
    assert missing.endswith(" are not counted")


def test_reasons_are_bounded() -> None:
    finding = found(f"open A of client {'x' * 1000} P1,2,3 A<1@1 A<3@1.1 stop @2", Kind.ORDER_GAP)
    assert max(map(len, finding.reasons)) == REASON_LENGTH_MAX


def test_every_end_of_a_hold_has_its_sentence() -> None:
    assert set(_OF_END) == set(Ends._fields)


def test_a_stream_without_a_recorded_opening_may_be_of_the_subscriber_whose_stream_broke() -> None:
    line = "open A1 of client A open A2 of client A P1,2,3 A1<1@1 A2<3@1.1 close A1@1.2 stop @60"
    rules = rules_of(close_detection_max_s=5.0)
    whole = history(line, rules.mode)
    unopened = [event for event in whole if not (isinstance(event, Opened) and event.session == "A2")]
    for events in (whole, unopened):
        (gap,) = (one for one in verified(rules, events)[0] if one.kind is Kind.ORDER_GAP)
        assert (gap.status, gap.doubt) == (Status.INDETERMINATE, BESIDE)


# --- minimal reproductions ---------------------------------------------------------------------------------------------------


@pytest.fixture
def with_this_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimise, "Verifier", Verifier)


@pytest.mark.usefixtures("with_this_checker")
@pytest.mark.parametrize("path", nightly_but(BY_DAY, VECTORS), ids=lambda path: path.stem)
def test_a_minimal_reproduction_has_the_same_alternatives(path: Path) -> None:
    with read_trace(path) as trace:
        events, rules = numbered(list(trace)), trace.header.rules
    for _, finding in minimise.findings_in(events, Verifier(rules, subscriptions=("s",))):
        if finding.status is not Status.INFO:
            check_minimal(events, finding, rules)


@pytest.mark.usefixtures("with_this_checker")
def test_a_minimal_reproduction_keeps_what_rules_a_loss_out() -> None:
    rules = rules_of()
    events = numbered(history("P1,2,3,4 A<1,2,3@1 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1", rules.mode))
    finding = only(events, Kind.REDELIVERY_SKIP, rules)
    minimal = minimise.minimise(events, finding, rules, subscriptions=("s",))
    assert minimal is not None
    assert minimal.finding.reasons == finding.reasons
    needed = [type(event).__name__ for number, event in minimal.events if number not in minimal.evidence]
    assert {"Opened", "Acked"} <= set(needed)
