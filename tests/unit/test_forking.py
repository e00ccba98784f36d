"""A process that was forked is one like any other: what it is given, what it says, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from prober.cli.process import ExitCode
from tests.commands import PASSING, run
from tests.forking import Forked, forked

PATIENCE_S = 180.0


@contextmanager
def started(*arguments: str, **environ: str) -> Iterator[Forked]:
    process = forked(arguments, {**os.environ, **environ})
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.close()


def test_it_says_what_the_command_says_and_ends_alike() -> None:
    command = run("verify", PASSING)
    with started("verify", PASSING) as process:
        assert process.stdout.read() == command.stdout
        assert process.wait(PATIENCE_S) == command.returncode == 0


def test_it_has_an_environment_and_errors_of_its_own() -> None:
    with started("config", "show", ORDERING_PROBER_INSTANCE="nobody-else") as process:
        assert "nobody-else" in process.stdout.read()
    with started("config", "show", ORDERING_PROBER_NONSENSE="7") as process:
        assert "ORDERING_PROBER_NONSENSE" in process.stdout.read()
        assert process.wait(PATIENCE_S) == ExitCode.MALFORMED


def test_signals_end_it() -> None:
    with started("embedded", "--port", "0") as process:
        assert "Pub/Sub on" in process.stdout.readline()
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    with started("embedded", "--port", "0") as process:
        assert "Pub/Sub on" in process.stdout.readline()
        process.kill()
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        process.kill()  # whoever has its number now is left alone
