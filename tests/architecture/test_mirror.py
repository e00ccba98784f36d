"""The tests of a package are where the package is: those of `prober/runs` in `tests/unit/runs`, of `api/routes` below `tests/unit`."""

from __future__ import annotations

from pathlib import Path

from tests.architecture import tree

UNIT = Path("tests/unit")
ELSEWHERE = {
    "api/models": "tests/unit/api/routes",
    "benchmarks/soak": "tests/unit/benchmarks",
    "dashboards": "tests/dashboards",
    "dashboards/boards": "tests/dashboards",
    "examples": "tests/integration/test_analyze_history.py",
    "examples/dataflow": "tests/integration/test_dataflow.py",
    "examples/publisher": "tests/integration/test_examples.py",
    "prober/serving": "tests/integration/test_api_connections.py",
    "prober/sinks/status/migrations": "tests/unit/sinks/status/test_migration.py",
    "prober/sinks/status/migrations/versions": "tests/unit/sinks/status/test_migration.py",
    "spark_jobs": "tests/spark",
}
"""Packages whose tests need more than one process or are about several packages, and where these are."""


def packages() -> set[str]:
    """Every folder with modules, but the one that holds the rooms."""
    modules = [path for path, _ in tree.sources() if path.name != "__init__.py" and len(path.parts) > 1]
    return {path.parent.as_posix() for path in modules if path.parts[0] not in {"helm", "tests"}} - {"prober"}


def mirrored(package: str) -> str:
    """Where the tests of a package belong."""
    return (UNIT / package.removeprefix("prober/")).as_posix()


def with_tests() -> set[str]:
    """The folders of `tests/unit` that have tests."""
    return {
        path.parent.as_posix() for path, _ in tree.sources("tests") if path.name.startswith("test_") and path.is_relative_to(UNIT)
    }


def test_every_package_has_its_tests_where_it_is() -> None:
    tested = with_tests()
    assert {package for package in packages() if mirrored(package) not in tested} == set(ELSEWHERE)
    assert [where for where in ELSEWHERE.values() if not (tree.ROOT / where).exists()] == []


def test_every_folder_of_tests_is_that_of_a_package() -> None:
    assert with_tests() - {UNIT.as_posix()} <= set(map(mirrored, packages()))
