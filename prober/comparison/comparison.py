"""Comparison of two targets: every aspect of pairs of runs, the overall result, and the time that a decision needs.

Also its texts for a terminal and for pages, and its JSON document.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, isfinite
from typing import Final

from prober.clock import wall_s
from prober.comparison.pairs import CommonExperiments, ComparedExperiment, PairOfRuns, comparisons_of, measured_by, pairs_of
from prober.config.comparisons import ComparisonSettings
from prober.config.models import Config
from prober.durations import write_duration
from prober.runs.result import RunResult
from prober.sinks.metrics.comparisons import ComparedTargets, ComparisonMetrics
from prober.sinks.status.database import StatusError
from prober.sinks.status.listings import PAGE_MAX, RunFilter
from prober.sinks.status.queries import StatusQueries
from prober.slo.comparison import (
    PAIRS_MIN,
    Aspect,
    ComparedAspect,
    Standing,
    Statistic,
    compare_aspect,
    confidence_of_each,
    overall,
)
from prober.slo.indicators import MEANINGS

_UNITS: Final = {"s": "s", "m": "min", "h": "h", "d": "d"}
_OF_RUN: Final = {Statistic.P50: "half", Statistic.P99: "99 %"}
NO_USE: Final = "waiting is of no use"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate compared with a baseline.

    pairs      the number of evaluated pairs of runs, by experiment that both have to run.
    left_out   pairs that an internal error of the prober ended.
    took_s     the period of their collection, in seconds.
    """

    baseline: str
    candidate: str
    standing: Standing
    aspects: tuple[ComparedAspect, ...]
    pairs: Mapping[ComparedExperiment, int]
    left_out: int
    took_s: float

    @property
    def missing(self) -> tuple[ComparedExperiment, ...]:
        """Experiments without a pair: while there are any, the candidate is never reported as no worse."""
        return tuple(experiment for experiment, count in self.pairs.items() if not count)

    def of(self, standing: Standing) -> tuple[ComparedAspect, ...]:
        """Return the aspects with this result."""
        return tuple(each for each in self.aspects if each.standing is standing)

    @property
    def needed_s(self) -> float | None:
        """Seconds of runs that a decision probably needs, from the start.

        If the candidate looks worse in some aspects, a decision about one of them is enough, else all must be decided. None if already
        decided or unknown; infinity if waiting does not help. Experiments that are `missing` take longer than that.
        """
        if self.standing is not Standing.UNKNOWN:
            return None
        open_ones = [each for each in self.of(Standing.UNKNOWN) if each.pairs and each.pairs_needed]
        looks_worse = [_factor(each) for each in open_ones if each.difference is not None and each.difference.value > each.margin]
        factor = min(looks_worse, default=None) or max(map(_factor, open_ones), default=None)
        return None if factor is None else self.took_s * factor


def _factor(aspect: ComparedAspect) -> float:
    return (aspect.pairs_needed or 0.0) / aspect.pairs


def compare_pairs(
    settings: ComparisonSettings, pairs: Sequence[PairOfRuns], wanted: Sequence[ComparedExperiment], took_s: float
) -> Comparison:
    """Compare two targets in every aspect that any of the pairs measured.

    `wanted`: the experiments that both have to run; each needs a pair before the candidate is reported as no worse.
    """
    margins = settings.margins.by_aspect
    measured = measured_by(pairs)
    confidence = confidence_of_each(len(measured))
    aspects = tuple(compare_aspect(each, margins[each.aspect], confidence) for each in measured)
    counted = Counter(pair.experiment for pair in pairs if not pair.is_ours)
    reported = {experiment: counted[experiment] for experiment in wanted}
    return Comparison(
        settings.baseline,
        settings.candidate,
        overall([each.standing for each in aspects], complete=all(reported.values())),
        aspects,
        reported,
        sum(pair.is_ours for pair in pairs),
        took_s,
    )


def worst_first(aspects: Sequence[ComparedAspect]) -> list[ComparedAspect]:
    """Return the aspects for readers: worse, undecided, then the rest.

    Within each group the order stays.
    """
    return sorted(aspects, key=lambda each: (Standing.WORSE, Standing.UNKNOWN, Standing.NO_WORSE).index(each.standing))


