"""Defaults: one embedded target, the probes, and the objectives of the catalogue.

They have the form of a file, so that a user's settings are merged key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from prober.brokers.endpoint import EMULATOR_VARIABLE, parse_endpoint, resolve_endpoint
from prober.config.values import DEFAULT_ENVIRONMENT, DEFAULT_PROJECT, EMBEDDED
from prober.durations import write_duration
from prober.probes.catalogue import DECLARED
from prober.probes.experiment import SIZES, Experiment
from prober.slo.objectives import DEFAULTS, Objective

Raw = dict[str, Any]

EMULATOR: Final = "emulator"
"""Name of the default target if PUBSUB_EMULATOR_HOST is set."""
ENDPOINT_OF_TARGET: Final = "ORDERING_PROBER_TARGETS__0__ENDPOINT"


def default_target(environ: Mapping[str, str]) -> Raw:
    """Return the target of a configuration without targets: the emulator at PUBSUB_EMULATOR_HOST, or the embedded server.

    Raises ConfigError if the variable is no address.
    """
    if not environ.get(EMULATOR_VARIABLE) or environ.get(ENDPOINT_OF_TARGET):
        return {"name": EMBEDDED, "endpoint": EMBEDDED}
    address = resolve_endpoint(EMBEDDED, environ).address
    return {"name": EMULATOR, "endpoint": address, "peer": address, "project": DEFAULT_PROJECT, "environment": DEFAULT_ENVIRONMENT}


def _by_default(probe: Experiment) -> Mapping[str, Any]:
    """Return the defaults of a probe, in the form of a file."""
    workload = probe.workload
    return {
        "schedule": {"interval": write_duration(timedelta(seconds=probe.interval_s))},
        "keys": workload.keys,
        "messages": workload.burst_messages,
        **({"rate": int(workload.rate)} if workload.rate else {}),
        **(
            {"processing": str(workload.processing), "processing_time": write_duration(timedelta(seconds=workload.processing_s))}
            if workload.processing_s
            else {}
        ),
        **({"sizes": list(workload.sizes)} if workload.sizes != SIZES else {}),
        "subscribers": workload.subscribers,
        "ack_deadline": write_duration(timedelta(seconds=probe.ack_deadline_s)),
    }


DEFAULT_PROBES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {str(name): _by_default(probe) for name, probe in DECLARED.items()}
)


def _as_written(one: Objective) -> Mapping[str, str]:
    """Return an objective in the form of a file, without the default period."""
    written = {"indicator": one.indicator.value, "objective": f"{one.target * 100:.8g}%"}
    if one.threshold_s is not None:
        written["threshold"] = write_duration(timedelta(seconds=one.threshold_s))
    return written


DEFAULT_SLOS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({one.name: _as_written(one) for one in DEFAULTS})

# What is written as a whole and not key by key.
WHOLE: Final = frozenset({"schedule", "labels"})


def region_of(endpoint: str) -> str:
    """Return the region of an endpoint: a region of Google, `global`, or `local` for any other address."""
    if endpoint == EMBEDDED:
        return "local"
    parsed = parse_endpoint(endpoint)
    return parsed.region or ("global" if parsed.secure else "local")


def laid_over(base: Mapping[str, Any], written: Mapping[str, Any]) -> Raw:
    """Merge `written` into a copy of `base`, inner mappings key by key."""
    result: Raw = dict(base)
    for key, value in written.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping) and key not in WHOLE:
            result[key] = laid_over(inner, value)
        else:
            result[key] = value
    return result
