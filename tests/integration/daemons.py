"""Prometheus and Alertmanager as tests run them: on a free port of this machine, until the test has ended."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.tools import tool
from tests.integration.programs import eventually, get


@contextmanager
def daemon(name: str, port: int, log: Path, *options: str) -> Iterator[str]:
    """A program of Prometheus that is ready, and its address; killed in the end."""
    with log.open("w") as words:
        process = subprocess.Popen(
            [tool(name), f"--web.listen-address=127.0.0.1:{port}", *options], stdout=words, stderr=subprocess.STDOUT
        )
        try:
            eventually(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/-/ready"))
            assert process.poll() is None, log.read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    """Whether something answers there, and well."""
    try:
        get(url, 1.0)
    except OSError:
        return False
    return True


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def written(path: Path, document: Mapping[str, Any]) -> Path:
    """The path of a file with this document."""
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
