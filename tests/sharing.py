"""How the workers of a test run share the tests: by what the tests share, long ones first."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

ROOT: Final = Path(__file__).parents[1]
WAITING: Final = tuple(
    f"tests/{file}"
    for file in (
        "dashboards/test_live.py",
        "integration/test_service.py",
        "runbooks/",
    )
)
"""Tests that wait for minutes, for alerts, leases and schedules, and leave the processor to others meanwhile: the longest first."""
SLOW: Final = (
    *WAITING,
    *(
        f"tests/{folder}/"
        for folder in (
            "spark",
            "integration",
            "compat",
            "dashboards",
            "browser",
            "helm",
            "image",
            "contract",
            "exhaustive",
            "simulation",
            "property",
            "unit/api/routes",
            "unit/sinks/status",
        )
    ),
)
"""Tests that take long, in the order in which they begin: none may be left when everything else is done."""
TOGETHER: Final = (
    "tests/spark/test_simulated.py",
    "tests/spark/",
    "tests/browser/",
    "tests/helm/test_for_real.py",
    "tests/helm/",
    "tests/contract/",
    "tests/unit/api/routes/",
    "tests/unit/sinks/status/",
)
"""Tests that share what takes longer to make than most of them take: Spark, a browser and what it looks at, renderings of the chart, a
filled store, Google's emulator, PostgreSQL. Those of whole nights have a Spark of their own: together with all others of Spark they would
take longer than everything else. So do those that wait for containers of the chart."""
SINGLY: Final = tuple(f"tests/{folder}/" for folder in ("integration", "compat", "exhaustive", "simulation", "property", "alerts"))
"""Other tests that are handed out one by one, unless those of a file share a fixture. Those of other files take less time than that."""


def rank(nodeid: str) -> int:
    """When a test begins: the lower, the earlier."""
    return next((number for number, folder in enumerate(SLOW) if nodeid.startswith(folder)), len(SLOW))


def together(nodeid: str) -> str:
    """What a test is a part of: one worker does all tests for which this is the same."""
    if group := next((start for start in TOGETHER if nodeid.startswith(start)), ""):
        return group
    file = nodeid.partition("::")[0]
    return nodeid if nodeid.startswith(SINGLY) and not shares_a_fixture(file) else file


@cache
def shares_a_fixture(file: str) -> bool:
    """Whether the tests of a file share what one of its fixtures makes: every worker that does one of them makes it anew."""
    return (ROOT / file).is_file() and 'fixture(scope="module")' in (ROOT / file).read_text(encoding="utf-8")


class Sharing(LoadScopeScheduling):  # type: ignore[misc]  # it is untyped
    """Hands out tests by what they are a part of."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a worker away; returns the test that ended it, which xdist alone would hand out again and again."""
        left = ((unit, test) for unit in self.assigned_work[node].values() for test, completed in unit.items() if not completed)
        for its_unit, running in left:
            its_unit[running] = True
            super().remove_node(node)
            return str(running)
        super().remove_node(node)
        return None
