"""The probes that `check` runs side by side: docs/probes/README.md lists them as they are declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.probes.catalogue import PROBES
from prober.probes.experiment import Company

PAGE = Path(__file__).parents[3] / "docs" / "probes" / "README.md"


@pytest.mark.parametrize("company", Company)
def test_the_page_lists_the_probes_of_each_company(company: Company) -> None:
    (row,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {company} |")]
    assert {name.strip().strip("`") for name in row.split("|")[2].split(",")} == {
        name for name, probe in PROBES.items() if probe.company is company
    }