def why_unknown(aspect: ComparedAspect) -> str:
    """Return why an aspect is undecided, as text without a full stop."""
    if aspect.pairs < PAIRS_MIN:
        return f"{aspect.pairs} of at least {PAIRS_MIN} pairs of runs"
    if aspect.pairs_needed is None:
        return f"in {aspect.one_sided} of {aspect.pairs + aspect.one_sided} pairs only one of the two had something to measure"
    if isfinite(aspect.pairs_needed):
        return f"{aspect.pairs} pairs of runs leave it open, about {aspect.pairs_needed:.0f} would tell"
    return "the difference is too close to the margin to be decided by waiting"


# --- in words ----------------------------------------------------------------------------------------------------------------


def comparison_as_text(found: Comparison) -> str:
    """Return the result as text: a sentence, then a line for each aspect, the worst first."""
    lines = [sentence(found)]
    lines += [f"  {line}" for line in reasons(found)]
    width = max((len(each.aspect.name) for each in found.aspects), default=0)
    lines += [f"  {each.aspect.name:<{width}}  {each.standing:<8}  {numbers(each)}" for each in worst_first(found.aspects)]
    return "\n".join(lines)


def sentence(found: Comparison) -> str:
    """Return the overall result as a line without a full stop."""
    names = f"{found.candidate} is no worse than {found.baseline}"
    if found.standing is Standing.NO_WORSE:
        return f"{names} in any of {len(found.aspects)} aspects"
    if found.standing is Standing.WORSE:
        return (
            f"{found.candidate} is worse than {found.baseline}: {', '.join(each.aspect.name for each in found.of(Standing.WORSE))}"
        )
    return f"Nobody can tell yet whether {names}"


def reasons(found: Comparison) -> list[str]:
    """Return why the result is unknown, the time that a decision needs, and the number of excluded pairs."""
    said = []
    if found.standing is Standing.UNKNOWN and found.missing:
        said.append(f"no pair of runs yet of: {', '.join(map(str, found.missing))}")
    if found.standing is Standing.UNKNOWN and (how_long := waiting(found)):
        said.append(how_long)
    if found.left_out:
        said.append(f"{found.left_out} pairs are left out, since an internal error of the prober ended a run")
    return said


def waiting(found: Comparison) -> str:
    """Return the time that a decision would probably need, as text; empty if unknown."""
    needed_s = found.needed_s
    if needed_s is None:
        return ""
    if not isfinite(needed_s):
        return f"{NO_USE}: a difference lies too close to its margin, see below"
    least = "at least " if found.missing else ""
    return f"it probably takes the runs of {least}{in_words(needed_s)} to tell; these are of {in_words(found.took_s)}"


def rounded_up(seconds: float) -> str:
    """Format a duration for `--for`, rounded up: whole seconds, from two minutes on whole minutes."""
    unit_s = 1 if seconds <= 120.0 else 60
    return write_duration(timedelta(seconds=ceil(seconds / unit_s) * unit_s))


def in_words(seconds: float) -> str:
    """Format a duration for people: `10 s`, `1 h 37 min`."""
    return re.sub(r"(\d+)([a-z])", lambda part: f" {part[1]} {_UNITS[part[2]]}", rounded_up(seconds)).strip()


def what_is_compared(aspect: Aspect) -> str:
    """Return a description of the compared value."""
    if aspect.statistic is Statistic.SHARE:
        counted = MEANINGS[aspect.indicator]
        return f"the share that is bad: a {counted.unit} is bad if {counted.bad}"
    return f"what {_OF_RUN[aspect.statistic]} of a run did not exceed"


def numbers(each: ComparedAspect) -> str:
    """Return the measurements of an aspect and the interval of the difference, as text."""
    if each.difference is None or each.baseline is None or each.candidate is None:
        return why_unknown(each)
    value, low, high = (aspect_amount(each, number, signed=True) for number in each.difference)
    text = f"{aspect_amount(each, each.baseline)} -> {aspect_amount(each, each.candidate)}: {value}, between {low} and {high}"
    text += f"; margin {aspect_amount(each, each.margin)}"
    return f"{text}; {why_unknown(each)}" if each.standing is Standing.UNKNOWN else f"{text}; {each.pairs} pairs"


