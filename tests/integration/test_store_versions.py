"""Programs of two versions on one status store, each in a process of its own: upgrade, rollback, and a start at the same time.

A later program is a copy of this one with the further revisions of `tests/unit/sinks/status/later`, and code that needs them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pytest

from prober.clock import wall_s
from prober.core.findings import Kind
from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.commands import PROGRAM, ROOT
from tests.forking import Forked
from tests.integration.programs import PATIENCE_S, Program, eventually, server
from tests.unit.sinks.status.examples import entry, sqlite_url
from tests.unit.sinks.status.later import ADDITIVE, BREAKING
from tests.unit.sinks.status.postgresql import PostgreSQL, binaries

PARTS = 4
NEEDED = "\nRunRecord.note = mapped_column(StoredText, nullable=True)\n"
"""Code of the later program that needs the column of its revision: it selects and writes it."""
DOWNGRADED = "the status store has revision 1 after a downgrade, and this program needs 2: run `ordering-prober store upgrade`"
TOO_OLD = (
    "the status store has revision 3, for which this program (revision 1) is too old: run `ordering-prober store downgrade --to 1` with "
    "the program that upgraded the store, or use that program"
)


@dataclass(frozen=True)
class Version:
    """A version of the program: this one, or a copy with further revisions in a folder."""

    environ: Mapping[str, str]
    folder: Path = ROOT

    @contextmanager
    def running(self, *arguments: str, **environ: str) -> Iterator[Program]:
        """The program with these arguments, killed in the end if it still runs."""
        environment = self._environment(environ)
        with subprocess.Popen(
            [*PROGRAM, *arguments], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            running = Program(cast(Forked, process))
            listener = threading.Thread(target=running.listen, daemon=True)
            listener.start()
            try:
                yield running
            finally:
                process.kill()
                listener.join(PATIENCE_S)

    def store(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`ordering-prober store` with these arguments."""
        return subprocess.run(
            [*PROGRAM, "store", *arguments], cwd=self.folder, env=self._environment({}), capture_output=True, text=True, check=False
        )

    def _environment(self, own: Mapping[str, str]) -> dict[str, str]:
        python = {"PYTHONPATH": str(self.folder), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}
        return os.environ | python | dict(self.environ) | dict(own)


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Path]:
    """The folders of later programs, by revision."""
    found = {}
    for revision, additions in ((2, (ADDITIVE,)), (3, (ADDITIVE, BREAKING))):
        found[revision] = folder = tmp_path_factory.mktemp(f"program-{revision}")
        for package in ("prober", "api"):
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        status = folder / "prober" / "sinks" / "status"
        for module in (path for addition in additions for path in addition.glob("[a-z]*.py")):
            shutil.copy(module, status / "migrations" / "versions")
        records = status / "records.py"
        records.write_text(
            records.read_text(encoding="utf-8").replace("import Json,", "import StoredText, Json,") + NEEDED, encoding="utf-8"
        )
    return found


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
        return
    with PostgreSQL(binaries()) as postgresql:
        yield postgresql.new_database()


def versions(url: str, later: Mapping[int, Path], **more: str) -> tuple[Version, Version, Version]:
    environ = {"ORDERING_PROBER_STATUS__URL": url, "ORDERING_PROBER_API__PORT": "0", **more}
    return Version(environ), Version(environ, later[2]), Version(environ, later[3])


def changed(done: subprocess.CompletedProcess[str], after: str) -> bool:
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip().endswith(after)


def client_of(running: Program, processes: ExitStack) -> httpx.Client:
    return processes.enter_context(httpx.Client(base_url=running.said(r"status page: (\S+)/"), timeout=PATIENCE_S))


def problems(client: httpx.Client) -> list[str]:
    return list(client.get("/readyz").json()["problems"])


@pytest.mark.nightly  # six processes, and as many commands; by day `test_revisions` and `test_store_command` do the same in one process
def test_the_api_of_each_version_on_the_store_of_the_other(url: str, later: Mapping[int, Path]) -> None:
    one, two, three = versions(url, later)
    database = Database(url)
    store = StatusStore(database)
    store.prepare()
    store.record([entry("run-1", Kind.ORDER_GAP, at=wall_s())])
    with ExitStack() as processes:
        earlier = client_of(processes.enter_context(one.running("api")), processes)
        assert changed(two.store("upgrade"), "revision 1; now revision 2")
        restarted = client_of(processes.enter_context(one.running("api")), processes)
        newer = client_of(processes.enter_context(two.running("api")), processes)
        store.record([entry("run-2", Kind.ORDER_GAP, at=wall_s())])
        for client in (earlier, restarted, newer):
            assert problems(client) == []
            assert {run["run_id"] for run in client.get("/api/v1/runs").json()["items"]} == {"run-1", "run-2"}
            assert client.get("/api/v1/findings/run-2-1").status_code == 200

        assert changed(two.store("downgrade", "--to", "1", "--yes"), "now revision 1, pinned until `store upgrade`")
        eventually(lambda: problems(newer) == [DOWNGRADED])
        assert newer.get("/api/v1/runs").json()["detail"] == DOWNGRADED
        refused = client_of(processes.enter_context(two.running("api")), processes)
        assert problems(refused) == [DOWNGRADED]
        assert two.store("status").returncode == 1
        assert one.store("status").returncode == 0
        for client in (earlier, restarted):
            assert problems(client) == []
            assert {run["run_id"] for run in client.get("/api/v1/runs").json()["items"]} == {"run-1", "run-2"}
        assert changed(two.store("upgrade"), "now revision 2")
        eventually(lambda: problems(newer) == problems(refused) == [])

        assert changed(three.store("upgrade"), "now revision 3")
        eventually(lambda: problems(earlier) == [TOO_OLD])
        assert (earlier.get("/api/v1/runs").status_code, earlier.get("/healthz").status_code) == (503, 200)
        assert earlier.get("/api/v1/runs").json()["detail"] == TOO_OLD
        eventually(lambda: TOO_OLD in earlier.get("/api/v1/status").json()["troubles"])
        started = client_of(processes.enter_context(one.running("api")), processes)
        assert problems(started) == [TOO_OLD]
        for command in (("status",), ("upgrade",), ("downgrade", "--to", "1", "--yes")):
            assert one.store(*command).returncode == 2
        assert changed(three.store("downgrade", "--to", "1", "--yes"), "now revision 1, pinned until `store upgrade`")
        eventually(lambda: problems(earlier) == problems(started) == [])
    database.close()


