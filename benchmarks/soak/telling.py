"""A soak in words and pictures: a line for each minute, tables in the end, and the series."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.drawing import Band, Panel, Series
from benchmarks.soak.judgement import WARM_UP_S, Soak
from benchmarks.soak.samples import HISTORY_DROPPED, Sample, lag_s
from benchmarks.soak.setting import LOAD
from prober.config.models import ProbeName
from prober.core.verdict import Verdict

HEAD = (
    "minute  service MiB  target MiB  descriptors  threads  loop lag p99 ms  CPU %  waits %  messages/s"
    "  runs PASS/FAIL/UNKNOWN  skipped  accused"
)
COLUMNS = (Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN)


def line(now: Sample, before: Sample) -> str:
    """How everything is, and how it was since an earlier sample."""
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
        f"{sum(now.accused.values()):7.0f}",
    )
    return "  ".join(columns)


def rate(now: Sample, before: Sample) -> float:
    """Messages of the load received a second, since an earlier sample."""
    count = now.metrics["deliveries"].get((LOAD,), 0.0) - before.metrics["deliveries"].get((LOAD,), 0.0)
    return count / max(1.0, now.t - before.t)


def report(seen: Soak) -> Iterator[str]:
    """How the runs of each probe ended and why, what each trouble came to, how often each fault struck, and what is measured."""
    yield from _runs(seen)
    yield ""
    yield from _troubles(seen)
    last = seen.last
    yield "\nfault struck, times: " + ", ".join(f"{name} {count:,}" for name, count in sorted(seen.struck.items()))
    yield f"\nload: {rate(last, seen.samples[0]):,.0f} messages a second"
    yield f"loop lag, 99 of 100: at most {1000 * lag_s(last):g} ms"
    computed_s, waited_s = last.service.computed_s, last.service.waited_s
    yield f"the event loop's thread computed for {computed_s:.0f} s and waited for a processor for {waited_s:.0f} s"
    if seen.busy:
        yield "others kept the processors busy: neither skipped runs nor the event loop are judged"
    growth = seen.memory_growth
    told = "too short to tell" if growth is None else f"{growth:+.1%} from the second quarter to the last"
    yield f"memory of the service after {WARM_UP_S:.0f} s: {told}"
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
    """A planted fault is told with the findings that are about it."""
    yield "trouble                              from s  to s  findings, their kinds"
    for spell in seen.spells:
        kinds = Counter(one["kind"] for one in seen.findings if seen.is_about(spell, one))
        found = ", ".join(f"{count} x {kind}" for kind, count in kinds.items())
        yield f"{spell.trouble.name:36} {spell.began_t:6.0f}  {spell.ended_t:4.0f}  {found}"


# --- pictures ----------------------------------------------------------------------------------------------------------------


def bands(seen: Soak) -> list[Band]:
    """When what went wrong."""
    return [Band(spell.trouble.name, spell.began_t, min(spell.ended_t, seen.last.t)) for spell in seen.spells]


def panels(seen: Soak) -> list[Panel]:
    """The series of it."""
    samples, pairs = seen.samples, list(pairwise(seen.samples))
    return [
        Panel(
            "Resident memory, MiB",
            [
                Series("service", [(one.t, one.service.memory_mib) for one in samples]),
                Series("target", [(one.t, one.target.memory_mib) for one in samples]),
            ],
        ),
        Panel("Open descriptors of the service", [Series("descriptors", [(one.t, one.service.descriptors) for one in samples])]),
        Panel("Threads of the service", [Series("threads", [(one.t, one.service.threads) for one in samples])]),
        Panel(
            "Event loop late, ms: 99 of 100 times at most (bounds of the histogram)",
            [Series("99 of 100", [(now.t, 1000.0 * min(lag_s(now, before), 10.0)) for before, now in pairs])],
        ),
        Panel(
            "Messages of the load received a second", [Series("messages", [(now.t, rate(now, before)) for before, now in pairs])]
        ),
        Panel(
            "Runs ended, by verdict",
            [Series(str(verdict), [(one.t, one.verdicts()[verdict]) for one in samples]) for verdict in Verdict],
        ),
        Panel(
            "Accusations, skipped runs",
            [
                Series("accusations", [(one.t, sum(one.accused.values())) for one in samples]),
                Series("skipped runs", [(one.t, one.value("scheduler_skips")) for one in samples]),
            ],
        ),
        Panel("Failures of the prober", _failing(seen, HISTORY_DROPPED)),
        Panel(
            "Events that the history dropped",
            [Series(HISTORY_DROPPED, [(one.t, one.failures.get(HISTORY_DROPPED, 0.0)) for one in samples])],
        ),
    ]


def _failing(seen: Soak, besides: str) -> list[Series]:
    """The series of what failed, but for one."""
    failed = [name for name, count in seen.last.failures.items() if count and name != besides]
    return [Series(name, [(one.t, one.failures.get(name, 0.0)) for one in seen.samples]) for name in failed]
