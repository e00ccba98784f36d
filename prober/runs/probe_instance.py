"""A probe instance: one probe on one target, seen from one vantage.

The module also has the target as a run sees it.

The subscriptions of a probe are called like the first one, each with a name of its own before the part that changes.
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
    """Full names of all that runs of a probe receive from, the first one first; none if that is empty.

    A name that is not ours stands alone, and so does that of a probe that is no more.
    """
    if not first:
        return ()
    found = _FULL_NAME.fullmatch(first)
    known = next((known for name, known in PROBES.items() if name == probe), None)
    if found is None or known is None:
        return (first,)
    return first, *(f"{found['steady']}-{plan.name}{found['changing']}" for plan in known.subscriptions[1:])


class InstanceKey(NamedTuple):
    """The identity of a probe instance. `part`: which part of the probe's keys, such as `2/4`; empty if they are not divided."""

    target: str
    probe: str
    vantage: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class ProbeInstance:
    """One probe on one target from one vantage, as it is configured.

    endpoint       where the target is, as text.
    guarantee        the guarantee under test, in one sentence.
    topic, subscription   full names of what its runs use; the first one of several subscriptions.
    schedule       when it runs, as text; `interval_s` is the longest time between the starts of two runs.
    part           which part of the probe's keys it has, such as `2/4`; empty if they are not divided.
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
        """Its identity among probe instances."""
        return InstanceKey(self.target, self.probe, self.vantage, self.part)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Full names of all that its runs receive from, the first one first."""
        return subscriptions_of(self.probe, self.subscription)


@dataclass(frozen=True, slots=True)
class Target:
    """A project of a service, reached through one vantage. `rules` are the bounds for that vantage.

    act_timeout_s   how long the experiment itself may take.
    drain_s         how long a run waits at most for pending messages.
    quiet_s         how long it waits for them since the last delivery: by then every deadline has passed.
    part            which part of the keys is probed, such as `2/4`; empty if they are not divided.
    seek_settles_s  how long after a seek it may still deliver as before it.
    publish_region  the region that is published in, empty if unknown; `peer_region` at its other endpoint.
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
