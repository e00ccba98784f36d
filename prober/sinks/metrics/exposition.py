"""How metrics are written, as the client asks: OpenMetrics, which has exemplars, or the older text format, which everybody reads."""

from __future__ import annotations

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector


def content_type_for(accept: str) -> str:
    """One of few, for an Accept header: OpenMetrics or version 1 of the text format, whichever it names first; else plain text.

    As in every exporter that is written in Python the order counts, not the quality: Prometheus begins with what it wants most.
    """
    try:
        return choose_encoder(accept)[1]
    except TypeError:  # it asks for a version that is no number
        return choose_encoder("")[1]


def render(registry: Collector, content_type: str) -> bytes:
    """The body in one of these formats. Takes milliseconds per subscription; may be called in any thread while metrics are counted."""
    encode, _ = choose_encoder(content_type)
    return encode(registry)
