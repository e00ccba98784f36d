"""What holds where the file says nothing: one embedded target, the probes, and the objectives of the catalogue.

Written as a file would be, so that what a user writes is laid over it key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from prober.brokers.endpoint import parse_endpoint
from prober.config.values import EMBEDDED, write_duration
from prober.slo.objectives import DEFAULTS, Objective

Raw = dict[str, Any]

DEFAULT_TARGET: Final[Mapping[str, Any]] = MappingProxyType({"name": "embedded", "endpoint": "embedded"})

DEFAULT_PROBES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "ordering": {
            "schedule": {"interval": "10s"},
            "keys": 10,
            "messages": 20,
            "rate": 500,
            "subscribers": 3,
            "ack_deadline": "10s",
        },
        "redelivery": {
            # A run whose streams are cut in the midst of a redelivery waits for two leases more, which is allowed: it takes 40 s.
            "schedule": {"interval": "60s"},
            "keys": 12,
            "messages": 6,
            "subscribers": 2,
            "ack_deadline": "10s",
        },
        "affinity": {"schedule": {"interval": "60s"}, "keys": 20, "messages": 10, "subscribers": 4, "ack_deadline": "10s"},
        "pull": {"schedule": {"interval": "60s"}, "keys": 8, "messages": 6, "subscribers": 3, "ack_deadline": "10s"},
        "push": {"schedule": {"interval": "60s"}, "keys": 10, "messages": 6, "subscribers": 1, "ack_deadline": "10s"},
        "publish": {"schedule": {"interval": "60s"}, "keys": 8, "messages": 3, "subscribers": 1, "ack_deadline": "10s"},
        "dead_letter": {"schedule": {"interval": "2m"}, "keys": 10, "messages": 2, "subscribers": 2, "ack_deadline": "10s"},
        "exactly_once": {"schedule": {"interval": "2m"}, "keys": 8, "messages": 10, "subscribers": 2, "ack_deadline": "10s"},
        "seek": {"schedule": {"interval": "10m"}, "keys": 20, "messages": 15, "subscribers": 1, "ack_deadline": "10s"},
        "isolation": {"schedule": {"interval": "5m"}, "keys": 9, "messages": 2, "subscribers": 2, "ack_deadline": "10s"},
        "hot_key": {
            "schedule": {"interval": "1h"},
            "keys": 1,
            "messages": 100,
            "rate": 100,
            "sizes": [9500],
            "subscribers": 1,
            "ack_deadline": "10s",
        },
        "control_group": {"schedule": {"interval": "5m"}, "keys": 8, "messages": 8, "subscribers": 2, "ack_deadline": "10s"},
        "control_plane": {"schedule": {"interval": "5m"}, "keys": 10, "messages": 15, "subscribers": 2, "ack_deadline": "10s"},
        "limits": {"schedule": {"interval": "10m"}, "keys": 10, "messages": 30, "subscribers": 2, "ack_deadline": "10s"},
        "region": {"schedule": {"interval": "5m"}, "keys": 10, "messages": 10, "subscribers": 4, "ack_deadline": "10s"},
        "observe": {"schedule": {"interval": "5m"}, "keys": 1, "messages": 1, "subscribers": 1, "ack_deadline": "60s"},
    }
)


def _as_written(one: Objective) -> Mapping[str, str]:
    """An objective as a file would have it; its period is the default one."""
    written = {"indicator": one.indicator.value, "objective": f"{one.target * 100:.8g}%"}
    if one.threshold_s is not None:
        written["threshold"] = write_duration(timedelta(seconds=one.threshold_s))
    return written


DEFAULT_SLOS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({one.name: _as_written(one) for one in DEFAULTS})

# What is written as a whole and not key by key.
WHOLE: Final = frozenset({"schedule", "labels"})


def region_of(endpoint: str) -> str:
    """The region that an endpoint itself names: Google's, `global`, or `local` for anything else."""
    if endpoint == EMBEDDED:
        return "local"
    parsed = parse_endpoint(endpoint)
    return parsed.region or ("global" if parsed.secure else "local")


def laid_over(base: Mapping[str, Any], written: Mapping[str, Any]) -> Raw:
    """A mapping with what is written in its place, inner mappings key by key. Neither of the two is changed."""
    result: Raw = dict(base)
    for key, value in written.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping) and key not in WHOLE:
            result[key] = laid_over(inner, value)
        else:
            result[key] = value
    return result
