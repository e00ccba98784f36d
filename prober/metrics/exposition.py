"""How metrics are written, as the client asks: OpenMetrics, which has exemplars, or the older text format, which everybody reads."""

from __future__ import annotations

from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics
from prometheus_client.registry import Collector

OPENMETRICS: Final = "application/openmetrics-text"
OPENMETRICS_TYPE: Final = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
TEXT: Final = "text/plain"
TEXT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4


def content_type_for(accept: str) -> str:
    """One of two, for an Accept header (RFC 9110, section 12.5.1): OpenMetrics if it is wanted at least as much as text."""
    wanted = _quality(accept, OPENMETRICS)
    return OPENMETRICS_TYPE if wanted > 0.0 and wanted >= _quality(accept, TEXT) else TEXT_TYPE


def render(registry: Collector, content_type: str) -> bytes:
    """The body in one of the two formats. Takes milliseconds per subscription; may be called in any thread while metrics are counted."""
    if content_type == OPENMETRICS_TYPE:
        return as_openmetrics(registry)  # type: ignore[no-untyped-call, no-any-return]
    return as_text(registry)


def _quality(accept: str, media_type: str) -> float:
    """How much a media type is wanted by name, 0 if not at all."""
    wanted = 0.0
    for part in accept.lower().split(","):
        named, *parameters = (word.strip() for word in part.split(";"))
        if named == media_type:
            quality = next((word[2:] for word in parameters if word.startswith("q=")), "1")
            wanted = max(wanted, float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0)
    return wanted