def amount_or_unknown(each: ComparedAspect, value: float | None) -> str:
    """Format a measurement; `unknown` for None."""
    return "unknown" if value is None else aspect_amount(each, value)


def aspect_amount(each: ComparedAspect, value: float, *, signed: bool = False) -> str:
    """Format a share as a percentage, a duration with its unit; `signed`: with its sign, for a difference."""
    if each.aspect.statistic is Statistic.SHARE:
        return f"{_short(value * 100, signed)} %"
    return f"{_short(value * 1000, signed)} ms" if abs(value) < 1.0 else f"{_short(value, signed)} s"


def _short(value: float, signed: bool) -> str:
    """Format a number to two digits, as on all pages, and to whole numbers from 10 on."""
    plus = "+" if signed else ""
    return f"{value:{plus},.0f}" if abs(value) >= 10.0 else f"{round(value, 2):{plus}.2g}"


def comparison_as_json(found: Comparison) -> str:
    """Return the comparison as one JSON document; the fields are those of the API (`GET /api/v1/comparisons`)."""
    return json.dumps(comparison_as_document(found), allow_nan=False)


def comparison_as_document(found: Comparison) -> dict[str, object]:
    """Return the comparison as a mapping of texts, numbers and lists.

    Infinite and unknown values are None.
    """
    return {
        "baseline": found.baseline,
        "candidate": found.candidate,
        "standing": found.standing,
        "took_s": round(found.took_s, 3),
        "needed_s": _finite(found.needed_s),
        "missing": list(map(str, found.missing)),
        "left_out": found.left_out,
        "aspects": [_row(each) for each in found.aspects],
    }


def _row(each: ComparedAspect) -> dict[str, object]:
    difference = each.difference
    return {
        "aspect": each.aspect.name,
        "standing": each.standing,
        "baseline": each.baseline,
        "candidate": each.candidate,
        "difference": None if difference is None else difference.value,
        "low": None if difference is None else difference.low,
        "high": None if difference is None else difference.high,
        "margin": each.margin,
        "pairs": each.pairs,
        "pairs_needed": _finite(each.pairs_needed),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else round(value, 3)


# --- comparisons of what a running service has recorded in its status store; those of the configuration are also metrics ------


RUNS_MAX: Final = 5_000
"""Number of compared runs of a target within the window; of more, the newest."""


def compare_stored(queries: StatusQueries, settings: ComparisonSettings, common: CommonExperiments, now: float) -> Comparison:
    """Compare two targets by their runs of the last `window` before `now`, seconds since 1970. Blocks. Raises the store's errors."""
    since = now - settings.window.total_seconds()
    baseline, candidate = (_runs(queries, target, since) for target in (settings.baseline, settings.candidate))
    pairs = pairs_of(baseline, candidate, common.apart_max_s)
    began = min((pair.baseline.started_at for pair in pairs), default=now)
    return compare_pairs(settings, pairs, tuple(common.apart_max_s), max(0.0, now - began))


def _runs(queries: StatusQueries, target: str, since: float) -> list[RunResult]:
    found: list[RunResult] = []
    cursor: str | None = None
    while len(found) < RUNS_MAX:
        page = queries.runs(RunFilter(target=target, since=since), limit=PAGE_MAX, cursor=cursor)
        found += [record.result for record in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


class StoredComparisons:
    """The metrics of the configured comparisons. They are unknown if the store does not answer."""

    def __init__(self, config: Config, metrics: ComparisonMetrics, queries: StatusQueries) -> None:
        self._metrics, self._queries = metrics, queries
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Use the comparisons of this configuration from now on."""
        self._comparisons = comparisons_of(config)
        self._metrics.follow(_targets(each.settings) for each in self._comparisons)

    def look(self) -> None:
        """Update all comparisons once. Blocks."""
        for each in self._comparisons:
            targets = _targets(each.settings)
            try:
                found = compare_stored(self._queries, each.settings, each.common, wall_s())
            except StatusError:  # the store's own errors are reported elsewhere
                self._metrics.unknown(targets)
            else:
                self._metrics.report(targets, found.standing, found.aspects)


def _targets(settings: ComparisonSettings) -> ComparedTargets:
    return ComparedTargets(settings.baseline, settings.candidate)
