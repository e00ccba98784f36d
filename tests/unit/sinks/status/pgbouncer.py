"""A PgBouncer of a test's own in front of a PostgreSQL server, in transaction mode and otherwise with default settings."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from prober.clock import monotonic_s
from tests.unit.sinks.status.postgresql import ROLE, START_MAX_S

PORT = 6432
"""Also part of the socket's name; two poolers may have it, each in its own folder."""
SETTINGS = """
[databases]
* = host={server}
[pgbouncer]
pool_mode = transaction
auth_type = trust
auth_file = {folder}/users
unix_socket_dir = {folder}
"""


def program() -> str:
    """PgBouncer; missing is a skip."""
    found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip("PgBouncer is missing: install it with `apt-get install pgbouncer`")
    return found


@contextmanager
def pooled(url: str, user: str | None) -> Iterator[str]:
    """The URL of the same database through a pooler that runs as `user`, if one is given."""
    folder = Path(tempfile.mkdtemp(prefix="okp-pool-"))
    database = make_url(url)
    (folder / "users").write_text(f'"{ROLE}" ""\n')
    (folder / "settings.ini").write_text(SETTINGS.format(server=database.query["host"], folder=folder))
    if user is not None:
        shutil.chown(folder, user)
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen([program(), f"{folder}/settings.ini"], stdout=log, stderr=log, user=user, cwd=folder)
    try:
        _wait(process, folder, str(database.database))
        yield f"postgresql://{ROLE}@/{database.database}?host={folder}&port={PORT}"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _wait(process: subprocess.Popen[bytes], folder: Path, database: str) -> None:
    give_up_t = monotonic_s() + START_MAX_S
    while True:
        try:
            psycopg.connect(host=str(folder), port=PORT, user=ROLE, dbname=database).close()
        except psycopg.OperationalError:
            assert process.poll() is None, (folder / "log").read_text()
            assert monotonic_s() < give_up_t, (folder / "log").read_text()
        else:
            return
