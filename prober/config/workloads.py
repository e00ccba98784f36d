"""Limits of a workload, upper and lower.

It must *fit*: into its schedule, into one process, and into its memory. The capacity of one process was measured (docs/deploy.md,
"Capacity") on a core that may be half as fast as yours. So a workload beyond twice that capacity is refused, and one beyond the capacity
is a warning.

It must *count enough* for its objectives. An error budget of 0.01 % cannot be evaluated with ten events an hour: a single bad one would
fire every alert. `slo.objectives.rate_min_per_s` computes the necessary rate; this module computes the minimum that a run of a probe
counts. Time is counted in minutes, whatever the schedule. The rate is that of one target seen from one vantage, like the series of an
alert.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil, floor
from types import MappingProxyType
from typing import Final

from prober.brokers.base import Vantage
from prober.config.models import ProbeSettings, Slo, TargetSettings
from prober.config.problems import Path, Problem
from prober.config.values import write_size
from prober.durations import write_duration
from prober.probes.catalogue import DECLARED, ProbeName, is_fed
from prober.probes.experiment import Processing, Workload, each_message
from prober.probes.slow_consumer import PROCESSING_S
from prober.slo.indicators import MEANINGS, SLICE_S, Indicator, Unit
from prober.slo.objectives import HOUR_S, Objective, rate_min_per_s

MESSAGES_PER_S: Final[Mapping[Vantage, int]] = MappingProxyType({Vantage.WIRE: 20_000, Vantage.LIBRARY: 3_500})
"""Maximum measured rate at which one process publishes, receives and verifies messages."""
HEADROOM: Final = 2
"""Factor by which a machine may be faster than the measured one."""
ACT_MAX_S: Final = 300.0
"""Time limit of publishing in a run, after which it ends UNKNOWN."""
BURST_BYTES_MAX: Final = 256 * 2**20
_ROUNDING: Final = 1e-9
_PER_MINUTE: Final = frozenset({Unit.SLICE, Unit.KEY_SLICE})
"""Indicators counted each minute, whatever the schedule."""
_PLURALS: Final = MappingProxyType(
    {
        Unit.MESSAGE: "messages",
        Unit.CALL: "calls",
        Unit.REDELIVERY: "redeliveries",
        Unit.SLICE: "minutes",
        Unit.KEY_SLICE: "key-minutes",
    }
)


def vacuous_problems(target: TargetSettings, at: Path) -> Iterator[Problem]:
    """Report workloads of a target that are too small for their experiment to verify anything."""
    for name, probe in target.probes.items():
        for key, least in DECLARED[name].least.items():
            parts = probe.parts if key == "keys" else 1
            if getattr(probe, key) < least * parts:
                problem = f"must be at least {least * parts} for the {name} probe to show anything"
                problem += " in each of its parts" if parts > 1 else ""
                yield Problem((*at, "probes", str(name), key), problem)


def workload_problems(target: TargetSettings, at: Path) -> Iterator[Problem]:
    """Report workloads of a target that are too large."""
    for name, probe in target.probes.items():
        here, declared = (*at, "probes", str(name)), DECLARED[name]
        if declared.wire_only and Vantage.LIBRARY in probe.vantages:
            yield Problem((*here, "vantages"), f"the {name} probe looks at the wire only: leave library out")
        if probe.rate and not declared.paced:
            yield Problem((*here, "rate"), f"the {name} probe sends each burst at once and has no rate; remove it")
        elif probe.beyond_key_limit and name is not ProbeName.HOT_KEY:
            yield Problem((*here, "beyond_key_limit"), f"the {name} probe loads no key up to its limit: remove it")
        elif text := _processing_problem(name, probe):
            yield Problem((*here, "processing_time"), text)
        elif text := declared.rate_problem(workload_of(name, probe)):
            yield Problem((*here, "rate"), text)
        elif text := _too_long(name, probe) or _too_large(probe):
            yield Problem(here, text)


def _processing_problem(name: ProbeName, probe: ProbeSettings) -> str:
    """Return the problem of a slow consumer that the probe does not have, or that is too slow; empty if there is none."""
    if DECLARED[name].workload.processing_s:
        right = timedelta() < probe.processing_time <= timedelta(seconds=PROCESSING_S)
        return (
            ""
            if right
            else f"must be more than 0s and at most {PROCESSING_S:g}s, so long the slow consumer of the {name} probe goes on"
        )
    has_any = probe.processing_time or probe.processing is not Processing.SLOW_KEY
    return f"the {name} probe has no slow consumer: remove processing and processing_time" if has_any else ""


def busy_share(targets: Iterable[TargetSettings]) -> float:
    """Return the average load of all probes as a share of the measured capacity of one process."""
    instances = (
        (name, probe, vantage) for target in targets for name, probe in target.probes.items() for vantage in probe.vantages
    )
    return sum(workload_of(name, probe).messages / MESSAGES_PER_S[vantage] / _period_s(probe) for name, probe, vantage in instances)


def capacity_problems(targets: Iterable[TargetSettings], shared: bool) -> Iterator[Problem]:
    """Report probes that exceed the capacity of one prober.

    `shared`: several probers divide them; their number is unknown.
    """
    share = busy_share(targets)
    if share > HEADROOM and not shared:
        text = (
            f"all probes together need about {ceil(share / HEADROOM)} probers: one publishes and verifies at most "
            f"{HEADROOM * MESSAGES_PER_S[Vantage.WIRE]:,} messages a second at the wire, {HEADROOM * MESSAGES_PER_S[Vantage.LIBRARY]:,} "
            "through the library. Run them less often or with fewer messages, or let several probers share them (sharding.group)"
        )
        yield Problem(("targets",), text)


def workload_of(name: ProbeName, probe: ProbeSettings) -> Workload:
    """Return the workload of all parts of a probe together."""
    return replace(
        DECLARED[name].workload,
        keys=probe.keys,
        burst_messages=probe.messages,
        rate=probe.rate,
        beyond_key_limit=probe.beyond_key_limit,
        processing=probe.processing,
        processing_s=probe.processing_time.total_seconds(),
        sizes=probe.sizes,
        subscribers=probe.subscribers,
        parts=probe.parts,
    )


def _period_s(probe: ProbeSettings) -> float:
    return probe.schedule.longest_gap.total_seconds()


def _too_long(name: ProbeName, probe: ProbeSettings) -> str:
    """Return the problem of a run that cannot publish everything before the next one starts; empty if there is none."""
    workload = workload_of(name, probe)
    count = workload.messages
    fastest = HEADROOM * min(MESSAGES_PER_S[vantage] for vantage in probe.vantages) * probe.parts
    rate = min(probe.rate or fastest, fastest)
    taken_s, free_s = count / rate, min(probe.schedule.shortest_gap.total_seconds(), ACT_MAX_S)
    if taken_s <= free_s:
        return ""
    pace = f"rate {rate:,.10g}," if rate == probe.rate else f"{rate:,} a second, more than which no prober does,"
    more = f" and {workload.beside:,} more" if workload.beside else ""
    end = "its run is given up" if free_s == ACT_MAX_S else "the next run begins"
    return (
        f"a run publishes {count:,} messages ({probe.keys:,} keys x {probe.messages:,} messages x {workload.bursts} bursts{more}), which "
        f"takes {_rounded(taken_s)} at {pace} but {end} after {_rounded(free_s)}: at most {int(free_s * rate):,} fit. "
        f"Take fewer keys or messages{'' if free_s == ACT_MAX_S else ', or a longer interval'}"
    )


def _too_large(probe: ProbeSettings) -> str:
    """Return the problem of a burst that does not fit into memory; empty if there is none."""
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


def feeding(target: TargetSettings, indicator: Indicator) -> ProbeName | None:
    """Return the probe of a target that feeds an indicator most, None if none does."""
    names = [name for name in target.probes if is_fed(indicator, {name})]
    return max(names, key=lambda name: _Fed.of(target, name, indicator).rate_per_s, default=None)


def feeds_by_default(name: ProbeName, objective: Objective) -> bool:
    """Return whether a probe with its default settings counts enough for an objective."""
    declared = DECLARED[name]
    count = declared.counts.get(objective.indicator)
    every_s = SLICE_S if MEANINGS[objective.indicator].unit in _PER_MINUTE else declared.interval_s
    return count is not None and count(declared.workload) / every_s >= rate_min_per_s(objective)


def rate_problems(target: TargetSettings, at: Path, slos: Mapping[str, Slo]) -> Iterator[Problem]:
    """Report indicators that a target's probes count too rarely, with a sufficient setting: one problem per probe and indicator."""
    lacking: dict[tuple[ProbeName, bool, _Fed], dict[str, float]] = {}
    for name, slo in slos.items():
        probe_name = feeding(target, slo.indicator)
        needed = rate_min_per_s(slo.objective_named(name))
        if probe_name is None:
            continue
        fed = _Fed.of(target, probe_name, slo.indicator)
        if fed.rate_per_s < needed:
            lacking.setdefault((probe_name, slo.indicator in DECLARED[probe_name].feeds, fed), {})[name] = needed
    for (probe_name, _, fed), needs in lacking.items():
        objectives = ", ".join(
            f"slos.{name} ({_objective_of(slos[name])} needs {_per_hour(needed)})" for name, needed in needs.items()
        )
        yield Problem((*at, "probes", str(probe_name)), _too_few(fed, max(needs.values()), objectives))


