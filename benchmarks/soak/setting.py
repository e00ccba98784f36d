"""What a soak runs, each in processes of its own: two embedded servers, PostgreSQL, and the service with a small disk for its history."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
DISK_MIB: Final = 128
STOP_S: Final = 60.0
ADDRESS: Final = r"Pub/Sub on (\S+:\d+)"
NOT_EXACTLY_ONCE: Final = "[!e]*"
"""All keys but those of the probe `exactly_once`."""
SHARES: Final[Mapping[str, float]] = {
    "jitter": 0.05,
    "lost_tail": 0.1,
    "lost_pull_answer": 0.02,
    "stream_break": 0.001,
    "half_open_stream": 0.0005,
}
SHARE: Final = 0.005
"""Of the cases in which a fault could strike, unless `SHARES` says otherwise: often enough to strike all the time, rarely enough that runs
still come to their end.
"""


@dataclass(frozen=True)
class Setting:
    """What runs. `url` is the service's page, `admin` the endpoint for the faults of the target; no `disk`: we may not mount one."""

    service: subprocess.Popen[str]
    url: str
    log: Path
    target: Program
    admin: str
    store: PostgreSQL
    configuration: Path
    disk: Path | None


def benign_faults() -> list[str]:
    """Every benign fault of the catalogue, as the command line takes it."""
    return [
        f"{name}:p={SHARES.get(name, SHARE):g}" + (f",key={NOT_EXACTLY_ONCE}" if known.exactly_once else "")
        for name, known in CATALOGUE.items()
        if known.benign
    ]


def configured(target: str, load: str, folder: Path, load_per_s: int) -> dict[str, Any]:
    """The configuration: the defaults for one target, and for the other as much of `ordering` as is wanted, 16 of every 20 seconds."""
    places = {"project": TARGET, "environment": "test"}
    targets: list[dict[str, Any]] = [{"name": TARGET, "endpoint": target, "peer": target, **places}]
    if load_per_s:
        hot = {"keys": load_per_s // 10, "messages": 40, "rate": load_per_s * 20 // 16, "schedule": {"interval": "20s"}}
        targets.append({"name": LOAD, "endpoint": load, "probes": {"ordering": hot}, **places})
    return {
        "targets": targets,
        "history": {"location": str(folder / "history"), "spool": str(folder / "spool"), "size_max": "256MiB"},
    }


@contextmanager
def started(load_per_s: int) -> Iterator[Setting]:
    """Everything, with so many messages a second, stopped again in the end. Raises CannotMeasureError."""
    programs = find_binaries()
    if programs is None:
        raise CannotMeasureError("PostgreSQL is missing: install it with `apt-get install postgresql`")
    armed = [word for fault in benign_faults() for word in ("--fault", fault)]
    with (
        program("embedded", "--port", "0", "--admin-port", "0", *armed) as target,
        program("embedded", "--port", "0") as load,
        PostgreSQL(programs) as store,
        TemporaryDirectory(prefix="okp-soak-") as place,
    ):
        folder = Path(place)
        addresses = target.said(ADDRESS), load.said(ADDRESS)
        admin = target.said(r"(http://\S+)/faults")
        file = folder / "prober.yaml"
        file.write_text(yaml.safe_dump(configured(*addresses, folder, load_per_s)), encoding="utf-8")
        log = folder / "log"
        environ = {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_STATUS__URL": store.new_database()}
        with (
            small_disk(folder / "spool") as disk,
            running(["run", "--config", str(file)], environ, log) as service,
        ):
            yield Setting(service, said(log, r"status page: (\S+)/"), log, target, admin, store, file, disk)


@contextmanager
def running(arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """The service, by a clock that can be set; asked to stop in the end."""
    command = [sys.executable, "-m", "benchmarks.soak.clock", *arguments]
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
    """The first group of this pattern, as soon as the log has it."""
    eventually(lambda: re.search(pattern, log.read_text()))
    found = re.search(pattern, log.read_text())
    assert found is not None
    return found[1]


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A folder with a disk of its own; None if we may not mount one, and then it is a folder like any other."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
