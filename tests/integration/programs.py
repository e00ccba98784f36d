"""The program in processes of its own, as its users run it: started, asked over HTTP, stopped, killed, made to hang."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from prober.clock import monotonic_s
from tests.forking import Forked, forked

PATIENCE_S = 180.0
CALM_S = 0.1
"""Between two looks at something. A service that is asked for its metrics all the time takes four times the processor time."""


@dataclass
class Program:
    """A running `ordering-prober`; `lines` are what it has said so far, on both streams."""

    process: Forked
    lines: list[str] = field(default_factory=list)
    news: threading.Condition = field(default_factory=threading.Condition)

    def listen(self) -> None:
        """Takes in what it says, until it ends. Runs in a thread."""
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip())
                self.news.notify_all()
        with self.news:
            self.lines.append("")
            self.news.notify_all()

    def said(self, pattern: str, patience_s: float = PATIENCE_S) -> str:
        """The first group of this pattern, as soon as a line has it."""

        def found() -> re.Match[str] | None:
            return next((match for line in self.lines if (match := re.search(pattern, line))), None)

        with self.news:
            match = self.news.wait_for(lambda: found() or (self.process.poll() is not None and "" in self.lines), patience_s)
        result = found()
        assert result is not None, (match, self.lines)
        return result[1]

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kills it without a warning and waits until it is gone."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Asks it to stop, as Ctrl-C does; its exit code."""
        self.send(signal.SIGINT)
        return self.process.wait(PATIENCE_S)


@contextmanager
def program(*arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Program]:
    """`ordering-prober` with these arguments, killed in the end if it still runs."""
    process = forked(arguments, {**os.environ, "PYTHONUNBUFFERED": "1"} | dict(environ or {}))
    running = Program(process)
    listener = threading.Thread(target=running.listen, daemon=True)
    listener.start()
    try:
        yield running
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(PATIENCE_S)
        listener.join(PATIENCE_S)
        process.close()


SOME_PROBES = '["ordering", "redelivery", "affinity"]'
"""Those that are soon over: enough for tests that are not about probes."""


@contextmanager
def service(**environ: str) -> Iterator[tuple[Program, str]]:
    """`ordering-prober run` on a free port, and the URL of its page, without a slash at the end. By default with some probes only."""
    with TemporaryDirectory() as folder:
        settings = {
            "ORDERING_PROBER_API__PORT": "0",
            "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db",
            "ORDERING_PROBER_TARGETS__0__PROBES": SOME_PROBES,
            **environ,
        }
        with program("run", environ=settings) as running:
            yield running, running.said(r"status page: (\S+)/")


@contextmanager
def server(port: int = 0) -> Iterator[tuple[Program, str]]:
    """`ordering-prober embedded`, and its address."""
    with program("embedded", "--port", str(port)) as running:
        yield running, running.said(r"Pub/Sub on (\S+:\d+)")


def get(url: str, timeout_s: float = PATIENCE_S) -> str:
    """The body of an answer. What speed it has is no matter here: on a busy machine that takes as long as it takes."""
    with urlopen(url, timeout=timeout_s) as answer:
        return str(answer.read().decode())


def status(url: str) -> dict[str, Any]:
    """How everything stands."""
    return dict(json.loads(get(f"{url}/api/v1/status")))


def series(url: str, text: str) -> list[float]:
    """The values of all series whose line holds these words."""
    lines = (line for line in get(f"{url}/metrics").splitlines() if not line.startswith("#"))
    return [float(line.rpartition(" ")[2]) for line in lines if all(word in line for word in text.split())]


def eventually(condition: Callable[[], object], patience_s: float = PATIENCE_S, calm_s: float = CALM_S) -> None:
    """Waits until something holds; `calm_s` is how long after each look."""
    give_up_t = monotonic_s() + patience_s
    while not condition():
        assert monotonic_s() < give_up_t, condition
        threading.Event().wait(calm_s)