@dataclass(frozen=True, slots=True)
class _Fed:
    """Minimum number of events of an indicator that a probe counts in a time; more with more of `grows_by`."""

    count: int
    every_s: float
    unit: Unit
    grows_by: str

    @classmethod
    def of(cls, target: TargetSettings, name: ProbeName, indicator: Indicator) -> _Fed:
        count, unit, probe = DECLARED[name].counts[indicator], MEANINGS[indicator].unit, target.probes[name]
        every_s = SLICE_S if unit in _PER_MINUTE else _period_s(probe)
        return cls(count(workload_of(name, probe)), every_s, unit, "messages or keys" if count is each_message else "keys")

    @property
    def rate_per_s(self) -> float:
        return self.count / self.every_s


def _objective_of(slo: Slo) -> str:
    return f"{slo.objective * 100:.8g}% over {write_duration(slo.window)}"


def _too_few(fed: _Fed, needed: float, objectives: str) -> str:
    counted = f"{floor(fed.rate_per_s * HOUR_S * 10) / 10:,}".removesuffix(".0")
    return (
        f"counts {counted} {_PLURALS[fed.unit]} an hour, so few that one bad one would fire an alert of {objectives}. "
        f"{_remedy(fed, needed)}, or lower the objective, or leave it out (NAME: false)"
    )


def _per_hour(rate_per_s: float) -> str:
    return f"{ceil(rate_per_s * HOUR_S - _ROUNDING):,}"


def _remedy(fed: _Fed, needed: float) -> str:
    factor = ceil(needed * fed.every_s / fed.count - _ROUNDING)
    larger = f"with {factor} times the {fed.grows_by}"
    longest = timedelta(seconds=int(fed.count / needed + _ROUNDING))
    if fed.unit in _PER_MINUTE or not longest:
        return f"Run it {larger}"
    return f"Run it at least every {write_duration(longest)}, or {larger}"
