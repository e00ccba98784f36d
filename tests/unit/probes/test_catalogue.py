"""What probes declare fits together, and each of them can be configured alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.probes.catalogue import DECLARED, PROBES, ProbeName, is_fed
from prober.probes.experiment import Company
from prober.slo.indicators import Indicator
from tests.commands import ROOT
from tests.unit.config.writing import loaded


def test_every_name_is_that_of_a_probe() -> None:
    assert {name: probe.name for name, probe in DECLARED.items()} == {name: str(name) for name in ProbeName}
    assert set(PROBES) == set(ProbeName) - {ProbeName.OBSERVE}


def test_every_indicator_is_fed_and_none_by_a_stream_of_others() -> None:
    assert {one for one in Indicator if is_fed(one, PROBES)} == set(Indicator)
    assert not any(is_fed(one, {ProbeName.OBSERVE, "of an earlier release"}) for one in Indicator)


@pytest.mark.parametrize("name", list(DECLARED))
def test_a_probe_alone_is_valid_with_its_defaults(name: str, tmp_path: Path) -> None:
    probes = f"[{name}]" if DECLARED[name].own_messages else f"{{{name}: {{observe: {{topic: orders}}}}}}"
    (target,) = loaded(tmp_path, f"targets: [{{name: here, probes: {probes}}}]").targets
    assert list(target.probes) == [name]


def test_an_objective_that_a_probe_cannot_feed_by_default_is_none_of_its_defaults(tmp_path: Path) -> None:
    text = "targets: [{name: here, probes: [%s]}]"
    assert "stalled_keys" not in loaded(tmp_path, text % "hot_key").slos  # one key is 60 key-minutes an hour, and 70 are needed
    assert "stalled_keys" in loaded(tmp_path, text % "hot_key, push").slos


@pytest.mark.parametrize("company", Company)
def test_the_page_lists_the_probes_of_each_company(company: Company) -> None:
    (row,) = [
        line
        for line in (ROOT / "docs" / "probes" / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {company} |")
    ]
    assert {name.strip().strip("`") for name in row.split("|")[2].split(",")} == {
        name for name, probe in PROBES.items() if probe.company is company
    }
