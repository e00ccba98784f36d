"""What two targets can be compared by: the experiments that both run alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prober.comparison.pairs import Experiment
from prober.config.comparisons import ComparisonSettings
from prober.config.models import Config, ProbeName, ProbeSettings, TargetSettings


@dataclass(frozen=True, slots=True)
class Common:
    """What two targets have in common.

    apart_max_s   for each experiment that both run alike, how far apart two runs of a pair may begin: the longest
                  time between two runs.
    different     probes that both run, each in its own way, so that they cannot be compared.
    """

    apart_max_s: Mapping[Experiment, float]
    different: tuple[ProbeName, ...]


def common_to(baseline: TargetSettings, candidate: TargetSettings) -> Common:
    """What both run, as it is configured. How often does not matter: who runs more often has runs without a pair."""
    both = [probe for probe in baseline.probes if probe in candidate.probes]
    alike = [probe for probe in both if _work(baseline.probes[probe]) == _work(candidate.probes[probe])]
    found = {
        Experiment(str(probe), str(vantage), _part(part, settings)): max(_gap_s(settings), _gap_s(other))
        for probe in alike
        for settings, other in ((baseline.probes[probe], candidate.probes[probe]),)
        for vantage in settings.vantages
        if vantage in other.vantages
        for part in range(settings.parts)
    }
    return Common(found, tuple(probe for probe in both if probe not in alike))


@dataclass(frozen=True, slots=True)
class ConfiguredComparison:
    """A comparison of the configuration, with what its targets have in common."""

    settings: ComparisonSettings
    common: Common


def comparisons_of(config: Config) -> tuple[ConfiguredComparison, ...]:
    """Those of a configuration."""
    return tuple(
        ConfiguredComparison(each, common_to(*targets_of(config, each.baseline, each.candidate))) for each in config.comparisons
    )


def targets_of(config: Config, *names: str) -> tuple[TargetSettings, ...]:
    """The targets of these names. KeyError for one that is not configured."""
    known = {target.name: target for target in config.targets}
    return tuple(known[name] for name in names)


def _work(settings: ProbeSettings) -> ProbeSettings:
    """All that makes a difference to what a run measures."""
    anywhere = ProbeSettings.model_fields["vantages"].default
    return settings.model_copy(update={"vantages": anywhere, "schedule": None, "jitter": None})


def _gap_s(settings: ProbeSettings) -> float:
    return settings.schedule.longest_gap.total_seconds()


def _part(part: int, settings: ProbeSettings) -> str:
    return f"{part + 1}/{settings.parts}" if settings.parts > 1 else ""
