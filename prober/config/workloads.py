"""Whether a workload is neither too much nor too little.

It must *fit*: into its schedule, into one process, and into its memory. What one process can do was measured (docs/deploy.md,
"Capacity") on a core that may be half as fast as yours. So a workload that needs more than twice as much is refused, and one that needs
more than was measured is worth a warning.

It must *count enough* for what is promised about it. An error budget of 0.01 % cannot be judged by ten events an hour: a single bad one
would raise every alarm. Which rate would do is arithmetic (`slo.objectives.rate_min_per_s`); what a run of a probe counts at the least is
said here. Time is counted in minutes, whatever the schedule. The rate is that of one target seen from one vantage, since that is what an
alert sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, floor
from types import MappingProxyType
from typing import Final

from prober.brokers.base import AdminOperation, Vantage
from prober.config.models import ProbeName, ProbeSettings, Slo, TargetSettings
from prober.config.problems import Path, Problem
from prober.config.values import write_duration, write_size
from prober.slo.indicators import DISTURBED, MEANINGS, MEASURED_BY, SLICE_S, Indicator, Unit
from prober.slo.objectives import HOUR_S, rate_min_per_s

MESSAGES_PER_S: Final[Mapping[Vantage, int]] = MappingProxyType({Vantage.WIRE: 20_000, Vantage.LIBRARY: 3_500})
"""What one process publishes, receives and judges, at the most that was measured."""
HEADROOM: Final = 2
"""How much faster than that a machine may be."""
ACT_MAX_S: Final = 300.0
"""A run that has not published everything by then ends UNKNOWN."""
PULL_TIMEOUT_S: Final = 25.0
"""How long one pull waits for an answer: longer than Pub/Sub waits for a message before it answers with none (about 18 s were seen,
googleapis/google-cloud-python issue 8087). A pull that is given up may have carried messages, so it excuses a service that falls silent."""
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
_ROUNDING: Final = 1e-9
_PLURALS: Final = MappingProxyType(
    {
        Unit.MESSAGE: "messages",
        Unit.CALL: "calls",
        Unit.REDELIVERY: "redeliveries",
        Unit.SLICE: "minutes",
        Unit.KEY_SLICE: "key-minutes",
    }
)
ALL: Final = frozenset(ProbeName) - {ProbeName.OBSERVE}
"""All that publish: of what others publish nobody knows how much it is."""


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


@dataclass(frozen=True, slots=True)
class Feed:
    """Which probes feed an indicator, and how many of its things one run counts at the least. `per_minute`: one minute, run or not."""

    probes: frozenset[ProbeName]
    count: Callable[[ProbeSettings], int]
    per_minute: bool = False


def _messages(probe: ProbeSettings) -> int:
    return probe.keys * probe.messages


def _keys(probe: ProbeSettings) -> int:
    return probe.keys


def _delayed(probe: ProbeSettings) -> int:
    """The messages of a burst without those of the keys that are held, one in each part; with too few keys, which is refused, one."""
    return max(1, probe.keys - probe.parts) * probe.messages


_MESSAGES: Final = Feed(frozenset({ProbeName.ORDERING}), _messages)
_REDELIVERIES: Final = Feed(frozenset({ProbeName.REDELIVERY}), _keys)
FEEDS: Final[Mapping[Indicator, Feed]] = MappingProxyType(
    {
        Indicator.ORDER: _MESSAGES,
        Indicator.COMPLETENESS: _MESSAGES,
        Indicator.PUBLISH_AVAILABILITY: _MESSAGES,
        Indicator.PUBLISH_LATENCY: _MESSAGES,
        Indicator.END_TO_END_LATENCY: Feed(ALL - DISTURBED[Indicator.END_TO_END_LATENCY], _messages),
        Indicator.REDELIVERY: _REDELIVERIES,
        Indicator.REDELIVERY_LATENCY: _REDELIVERIES,
        Indicator.AFFINITY: Feed(frozenset({ProbeName.AFFINITY}), _keys),
        Indicator.CONTROL_PLANE_LATENCY: Feed(frozenset({ProbeName.CONTROL_PLANE}), lambda _: sum(ADMIN_CALLS.values())),
        Indicator.OLDEST_UNACKED_MESSAGE_AGE: Feed(ALL, lambda _: 1, per_minute=True),
        Indicator.STALLED_KEYS: Feed(ALL, _keys, per_minute=True),
        Indicator.HEAD_OF_LINE_DELAY: Feed(frozenset({ProbeName(MEASURED_BY[Indicator.HEAD_OF_LINE_DELAY])}), _delayed),
    }
)


def is_fed(indicator: Indicator, probes: Collection[str]) -> bool:
    """Whether one of the probes feeds an indicator. What no probe is named for, all of them feed."""
    return indicator not in FEEDS or not FEEDS[indicator].probes.isdisjoint(probes)


def feeding(target: TargetSettings, indicator: Indicator) -> ProbeName | None:
    """The probe of a target that feeds an indicator most, None if none does."""
    feed = FEEDS.get(indicator)
    names = [name for name in target.probes if feed is not None and name in feed.probes]
    return max(names, key=lambda name: _rate_per_s(target.probes[name], indicator), default=None)


def rate_problems(target: TargetSettings, at: Path, slos: Mapping[str, Slo]) -> Iterator[Problem]:
    """What a target's probes count too little of, with what would do: one problem per probe and thing counted."""
    lacking: dict[tuple[ProbeName, Feed], dict[str, float]] = {}
    for name, slo in slos.items():
        probe_name = feeding(target, slo.indicator)
        needed = rate_min_per_s(slo.objective_named(name))
        if probe_name is not None and _rate_per_s(target.probes[probe_name], slo.indicator) < needed:
            lacking.setdefault((probe_name, FEEDS[slo.indicator]), {})[name] = needed
    for (probe_name, feed), needs in lacking.items():
        promises = ", ".join(f"slos.{name} ({_promise(slos[name])} needs {_per_hour(needed)})" for name, needed in needs.items())
        unit = MEANINGS[slos[next(iter(needs))].indicator].unit
        text = _too_few(target.probes[probe_name], feed, unit, max(needs.values()), promises)
        yield Problem((*at, "probes", str(probe_name)), text)


