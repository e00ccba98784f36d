"""Parts of a soak, each in processes of its own: two embedded servers, PostgreSQL, the service with a small disk for its history, and a
second prober for the load.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from benchmarks.figures import CannotMeasureError
from prober.embedded.catalogue import CATALOGUE
from tests.commands import ROOT
from tests.integration.programs import Program, eventually, program
from tests.unit.sinks.status.postgresql import PostgreSQL, find_binaries

TARGET: Final = "soak"
LOAD: Final = "load"
LOAD_PER_S: Final = 5_000
PLACE: Final = {"project": TARGET, "environment": "test"}
DISK_MIB: Final = 128
STOP_S: Final = 60.0
ADDRESS: Final = r"Pub/Sub on (\S+:\d+)"
NOT_EXACTLY_ONCE: Final = "[!e]*"
"""Pattern of all keys but those of the probe `exactly_once`."""
SHARES: Final[Mapping[str, float]] = {
    "jitter": 0.05,
    "lost_tail": 0.1,
    "lost_pull_answer": 0.02,
    "stream_break": 0.001,
    "half_open_stream": 0.0005,
}
SHARE: Final = 0.005
"""Share of opportunities at which a benign fault is injected, unless `SHARES` differs: often enough for many injections, rarely enough that
runs still end.
"""


@dataclass(frozen=True)
class Prober:
    """A running prober: its address, and its configuration file."""

    process: subprocess.Popen[str]
    url: str
    configuration: Path


@dataclass(frozen=True)
class Setting:
    """Running parts. `admin`: endpoint for the faults of the target; `disk` None: mounting is not permitted."""

    service: Prober
    loader: Prober
    target: Program
    admin: str
    store: PostgreSQL
    disk: Path | None

    @property
    def probers(self) -> list[Prober]:
        """All running probers; the service first."""
        return [self.service, self.loader]


def benign_faults() -> list[str]:
    """Return all benign faults of the catalogue, in the notation of the command line."""
    return [
        f"{name}:p={SHARES.get(name, SHARE):g}" + (f",key={NOT_EXACTLY_ONCE}" if known.exactly_once else "")
        for name, known in CATALOGUE.items()
        if known.benign
    ]


def configured(target: str, folder: Path) -> dict[str, Any]:
    """Return the configuration of the service: the defaults, with a history."""
    history = {"location": str(folder / "history"), "spool": str(folder / "spool"), "size_max": "256MiB"}
    return {"targets": [{"name": TARGET, "endpoint": target, "peer": target, **PLACE}], "history": history}


def configured_for_load(target: str) -> dict[str, Any]:
    """Return the configuration of the load prober: a rate of `ordering`, for 15 of every 20 seconds."""
    hot = {"keys": LOAD_PER_S // 10, "messages": 40, "rate": LOAD_PER_S * 20 // 15, "schedule": {"interval": "20s"}}
    return {"instance": LOAD, "targets": [{"name": LOAD, "endpoint": target, "probes": {"ordering": hot}, **PLACE}]}


@contextmanager
def started() -> Iterator[Setting]:
    """Start all parts; stop them at the end of the block. Raises CannotMeasureError."""
    programs = find_binaries()
    if programs is None:
        raise CannotMeasureError("PostgreSQL is missing: install it with `apt-get install postgresql`")
    armed = [word for fault in benign_faults() for word in ("--fault", fault)]
    with (
        program("embedded", "--port", "0", "--admin-port", "0", *armed) as target,
        PostgreSQL(programs) as store,
        TemporaryDirectory(prefix="okp-soak-") as place,
        ExitStack() as further,
    ):
        folder = Path(place)
        database = store.new_database()
        admin = target.said(r"(http://\S+)/faults")
        disk = further.enter_context(small_disk(folder / "spool"))
        configuration = configured(target.said(ADDRESS), folder)
        service = further.enter_context(probing(configuration, folder, database))
        loader = further.enter_context(loading(folder, database))
        yield Setting(service, loader, target, admin, store, disk)


@contextmanager
def loading(folder: Path, database: str) -> Iterator[Prober]:
    """Start a server and the prober that puts the load on it."""
    (own := folder / LOAD).mkdir()
    with (
        program("embedded", "--port", "0") as server,
        probing(configured_for_load(server.said(ADDRESS)), own, database) as loader,
    ):
        yield loader


@contextmanager
def probing(configuration: Mapping[str, Any], folder: Path, database: str) -> Iterator[Prober]:
    """Start a prober with its files in a folder; wait until it is ready."""
    file, log = folder / "prober.yaml", folder / "log"
    file.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    environ = {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_STATUS__URL": database}
    with running(["run", "--config", str(file)], environ, log) as process:
        yield Prober(process, said(log, r"status page: (\S+)/"), file)


@contextmanager
def running(arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the service with a clock that can be set; ask it to stop at the end of the block."""
    command = [sys.executable, "-m", "benchmarks.soak.troubles", *arguments]
    with (
        log.open("w") as words,
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environ}, stdout=words, stderr=words, text=True) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def said(log: Path, pattern: str) -> str:
    """Return the first group of this pattern, as soon as the log contains it."""
    eventually(lambda: re.search(pattern, log.read_text()))
    found = re.search(pattern, log.read_text())
    assert found is not None
    return found[1]


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Provide a folder on a small disk of its own; yield None, and use an ordinary folder, if mounting is not permitted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
