"""What stands on each row of a diagram, before anybody paints it."""

from __future__ import annotations

from collections.abc import Sequence

from prober.core.events import Delivered, Ended, Event
from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.rules import Rules
from prober.evidence.diagram.rows import Arrow, Diagram, Mark, Note, Omission, Pause, Sign, Sort, absent, diagram_of
from tests.notation import history


def diagram(
    events: Sequence[Event], *witnesses: int, kind: Kind = Kind.ORDER_GAP, facts: Facts | None = None, rows_max: int = 60
) -> Diagram:
    status = Status.LIVENESS if kind in (Kind.STUCK, Kind.LOST_OVERTAKEN) else Status.VIOLATION
    finding = Finding(kind, status, "s", "k", 1.0, witnesses, facts or {})
    return diagram_of(list(enumerate(events, 1)), finding, Rules(), opened=[], subscribers_max=4, rows_max=rows_max)


def test_what_is_missing_stands_before_what_came_instead_and_after_a_pause() -> None:
    shown = diagram(history("P1,2,3 A<1@1 A<3@50"), 9, facts={"missing": (2,), "seq": 3})
    pause, missing, wrong = shown.rows[-3:]
    assert isinstance(pause.shape, Pause)
    assert missing.shape == Arrow(1, 2, Sort.MISSING, "2", details=("missing",))
    assert (missing.t, missing.number) == (None, 0)
    assert (wrong.number, wrong.mark) == (9, Mark.WRONG)


def test_nothing_is_missing_where_nobody_was() -> None:
    shown = diagram(history("P1 end @500"), 1, kind=Kind.STUCK, facts={"seqs": (1,), "count": 1})
    assert [row.number for row in shown.rows if not isinstance(row.shape, Pause)] == [1, 2, 3]


def test_a_lease_of_known_length_may_end() -> None:
    shown = diagram(history("P1,2 A<1@1 A<2@1.1 end @500"), kind=Kind.REDELIVERY_SKIP)
    (ended,) = (row for row in shown.rows if isinstance(row.shape, Note) and row.shape.sign is Sign.LEASE)
    assert ended.shape == Note(2, Sign.LEASE, "leases of 1 and 2 may end")
    assert ended.t == 61.0
    (bar,) = shown.bars
    assert (bar.column, shown.rows[bar.first].number, shown.rows[bar.last]) == (2, 6, ended)


def test_nothing_is_said_of_what_is_held_where_acknowledgements_are_not_kept() -> None:
    shown = diagram(history("P1,2 A<1@1 A<2@1.1 end @500"), kind=Kind.ORDER_GAP)
    assert not shown.bars
    assert not any(isinstance(row.shape, Note) and row.shape.sign is Sign.LEASE for row in shown.rows)


def test_leases_that_end_among_omitted_events_take_one_row_for_each_column() -> None:
    events: list[Event] = [Delivered(float(n), "s", "k", f"c{n % 2}", "e", n, f"m{n}") for n in range(1, 2_001)]
    shown = diagram([*events, Ended(5_000.0, True)], 1, kind=Kind.REDELIVERY_SKIP, rows_max=10)
    leases = [row for row in shown.rows if isinstance(row.shape, Note) and row.shape.sign is Sign.LEASE]
    assert 0 < len(leases) < 2 * 10
    assert sum(row.shape.count for row in shown.rows if isinstance(row.shape, Omission)) == shown.omitted == 2_001 - 10
    assert all(0 <= bar.first <= bar.last < len(shown.rows) for bar in shown.bars)


def test_what_is_absent_is_said_by_the_facts_of_a_kind() -> None:
    assert absent(Kind.ORDER_GAP, {"missing": (2, 3), "missing_count": 12}) == (2, 12)
    assert absent(Kind.LOST_OVERTAKEN, {"seq": 7}) == (7, 1)
    assert absent(Kind.PHANTOM, {"seq": 7}) is None
    assert absent(Kind.STUCK, {}) is None
