"""Whether a workload fits: into its schedule, into one process, and into its memory.

What one process can do was measured (docs/deploy.md, "Capacity") on a core that may be half as fast as yours. So a workload that needs
more than twice as much is refused, and one that needs more than was measured is worth a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from math import ceil
from types import MappingProxyType
from typing import Final

from prober.brokers.base import AdminOperation, Vantage
from prober.config.models import ProbeName, ProbeSettings, TargetSettings
from prober.config.problems import Path, Problem
from prober.config.values import write_duration, write_size

MESSAGES_PER_S: Final[Mapping[Vantage, int]] = MappingProxyType({Vantage.WIRE: 20_000, Vantage.LIBRARY: 3_500})
"""What one process publishes, receives and judges, at the most that was measured."""
HEADROOM: Final = 2
"""How much faster than that a machine may be."""
ACT_MAX_S: Final = 300.0
"""A run that has not published everything by then ends UNKNOWN."""
KEY_BYTES_PER_S_MAX: Final = 1_000_000
"""What the service takes on one ordering key (documentation, "Quotas and limits"); more is refused."""
PACED: Final = frozenset({ProbeName.ORDERING, ProbeName.HOT_KEY})
"""Probes that publish at a rate; the others send each burst at once."""
BURST_BYTES_MAX: Final = 256 * 2**20
BURSTS: Final[Mapping[ProbeName, int]] = MappingProxyType(
    {
        ProbeName.ORDERING: 5,
        ProbeName.REDELIVERY: 2,
        ProbeName.AFFINITY: 8,
        ProbeName.PULL: 4,
        ProbeName.PUSH: 3,
        ProbeName.PUBLISH: 20,
        ProbeName.DEAD_LETTER: 11,
        ProbeName.EXACTLY_ONCE: 2,
        ProbeName.SEEK: 3,
        ProbeName.ISOLATION: 18,
        ProbeName.HOT_KEY: 11,
        ProbeName.CONTROL_GROUP: 5,
        ProbeName.CONTROL_PLANE: 2,
        ProbeName.LIMITS: 2,
        ProbeName.REGION: 3,
        ProbeName.OBSERVE: 0,
    }
)
"""How often a run publishes on each of its keys; of the probe `redelivery` the last one comes after what is to come again."""

WIRE_ONLY: Final = frozenset({ProbeName.PUSH, ProbeName.LIMITS})
"""Probes that look at the wire only: Google's client library takes no pushes, and puts the messages of each key into a request of their
own."""
ADMIN_CALLS: Final[Mapping[AdminOperation, int]] = MappingProxyType(
    {
        AdminOperation.CREATE_TOPIC: 1,
        AdminOperation.CREATE_SUBSCRIPTION: 2,
        AdminOperation.GET: 2,
        AdminOperation.LIST: 1,
        AdminOperation.UPDATE: 1,
        AdminOperation.SEEK: 1,
        AdminOperation.DELETE: 3,
    }
)
"""The administration calls of a run of `control_plane`, those included that make and delete what it uses."""


_LEAST: Final = (
    (ProbeName.ORDERING, "messages", 2),
    (ProbeName.ORDERING, "subscribers", 2),
    (ProbeName.REDELIVERY, "messages", 3),
    (ProbeName.REDELIVERY, "keys", 3),
    (ProbeName.AFFINITY, "subscribers", 2),
    (ProbeName.PULL, "messages", 2),
    (ProbeName.PULL, "subscribers", 2),
    (ProbeName.PUSH, "messages", 3),
    (ProbeName.PUBLISH, "messages", 2),
    (ProbeName.ISOLATION, "keys", 2),
    (ProbeName.HOT_KEY, "messages", 2),
    (ProbeName.CONTROL_GROUP, "messages", 2),
    (ProbeName.EXACTLY_ONCE, "messages", 3),
    (ProbeName.EXACTLY_ONCE, "keys", 3),
    (ProbeName.SEEK, "messages", 2),
    (ProbeName.REGION, "keys", 2),
    (ProbeName.REGION, "messages", 2),
)
"""With less, an experiment shows nothing: there is nothing to keep in order, to bring again, to move, or to send past a failure."""


def vacuous_problems(target: TargetSettings, at: Path) -> Iterator[Problem]:
    """What of a target's workload is too little for an experiment to show anything."""
    for name, key, least in _LEAST:
        probe = target.probes.get(name)
        if probe is None:
            continue
        parts = probe.parts if key == "keys" else 1
        if getattr(probe, key) < least * parts:
            problem = f"must be at least {least * parts} for the {name} probe to show anything"
            problem += " in each of its parts" if parts > 1 else ""
            yield Problem((*at, "probes", str(name), key), problem)


