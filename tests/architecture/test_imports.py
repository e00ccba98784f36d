"""Who may import what: the contracts of pyproject.toml, the home of each library, and a core that needs nothing."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture import tree

# A library is imported by these modules (and what is below them), so that replacing it touches one place.
HOMES = {
    "aiohttp": (
        "prober.drills",
        "prober.embedded.rest",
        "prober.embedded.pump",
        "prober.embedded.rest",
        "prober.embedded.server",
    ),
    "anyio": ("prober.serving",),
    "alembic": ("prober.sinks.status",),
    "apscheduler": ("prober.schedule.scheduler",),
    "cronsim": ("prober.config.cron",),
    "cryptography": ("prober.brokers.push", "prober.embedded.signing"),
    "datasketches": ("prober.probes.observe", "prober.sinks.top_keys"),
    "fastavro": ("prober.embedded.schema_types", "prober.exports"),
    "fastapi": ("api", "prober.brokers.push", "prober.serving"),
    "google": (
        "prober.brokers",
        "prober.embedded.calls",
        "prober.embedded.rest",
        "prober.embedded.iam",
        "prober.embedded.protobuf",
        "prober.embedded.rest",
        "prober.embedded.schema_calls",
        "prober.embedded.schema_types",
        "prober.embedded.signing",
        "prober.exports",
        "prober.monitoring.cloud",
    ),
    "grpc": (
        "prober.brokers",
        "prober.embedded.server",
        "prober.embedded.servicer",
        "prober.monitoring.cloud",
        "prober.simulation.network",
    ),
    "grafana_foundation_sdk": ("dashboards",),
    "nats": ("prober.brokers.nats",),
    "opentelemetry": ("prober.logs", "prober.sinks.otlp", "prober.sinks.tracing"),
    "jinja2": ("api", "prober.alerting"),
    "msgspec": ("prober.traces",),
    "orjson": ("prober.sinks.history", "prober.sinks.status", "prober.traces"),
    "prometheus_client": ("prober.sinks.metrics", "prober.sinks.otlp.metrics"),
    "promql_parser": ("dashboards",),
    "pyarrow": ("prober.reports", "prober.sinks.history", "spark_jobs"),
    "pydantic": ("api", "prober.config", "prober.simulation", "prober.sinks.status"),
    "pydantic_core": ("prober.config",),
    "pyspark": ("spark_jobs",),
    "rich": ("prober.cli",),
    "sqlalchemy": ("prober.sinks.status",),
    "starlette": ("api", "prober.brokers.push"),
    "typer": ("prober.cli",),
    "uvicorn": ("prober.serving",),
    "yaml": ("prober.alerting", "prober.config"),
}

# Of the project itself, a Spark executor gets only this.
SPARK_MAY_IMPORT = (
    "spark_jobs",
    "prober.clock",
    "prober.core",
    "prober.cycles",
    "prober.evidence.explain",
    "prober.logs",
    "prober.probes.catalogue",
    "prober.reports.values",
    "prober.slo",
    "prober.sinks.history.arrow",
    "prober.sinks.history.checking",
    "prober.sinks.history.decoding",
    "prober.sinks.history.schema",
    "prober.sinks.history.arrow",
)


def module_name(path: Path) -> str:
    """`prober/core/events.py` is `prober.core.events`, `api/__init__.py` is `api`."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imported(text: str) -> Iterator[str]:
    """Every module that a file imports; for `from a import b` that is `a.b`, which may also be a name in `a`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_in(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of the packages or below one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def library_away_from_home(path: Path, text: str) -> list[str]:
    """A library of the table above is imported elsewhere."""
    return [
        f"{path}: {name} may only be imported by {', '.join(HOMES[library])}"
        for name in imported(text)
        if (library := name.partition(".")[0]) in HOMES and not is_in(module_name(path), HOMES[library])
    ]


def impure_import(path: Path, text: str) -> list[str]:
    """The core imports itself and the standard library, nothing else."""
    return [
        f"{path}: the core may not import {name}"
        for name in imported(text)
        if name.partition(".")[0] not in sys.stdlib_module_names and not is_in(name, ("prober.core", "prober.errors"))
    ]


def heavy_import(path: Path, text: str) -> list[str]:
    """A Spark job imports more of the project than executors have."""
    return [
        f"{path}: a Spark job may not import {name}"
        for name in imported(text)
        if is_in(name, tree.PACKAGES) and not is_in(name, SPARK_MAY_IMPORT)
    ]


def contracted() -> set[str]:
    """The packages whose modules the contracts are about."""
    settings = tomllib.loads((tree.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(settings["tool"]["importlinter"]["root_packages"])


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of pyproject.toml on the packages in a folder."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", str(tree.ROOT / "pyproject.toml")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_libraries_stay_at_home() -> None:
    tree.expect_none(complaint for path, text in tree.sources(*tree.PACKAGES) for complaint in library_away_from_home(path, text))


def test_the_core_needs_only_the_standard_library() -> None:
    core = [(path, text) for path, text in tree.sources("prober") if path.parts[1] == "core"]
    assert core
    tree.expect_none(complaint for path, text in core for complaint in impure_import(path, text))


def test_spark_jobs_need_only_the_core_and_the_schema() -> None:
    tree.expect_none(complaint for path, text in tree.sources("spark_jobs") for complaint in heavy_import(path, text))


def test_the_contracts_are_about_every_package_but_tests_and_examples() -> None:
    assert contracted() == {
        path.parts[0] for path, _ in tree.sources() if len(path.parts) > 1 and path.parts[0] not in {"examples", "helm", "tests"}
    }


def test_the_contracts_are_kept() -> None:
    result = lint_imports(tree.ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


BROKEN = (
    ("prober/core/broken.py", "import time", "The core uses no I/O", "prober.core.broken -> time"),
    (
        "prober/core/broken.py",
        "from prober.sinks.history import anything",
        "Layers of the prober",
        "prober.core.broken -> prober.sinks.history",
    ),
    ("prober/cellar/broken.py", "import prober.core", "Layers of the prober", "not listed as layers:\n\n- prober.cellar"),
    ("prober/sinks/history/broken.py", "import api", "Layers of the programs", "prober.sinks.history.broken -> api"),
    ("prober/alerting/broken.py", "from dashboards import board", "Layers of the programs", "prober.alerting.broken -> dashboards"),
    ("prober/reports/broken.py", "import prober.alerting", "Layers of the prober", "prober.reports.broken -> prober.alerting"),
    ("api/words.py", "from api import app", "No import cycles between sibling modules", ".words -> .app"),
    (
        "prober/sinks/live/broken.py",
        "from prober.sinks.status import store",
        "Layers of the sinks",
        "live.broken -> prober.sinks.status",
    ),
    (
        "prober/embedded/state.py",
        "import prober.core",
        "The verifier and the embedded server share no code",
        "state -> prober.core",
    ),
    ("prober/embedded/delivery.py", "import time", "The state machine of the embedded server", "prober.embedded.delivery -> time"),
    ("prober/embedded/key_queues.py", "import prober.embedded.delivery", "Layers of the embedded server", "key_queues -> "),
    (
        "prober/embedded/broken.py",
        "import math",
        "Layers of the embedded server",
        "not listed as layers:\n\n- prober.embedded.broken",
    ),
)
"""Lines that break a contract at the end of a module: with the contract, and the complaint."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The complaints about a tree with all of these lines."""
    folder = tmp_path_factory.mktemp("broken")
    for package in contracted():
        shutil.copytree(tree.ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for module, line, _, _ in BROKEN:
        broken = folder / module
        broken.parent.mkdir(exist_ok=True)
        (broken.parent / "__init__.py").touch()
        with broken.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    result = lint_imports(folder)
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout.split("Broken contracts")[1]


@pytest.mark.parametrize(("module", "line", "contract", "complaint"), BROKEN)
def test_a_broken_contract_is_noticed(said: str, module: str, line: str, contract: str, complaint: str) -> None:
    about = re.search(rf"(?ms)^{contract}[^\n]*\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", said)
    assert about, said
    assert complaint in about[1]


def test_a_library_away_from_home_is_noticed() -> None:
    assert library_away_from_home(Path("prober/brokers/wire.py"), "import grpc.aio\nfrom google import pubsub_v1") == []
    complaint = f"prober/runs/runner.py: grpc.aio may only be imported by {', '.join(HOMES['grpc'])}"
    assert library_away_from_home(Path("prober/runs/runner.py"), "def f():\n    import grpc.aio") == [complaint]


def test_an_impure_import_is_noticed() -> None:
    path = Path("prober/core/model.py")
    assert impure_import(path, "import math\nfrom prober.core.events import Event\nfrom prober.core import rules") == []
    assert impure_import(path, "import orjson") == ["prober/core/model.py: the core may not import orjson"]
    assert impure_import(path, "from prober import cli") == ["prober/core/model.py: the core may not import prober.cli"]


def test_a_heavy_import_is_noticed() -> None:
    path = Path("spark_jobs/hot_keys.py")
    assert heavy_import(path, "import pyspark\nfrom prober.sinks.history import schema\nfrom prober.core.events import Event") == []
    assert heavy_import(path, "from prober.sinks.history import writer") == [
        "spark_jobs/hot_keys.py: a Spark job may not import prober.sinks.history.writer"
    ]
