"""Processes of `ordering-prober` that begin where everything is imported, which takes two seconds of the processor otherwise.

A process of its own (`python -m tests.forking`) imports the commands and waits. Whenever the program is to be started, it forks, and the
child does what the command does: `main()`, with arguments, environment and output of its own. Signals, exit codes and what is left behind
by a kill are those of any process. That the command starts by itself, with what it imports for that, is tried with `tests.commands`.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, TextIO

from tests.commands import ROOT

_REQUEST_BYTES_MAX: Final = 1 << 20
_PATIENCE_S: Final = 180.0


class Forked:
    """A process that was forked, to be used like `subprocess.Popen`. `stdout` has what it says, errors included."""

    def __init__(self, pid: int, stdout: TextIO, ended: TextIO) -> None:
        self.pid, self.stdout, self._ended = pid, stdout, ended
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it runs."""
        return self._code if self._is_over(0.0) else None

    def wait(self, timeout_s: float) -> int:
        """The same, as soon as it is known. Raises subprocess.TimeoutExpired."""
        if not self._is_over(timeout_s):
            raise subprocess.TimeoutExpired("ordering-prober", timeout_s)
        assert self._code is not None
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal, unless it is over."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it without a warning."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Lets go of its streams."""
        self.stdout.close()
        self._ended.close()

    def _is_over(self, timeout_s: float) -> bool:
        if self._code is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._ended, selectors.EVENT_READ)
                if selector.select(timeout_s):
                    self._code = int(self._ended.readline())
        return self._code is not None


def forked(arguments: Sequence[str], environ: Mapping[str, str]) -> Forked:
    """`ordering-prober` with these arguments, in a process of its own."""
    said, says = os.pipe()
    try:
        return _forked(arguments, environ, ROOT, os.fdopen(said, encoding="utf-8"), says, says)
    finally:
        os.close(says)


def called(*arguments: str, environ: Mapping[str, str] = os.environ, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The same, once it has ended. `tests.commands.run` starts an interpreter for that."""
    with TemporaryFile("w+", encoding="utf-8") as output, TemporaryFile("w+", encoding="utf-8") as errors:
        process = _forked(arguments, environ, cwd, output, output.fileno(), errors.fileno())
        try:
            code = process.wait(_PATIENCE_S)
        finally:
            process.kill()
            process.wait(_PATIENCE_S)
        for stream in (output, errors):
            stream.seek(0)
        done = subprocess.CompletedProcess(arguments, code, output.read(), errors.read())
        process.close()
        return done


def _forked(arguments: Sequence[str], environ: Mapping[str, str], cwd: Path, stdout: TextIO, says: int, complains: int) -> Forked:
    ended, ends = os.pipe()
    request = json.dumps({"arguments": list(arguments), "environ": dict(environ), "cwd": str(cwd)}).encode()
    socket.send_fds(_waiting(), [request], [says, complains, ends])
    os.close(ends)
    tells = os.fdopen(ended, encoding="ascii")
    return Forked(int(tells.readline()), stdout, tells)


@cache
def _waiting() -> socket.socket:
    """The way to the process that forks; it ends when this one does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for one in (ours, its):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST_BYTES_MAX)
    with its:
        os.set_inheritable(its.fileno(), True)
        environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "tests.forking", str(its.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, env=environ, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# --- the process that forks --------------------------------------------------------------------------------------------------


def _serve(requests: socket.socket) -> list[str] | None:
    """Forks whenever it is asked to. Returns the arguments in the process of the program; None here, when nobody asks any more."""
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, _REQUEST_BYTES_MAX, 3)
        if not request:
            return None
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            return _keep(json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(request: Mapping[str, object], says: int, complains: int, ends: int) -> list[str]:
    """Forks again: the keeper tells who its child is, and how it ended. Returns in the child."""
    pid = os.fork()
    if pid:
        os.close(says)
        os.close(complains)
        os.write(ends, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(ends, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    os.close(ends)
    for source, number, name in ((says, 1, "stdout"), (complains, 2, "stderr")):
        os.dup2(source, number)
        os.close(source)
        setattr(sys, name, io.TextIOWrapper(os.fdopen(number, "wb", 0, closefd=False), encoding="utf-8", write_through=True))
    environ, arguments = request["environ"], request["arguments"]
    assert isinstance(environ, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(str(request["cwd"]))
    time.tzset()
    return arguments


IMPORTED: Final = (
    *(
        f"prober.cli.{name}"
        for name in ("commands", "run", "check", "check_runs", "cleanup", "demo", "drill", "findings", "status")
    ),
    *(f"prober.{name}" for name in ("service", "embedded.server", "serving.server", "sinks.status.migration", "cli.verify")),
    *(f"prober.sinks.history.{name}" for name in ("reader", "reverify", "writer")),
    *("api.app", "api.view", "api.standalone"),
)
"""Modules that commands import when called; the children have them already."""

if __name__ == "__main__":
    from prober.cli import main

    for module in IMPORTED:
        import_module(module)
    asked = _serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        sys.argv = ["ordering-prober", *asked]
        sys.exit(main())
