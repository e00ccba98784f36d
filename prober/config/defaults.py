"""What holds where the file says nothing: one embedded target, the three probes, and the objectives of the catalogue.

Written as a file would be, so that what a user writes is laid over it key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

Raw = dict[str, Any]

TARGET: Final[Mapping[str, Any]] = MappingProxyType({"name": "embedded", "endpoint": "embedded"})

PROBES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "ordering": {
            "schedule": {"interval": "10s"},
            "keys": 10,
            "messages": 20,
            "rate": 4000,
            "subscribers": 3,
            "ack_deadline": "10s",
        },
        "redelivery": {
            "schedule": {"interval": "30s"},
            "keys": 12,
            "messages": 12,
            "subscribers": 2,
            "ack_deadline": "10s",
        },
        "affinity": {"schedule": {"interval": "30s"}, "keys": 16, "messages": 10, "subscribers": 4, "ack_deadline": "10s"},
    }
)

SLOS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "order": {"indicator": "order", "objective": "99.99%"},
        "redelivery": {"indicator": "redelivery", "objective": "99.9%"},
        "affinity": {"indicator": "affinity", "objective": "99%"},
        "completeness": {"indicator": "completeness", "objective": "99.99%"},
        "publish_availability": {"indicator": "publish_availability", "objective": "99.95%"},
        "publish_latency": {"indicator": "publish_latency", "objective": "99%", "threshold": "500ms"},
        "end_to_end_latency": {"indicator": "end_to_end_latency", "objective": "99%", "threshold": "1s"},
        "oldest_unacked_message_age": {"indicator": "oldest_unacked_message_age", "objective": "99%", "threshold": "60s"},
        "stalled_keys": {"indicator": "stalled_keys", "objective": "99.9%"},
    }
)

# What is written as a whole and not key by key.
WHOLE: Final = frozenset({"schedule", "labels"})


def laid_over(base: Mapping[str, Any], written: Mapping[str, Any]) -> Raw:
    """A mapping with what is written in its place, inner mappings key by key."""
    result: Raw = dict(base)
    for key, value in written.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping) and key not in WHOLE:
            result[key] = laid_over(inner, value)
        else:
            result[key] = value
    return result
