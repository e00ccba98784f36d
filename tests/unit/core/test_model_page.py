"""Each trace of the rules of docs/model.md has the outcome that its row states; the page shows some of the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Mode, Rules
from tests.commands import ROOT
from tests.notation import history
from tests.verification import FAILURES, kinds, verify

PAGE = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
TRACES = (ROOT / "tests" / "unit" / "core" / "model_traces.txt").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| (?P<outcome>ok|free|(?:violation|inconclusive) [A-Z_]+) \| `(?P<trace>[^`]+)`(?P<settings>[^|]*) \| (?P<rule>[^|]+) \|$",
    re.M,
)


@dataclass(frozen=True)
class Example:
    """A row of a table of traces. `outcome`: ok, free, or a certainty and a kind."""

    outcome: str
    trace: str
    rules: Rules
    rule: str


def examples() -> Iterator[Example]:
    """The traces of all rules, in the order of the sections."""
    for row in ROW.finditer(TRACES):
        yield Example(row["outcome"], row["trace"], _rules(row["settings"]), row["rule"])


def _rules(settings: str) -> Rules:
    """Rules from settings such as "(pull) `exactly_once` `message_retention_s=600`"."""
    mode = re.search(r"\((\w+)\)", settings)
    values: dict[str, Any] = {"mode": Mode(mode[1])} if mode else {}
    for name, value in re.findall(r"`(\w+)(?:=(\w+))?`", settings):
        values[name] = {"": True, "true": True, "false": False}.get(value, value)
        if value.isdigit():
            values[name] = int(value)
    return Rules(**values)


@pytest.mark.parametrize("example", list(examples()), ids=lambda one: f"{one.rule}: {one.outcome}")
def test_a_trace_has_the_outcome_of_its_row(example: Example) -> None:
    verify_outcome(example, verify(example.rules, history(example.trace, example.rules.mode)))


def verify_outcome(example: Example, findings: list[Finding]) -> None:
    """Fails unless the findings are what its row states."""
    certainty, _, kind = example.outcome.partition(" ")
    violated, doubtful = kinds(findings, *FAILURES), kinds(findings, Status.INDETERMINATE)
    if certainty == "violation":
        assert Kind(kind) in violated
        return
    assert violated == set()
    if certainty == "inconclusive":
        assert Kind(kind) in doubtful
    if certainty == "ok":
        assert doubtful == set()


def test_each_section_of_rules_has_traces_of_both_outcomes() -> None:
    headings = re.findall(r"^##+ (.+)", PAGE, flags=re.M)
    sections = re.split(r"^## ", TRACES, flags=re.M)[1:]
    assert len(sections) >= 9
    for section in sections:
        heading = section.splitlines()[0]
        assert heading in headings
        outcomes = {row["outcome"].split()[0] for row in ROW.finditer(section)}
        assert "violation" in outcomes or "inconclusive" in outcomes, heading
        assert outcomes & {"ok", "free"}, heading


def test_every_trace_is_read() -> None:
    assert len(list(examples())) == len(re.findall(r"^\| ", TRACES, flags=re.M)) > 50


def test_the_traces_of_the_page_are_rows_of_the_file() -> None:
    shown = re.findall(r"^- (ok|free|(?:violation|inconclusive) [A-Z_]+): `([^`]+)`", PAGE, flags=re.M)
    assert len(shown) > 10
    for outcome, trace in shown:
        assert f"| {outcome} | `{trace}`" in TRACES
