"""What a run has to know of the service that it probes."""

from __future__ import annotations

from dataclasses import dataclass

from prober.core.rules import Rules


@dataclass(frozen=True, slots=True)
class Target:
    """A project of a service, reached through one vantage. `rules` are the bounds for that vantage.

    act_timeout_s   how long the experiment itself may take.
    drain_s         how long a run waits at most for what is owed.
    part            which part of the keys is probed, such as `2/4`; empty if they are not divided.
    publish_region  the region that is published in, empty if nobody knows.
    """

    name: str
    project: str
    vantage: str
    rules: Rules
    publish_timeout_s: float = 5.0
    act_timeout_s: float = 300.0
    drain_s: float = 150.0
    part: str = ""
    publish_region: str = ""
