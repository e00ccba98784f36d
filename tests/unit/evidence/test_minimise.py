"""Histories are reduced to the smallest that still prove a finding, the same finding, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prober.core.events import AckConfirmed, Acked, Closed, Delivered, Event, LeaseModified, Nacked, Opened
from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from prober.evidence.minimise import EVIDENCE_MAX, Minimal, Numbered, findings_in, minimise
from prober.evidence.surroundings import grounds_of, identity_of
from prober.traces.trace import read_trace
from tests.nightly import nightly_but
from tests.notation import history

VECTORS = sorted((Path(__file__).parents[2] / "vectors").glob("*.jsonl"))
BY_DAY = [path for path in VECTORS if not path.stem.startswith("t111-")]  # its six findings take as long as all others
RULES = Rules()
KNOWN = ("s",)


def numbered(events: Sequence[Event]) -> list[Numbered]:
    return list(enumerate(events, 1))


def findings(events: Sequence[Numbered], rules: Rules) -> list[Finding]:
    """All but information."""
    return [
        finding for _, finding in findings_in(events, Verifier(rules, subscriptions=KNOWN)) if finding.status is not Status.INFO
    ]


def only(events: Sequence[Numbered], kind: Kind, rules: Rules = RULES) -> Finding:
    (finding,) = (finding for finding in findings(events, rules) if finding.kind is kind)
    return finding


def reduced(line: str, kind: Kind, rules: Rules = RULES) -> Minimal:
    events = numbered(history(line, rules.mode))
    minimal = minimise(events, only(events, kind, rules), rules, subscriptions=KNOWN)
    assert minimal is not None
    return minimal


def check_minimal(events: list[Numbered], finding: Finding, rules: Rules) -> None:
    minimal = minimise(events, finding, rules, subscriptions=KNOWN)
    assert minimal is not None
    assert minimal.complete
    assert set(minimal.events) <= set(events)
    before = {identity_of(one) for one in findings(events, rules)}

    def is_proof(candidate: Sequence[Numbered]) -> bool:
        found = findings(candidate, rules)
        alike = (one for one in found if (identity_of(one), grounds_of(one)) == (identity_of(finding), grounds_of(finding)))
        same = any(set(one.witnesses) <= set(finding.witnesses) for one in alike)
        return same and before.issuperset(map(identity_of, found))

    assert is_proof(minimal.events)
    needed = [one for one in minimal.events if one[0] not in minimal.evidence]
    assert is_proof(needed)
    assert not any(is_proof([*needed[:i], *needed[i + 1 :]]) for i in range(len(needed)))


@pytest.mark.parametrize("path", nightly_but(BY_DAY, VECTORS), ids=lambda path: path.stem)
def test_a_reduced_trace_proves_the_same_and_no_event_can_go(path: Path) -> None:
    with read_trace(path) as trace:
        events = numbered(list(trace))
    for finding in findings(events, trace.header.rules):
        check_minimal(events, finding, trace.header.rules)


def test_what_happened_before_and_after_is_left_out() -> None:
    calm = " ".join(f"A<{seq}@{seq} A ack {seq}@{seq}.5" for seq in range(1, 40))
    publishes = ",".join(map(str, range(1, 50)))
    minimal = reduced(f"P{publishes} {calm} A<41@50 A<40@51 A<42@52", Kind.ORDER_GAP)
    assert [type(event).__name__ for _, event in minimal.events] == [
        "Opened",
        "PublishInvoked",
        "Published",
        "PublishInvoked",
        "Published",
        "Delivered",
    ]
    assert minimal.finding.facts["missing"] == (40,)


def test_numbers_are_those_of_the_original_history() -> None:
    events = numbered(history("P1,2,3 A<1@1 A<3@1.1 end @500"))
    shifted = [(number + 1000, event) for number, event in events]
    finding = only(events, Kind.ORDER_GAP)
    expected = tuple(number + 1000 for number in finding.witnesses)
    minimal = minimise(shifted, replace(finding, witnesses=expected), RULES, subscriptions=KNOWN)
    assert minimal is not None
    assert minimal.finding.witnesses == expected
    assert {number for number, _ in minimal.events} >= set(expected)


def test_other_keys_and_subscriptions_are_left_out() -> None:
    line = "P1,2,3 A<1@1 A<3@1.1"
    mixed = sorted(history(line) + history(line, key="k2") + history(line, subscription="s2"), key=lambda event: event.t)
    events = numbered(mixed)
    (finding,) = (
        one for one in findings(events, RULES) if one.subscription == "s" and one.key == "k" and one.kind is Kind.ORDER_GAP
    )
    minimal = minimise(events, finding, RULES, subscriptions=KNOWN)
    assert minimal is not None
    assert {getattr(event, "key", "k") for _, event in minimal.events} == {"k"}
    assert {getattr(event, "subscription", "s") for _, event in minimal.events} == {"s"}


def test_a_finding_across_subscriptions_keeps_both() -> None:
    publishes = "P1@0 P2@0 info1@0.1 info2@0.1"
    one = history(f"{publishes} A<x1(1)@1 A<x2(2)@1.1")
    other = history("B<x2(2)@2 B<x1(1)@2.1", subscription="s2")
    events = numbered(sorted(one + other, key=lambda event: event.t))
    finding = next(one for one in findings(events, RULES) if one.kind is Kind.ORDER_DIVERGENCE)
    minimal = minimise(events, finding, RULES, subscriptions=KNOWN)
    assert minimal is not None
    assert {event.subscription for _, event in minimal.events if hasattr(event, "subscription")} == {"s", "s2"}


def test_an_event_that_keeps_another_finding_away_stays() -> None:
    """Without its confirmation, message 3 would not overtake anything; without its publish it would be a phantom."""
    minimal = reduced("P1,2,3 A<1@1 A<3@1.1", Kind.ORDER_GAP)
    assert [one.kind for one in findings(minimal.events, RULES)] == [Kind.ORDER_GAP]


def test_a_history_that_does_not_prove_the_finding_gives_none() -> None:
    events = numbered(history("P1,2,3 A<1@1 A<3@1.1"))
    finding = only(events, Kind.ORDER_GAP)
    assert minimise(events[:-1], finding, RULES, subscriptions=KNOWN) is None
    assert minimise([], finding, RULES, subscriptions=KNOWN) is None


def test_the_budget_bounds_the_runs() -> None:
    line = "P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A ack 1@1.4 A ack 3@1.41 A nack 2@1.5 A<2@2 A<4@2.1"
    events = numbered(history(line))
    finding = only(events, Kind.REDELIVERY_SKIP)
    spent = minimise(events, finding, RULES, runs_max=8, subscriptions=KNOWN)
    assert spent is not None
    assert not spent.complete
    assert spent.runs <= 8 + 2, "what is asked for is put back, and what is returned is verified once more"
    assert identity_of(spent.finding) == identity_of(finding)
    assert minimise(events, finding, RULES, work_max=len(events) - 1, subscriptions=KNOWN) is None


def test_modes_with_one_session_per_response() -> None:
    line = "P1,2,3,4 pull b1@0.9 b1<1@1 b1<2@1 pull b2@1.5 b2<3@1.6 b2<4@1.6"
    minimal = reduced(line, Kind.PULL_OVERLAP, Rules(mode=Mode.PULL))
    assert len(minimal.events) - len(minimal.evidence) == 7


def shown(minimal: Minimal) -> list[str]:
    """What is left besides publishes, in words."""
    return [word for _, event in minimal.events if (word := in_words(event))]


def in_words(event: Event) -> str:
    match event:
        case Opened() | Closed():
            return f"{event.session} {type(event).__name__.lower()}"
        case Delivered():
            return f"{event.session}<{event.message_id}"
        case Acked() | Nacked() | AckConfirmed() | LeaseModified():
            return f"{event.session} {type(event).__name__.lower()} {event.message_id}"
    return ""


EOD = Rules(exactly_once=True, close_detection_max_s=0.0)
OPEN = Rules(close_detection_max_s=0.0)
NOTICED = Rules(close_detection_max_s=30.0)
ON_PULL = Rules(mode=Mode.PULL, close_detection_max_s=0.0)
ON_PUSH = Rules(mode=Mode.PUSH, close_detection_max_s=0.0)


class TestEvidence:
    """What a sceptic asks for stays: answers to the messages concerned, beginnings and ends of the sessions concerned."""

    @pytest.mark.parametrize(
        ("line", "kind", "rules", "expected"),
        [
            pytest.param(
                "P1,2,3,4 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A<4@2.1",
                Kind.REDELIVERY_SKIP,
                OPEN,
                "A opened, A<m2, A<m3, A acked m3, A nacked m2, A<m2, A<m4",
                id="the skipped message had been acknowledged",
            ),
            pytest.param(
                "open A of client A@0 open B of client A@1.5 P1,2,3,4 A<1,2,3@1 A ack 1,2,3@1.4 close A@1.6 B<2@20 B<4@21",
                Kind.REDELIVERY_SKIP,
                OPEN,
                "A opened, A<m2, A<m3, A acked m2, A acked m3, B opened, A closed, B<m2, B<m4",
                id="a stream ended in between",
            ),
            pytest.param(
                "open A1 of client A open A2 of client A P1,2,3 A1<1,2,3@2 A1 ack 1,2,3@3 close A2@20 A1<1@26 A1<3@31 end @500",
                Kind.REDELIVERY_SKIP,
                NOTICED,
                "A1 opened, A2 opened, A1<m1, A1<m2, A1<m3, A1 acked m1, A1 acked m2, A1 acked m3, A2 closed, A1<m1, A1<m3",
                id="another stream of the subscriber ended in between",
            ),
            pytest.param(
                "open A of client A open B1 of client B open B2 of client B P1,2 B2<2@3.2 A<1@5.2 A ack 1@8 B2 ack 2@8 close B1@40 end @99",
                Kind.AFFINITY_SPLIT,
                NOTICED,
                "A opened, B1 opened, B2 opened, B2<m2, A<m1, A acked m1, B2 acked m2, B1 closed",
                id="the other subscriber had a second stream",
            ),
            pytest.param(
                "P1,2,3 pull b@0.9 b<1,2,3@1 b ack 1,3@1.1 b nack 2@1.2 close b@1.3 pull c@20 c<1,3@20.1 c ack 1,3@21",
                Kind.PULL_BATCH_ORDER,
                ON_PULL,
                "b opened, b<m1, b<m2, b<m3, b acked m1, b acked m3, b nacked m2, b closed, c opened, c<m1, c<m3",
                id="a batch with a gap",
            ),
            pytest.param(
                "P1,2 A<1@1 A<2@1.1 A ack 1,2@1.2 A nack 1@1.5 A<1@2 end @500",
                Kind.REDELIVERY_STALL,
                OPEN,
                "A opened, A<m1, A<m2, A acked m1, A acked m2, A nacked m1, A<m1",
                id="a redelivery that stops",
            ),
            pytest.param(
                "P1,2,3 A<1,2@1 A modack 1 30s@2 A ack 2@2.1 A modack 1 40s@2.5 B<3@3 end @90",
                Kind.AFFINITY_SPLIT,
                OPEN,
                "A opened, B opened, A<m1, A leasemodified m1, A leasemodified m1, B<m3",
                id="a lease that was changed",
            ),
            pytest.param(
                "P1,2,3 pull b@0.9 b<1,2@1 b ack 1@1.1 close b@1.2 pull c@1.3 c<3@2 end @90",
                Kind.PULL_OVERLAP,
                ON_PULL,
                "b opened, b<m2, b closed, c opened, c<m3",
                id="a pull response of which a part is acknowledged",
            ),
            pytest.param(
                "P1,2 a<1@1 a modack 1 20s@1.5 b<2@2 close b@3 end @90",
                Kind.PUSH_OVERLAP,
                ON_PUSH,
                "a opened, a<m1, a leasemodified m1, b opened, b<m2, b closed",
                id="push requests",
            ),
            pytest.param("P1,2 A<1@1 A nack 1@2 end @500", Kind.UNACKED_STALL, OPEN, "A opened, A<m1, A nacked m1", id="a refusal"),
            pytest.param(
                "P1 A<1@1 A ack 1@1.1 A ackOK 1@1.5 A<1@30",
                Kind.EOD_REDELIVERY_AFTER_ACK,
                EOD,
                "A opened, A<m1, A acked m1, A ackconfirmed m1, A<m1",
                id="exactly once, acknowledged",
            ),
            pytest.param(
                "P1,2 A<1,2@1 A ack 2@1.2 A modack 1 30s@1.3 B<1@2 end @90",
                Kind.EOD_REDELIVERY_WHILE_OUTSTANDING,
                EOD,
                "A opened, B opened, A<m1, A<m2, A acked m2, A leasemodified m1, B<m1",
                id="exactly once, outstanding",
            ),
        ],
    )
    def test_is_kept(self, line: str, kind: Kind, rules: Rules, expected: str) -> None:
        assert ", ".join(shown(reduced(line, kind, rules))) == expected

    def test_of_other_kinds_nobody_asks(self) -> None:
        minimal = reduced("P1,2,3 A<1@1 A ack 1@1.05 A<3@1.1 A ack 3@1.2", Kind.ORDER_GAP)
        assert shown(minimal) == ["A opened", "A<m3"]  # whose stream it is matters: no other stream of the subscriber ended
        assert not minimal.evidence

    def test_stays_small(self) -> None:
        answers = " ".join(f"A nack 1@{1.5 + number / 1000:.3f}" for number in range(300))
        minimal = reduced(f"P1,2,3,4 A<1,2,3@1 {answers} A<2@2 A<4@2.1", Kind.REDELIVERY_SKIP)
        assert len(minimal.evidence) <= EVIDENCE_MAX

    def test_stands_where_it_happened(self) -> None:
        minimal = reduced("P1,2,3,4 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A<4@2.1", Kind.REDELIVERY_SKIP)
        numbers = [number for number, _ in minimal.events]
        assert numbers == sorted(numbers)
        assert minimal.evidence < set(numbers)
        assert not minimal.evidence & set(minimal.finding.witnesses)
