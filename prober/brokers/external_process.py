"""The program of an external vantage: one process, JSON lines in both directions (docs/external-clients.md).

The program belongs to the prober's side. If it ends, breaks the protocol or stops reading, all pending outcomes are unknown, `failure`
contains the reason, and no result of the run counts against the service.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from prober.brokers.grpc_errors import let_go
from prober.errors import BrokerError

VERSION: Final = 1
READY_TIMEOUT_S: Final = 30.0
"""Longest time until the program is ready, in seconds."""
CLOSE_TIMEOUT_S: Final = 3.0
"""Longest time from the end of its input to the end of the program, in seconds; then it is killed."""
LINE_BYTES_MAX: Final = 64 * 2**20
UNREAD_BYTES_MAX: Final = 256 * 2**20
"""Unread input at which the program counts as no longer reading, in bytes."""
_STDERR_LINES: Final = 3
_TEXT_MAX: Final = 300

Event: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = Callable[[Event | None], None]
"""Called on the event loop with each event of a publisher or subscriber; with None when no more can follow."""


class ExternalProcess:
    """The program, started at its first use. For one event loop."""

    def __init__(self, command: Sequence[str], address: str, failed: asyncio.Event, *, secure: bool) -> None:
        """Prepare the program. `failed` is set when it can no longer be used."""
        self._command = tuple(command)
        self._hello = {"command": "hello", "version": VERSION, "endpoint": address, "secure": secure}
        self._handlers: dict[str, Handler] = {}
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._closed = False
        self._failed = failed
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self.failure = ""
        """Reason why the program can no longer be used, in one line; empty while it can."""

    async def ready(self) -> None:
        """Wait until the program accepts commands. Raises BrokerError if it does not, ConnectionGivenUp if it was closed."""
        if self._closed:
            raise let_go("starting the external client")
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="external client")
        if not self._ready.is_set():
            waiting = [asyncio.ensure_future(event.wait()) for event in (self._ready, self._over)]
            try:
                await asyncio.wait(waiting, timeout=READY_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()
        if self._closed:
            raise let_go("starting the external client")
        if not self._ready.is_set() and not self.failure:
            self._fail(f"was not ready within {READY_TIMEOUT_S:g} s")
        if self.failure:
            raise BrokerError(self.failure)

    def listen(self, name: str, handler: Handler) -> None:
        """Pass the events of a publisher or subscriber to a handler from now on."""
        self._handlers[name] = handler

    def forget(self, name: str) -> None:
        """Drop the events of a publisher or subscriber from now on."""
        self._handlers.pop(name, None)

    def send(self, command: Mapping[str, object]) -> bool:
        """Send a command; never blocks. Return False if the program accepts none any more."""
        stdin = None if self._process is None else self._process.stdin
        if stdin is None or self.failure or self._closed or stdin.is_closing():
            return False
        stdin.write(json.dumps(command, separators=(",", ":")).encode() + b"\n")
        if stdin.transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self._fail("has stopped reading its input")
            return False
        return True

    async def close(self) -> None:
        """Close the input of the program and wait for its end; kill it after 3 s. Further calls do nothing."""
        self._closed = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        if self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._over.wait()), CLOSE_TIMEOUT_S)
            self._kill()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=LINE_BYTES_MAX
            )
        except OSError as error:
            self._fail(f"cannot be started: {error.strerror or error}")
            self._over.set()
            return
        errors = asyncio.create_task(self._read_errors(process), name="external client's errors")
        if self._closed:
            self._kill()
        self.send(self._hello)
        try:
            await self._read(process)
        finally:
            self._kill()
            await asyncio.gather(process.wait(), errors, return_exceptions=True)
            if not self._closed:
                said = f": {' / '.join(self._stderr)}" if self._stderr else ""
                self._fail(f"ended with exit code {process.returncode}{said}")
            self._over.set()

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        number = 0
        while not self.failure:
            try:
                line = await process.stdout.readline()
            except ValueError:
                self._fail(f"wrote a line of more than {LINE_BYTES_MAX} bytes")
                return
            if not line:
                with suppress(TimeoutError):  # its exit code is more informative than a kill
                    await asyncio.wait_for(process.wait(), CLOSE_TIMEOUT_S)
                return
            number += 1
            try:
                self._dispatch(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                text = line.decode(errors="replace").strip()[:_TEXT_MAX]
                self._fail(f"broke the protocol in line {number} of its output ({type(error).__name__}: {error}): {text}")

    def _dispatch(self, event: Event) -> None:
        if event["event"] == "ready":
            self._ready.set()
        elif (handler := self._handlers.get(event.get("subscriber") or event["publisher"])) is not None:
            handler(event)

    async def _read_errors(self, process: Process) -> None:
        assert process.stderr is not None
        with suppress(ValueError):
            while line := await process.stderr.readline():
                self._stderr.append(line.decode(errors="replace").strip()[:_TEXT_MAX])

    def _fail(self, text: str) -> None:
        if self.failure:
            return
        self.failure = f"the external client ({' '.join(self._command)}) {text}"
        self._failed.set()
        self._kill()
        for handler in list(self._handlers.values()):
            handler(None)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()


def text_of(event: Event, field: str) -> str:
    """Return a required text field of an event. Raises TypeError."""
    value = event[field]
    if not isinstance(value, str):
        raise TypeError(f"{field} must be a string")
    return value
