"""How the workers of a test run share the tests: by what the tests share, long ones first."""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

SLOW: Final = tuple(
    f"tests/{folder}/"
    for folder in (
        "spark",
        "integration",
        "dashboards",
        "browser",
        "helm",
        "image",
        "contract",
        "exhaustive",
        "simulation",
        "property",
    )
)
"""Tests that take long, in the order in which they begin: none may be left when everything else is done."""
TOGETHER: Final = (
    "tests/spark/",
    "tests/browser/",
    "tests/integration/test_embedded_node.py",
    "tests/integration/test_embedded_clients.py",
)
"""Tests that share what takes longer to start than most of them take: Spark, a browser and what it looks at, a server."""
SINGLY: Final = tuple(
    f"tests/{folder}/" for folder in ("integration", "contract", "exhaustive", "simulation", "property", "alerts")
)
"""Other tests that are handed out one by one. Those of any other file take less time than that."""


def rank(nodeid: str) -> int:
    """When a test begins: the lower, the earlier."""
    return next((number for number, folder in enumerate(SLOW) if nodeid.startswith(folder)), len(SLOW))


def together(nodeid: str) -> str:
    """What a test is a part of: one worker does all tests for which this is the same."""
    if group := next((start for start in TOGETHER if nodeid.startswith(start)), ""):
        return group
    return nodeid if nodeid.startswith(SINGLY) else nodeid.partition("::")[0]


class Sharing(LoadScopeScheduling):  # type: ignore[misc]  # it is untyped
    """Hands out tests by what they are a part of."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)
