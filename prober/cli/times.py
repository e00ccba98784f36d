"""Times as they are written on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from prober.errors import ConfigError

Since = Annotated[str | None, typer.Option(metavar="TIME", help="From this time on: 2026-11-20T08:00:00Z.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Up to this time.")]


def time_of(text: str | None, default: float) -> float:
    """A time in seconds since 1970; what names no zone is UTC. `default` if it was left out. Raises ConfigError."""
    if text is None:
        return default
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a time; write one like 2026-11-20T08:00:00Z") from None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
