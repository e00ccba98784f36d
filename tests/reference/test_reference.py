"""The reference agrees with the recorded traces and with the cases of the amendments, which are written out by hand.

It says for certain what is wrong, not always by which name: what skips an order of first delivery, a run or a deadline has several.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from prober.core.events import Event
from prober.core.findings import Kind
from prober.core.rules import Rules
from prober.traces.trace import read_trace
from tests.judging import FAILURES
from tests.notation import history
from tests.reference.checker import opinion
from tests.unit.core import cases

VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("*.jsonl"))
TOPICS = ("grace_periods", "clocks", "forgetting", "holder", "liveness", "lost_sends", "order", "overtakings", "records")
LONGEST = 700
"""Events: it looks everything up in everything. What is longer is left to the checker."""

FAMILIES = (
    {Kind.ORDER_GAP, Kind.ORDER_INVERSION, Kind.REALTIME_INVERSION},
    {Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.UNACKED_STALL, Kind.REDELIVERY_STALL},
    {Kind.REDELIVERY_SKIP, Kind.PULL_BATCH_ORDER},
)


def alike(kind: str) -> str:
    """One name for the kinds that are told apart by when something came, if ever."""
    return next((str(min(family)) for family in FAMILIES if kind in family), str(kind))


def agrees(rules: Rules, events: list[Event], expected: list[set[str]]) -> None:
    """What is expected is found; in a legal history nothing is."""
    mine = opinion(rules, events)
    found = {alike(kind) for kind in mine.kinds}
    assert not mine.gave_up
    assert all(not found.isdisjoint(map(alike, one)) for one in expected), mine.where
    assert expected or not found, mine.where


SUPERSEDED = {"it is held only since later", "a hole, then a short seek"}
"""Cases that the checker judges by older rules: another key that is held is an excuse, whenever that began (docs/model.md, 8.3), and a
hole in the record excuses nothing that was published after it (section 10)."""


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_traces(path: Path) -> None:
    with read_trace(path) as trace:
        events = list(trace)
        expected = [{str(one.kind)} for one in trace.header.expect or () if one.status in FAILURES]
    if len(events) > LONGEST:
        pytest.skip("too long for it")
    agrees(trace.header.rules, events, expected)


def written_out() -> Iterator[ParameterSet]:
    """Every case of the amendments about one subscription."""
    for topic in TOPICS:
        for name, test in vars(import_module(f"tests.unit.core.test_amendments_{topic}")).items():
            for mark in getattr(test, "pytestmark", ()):
                for one in mark.args[1] if mark.name == "parametrize" else ():
                    if isinstance(one.values[0], cases.Definite) and one.id not in SUPERSEDED:
                        yield pytest.param(one.values[0], id=f"{topic}-{name.removeprefix('test_')}-{one.id}")


@pytest.mark.parametrize("one", list(written_out()))
def test_cases(one: cases.Definite) -> None:
    events = history(one.history, one.rules.mode)
    if len(events) > LONGEST:
        pytest.skip("too long for it")
    agrees(one.rules, events, [{word[2:] for word in words.split("|")} for words in one.expected.split()])


def test_too_much_to_explain_is_said() -> None:
    """Thirty streams of one client that race without a bound on the delay: nobody can try all orders."""
    streams = " ".join(f"open A{n} of client A" for n in range(30))
    copies = " ".join(f"A{n}<x{n}(1)@1" for n in range(30))
    assert opinion(Rules(delivery_delay_max_s=100.0), history(f"{streams} P1@0 info1@0.1 {copies}")).gave_up
