"""docs/findings.md says of each kind what the project knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.alerting.findings import alerts_of, with_tables
from prober.core.findings import FAILING, Kind
from prober.core.kinds import KINDS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_up_to_date() -> None:
    page = (DOCS / "findings.md").read_text(encoding="utf-8")
    assert with_tables(page) == page, "run: make generate"
    assert all(f"| `{kind}` |" in page for kind in Kind)


def test_a_page_without_a_place_for_them_is_left_alone() -> None:
    with pytest.raises(ValueError, match="where the tables belong"):
        with_tables("# Findings\n")


def test_whatever_can_fail_a_run_fires_an_alert_that_has_a_runbook() -> None:
    for kind, meaning in KINDS.items():
        assert bool(alerts_of(kind)) is not FAILING.isdisjoint(meaning.statuses), kind
        assert all((DOCS / "runbooks" / f"{name}.md").is_file() for name in alerts_of(kind)), kind
