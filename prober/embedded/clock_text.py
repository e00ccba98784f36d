"""Times as text, from a number of seconds since the epoch: nothing here reads a clock."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """`2024-01-31T12:00:00.5Z`: as in the service's JSON, without superfluous zeros."""
    whole = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    milliseconds = int(seconds * 1000) % 1000
    return f"{whole}.{milliseconds:03}Z" if milliseconds else f"{whole}Z"
