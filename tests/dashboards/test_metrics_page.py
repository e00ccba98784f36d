"""docs/metrics.md is current, and every metric family has a reader: an alert, a recording rule or a panel."""

from __future__ import annotations

from dashboards.metrics_page import Readers, readers
from prober.sinks.metrics.families import FAMILIES


def test_every_family_has_a_reader() -> None:
    found = readers()
    assert found.keys() == set(FAMILIES)
    assert [family.full_name for family, by in found.items() if not by] == []


def test_a_family_without_a_reader_would_be_noticed() -> None:
    assert not Readers()
    assert Readers(dashboards={"keys"})