def _rate_per_s(probe: ProbeSettings, indicator: Indicator) -> float:
    feed = FEEDS[indicator]
    return feed.count(probe) / _counted_every_s(probe, feed)


def _counted_every_s(probe: ProbeSettings, feed: Feed) -> float:
    return SLICE_S if feed.per_minute else probe.schedule.longest_gap.total_seconds()


def _promise(slo: Slo) -> str:
    return f"{slo.objective * 100:.8g}% over {write_duration(slo.window)}"


def _too_few(probe: ProbeSettings, feed: Feed, unit: Unit, needed: float, promises: str) -> str:
    counted = f"{floor(feed.count(probe) / _counted_every_s(probe, feed) * HOUR_S * 10) / 10:,}".removesuffix(".0")
    return (
        f"counts {counted} {_PLURALS[unit]} an hour, so few that one bad one would fire an alert of {promises}. "
        f"{_remedy(probe, feed, needed)}, or lower the objective, or leave it out (NAME: false)"
    )


def _per_hour(rate_per_s: float) -> str:
    return f"{ceil(rate_per_s * HOUR_S - _ROUNDING):,}"


def _remedy(probe: ProbeSettings, feed: Feed, needed: float) -> str:
    factor = ceil(needed * _counted_every_s(probe, feed) / feed.count(probe) - _ROUNDING)
    larger = f"with {factor} times the {'messages or keys' if feed.count is _messages else 'keys'}"
    longest = timedelta(seconds=int(feed.count(probe) / needed + _ROUNDING))
    if feed.per_minute or not longest:
        return f"Run it {larger}"
    return f"Run it at least every {write_duration(longest)}, or {larger}"
