"""Dossiers: what is collected around a finding is bounded, and shown even if it proves nothing by itself."""

from __future__ import annotations

from prober.core.events import Closed, Opened
from prober.core.findings import Finding, Kind, Status
from prober.core.judge import RecordedFinding
from prober.core.rules import Rules
from prober.evidence.evidence import EXCERPT_EVENTS_MAX, collect, proof_of
from prober.evidence.minimise import is_proven_by
from prober.traces.header import TraceHeader
from prober.traces.judgement import judge
from tests.notation import history


def made(*witnesses: int, after: int, key: str = "k") -> RecordedFinding:
    return RecordedFinding(Finding(Kind.ORDER_GAP, Status.VIOLATION, "s", key, 1.0, witnesses, {"seq": 3}), after)


def test_an_excerpt_is_bounded_and_keeps_its_witnesses() -> None:
    events = history(" ".join(f"A<{n}@{n}" for n in range(1, 10_001)))
    (excerpt,) = collect(lambda: events, [made(2, 9_000, after=9_500)])
    numbers = [number for number, _ in excerpt.events()]
    assert numbers == [1, 2, *range(9_501 - EXCERPT_EVENTS_MAX, 9_501)]
    assert isinstance(excerpt.events()[0][1], Opened)


def test_an_excerpt_holds_one_key_and_what_concerns_all() -> None:
    events = history("P1,2 A<1@1") + history("P1 A<1@1 seek 60@2", key="k2")
    one, other = collect(lambda: events, [made(1, after=100), made(1, after=100, key="k2")])
    assert {getattr(event, "key", None) for _, event in one.events()} == {"k", None}
    assert {getattr(event, "key", None) for _, event in other.events()} == {"k2", None}


def test_an_excerpt_holds_what_happened_to_the_key_on_other_subscriptions() -> None:
    """What one subscription is owed can depend on what was delivered before it showed itself."""
    events = history("A<1@1") + history("B<1@1", subscription="s2")
    (excerpt,) = collect(lambda: events, [made(1, after=100)])
    assert [event for _, event in excerpt.events()] == events


def test_a_subscription_that_shows_itself_late_is_judged_as_it_was() -> None:
    """It is owed what is not delivered elsewhere by then; known from the start, it would be owed everything."""
    events = history("P1,2,3 A<1@1 A<3@2") + history("B<3@3 end @500", subscription="s2")
    header = TraceHeader("s", "k")
    found = [one for one in judge("f", header, events).findings if one.finding.subscription == "s2"]
    assert found
    assert all(proof_of(excerpt, header).lines for excerpt in collect(lambda: events, found))


def test_an_excerpt_that_proves_nothing_is_shown_as_it_is() -> None:
    (excerpt,) = collect(lambda: history("P1,2 A<1@1 A<2@2"), [made(6, after=7)])
    shown = proof_of(excerpt, TraceHeader("s", "k"))
    assert shown.heading == "what happened around it (7 events, which alone do not prove it again)"
    assert shown.lines == ()
    assert "X <-- wrong" in shown.diagram


def test_where_nothing_came_everything_on_the_key_shows_to_whom_it_could_have_come() -> None:
    events = [Opened(0.0, "s", "A", "A"), Opened(0.0, "s", "B", "B"), Closed(0.1, "s", "B"), *history("P1@1 ok1=m1@1.1 end @500")]
    header = TraceHeader("s", "k", Rules())
    (stuck,) = judge("f", header, events).findings
    (excerpt,) = collect(lambda: events, [stuck])
    shown = excerpt.on_key().events
    assert [event for _, event in shown] == [events[0], *events[3:]]
    assert is_proven_by(shown, stuck.finding, header.rules, subscriptions=("s",))