def workload_problems(target: TargetSettings, at: Path) -> Iterator[Problem]:
    """What of a target's workload cannot be done."""
    for name, probe in target.probes.items():
        here = (*at, "probes", str(name))
        if name in WIRE_ONLY and Vantage.LIBRARY in probe.vantages:
            yield Problem((*here, "vantages"), f"the {name} probe looks at the wire only: leave library out")
        if probe.rate and name not in PACED:
            yield Problem((*here, "rate"), f"the {name} probe sends each burst at once and has no rate; remove it")
        elif name is ProbeName.HOT_KEY and (text := _too_hot(probe)):
            yield Problem((*here, "rate"), text)
        elif text := _too_long(name, probe) or _too_large(probe):
            yield Problem(here, text)


def busy_share(targets: Iterable[TargetSettings]) -> float:
    """Which share of what was measured for one process all probes need on average; more than 1: more than one process."""
    sites = ((name, probe, vantage) for target in targets for name, probe in target.probes.items() for vantage in probe.vantages)
    return sum(messages_of_run(name, probe) / MESSAGES_PER_S[vantage] / _period_s(probe) for name, probe, vantage in sites)


def capacity_problems(targets: Iterable[TargetSettings], shared: bool) -> Iterator[Problem]:
    """Whether one prober can carry all of it. `shared`: several divide it, nobody knows how many."""
    share = busy_share(targets)
    if share > HEADROOM and not shared:
        text = (
            f"all probes together need about {ceil(share / HEADROOM)} probers: one publishes and judges at most "
            f"{HEADROOM * MESSAGES_PER_S[Vantage.WIRE]:,} messages a second at the wire, {HEADROOM * MESSAGES_PER_S[Vantage.LIBRARY]:,} "
            "through the library. Run them less often or with fewer messages, or let several probers share them (sharding.group)"
        )
        yield Problem(("targets",), text)


def messages_of_run(name: ProbeName, probe: ProbeSettings) -> int:
    """How many messages one run of a probe publishes."""
    return probe.keys * probe.messages * BURSTS[name]


def _period_s(probe: ProbeSettings) -> float:
    return probe.schedule.longest_gap.total_seconds()


def _too_long(name: ProbeName, probe: ProbeSettings) -> str:
    """What to say about a run that cannot have published everything before the next one begins; empty if it can."""
    count = messages_of_run(name, probe)
    fastest = HEADROOM * min(MESSAGES_PER_S[vantage] for vantage in probe.vantages) * probe.parts
    rate = min(probe.rate or fastest, fastest)
    taken_s, free_s = count / rate, min(probe.schedule.shortest_gap.total_seconds(), ACT_MAX_S)
    if taken_s <= free_s:
        return ""
    pace = f"rate {rate:,.10g}," if rate == probe.rate else f"{rate:,} a second, more than which no prober does,"
    end = "its run is given up" if free_s == ACT_MAX_S else "the next run begins"
    return (
        f"a run publishes {count:,} messages ({probe.keys:,} keys x {probe.messages:,} messages x {BURSTS[name]} bursts), which takes "
        f"{_rounded(taken_s)} at {pace} but {end} after {_rounded(free_s)}: at most {int(free_s * rate):,} fit. "
        f"Take fewer keys or messages{'' if free_s == ACT_MAX_S else ', or a longer interval'}"
    )


def _too_hot(probe: ProbeSettings) -> str:
    """What to say about a ramp that does not load a key, or more than the service takes; empty if it does as it should."""
    if not probe.rate:
        return "must be more than 0: it is the load that the hot_key probe works up to"
    each = probe.rate / probe.keys * sum(probe.sizes) / len(probe.sizes)
    if each <= KEY_BYTES_PER_S_MAX:
        return ""
    return (
        f"{probe.rate:,.10g} messages a second over all keys are {each:,.0f} bytes a second on each, and the service takes at "
        f"most {KEY_BYTES_PER_S_MAX:,}: take a lower rate, smaller sizes or more keys"
    )


def _too_large(probe: ProbeSettings) -> str:
    """What to say about a burst that does not fit into memory; empty if it does."""
    at_once = probe.messages * (1 if probe.rate else probe.keys)
    size = at_once * sum(probe.sizes) // len(probe.sizes)
    if size <= BURST_BYTES_MAX:
        return ""
    shown = write_size(size - size % 2**20) if size >= 2**20 else size
    return (
        f"a burst of {at_once:,} messages has {shown}, all in memory at once, and at most {write_size(BURST_BYTES_MAX)} are allowed: take "
        "fewer keys, fewer messages or smaller sizes, or set a rate"
    )


def _rounded(seconds: float) -> str:
    return write_duration(timedelta(seconds=round(seconds) if seconds >= 1 else round(seconds, 3)))
