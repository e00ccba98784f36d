"""How metrics are written, as the client asks: OpenMetrics, which has exemplars, or the older text format, which everybody reads."""

from __future__ import annotations

from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics

OPENMETRICS: Final = "application/openmetrics-text"
OPENMETRICS_TYPE: Final = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
TEXT: Final = "text/plain"


def expose(registry: CollectorRegistry, accept: str = "") -> tuple[str, bytes]:
    """Content type and body for an Accept header (RFC 9110, section 12.5.1): OpenMetrics if it is wanted at least as much as text."""
    if _quality(accept, OPENMETRICS) > 0.0 and _quality(accept, OPENMETRICS) >= _quality(accept, TEXT):
        return OPENMETRICS_TYPE, as_openmetrics(registry)  # type: ignore[no-untyped-call]
    return CONTENT_TYPE_PLAIN_0_0_4, as_text(registry)


def _quality(accept: str, media_type: str) -> float:
    """How much a media type is wanted by name, 0 if not at all."""
    wanted = 0.0
    for part in accept.lower().split(","):
        named, *parameters = (word.strip() for word in part.split(";"))
        if named == media_type:
            quality = next((word[2:] for word in parameters if word.startswith("q=")), "1")
            wanted = max(wanted, float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0)
    return wanted
