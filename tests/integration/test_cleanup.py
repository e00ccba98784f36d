"""`ordering-prober cleanup` over real gRPC, on the embedded server and on Google's emulator: deletes what is ours, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import pytest

from prober.brokers.admin import ServiceAdmin
from prober.brokers.base import Admin, SubscriptionSettings, TopicSettings, Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import EMULATOR_VARIABLE, Endpoint
from prober.cli import main
from prober.cli.cleanup import projects_of
from prober.cli.process import ExitCode
from prober.clock import wall_s
from prober.config.loading import load
from prober.errors import BrokerUnavailable, PermissionRefused
from prober.probes.resources import OURS
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.store import StatusStore
from tests.integration.embedded import running
from tests.integration.programs import eventually, program
from tests.nightly import nightly_but

Result = TypeVar("Result")
DAY_S = 86_400.0
ATTEMPTS = 3


class Place:
    """A project of its own on a server, and a configuration that names it."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder
        self.project = f"p-{uuid.uuid4().hex[:12]}"
        self.store = folder / "store.db"
        self.configure("west", "north-west")

    @property
    def file(self) -> str:
        """The configuration."""
        return str(self.folder / "prober.yaml")

    def configure(self, *targets: str) -> None:
        common = {
            "project": self.project,
            "endpoint": self.address,
            "environment": "test",
            "probes": ["ordering", "pull", "affinity"],
        }
        document = {"targets": [common | {"name": name} for name in targets], "status": {"url": f"sqlite:///{self.store}"}}
        Path(self.file).write_text(json.dumps(document))

    def make(self, name: str, labels: Mapping[str, str] = OURS) -> None:
        """A topic and its subscription."""
        topic, subscription = (f"projects/{self.project}/{kind}/{name}" for kind in ("topics", "subscriptions"))

        async def create(admin: Admin) -> None:
            await admin.create_topic(topic, TopicSettings(labels))
            await admin.create_subscription(subscription, SubscriptionSettings(topic, labels=labels))

        self._with(create)

    def there(self, labels: Mapping[str, str] = OURS) -> set[str]:
        """The short names of the topics with these labels; their subscriptions are there too, or the test fails."""
        names = self.names(labels)
        assert all(names.count(name) == 2 for name in names), names
        return set(names)

    def names(self, labels: Mapping[str, str] = OURS) -> list[str]:
        """The short names of the topics and subscriptions with these labels."""

        async def owned(admin: Admin) -> list[str]:
            return list(await admin.owned(f"projects/{self.project}", labels))

        return [name.rpartition("/")[2] for name in self._with(owned)]

    def cleanup(self, *options: str) -> int:
        """The exit code; an emulator on a busy machine that does not answer in time is asked again."""
        codes = (main(["cleanup", "--config", self.file, *options]) for _ in range(ATTEMPTS))
        return next((code for code in codes if code != ExitCode.UNKNOWN), int(ExitCode.UNKNOWN))

    def _with(self, use: Callable[[Admin], Awaitable[Result]]) -> Result:
        async def run() -> Result:
            broker = await connect(Endpoint(self.address, secure=False), Vantage.WIRE)
            try:
                return await use(broker.admin)
            finally:
                await broker.close()

        for _ in range(ATTEMPTS - 1):
            with suppress(BrokerUnavailable):
                return asyncio.run(run())
        return asyncio.run(run())


@pytest.fixture(scope="module")
def embedded_address() -> Iterator[str]:
    with running() as server:
        yield server.address


EMULATED: Final = pytest.mark.parametrize(
    "place", ["embedded_address", "emulator_address"], ids=["embedded", "emulator"], indirect=True
)
"""On both: with the order of deletions, and what a service answers to them. What is left alone is decided before that."""


@pytest.fixture(params=nightly_but(["embedded_address"], ["embedded_address", "emulator_address"]))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv(EMULATOR_VARIABLE, raising=False)
    return Place(request.getfixturevalue(request.param), tmp_path)


def name_of(age_s: float, *, prober: str = "me", target: str = "west") -> str:
    return f"okp-{prober}-{target}-ordering-wire-{int(wall_s() - age_s):08x}-{uuid.uuid4().hex[:6]}"


