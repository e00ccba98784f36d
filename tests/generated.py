"""The files of this repository that code writes from other files of it: `make generate` writes all of them.

What has to be measured, played or drawn has commands of its own (`make bench`, `make loud`, `make detection`, `make screenshots`); the
pages about it are made here from what these left (`figures.json`, `loud.json`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks import report
from benchmarks.figures import read
from dashboards.board import LinkTargets
from dashboards.boards import files
from dashboards.metrics_page import metrics_page
from prober.alerting.catalogue import rule_files
from prober.alerting.findings import with_tables
from prober.config.loading import load
from prober.config.reference import with_keys
from tests.commands import ROOT
from tests.helm import costs_page, examples, values_page
from tests.whole import loud


def _rules() -> Mapping[str, str]:
    return {f"alerts/{name}": text for name, text in rule_files(load(None, {}).objectives).items()}


def _dashboards() -> Mapping[str, str]:
    return {f"dashboards/{name}": text for name, text in files(load(None, {}).objectives, LinkTargets()).items()}


def _loud() -> str:
    kept = json.loads((ROOT / "docs" / "loud.json").read_text(encoding="utf-8"))
    return loud.page([loud.Story(**story) for story in kept.values()])


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/configuration.md": lambda: with_keys((ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")),
    "docs/costs.md": costs_page.page,
    "docs/findings.md": lambda: with_tables((ROOT / "docs" / "findings.md").read_text(encoding="utf-8")),
    "docs/loud.md": _loud,
    "docs/metrics.md": metrics_page,
    "docs/performance.md": lambda: report.page(read(report.KEPT)),
    "helm/ordering-keys-prober/README.md": values_page.page,
    "helm/ordering-keys-prober/values.schema.json": values_page.schema,
}
SETS: Final[Mapping[str, Callable[[], Mapping[str, str]]]] = {
    "alerts/*.rules.yaml": _rules,
    "dashboards/*.json": _dashboards,
    "examples/kubernetes/*.yaml": examples.files,
}
"""Files that are made together, by the pattern of their names: nothing else may have such a name."""


def generated() -> dict[Path, str]:
    """What each of them has to hold."""
    every = {name: make() for name, make in PAGES.items()}
    for make in SETS.values():
        every |= make()
    return {ROOT / name: text for name, text in every.items()}


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")
