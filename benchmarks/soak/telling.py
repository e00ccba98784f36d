"""Results of a soak as text and charts: a line for each minute, tables at the end, and the series."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

from matplotlib.figure import Figure

from benchmarks.soak.samples import Sample, lag_s
from benchmarks.soak.setting import LOAD
from benchmarks.soak.violations import WARM_UP_S, Soak
from prober.core.verdict import Verdict
from prober.probes.catalogue import ProbeName

HEAD = (
    "minute  service MiB  target MiB  descriptors  threads  loop lag p99 ms  CPU %  waits %  messages/s"
    "  runs PASS/FAIL/UNKNOWN  skipped reported"
)
COLUMNS = (Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN)
PANEL_INCHES: Final = (11.0, 2.0)
LAG_SHOWN_MAX_S: Final = 10.0


def line(now: Sample, before: Sample) -> str:
    """Return a line of the present state, and of the changes since an earlier sample."""
    passed_s = max(1.0, now.t - before.t)
    computed = 100 * (now.service.computed_s - before.service.computed_s) / passed_s
    waited = 100 * (now.service.waited_s - before.service.waited_s) / passed_s
    verdicts = now.verdicts()
    columns = (
        f"{now.t / 60:6.1f}",
        f"{now.service.memory_mib:11.1f}",
        f"{now.target.memory_mib:10.1f}",
        f"{now.service.descriptors:11}",
        f"{now.service.threads:7}",
        f"{1000 * lag_s(now, before):15.0f}",
        f"{computed:5.0f}",
        f"{waited:7.0f}",
        f"{rate(now, before):10,.0f}",
        f"{'/'.join(str(verdicts[verdict]) for verdict in COLUMNS):>22}",
        f"{now.value('scheduler_skips'):7.0f}",
        f"{sum(now.reported.values()):7.0f}",
    )
    return "  ".join(columns)


def rate(now: Sample, before: Sample) -> float:
    """Return the messages of the load received per second since an earlier sample."""
    count = now.metrics["deliveries"].get((LOAD,), 0.0) - before.metrics["deliveries"].get((LOAD,), 0.0)
    return count / max(1.0, now.t - before.t)


def report(seen: Soak) -> Iterator[str]:
    """Yield the results of probes and troubles, the number of injections by fault, and the measurements."""
    yield from _runs(seen)
    yield ""
    yield from _troubles(seen)
    last = seen.last
    yield "\nfaults injected: " + ", ".join(f"{name} {count:,}" for name, count in sorted(seen.injected.items()))
    yield f"\nload: {rate(last, seen.samples[0]):,.0f} messages a second"
    yield f"loop lag, 99 of 100: at most {1000 * lag_s(last):g} ms"
    computed_s, waited_s = last.service.computed_s, last.service.waited_s
    yield f"the event loop's thread computed for {computed_s:.0f} s and waited for a processor for {waited_s:.0f} s"
    if seen.busy:
        yield "others kept the processors busy: neither skipped runs nor the event loop are evaluated"
    growth = seen.memory_growth
    trend = "too short to tell" if growth is None else f"{growth:+.1%} from the second quarter to the last"
    yield f"memory of the service after {WARM_UP_S:.0f} s: {trend}"
    for what in ("descriptors", "threads"):
        more = seen.more(what)
        yield f"{what}: {'too short to tell' if more is None else f'{more:+.0f} from the first quarter to the last'}"
    stored = Counter((run["target"], run["verdict"]) for run in seen.runs)
    yield f"runs in the status store: {stored.total()}, counted by the metrics: {seen.counted.total()}"


def _runs(seen: Soak) -> Iterator[str]:
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for run in seen.runs:
        if run["verdict"] != Verdict.PASS:
            reasons[run["probe"]][f"{run['verdict']}: {run['reason']}"] += 1
    yield "\nprobe           expected  PASS  FAIL  UNKNOWN"
    for probe in ProbeName:
        verdicts = seen.last.verdicts(probe)
        expected = sum(count for (_, name), count in seen.last.metrics["probe_runs_expected"].items() if name == probe)
        yield f"{probe:15} {expected:8.0f}  " + "  ".join(f"{verdicts[verdict]:>{len(verdict)}}" for verdict in COLUMNS)
        yield from (f"{'':16}{count} x {reason}" for reason, count in reasons[probe].most_common(3))


def _troubles(seen: Soak) -> Iterator[str]:
    """Yield a line per trouble, for a planted fault with the findings about it."""
    yield "trouble                              from s  to s  findings, their kinds"
    for spell in seen.spells:
        kinds = Counter(one["kind"] for one in seen.findings if seen.is_about(spell, one))
        found = ", ".join(f"{count} x {kind}" for kind, count in kinds.items())
        yield f"{spell.trouble.name:36} {spell.began_t:6.0f}  {spell.ended_t:4.0f}  {found}"


Measured: TypeAlias = Callable[[Sample, Sample], float]
"""Value at a sample, which may depend on the sample before it."""


def _of_verdict(verdict: Verdict) -> Measured:
    return lambda _, now: now.verdicts()[verdict]


def _of_failure(name: str) -> Measured:
    return lambda _, now: now.failures.get(name, 0.0)


def draw(seen: Soak, file: Path) -> None:
    """Draw the series over the time of the soak, with the troubles as bands."""
    failing = [name for name, count in seen.last.failures.items() if count]
    panels: dict[str, dict[str, Measured]] = {
        "Resident memory, MiB": {"service": lambda _, now: now.service.memory_mib, "target": lambda _, now: now.target.memory_mib},
        "Descriptors of the service": {"descriptors": lambda _, now: now.service.descriptors},
        "Threads of the service": {"threads": lambda _, now: now.service.threads},
        "p99 of event loop lag, ms": {"p99": lambda before, now: 1000 * min(lag_s(now, before), LAG_SHOWN_MAX_S)},
        "Messages of the load per second": {"received": lambda before, now: rate(now, before)},
        "Runs by verdict": {str(verdict): _of_verdict(verdict) for verdict in COLUMNS},
        "Violations, skipped runs": {
            "violations": lambda _, now: sum(now.reported.values()),
            "skipped runs": lambda _, now: now.value("scheduler_skips"),
        },
        "Failures of the prober, dropped events": {name: _of_failure(name) for name in failing},
    }
    chart = Figure((PANEL_INCHES[0], PANEL_INCHES[1] * len(panels)), layout="constrained")
    pairs = list(pairwise(seen.samples))
    for axes, (title, series) in zip(chart.subplots(len(panels), sharex=True), panels.items(), strict=True):
        axes.set_title(title, loc="left", fontsize="small")
        for name, value in series.items():
            axes.plot([now.t for _, now in pairs], [value(before, now) for before, now in pairs], label=name)
        for spell in seen.spells:
            axes.axvspan(spell.began_t, min(spell.ended_t, seen.last.t), alpha=0.2)
        axes.set_ylim(bottom=0)
        if series:
            axes.legend(loc="upper left", fontsize="x-small")
    chart.savefig(file)
