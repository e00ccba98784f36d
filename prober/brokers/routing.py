"""The header by which Google's front ends route a request to where its topic or subscription is served. Every Google client sends it."""

from __future__ import annotations

from urllib.parse import quote


def routing(field: str, name: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a request whose `field` names a resource."""
    return (("x-goog-request-params", f"{field}={quote(name, safe='/')}"),)
