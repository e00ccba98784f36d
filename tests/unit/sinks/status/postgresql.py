"""A PostgreSQL server of a test's own: on a Unix socket in a folder that goes away with it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
import pytest
from sqlalchemy.engine import make_url

from prober.clock import monotonic_s

START_MAX_S = 60.0
ROLE = "prober"


def find_binaries() -> Path | None:
    """The folder of the server's programs: the newest of Debian's, else where the path has them."""
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = packaged[-1] if packaged else Path(shutil.which("initdb") or "")
    return found.resolve().parent if found.name else None


def binaries() -> Path:
    """The same; missing is a failure in continuous integration and a skip elsewhere."""
    found = find_binaries()
    if found is None:
        reason = "PostgreSQL is missing: install it with `apt-get install postgresql`"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class PostgreSQL:
    """A server that runs inside a `with` statement. It never runs as root, which it refuses."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.user = _unprivileged_user() if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="okp-pg-"))
        if self.user is not None:
            shutil.chown(self._folder, self.user)
        options = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale", "--username", ROLE]
        command = [f"{self._programs}/initdb", *options, "--pgdata", f"{self._folder}/data"]
        subprocess.run(command, check=True, capture_output=True, user=self.user, cwd=self._folder)
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
            self._process.wait(START_MAX_S)
        shutil.rmtree(self._folder)

    def start(self) -> None:
        """Starts it; returns when it answers. After a kill it takes until the last of its processes has noticed."""
        give_up_t = monotonic_s() + START_MAX_S
        self._process = self._launch()
        while not self._answers():
            assert monotonic_s() < give_up_t, (self._folder / "log").read_text()
            try:
                self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            self._process = self._launch()

    def kill(self) -> None:
        """Ends it without warning."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def new_database(self, copied: str | None = None) -> str:
        """The URL of a new database: empty, or a copy of the one at a URL, to which nobody may be connected."""
        template = "template1" if copied is None else make_url(copied).database
        self._databases += 1
        name = f"status_{self._databases}"
        with psycopg.connect(host=str(self._folder), user=ROLE, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return f"postgresql://{ROLE}@/{name}?host={self._folder}"

    def _launch(self) -> subprocess.Popen[bytes]:
        # A process that is killed leaves what it wrote to the system all the same. A database is gone before it needs tidying.
        settings = ["listen_addresses=", "fsync=off", "autovacuum=off"]
        options = [word for setting in settings for word in ("-c", setting)]
        command = [f"{self._programs}/postgres", "-D", f"{self._folder}/data", "-k", str(self._folder), *options]
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, user=self.user, cwd=self._folder)

    def _answers(self) -> bool:
        try:
            psycopg.connect(host=str(self._folder), user=ROLE, dbname="postgres", connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def _unprivileged_user() -> str:
    known = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
