"""Whether the probes count enough for what is promised about them.

An error budget of 0.01 % cannot be judged by ten events an hour: a single bad one would raise every alarm. Which rate would do is
arithmetic (`slo.objectives.rate_min_per_s`); what a run of a probe counts at the least is said here. Time is counted in minutes, whatever
the schedule. The rate is that of one target seen from one vantage, since that is what an alert sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, floor
from types import MappingProxyType
from typing import Final

from prober.config.models import ProbeName, ProbeSettings, Slo, TargetSettings
from prober.config.problems import Path, Problem
from prober.config.values import write_duration
from prober.config.workloads import ADMIN_CALLS
from prober.slo.indicators import DISTURBED, MEANINGS, MEASURED_BY, SLICE_S, Indicator, Unit
from prober.slo.objectives import HOUR_S, rate_min_per_s

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
    return feed.count(probe) / _period_s(probe, feed)


def _period_s(probe: ProbeSettings, feed: Feed) -> float:
    return SLICE_S if feed.per_minute else probe.schedule.longest_gap.total_seconds()


def _promise(slo: Slo) -> str:
    return f"{slo.objective * 100:.8g}% over {write_duration(slo.window)}"


def _too_few(probe: ProbeSettings, feed: Feed, unit: Unit, needed: float, promises: str) -> str:
    counted = f"{floor(feed.count(probe) / _period_s(probe, feed) * HOUR_S * 10) / 10:,}".removesuffix(".0")
    return (
        f"counts {counted} {_PLURALS[unit]} an hour, so few that one bad one would fire an alert of {promises}. "
        f"{_remedy(probe, feed, needed)}, or lower the objective, or leave it out (NAME: false)"
    )


def _per_hour(rate_per_s: float) -> str:
    return f"{ceil(rate_per_s * HOUR_S - _ROUNDING):,}"


def _remedy(probe: ProbeSettings, feed: Feed, needed: float) -> str:
    factor = ceil(needed * _period_s(probe, feed) / feed.count(probe) - _ROUNDING)
    larger = f"with {factor} times the {'messages or keys' if feed.count is _messages else 'keys'}"
    longest = timedelta(seconds=int(feed.count(probe) / needed + _ROUNDING))
    if feed.per_minute or not longest:
        return f"Run it {larger}"
    return f"Run it at least every {write_duration(longest)}, or {larger}"
