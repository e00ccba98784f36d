"""Observations of a soak, and the rules that they violate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import ceil
from statistics import median
from typing import Any, Final

from benchmarks.soak.samples import LAG_SHARE, Occupied, Sample, lag_s
from benchmarks.soak.setting import TARGET
from benchmarks.soak.troubles import Spell
from prober.config.models import TargetSettings
from prober.core.verdict import Verdict
from prober.embedded.catalogue import CATALOGUE
from prober.probes.catalogue import ProbeName
from prober.sinks.metrics.label_values import SkipReason

LAG_MAX_S: Final = 0.1
WARM_UP_S: Final = 600.0
"""Time in which the memory of the service may grow, in seconds."""
SETTLED_S: Final = 120.0
"""Time by which every probe has its streams and the service all its threads, in seconds."""
GROWTH_MAX: Final = 0.05
MORE_MAX: Final = 12
"""Permitted increase of descriptors or threads, since probes open and close them."""
QUIET_MIN: Final = 12
"""Minimum number of samples without a trouble for a statement on growth."""
WELL: Final = ("status_store_up", "config_last_reload_successful")
BUSY_MAX: Final = 0.08
"""Maximum share of time in which the service waits for a processor; above it the machine is too busy to evaluate the event loop.

On two processors about half of it is caused by the other processes of the soak.
"""


@dataclass(slots=True)
class Soak:
    """All observations of a soak, after its end.

    targets   probed targets, those of the service first.
    began_at  start, in seconds since 1970.
    runs      runs as the API lists them; `findings`: those that report a violation of a service, with their evidence.
    counted   number of runs in the metrics by target and verdict, when the store had the same number, or at the end.
    injected  number of injections by fault.
    """

    targets: Sequence[TargetSettings]
    began_at: float
    samples: list[Sample] = field(default_factory=list)
    spells: Sequence[Spell] = ()
    runs: Sequence[Mapping[str, Any]] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    injected: Mapping[str, int] = field(default_factory=dict)

    @property
    def last(self) -> Sample:
        """Sample at the end."""
        return self.samples[-1]

    def broken(self) -> Iterator[str]:
        """Yield the violated rules, in words."""
        yield from self.false_findings()
        yield from self.lost_runs()
        yield from self.failures()
        yield from self.growth()
        yield from (f"{name} is not 1 in the end" for name in WELL if self.last.value(name) < self.last.probers)
        if not self.busy:
            yield from self.what_never_came()
            yield from self.unexplained_skips()
            if lag_s(self.last) > LAG_MAX_S:
                yield f"the event loop was up to {lag_s(self.last):g} s late in {LAG_SHARE:.0%} of the cases"

    # --- findings ------------------------------------------------------------------------------------------------------------

    def false_findings(self) -> Iterator[str]:
        """Yield unplanted violations, findings without a proof, and findings that are not in the store."""
        for one in self.findings:
            words = f"{one['kind']} on key {one['key']} of {one['target']}, run {one['run_id']}"
            if not any(self.is_about(spell, one) for spell in self.spells):
                yield f"false alarm: {words}"
            if not one["evidence"] and not one["unproven_because"]:
                yield f"neither proven, nor said why not: {words}"
        stored = {one["kind"] for one in self.findings}
        yield from (f"{kind}: counted, and not in the store" for kind in self.last.reported if kind not in stored)

    def is_about(self, spell: Spell, finding: Mapping[str, Any]) -> bool:
        """Return whether a finding is about the planted fault of a trouble."""
        if finding["target"] != TARGET or not spell.trouble.explains(finding["kind"], finding["key"]):
            return False
        return spell.covers(datetime.fromisoformat(finding["found_at"]).timestamp() - self.began_at)

    def what_never_came(self) -> Iterator[str]:
        """Troubles without effect, missed faults, and probes that never passed."""
        yield from self.unseen_troubles()
        yield from self.probes_that_never_passed()
        yield from (
            f"{name} was never injected" for name, known in CATALOGUE.items() if known.benign and not self.injected.get(name)
        )

    def unseen_troubles(self) -> Iterator[str]:
        """Troubles that did not show, and planted faults without a proven violation."""
        for spell in self.spells:
            during = [one for one in self.samples if one.t > spell.began_t and spell.covers(one.t)]
            if not any(spell.trouble.shows(spell.before, one) for one in during):
                yield f"{spell.trouble.name}: it never showed"
            elif spell.trouble.planted and not any(one["evidence"] for one in self.findings if self.is_about(spell, one)):
                yield f"{spell.trouble.name}: no finding of it was proven"

    # --- runs ----------------------------------------------------------------------------------------------------------------

    def probes_that_never_passed(self) -> Iterator[str]:
        """Probes that never passed, or of which no run was seen."""
        expected = {probe for (_, probe), count in self.last.metrics["probe_runs_expected"].items() if count}
        for probe in self.targets[0].probes:
            verdicts = self.last.verdicts(probe)
            if probe not in expected:
                yield f"{probe} was never asked for"
            elif not verdicts[Verdict.PASS] and verdicts:
                yield f"{probe} never passed: {dict(verdicts)}"

    def lost_runs(self) -> Iterator[str]:
        """Runs that are missing, that gave no reason, or that the store does not contain."""
        for (target, probe), wanted in self.last.metrics["probe_runs_expected"].items():
            known = self._of(target, probe, "probe_runs") + self._of(target, probe, "scheduler_skips")
            if not 0 <= wanted - known <= 1:
                yield f"{probe} on {target}: {wanted:.0f} runs were due, {known:.0f} ended or were skipped"
        silent = [run["run_id"] for run in self.runs if run["verdict"] != Verdict.PASS and not run["reason"]]
        yield from (f"{run_id}: not PASS, and no reason" for run_id in silent)
        stored = Counter((run["target"], run["verdict"]) for run in self.runs)
        for which in self.counted | stored:
            if self.counted[which] != stored[which]:
                yield f"{which}: {self.counted[which]} runs counted, {stored[which]} in the store"

    def _of(self, target: str, probe: str, metric: str) -> float:
        return sum(count for labels, count in self.last.metrics[metric].items() if labels[:2] == (target, probe))

    def unexplained_skips(self) -> Iterator[str]:
        """Yield skipped runs that neither an earlier run nor a trouble explains."""
        for (target, probe, reason), count in self.last.metrics["scheduler_skips"].items():
            if reason == SkipReason.OVERLAP and count > (during := self.during_others(target, probe)):
                yield f"{probe} on {target}: {count:.0f} runs skipped, {reason}; {during} of them while another was under way"
        for spell_less, name in self._growing({reason: _skips(reason) for reason in SkipReason if reason != SkipReason.OVERLAP}):
            yield f"{spell_less:.0f} runs skipped, {name}"

    def during_others(self, target: str, probe: str) -> int:
        """Return the number of scheduled times of a probe during one of its runs, jitter included."""
        (settings,) = (one.probes[ProbeName(probe)] for one in self.targets if one.name == target)
        interval = settings.schedule.interval
        assert interval is not None  # no probe of a soak follows a crontab
        lasted = (run["duration_s"] for run in self.runs if (run["target"], run["probe"]) == (target, probe))
        return sum(ceil((duration + settings.jitter.total_seconds()) / interval.total_seconds()) - 1 for duration in lasted)

    # --- the prober ----------------------------------------------------------------------------------------------------------

    def failures(self) -> Iterator[str]:
        """Yield failures of the prober that no trouble excuses."""
        names = self.last.failures
        yield from (f"{count:.0f} x {name}" for count, name in self._growing({name: _failures(name) for name in names}))

    def _growing(self, counters: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
        """Yield the increase of counters that no trouble excused."""
        for name, count in counters.items():
            unexcused = sum(
                count(now) - count(before)
                for before, now in pairwise(self.samples)
                if not any(spell.covers(now.t) and name in spell.trouble.excuses for spell in self.spells)
            )
            if unexcused:
                yield unexcused, name

    def growth(self) -> Iterator[str]:
        """Yield resources that grow apart from troubles."""
        growth = self.memory_growth
        if growth is not None and growth > GROWTH_MAX:
            yield f"the memory of the service grew by {growth:.1%} after {WARM_UP_S:.0f} s"
        for name in ("descriptors", "threads"):
            more = self.more(name)
            if more is not None and more > MORE_MAX:
                yield f"{more:.0f} {name} more at the end than at the beginning"

    @property
    def memory_growth(self) -> float | None:
        """Relative growth of the service's memory after the warm-up; None if the soak was too short."""
        warm = [one.memory_mib for one in self.quiet(WARM_UP_S)]
        quarter = len(warm) // 4
        if self.last.t < 2 * WARM_UP_S or not quarter:
            return None
        return median(warm[-quarter:]) / median(warm[quarter : 2 * quarter]) - 1.0

    def more(self, what: str) -> float | None:
        """Return the increase of descriptors or threads from the first to the last quarter; None with too few samples."""
        seen = [getattr(one, what) for one in self.quiet(SETTLED_S)]
        quarter = len(seen) // 4
        return median(seen[-quarter:]) - median(seen[:quarter]) if len(seen) >= QUIET_MIN else None

    def quiet(self, from_s: float) -> list[Occupied]:
        """Return the service's resources in samples without a trouble or its consequences."""
        return [one.service for one in self.samples if one.t >= from_s and not any(spell.covers(one.t) for spell in self.spells)]

    @property
    def busy(self) -> bool:
        """Whether the machine was too busy with other processes to evaluate the event loop lag."""
        first, last = self.samples[0], self.last
        return last.service.waited_s - first.service.waited_s > BUSY_MAX * (last.t - first.t)


def _skips(reason: SkipReason) -> Any:
    return lambda sample: sample.skipped(reason)


def _failures(name: str) -> Any:
    return lambda sample: sample.failures.get(name, 0.0)
