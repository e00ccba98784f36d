"""docs/metrics.md is current, and every metric family has a reader: an alert, a recording rule or a panel."""

from __future__ import annotations

from dashboards.metrics_page import Readers, metrics_page, readers
from prober.sinks.metrics.families import FAMILIES
from tests.commands import ROOT


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert metrics_page() == page, "run: python -m dashboards.metrics_page > docs/metrics.md"


def test_every_family_has_a_reader() -> None:
    found = readers()
    assert found.keys() == set(FAMILIES)
    assert [family.full_name for family, by in found.items() if not by] == []


def test_a_family_without_a_reader_would_be_noticed() -> None:
    assert not Readers()
    assert Readers(dashboards={"keys"})