def test_programs_of_two_versions_start_at_the_same_time_on_an_empty_store(url: str, later: Mapping[int, Path]) -> None:
    one, two, _ = versions(url, later)
    with ExitStack() as processes:
        started = [processes.enter_context(version.running("api")) for version in (one, two, one, two)]
        for client in [client_of(running, processes) for running in started]:
            eventually(lambda client=client: problems(client) == [])  # type: ignore[misc]
    state = json.loads(two.store("status", "--format", "json").stdout)
    assert (state["revision"], state["oldest_program"], state["pinned"]) == ("2", "1", False)


class Group:
    """Probers of one group on PostgreSQL, of several versions."""

    def __init__(self, url: str, processes: ExitStack) -> None:
        self.database, self._processes = Database(url), processes
        self.queries = StatusQueries(self.database)

    def start(self, version: Version, name: str) -> tuple[Program, httpx.Client]:
        running = self._processes.enter_context(version.running("run", ORDERING_PROBER_INSTANCE=name))
        return running, client_of(running, self._processes)

    def share(self, name: str) -> set[str]:
        """The parts that a prober reports to work at."""
        return {reported.probe_instance.part for reported in self.queries.probe_instances() if reported.instance == name}

    def is_divided_among(self, *names: str) -> bool:
        """Whether every part is at one of these probers and none at two, and each has a part."""
        shares = [self.share(name) for name in names]
        return all(shares) and sum(map(len, shares)) == len(set.union(*shares)) == PARTS

    def runs(self, name: str) -> set[str]:
        """The stored runs of a prober."""
        return {run.run_id for run in self.queries.runs(limit=500).items if run.instance == name}

    def expect_more_runs(self, *names: str) -> None:
        before = {name: self.runs(name) for name in names}
        eventually(lambda: all(self.runs(name) - before[name] for name in names))


@pytest.mark.nightly
def test_probers_of_two_versions_share_their_work_and_a_rollback_keeps_their_runs(later: Mapping[int, Path]) -> None:
    with PostgreSQL(binaries()) as postgresql, server() as (_, target), ExitStack() as processes:
        url = postgresql.new_database()
        one, two, three = versions(url, later, **settings(target))
        assert changed(one.store("upgrade"), "empty; now revision 1")
        group = Group(url, processes)
        _, earlier = group.start(one, "earlier")
        eventually(lambda: group.is_divided_among("earlier"))
        assert changed(two.store("upgrade"), "revision 1; now revision 2")
        newer, _ = group.start(two, "newer")
        restarted, _ = group.start(one, "restarted")
        eventually(lambda: group.is_divided_among("earlier", "newer", "restarted"))
        group.expect_more_runs("earlier", "newer", "restarted")
        kept = group.runs("earlier") | group.runs("newer") | group.runs("restarted")

        assert newer.stop() == 0
        assert changed(two.store("downgrade", "--to", "1", "--yes"), "now revision 1, pinned until `store upgrade`")
        eventually(lambda: group.is_divided_among("earlier", "restarted"))
        group.expect_more_runs("earlier", "restarted")
        assert kept <= group.runs("earlier") | group.runs("newer") | group.runs("restarted")

        assert restarted.stop() == 0
        eventually(lambda: group.is_divided_among("earlier"))
        assert changed(three.store("upgrade"), "now revision 3")
        eventually(lambda: problems(earlier) == [TOO_OLD])
        refused, client = group.start(one, "refused")
        eventually(lambda: problems(client) == [TOO_OLD])
        assert not [line for line in refused.lines if "taken over" in line]

        assert changed(three.store("downgrade", "--to", "1", "--yes"), "now revision 1, pinned until `store upgrade`")
        eventually(lambda: group.is_divided_among("earlier", "refused"))
        assert problems(earlier) == problems(client) == []
        group.expect_more_runs("earlier", "refused")
        group.database.close()


def settings(target: str) -> dict[str, str]:
    return {
        "PUBSUB_EMULATOR_HOST": target,
        "ORDERING_PROBER_SHARDING__GROUP": "together",
        "ORDERING_PROBER_TARGETS__0__PROBES": '["ordering"]',
        "ORDERING_PROBER_PROBES__ORDERING__SCHEDULE": '{"interval": "2s"}',
        "ORDERING_PROBER_PROBES__ORDERING__JITTER": "0s",
        "ORDERING_PROBER_PROBES__ORDERING__PARTS": str(PARTS),
    }
