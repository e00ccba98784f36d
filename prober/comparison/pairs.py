"""Pairs of runs of two targets, and their measurements.

A pair is a run of a probe at the baseline and the run of the same probe, from the same vantage and with the same part of the keys, at the
candidate that began at about the same time. Events that affect both, such as a slow minute of the network, are the same for both then.

*Measurements of a run* are its counts everywhere else (`prober.slo.counts`), with one difference: of the guarantees about order, redelivery
and affinity only opportunities count. These are decisions of the service that would be reported as a violation if they were wrong
(`prober.core.coverage`). A redelivery without a later message cannot be wrong, so it proves nothing. The undecided share stays
the same.

*Exclusions:* a run that an internal error of the prober ended proves nothing about its target, nor does its pair. A run that could not
reach its target counts: its unsent publishes are bad.

Two targets can be compared by the experiments that both run alike (`common_to`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from prober.config.comparisons import ComparisonSettings
from prober.config.models import Config, ProbeSettings, TargetSettings
from prober.probes.catalogue import DISTURBED, ProbeName
from prober.runs.result import RunResult
from prober.slo.comparison import ASPECTS, Aspect, CountsPair, Measured, SecondsPair, Statistic
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

_OPPORTUNITIES: Final = MappingProxyType(
    {
        Indicator.ORDER: "opportunities_order",
        Indicator.REDELIVERY: "opportunities_redelivery",
        Indicator.AFFINITY: "opportunities_affinity",
    }
)


class ComparedExperiment(NamedTuple):
    """The probe, vantage and part that both runs of a pair have in common."""

    probe: str
    vantage: str
    part: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.probe, f"({self.vantage})", self.part)))


class PairOfRuns(NamedTuple):
    """Two runs of the same experiment at about the same time, one on each target."""

    baseline: RunResult
    candidate: RunResult

    @property
    def experiment(self) -> ComparedExperiment:
        """The experiment of both runs."""
        return experiment_of(self.baseline)

    @property
    def is_ours(self) -> bool:
        """Whether an internal error of the prober ended one of the runs, so that both prove nothing."""
        return self.baseline.internal_error or self.candidate.internal_error


def experiment_of(run: RunResult) -> ComparedExperiment:
    """Return the experiment of a run, independent of its target."""
    return ComparedExperiment(run.probe, run.vantage, run.part)


def pairs_of(
    baseline: Iterable[RunResult], candidate: Iterable[RunResult], apart_max_s: Mapping[ComparedExperiment, float]
) -> list[PairOfRuns]:
    """Pair runs of two targets by start time, each run once. Experiments that `apart_max_s` does not name are left out.

    `apart_max_s`: for each experiment, the largest difference of the start times of a pair, in seconds.
    """
    first, second = _by_experiment(baseline), _by_experiment(candidate)
    return [
        pair
        for experiment, apart_s in apart_max_s.items()
        for pair in _matched(first.get(experiment, ()), second.get(experiment, ()), apart_s)
    ]


def _by_experiment(runs: Iterable[RunResult]) -> dict[ComparedExperiment, list[RunResult]]:
    found: defaultdict[ComparedExperiment, list[RunResult]] = defaultdict(list)
    for run in sorted(runs, key=lambda each: each.started_at):
        found[experiment_of(run)].append(run)
    return found


def _matched(baseline: Sequence[RunResult], candidate: Sequence[RunResult], apart_max_s: float) -> Iterator[PairOfRuns]:
    """Yield pairs in the order of their start times: the earlier one of two runs that are too far apart has no pair."""
    first, second = 0, 0
    while first < len(baseline) and second < len(candidate):
        later_s = candidate[second].started_at - baseline[first].started_at
        if abs(later_s) <= apart_max_s:
            yield PairOfRuns(baseline[first], candidate[second])
        first += later_s >= -apart_max_s
        second += later_s <= apart_max_s


# --- what they measured ------------------------------------------------------------------------------------------------------


def measured_by(pairs: Iterable[PairOfRuns]) -> list[Measured]:
    """Return the measurements of each aspect by these pairs, without aspects that no run measured."""
    reported = [pair for pair in pairs if not pair.is_ours]
    every = (
        _shares(aspect, reported) if aspect.statistic is Statistic.SHARE else _durations(aspect, reported) for aspect in ASPECTS
    )
    return [measured for measured in every if measured.pairs or measured.one_sided]


def _shares(aspect: Aspect, pairs: Iterable[PairOfRuns]) -> Measured:
    counts: list[CountsPair] = []
    one_sided = 0
    for pair in pairs:
        both = _counts(aspect.indicator, pair.baseline), _counts(aspect.indicator, pair.candidate)
        if all(each.decided for each in both):
            counts.append(both)
        elif any(each.decided for each in both):
            one_sided += 1
    return Measured(aspect, counts=counts, one_sided=one_sided)


def _durations(aspect: Aspect, pairs: Iterable[PairOfRuns]) -> Measured:
    seconds: list[SecondsPair] = []
    one_sided = 0
    for pair in pairs:
        baseline, candidate = _seconds(aspect, pair.baseline), _seconds(aspect, pair.candidate)
        if baseline is not None and candidate is not None:
            seconds.append((baseline, candidate))
        elif baseline is not None or candidate is not None:
            one_sided += 1
    return Measured(aspect, seconds=seconds, one_sided=one_sided)


def _seconds(aspect: Aspect, run: RunResult) -> float | None:
    durations = run.durations.get(aspect.indicator)
    if durations is None:
        return None
    return durations.p50_s if aspect.statistic is Statistic.P50 else durations.p99_s


def _counts(indicator: Indicator, run: RunResult) -> SliCounts:
    """Return the counts of a run for an indicator; none for a run that does not count, such as under maintenance."""
    if not run.checks:
        return SliCounts()
    counted = run.checks.get(indicator, SliCounts())
    if indicator is Indicator.PUBLISH_AVAILABILITY:
        return SliCounts() if run.probe in DISTURBED[indicator] else counted + _publishes(run.counters)
    opportunities = run.counters.get(_OPPORTUNITIES.get(indicator, ""))
    return counted if opportunities is None else _of_opportunities(counted, opportunities)


def _publishes(counters: Mapping[str, int]) -> SliCounts:
    bad = counters.get("publishes_rejected", 0) + counters.get("publishes_unknown", 0)
    return SliCounts(counters.get("publishes_confirmed", 0), bad)


def _of_opportunities(counted: SliCounts, opportunities: int) -> SliCounts:
    """Return the events that had an opportunity to be bad, of all verified events."""
    decided = max(counted.bad, min(opportunities, counted.decided))
    undecided = round(counted.undecided * decided / counted.decided) if counted.decided else counted.undecided
    return SliCounts(decided - counted.bad, counted.bad, undecided)


@dataclass(frozen=True, slots=True)
class CommonExperiments:
    """The common experiments of two targets.

    apart_max_s   for each experiment that both run alike, the largest difference of the start times of a pair: the longest
                  time between two runs.
    different     probes that both run with different settings, so that they cannot be compared.
    """

    apart_max_s: Mapping[ComparedExperiment, float]
    different: tuple[ProbeName, ...]


def common_to(baseline: TargetSettings, candidate: TargetSettings) -> CommonExperiments:
    """Return the common configured experiments. Different intervals do not matter: the more frequent target has runs without a pair."""
    both = [probe for probe in baseline.probes if probe in candidate.probes]
    alike = [probe for probe in both if _work(baseline.probes[probe]) == _work(candidate.probes[probe])]
    found = {
        ComparedExperiment(str(probe), str(vantage), part): max(_gap_s(settings), _gap_s(other))
        for probe in alike
        for settings, other in ((baseline.probes[probe], candidate.probes[probe]),)
        for vantage in settings.vantages
        if vantage in other.vantages
        for part in settings.part_names
    }
    return CommonExperiments(found, tuple(probe for probe in both if probe not in alike))


@dataclass(frozen=True, slots=True)
class ConfiguredComparison:
    """A comparison of the configuration, with the common experiments of its targets."""

    settings: ComparisonSettings
    common: CommonExperiments


def comparisons_of(config: Config) -> tuple[ConfiguredComparison, ...]:
    """Return the comparisons of a configuration."""
    return tuple(
        ConfiguredComparison(each, common_to(*targets_of(config, each.baseline, each.candidate))) for each in config.comparisons
    )


def targets_of(config: Config, *names: str) -> tuple[TargetSettings, ...]:
    """Return the targets of these names. KeyError for one that is not configured."""
    known = {target.name: target for target in config.targets}
    return tuple(known[name] for name in names)


def _work(settings: ProbeSettings) -> ProbeSettings:
    """Return the settings of a probe that affect the measurements of a run."""
    anywhere = ProbeSettings.model_fields["vantages"].default
    return settings.model_copy(update={"vantages": anywhere, "schedule": None, "jitter": None})


def _gap_s(settings: ProbeSettings) -> float:
    return settings.schedule.longest_gap.total_seconds()
