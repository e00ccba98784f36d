"""Celery with kombu's transport gcpubsub: ended tasks are acknowledged, the task of a dead worker runs again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.compat.installing import OFFLINE, install_python
from tests.integration.embedded import Running, running
from tests.integration.programs import eventually

SOURCES = Path(__file__).parent / "celery"
SUBSCRIPTION = "projects/test/subscriptions/kombu-celery"
WORKER = ("-m", "celery", "-A", "tasks", "worker", "--pool=solo", "--loglevel=WARNING")
PATIENCE_S = 60.0

Start: TypeAlias = Callable[..., AbstractContextManager[None]]
"""Starts Python with these arguments beside the tasks; the program is killed at the end of the block."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_python(SOURCES / "requirements.txt", tmp_path_factory.mktemp("celery"))


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as server:
        yield server


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal"
    path.touch()
    return path


@pytest.fixture
def start(python: Path, server: Running, journal: Path) -> Start:
    environment = {**os.environ, **OFFLINE, "PUBSUB_EMULATOR_HOST": server.address, "JOURNAL": str(journal)}

    @contextmanager
    def started(*arguments: str) -> Iterator[None]:
        with subprocess.Popen([str(python), *arguments], cwd=SOURCES, env=environment, stdin=subprocess.PIPE) as process:
            try:
                yield
            finally:
                process.kill()

    return started


def sending(calls: str) -> tuple[str, str]:
    """The transport publishes in the background, so the program stays until its input ends."""
    return "-c", f"import sys, tasks; {calls}; sys.stdin.read()"


def wait_for_lines(journal: Path, *lines: str) -> None:
    """Wait until the tasks wrote these lines and no others, in any order."""
    eventually(lambda: sorted(journal.read_text(encoding="utf-8").split()) == sorted(lines), PATIENCE_S)


def unacknowledged(server: Running) -> int:
    """The number of tasks that the subscription of the queue keeps."""
    registry = server.server.state.registry
    return int(server.call(lambda: sum(1 for _ in registry.subscription(SUBSCRIPTION).entries())))


@pytest.mark.nightly
def test_tasks_run_once_and_are_acknowledged(server: Running, start: Start, journal: Path) -> None:
    with start(*WORKER), start(*sending("[tasks.add.delay(number) for number in range(20)]")):
        wait_for_lines(journal, *map(str, range(20)))
        eventually(lambda: unacknowledged(server) == 0)


@pytest.mark.nightly
def test_the_task_of_a_dead_worker_runs_again(server: Running, start: Start, journal: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with start(*sending(f"tasks.wait.delay({str(gate)!r})")):
        with start(*WORKER):
            wait_for_lines(journal, "started")
        assert unacknowledged(server) == 1
        gate.touch()
        with start(*WORKER):
            wait_for_lines(journal, "started", "started", "finished")
            eventually(lambda: unacknowledged(server) == 0)
