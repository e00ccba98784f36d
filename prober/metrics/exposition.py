"""How metrics are written, as the client asks: OpenMetrics, which has exemplars, or the older text format, which everybody reads."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


def expose(registry: CollectorRegistry, accept: str = "") -> tuple[str, bytes]:
    """Content type and body for an Accept header: OpenMetrics or version 1 of the text format, whichever it names first; else plain text.

    As in every exporter that is written in Python the order counts, not the quality: Prometheus begins with what it wants most.
    """
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # it asks for a version that is no number
        encode, content_type = choose_encoder("")
    return content_type, encode(registry)
