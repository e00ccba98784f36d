"""docs/configuration.md tells the truth: it is what the models say now, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prober.config.loading import load
from prober.config.models import Config
from prober.config.problems import fields_by_key
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, Objective, rate_min_per_s
from tests.unit.config.writing import loaded

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
VARIABLES = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 3
    assert len(VARIABLES) == 1


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_valid(text: str, tmp_path: Path) -> None:
    assert isinstance(loaded(tmp_path, text), Config)


def test_what_the_page_says_is_the_default_is(tmp_path: Path) -> None:
    for text in EXAMPLES[1:]:
        assert loaded(tmp_path, text) == load(None, {})


@pytest.mark.parametrize("text", VARIABLES)
def test_the_variables_of_the_example_are_valid(text: str) -> None:
    assert isinstance(load(None, dict(line.split("=", 1) for line in text.splitlines())), Config)


def test_every_section_has_its_heading() -> None:
    headings = set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE))
    assert set(fields_by_key(Config)) - {"instance"} <= headings
    assert "- `instance`:" in PAGE


def test_the_table_of_rates_is_right() -> None:
    rows = re.findall(r"^\| ([\d.]+) % \| ([\d,]+) an hour \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for percent, rate in rows:
        slo = Objective("order", Indicator.ORDER, round(float(percent) / 100, 6), 30 * DAY_S)
        assert round(rate_min_per_s(slo) * HOUR_S) == int(rate.replace(",", ""))
