"""The command `ordering-prober` as tests call it: files to verify, and the program in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from prober.core.events import Event
from prober.core.rules import Rules
from prober.traces.header import TraceHeader
from prober.traces.trace import write_trace
from tests.notation import history

ROOT = Path(__file__).parents[1]
VECTORS = ROOT / "tests" / "vectors"
RUNBOOKS = ROOT / "docs" / "runbooks"
PASSING = str(VECTORS / "t01-in-order.jsonl")
FAILING = str(VECTORS / "t02-gap-then-late.jsonl")
STUCK = str(VECTORS / "t04-tail-never-delivered.jsonl")
DOUBTFUL = str(VECTORS / "t33-ack-of-2-sent-just-before-the-move-in-flight.jsonl")
MOVED = str(VECTORS / "t31-move-with-everything-acked-and-settled.jsonl")

PROGRAM = [sys.executable, "-c", "import sys; from prober.cli import main; sys.exit(main())"]

Output = pytest.CaptureFixture[str]


def saved(path: Path, events: str | Iterable[Event], rules: Rules | None = None) -> str:
    """The path of a trace file with these events."""
    listed = history(events) if isinstance(events, str) else events
    write_trace(path, TraceHeader("s", "k", rules or Rules()), listed)
    return str(path)


def broken(path: Path, events: str) -> str:
    """A trace file whose last line is no event."""
    saved(path, events)
    with path.open("ab") as stream:
        stream.write(b'{"t": 1\n')
    return str(path)


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    return subprocess.run([*PROGRAM, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, **options)


def rows(output: Output) -> list[dict[str, Any]]:
    """What was printed as JSON, one object per line."""
    return [json.loads(line) for line in output.readouterr().out.splitlines()]
