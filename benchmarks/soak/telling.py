"""Results of a soak as text and charts: a line for each minute, tables at the end, and the series."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from benchmarks.soak.samples import HISTORY_DROPPED, Sample, lag_s
from benchmarks.soak.setting import LOAD
from benchmarks.soak.violations import WARM_UP_S, Soak
from prober.core.verdict import Verdict
from prober.probes.catalogue import ProbeName

HEAD = (
    "minute  service MiB  target MiB  descriptors  threads  loop lag p99 ms  CPU %  waits %  messages/s"
    "  runs PASS/FAIL/UNKNOWN  skipped reported"
)
COLUMNS = (Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN)

WIDTH: Final = 900
HEIGHT: Final = 150
"""Height of a panel, without its margins."""
LEFT: Final = 70
RIGHT: Final = 50
ABOVE: Final = 44
BELOW: Final = 24
COLOURS: Final = ("#0b6bcb", "#c4540a", "#5b8c00", "#8a3ffc")
LEGEND: Final = 210
"""Distance from the name of a series to the next one."""
TICKS: Final = 3
LINE: Final = "#d0d0d0"
SHADE: Final = "#f3ead9"


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


# --- pictures ----------------------------------------------------------------------------------------------------------------


def bands(seen: Soak) -> list[Band]:
    """Return the periods of the troubles."""
    return [Band(spell.trouble.name, spell.began_t, min(spell.ended_t, seen.last.t)) for spell in seen.spells]


def panels(seen: Soak) -> list[Panel]:
    """Return the panels of all series."""
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
            "Violations, skipped runs",
            [
                Series("violations reported", [(one.t, sum(one.reported.values())) for one in samples]),
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
    """Return the series of the failures, except for one."""
    failed = [name for name, count in seen.last.failures.items() if count and name != besides]
    return [Series(name, [(one.t, one.failures.get(name, 0.0)) for one in seen.samples]) for name in failed]


@dataclass(frozen=True, slots=True)
class Series:
    """A named line: times and values, in the order of time."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """Series on one axis, which starts at zero."""

    title: str
    series: Sequence[Series]

    @property
    def top(self) -> float:
        """Upper end of the axis: a little above the highest value."""
        return 1.1 * max((value for one in self.series for _, value in one.points), default=0.0) or 1.0


@dataclass(frozen=True, slots=True)
class Band:
    """A period of a trouble, shaded in all panels."""

    name: str
    begin: float
    end: float


def picture(panels: Sequence[Panel], unit: str, bands: Sequence[Band] = ()) -> str:
    """Return the chart as SVG. `unit`: unit of the times."""
    end = max((t for panel in panels for one in panel.series for t, _ in one.points), default=1.0) or 1.0
    step = ABOVE + HEIGHT + BELOW
    legend = BELOW * len(bands)
    shaded = "".join(line for at, band in enumerate(bands) for line in _band(at, band, end, legend + step * len(panels)))
    drawn = shaded + "".join(
        line for at, panel in enumerate(panels) for line in _panel(panel, end, legend + at * step + ABOVE, unit)
    )
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{legend + step * len(panels)}"'
    style = "font: 13px sans-serif"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{style}"><rect width="100%" height="100%" fill="white"/>{drawn}</svg>\n'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _band(at: int, band: Band, end: float, bottom: float) -> Iterator[str]:
    """Yield the elements of a band, from its name above the panels to the end of the last panel."""
    top = BELOW * at
    x, width = LEFT + WIDTH * band.begin / end, WIDTH * (band.end - band.begin) / end
    yield f'<rect x="{x:.1f}" y="{top + 4}" width="{width:.1f}" height="{bottom - top - 4}" fill="{SHADE}"/>'
    side = f'x="{x + width + 4:.1f}"' if 2 * x < WIDTH else f'x="{x - 4:.1f}" text-anchor="end"'
    yield f'<text {side} y="{top + 18}">{escape(band.name)}</text>'


def _panel(panel: Panel, end: float, top: float, unit: str) -> Iterator[str]:
    bottom = top + HEIGHT
    yield f'<text x="{LEFT}" y="{top - 24}" font-weight="bold">{escape(panel.title)}</text>'
    for tick in range(TICKS + 1):
        y, value = bottom - HEIGHT * tick / TICKS, panel.top * tick / TICKS
        yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{LINE}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        x = LEFT + WIDTH * tick / TICKS
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{end * tick / TICKS:,.0f} {escape(unit)}</text>'
    for at, one in enumerate(panel.series):
        colour = COLOURS[at % len(COLOURS)]
        yield f'<text x="{LEFT + LEGEND * at}" y="{top - 8}" fill="{colour}">{escape(one.name)}</text>'
        points = " ".join(f"{LEFT + WIDTH * t / end:.1f},{bottom - HEIGHT * value / panel.top:.1f}" for t, value in one.points)
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