@EMULATED
def test_old_ones_go_and_everything_else_stays(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    old, young, of_others = name_of(2 * DAY_S), name_of(60), name_of(2 * DAY_S)
    place.make(old)
    place.make(young)
    place.make("orders")  # our label by mistake
    place.make(of_others, {"team": "payments"})
    assert place.cleanup("--yes") == 0
    assert place.there() == {young, "orders"}
    assert place.there({"team": "payments"}) == {of_others}
    said = capsys.readouterr().out
    assert f"  projects/{place.project}/subscriptions/{old}  (2d old)" in said
    assert f"{place.project} at {place.address}: 2 to delete" in said
    assert "2 left: too young" in said
    assert "2 left: not named as probers name theirs" in said
    assert said.endswith("deleted 2 of 2\n")
    assert place.cleanup("--yes") == 0  # nothing to do


def test_a_dry_run_deletes_nothing_and_nobody_is_asked_without_a_terminal(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    old = name_of(2 * DAY_S)
    place.make(old)
    assert place.cleanup("--dry-run") == 0
    assert place.cleanup() == 2
    assert "--yes" in capsys.readouterr().err
    assert place.there() == {old}


@pytest.mark.parametrize(("answer", "code"), [("n", 130), ("y", 0)])
def test_on_a_terminal_it_asks(
    place: Place, answer: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = name_of(2 * DAY_S)
    place.make(old)
    ours, its = os.openpty()
    with os.fdopen(ours, "wb", buffering=0) as terminal, os.fdopen(its) as stdin:
        terminal.write(f"{answer}\n".encode())
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["cleanup", "--config", place.file]) == code
    assert "Delete these 2?" in capsys.readouterr().out
    assert place.there() == (set() if code == 0 else {old})


def test_only_one_target(place: Place) -> None:
    west, north_west = name_of(2 * DAY_S), name_of(2 * DAY_S, target="north-west")
    place.make(west)
    place.make(north_west)
    assert place.cleanup("--target", "west", "--yes") == 0
    assert place.there() == {north_west}
    assert place.cleanup("--target", "north-west", "--yes") == 0
    assert place.there() == set()


def test_what_a_living_prober_uses_stays_unless_asked_for(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    mine, stuck, of_the_dead = name_of(60), name_of(2 * DAY_S), name_of(60, prober="gone")
    for name in (mine, stuck, of_the_dead):
        place.make(name)
    assert place.cleanup("--older-than", "0s", "--yes") == 0  # no store: what is young may be in use
    assert place.there() == {mine, of_the_dead}
    assert not place.store.exists()
    heartbeats(place.store, me=wall_s(), gone=wall_s() - 600)
    capsys.readouterr()
    assert place.cleanup("--older-than", "0s", "--yes") == 0
    assert place.there() == {mine}
    assert "2 left: a living prober uses it" in capsys.readouterr().out
    assert place.cleanup("--older-than", "0s", "--in-use", "--yes") == 0
    assert place.there() == set()


def test_a_running_prober_keeps_what_it_uses_and_a_killed_one_does_not(place: Place) -> None:
    place.configure("west")
    environ = {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_INSTANCE": "real"}
    with program("run", "--config", place.file, environ=environ) as running_prober:
        running_prober.said(r"status page: (\S+)/")
        eventually(lambda: place.store.exists() and len(place.names()) == 6)
        used = place.there()
        assert place.cleanup("--older-than", "0s", "--yes") == 0
        assert place.there() == used
        running_prober.kill()
    assert place.cleanup("--yes") == 0  # too young: the next hour may still bring the pod back
    assert place.there() == used
    assert place.cleanup("--older-than", "0s", "--in-use", "--target", "west", "--yes") == 0
    assert place.there() == set()


def test_a_status_store_that_cannot_be_reached_is_reported_and_decides_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ORDERING_PROBER_STATUS__URL", "postgresql://me:planted@127.0.0.1:1/none")
    old, young = name_of(2 * DAY_S), name_of(60)
    place.make(old)
    place.make(young)
    assert place.cleanup("--older-than", "0s", "--yes") == 0
    assert place.there() == {young}
    said = capsys.readouterr().err
    assert "the status store cannot say which probers live" in said
    assert "planted" not in said
    assert place.cleanup("--older-than", "0s", "--in-use", "--yes") == 0
    assert place.there() == set()


def test_what_cannot_be_deleted_keeps_nothing_else(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused, old = name_of(2 * DAY_S), name_of(2 * DAY_S)
    place.make(refused)
    place.make(old)
    delete = ServiceAdmin.delete

    async def refuse(admin: ServiceAdmin, name: str, labels: Mapping[str, str]) -> bool:
        if name.endswith(f"subscriptions/{refused}"):
            raise PermissionRefused(f"deleting {name}: no")
        return await delete(admin, name, labels)

    monkeypatch.setattr(ServiceAdmin, "delete", refuse)
    assert place.cleanup("--yes") == 3
    assert f"deleting projects/{place.project}/subscriptions/{refused}: no" in capsys.readouterr().err
    assert place.names() == [refused]


def test_a_project_behind_several_endpoints_of_google_is_looked_at_once() -> None:
    where = [
        ("global", "one", "global"),
        ("west", "one", "europe-west1"),
        ("east", "two", "us-east1"),
        ("here", "one", "127.0.0.1:1"),
    ]
    targets = [{"name": name, "project": project, "endpoint": endpoint, "environment": "test"} for name, project, endpoint in where]
    config = load(None, {"ORDERING_PROBER_TARGETS": json.dumps(targets)})
    found = [(str(place.endpoint), place.project, place.targets) for place in projects_of(config, ["global", "west", "here"], {})]
    assert found == [("pubsub.googleapis.com:443", "one", {"global", "west"}), ("127.0.0.1:1", "one", {"here"})]
    assert [place.targets for place in projects_of(config, [], {})] == [set(), set(), set()]


def test_a_service_that_is_not_there_is_undecided(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.address = "127.0.0.1:1"
    place.configure("west")
    assert place.cleanup("--yes") == 3
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_wrong_usage_is_one_line(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    embedded = tmp_path / "embedded.yaml"
    embedded.write_text("targets: [{name: here, endpoint: embedded}]\n")
    assert main(["cleanup"]) == 2
    assert main(["cleanup", "--config", str(embedded)]) == 2
    assert place.cleanup("--target", "nowhere") == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def heartbeats(file: Path, **last: float) -> None:
    """A status store in which these probers said something last at these times."""
    database = Database(f"sqlite:///{file}")
    store = StatusStore(database)
    store.prepare()
    for name, at in last.items():
        store.heartbeat(ProberRecord(name, "1", at - 1, at))
    database.close()
