"""Google's Pub/Sub emulator as a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10


def find_emulator() -> list[str] | None:
    """The command that starts the emulator installed with gcloud; None if there is none, or no Java."""
    gcloud = shutil.which("gcloud")
    if gcloud is None or shutil.which("java") is None:
        return None
    asked = [gcloud, "info", "--format=value(installation.sdk_root)"]
    root = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=START_TIMEOUT_S).stdout.strip()
    program = Path(root, "platform", "pubsub-emulator", "bin", "cloud-pubsub-emulator")
    return [str(program)] if root and program.exists() else None


@contextmanager
def running_emulator(command: list[str]) -> Iterator[str]:
    """Starts the emulator on a free port and gives its address; stops it with every process that it started."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    process = subprocess.Popen(
        [*command, "--host=127.0.0.1", f"--port={port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "JAVA_OPTS": "-Xmx256m"},
    )
    listening = threading.Event()
    said: list[str] = []
    reader = threading.Thread(target=_read, args=(process, said, listening), daemon=True)
    reader.start()
    try:
        if not listening.wait(START_TIMEOUT_S) or process.poll() is not None:
            raise RuntimeError("the emulator did not start:\n" + "".join(said))
        yield f"127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_TIMEOUT_S)
        reader.join(STOP_TIMEOUT_S)
        if process.stdout is not None:
            process.stdout.close()


def _read(process: subprocess.Popen[str], said: list[str], listening: threading.Event) -> None:
    """Reads what the emulator says, so that it never waits for us; keeps its first lines."""
    assert process.stdout is not None
    for line in process.stdout:
        if len(said) < 100:
            said.append(line)
        if "listening on" in line:
            listening.set()
    listening.set()
