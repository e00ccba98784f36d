"""A probe instance (one probe on one target from one vantage), and the target as a run uses it.

The subscriptions of a probe are named like the first one, with a name of their own before the variable part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from prober.core.rules import Rules
from prober.probes.catalogue import PROBES

CHANGING: Final = "-([0-9a-f]{8})-[0-9a-f]{6}"
_FULL_NAME: Final = re.compile(rf"(?P<steady>projects/[^/]+/subscriptions/okp-.*)(?P<changing>{CHANGING})")


def subscriptions_of(probe: str, first: str) -> tuple[str, ...]:
    """Return the full names of the subscriptions of a probe's runs, starting with `first`; none if that is empty.

    Only `first` is returned if the name is not a prober's, or the probe no longer exists.
    """
    if not first:
        return ()
    found = _FULL_NAME.fullmatch(first)
    known = next((known for name, known in PROBES.items() if name == probe), None)
    if found is None or known is None:
        return (first,)
    return first, *(f"{found['steady']}-{plan.name}{found['changing']}" for plan in known.subscriptions[1:])


class InstanceKey(NamedTuple):
    """Identity of a probe instance. `part`: its part of the probe's keys, such as `2/4`; empty if they are not divided."""

    target: str
    probe: str
    vantage: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class ProbeInstance:
    """A probe on a target from a vantage, as configured.

    endpoint       endpoint of the target, as text.
    guarantee      guarantee under test, in one sentence.
    topic, subscription   full names of the resources of its runs; the first of several subscriptions.
    schedule       schedule as text; `interval_s` is the longest time between the starts of two runs.
    part           its part of the probe's keys, such as `2/4`; empty if they are not divided.
    """

    target: str
    probe: str
    vantage: str
    interval_s: float
    schedule: str = ""
    environment: str = ""
    region: str = ""
    endpoint: str = ""
    guarantee: str = ""
    topic: str = ""
    subscription: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    part: str = ""

    @property
    def key(self) -> InstanceKey:
        """Identity among probe instances."""
        return InstanceKey(self.target, self.probe, self.vantage, self.part)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Full names of the subscriptions of its runs, the first one first."""
        return subscriptions_of(self.probe, self.subscription)


@dataclass(frozen=True, slots=True)
class Target:
    """A project of a service, used from one vantage. `rules` are the bounds for that vantage.

    act_timeout_s   longest duration of the experiment itself.
    drain_s         longest wait of a run for pending messages.
    quiet_s         longest wait for them since the last delivery: by then every deadline has passed.
    part            part of the keys that is probed, such as `2/4`; empty if they are not divided.
    seek_settles_s  time after a seek during which the target may still deliver as before.
    publish_region  region that receives publishes, empty if unknown; `peer_region` at its other endpoint.
    """

    name: str
    project: str
    vantage: str
    rules: Rules
    publish_timeout_s: float = 5.0
    act_timeout_s: float = 300.0
    drain_s: float = 150.0
    quiet_s: float = inf
    part: str = ""
    publish_region: str = ""
    seek_settles_s: float = 60.0
    peer_region: str = ""
