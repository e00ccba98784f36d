"""The chart of an incident: the share of failed runs at the affected probe instances, with events marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from api.charts import Line, Mark, Plot, PlotData, merged
from api.words import counted, share
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import Incident
from prober.sinks.status.over_time import OverTime, ProberStart, RunsOfCell
from prober.slo.objectives import HOUR_S, MINUTE_S

CELLS_MAX: Final = 60
AROUND_SHARE: Final = 0.25
"""Share of the incident's length that is shown before its start and after its end, at least `AROUND_MIN_S`."""
AROUND_MIN_S: Final = HOUR_S / 4
MARKS_MAX: Final = 20
_BAD: Final = (Condition.FAIL, Condition.WARN)


@dataclass(frozen=True, slots=True)
class Moment:
    """An event: its label in the chart, its time, and its description."""

    label: str
    at: float
    what: str


@dataclass(frozen=True, slots=True)
class IncidentChart:
    """The chart, and the moments that it marks, in order."""

    plot: Plot
    moments: tuple[Moment, ...]


def incident_chart(store: OverTime, incident: Incident, now: float) -> IncidentChart:
    """Return the chart of an incident until now, or some time after its end. Raises the errors of the store."""
    end = min(now, incident.closes_at if incident.closed_at is None else incident.closed_at)
    around_s = max(AROUND_MIN_S, (end - incident.first_at) * AROUND_SHARE)
    cell_s = ceil((end - incident.first_at + 2 * around_s) / CELLS_MAX / MINUTE_S) * MINUTE_S
    first, last = int((incident.first_at - around_s) // cell_s), int(min(now, end + around_s) // cell_s)
    since, until = first * cell_s, (last + 1) * cell_s
    found = store.verdicts(since, until, cell_s)
    shares = [_share_of(found, incident.affected, number) for number in range(first, last + 1)]
    happened = sorted(_happened(incident, store.starts(incident.target, since, until)))[:MARKS_MAX]
    moments = tuple(Moment(str(number), at, what) for number, (at, what) in enumerate(happened, 1))
    unknown = ((number * cell_s, (number + 1) * cell_s) for number, one in enumerate(shares, first) if one is None)
    data = PlotData(
        "share",
        "time (UTC)",
        "share of failed runs",
        (since, until),
        (*(number * cell_s for number in range(first, last + 1)), until),
        (Line("failed runs", "bad", (*shares, None)),),
        tuple(merged(unknown)),
        tuple(Mark(moment.at, moment.label) for moment in moments),
        top=1.0,
    )
    worst = max(filter(None, shares), default=0.0)
    words = f"share of failed runs: at most {share(worst)}; {counted(len(moments), 'moment')} marked"
    return IncidentChart(Plot("Failed runs", words, "", data), moments)


def _share_of(found: Mapping[InstanceKey, Mapping[int, RunsOfCell]], instances: Iterable[InstanceKey], number: int) -> float | None:
    """Return the share of failed runs in a cell at the affected probe instances, of runs with a verdict; None without any."""
    cells = [cell.runs for instance in instances if (cell := found.get(instance, {}).get(number)) is not None]
    bad = sum(runs.get(one, 0) for runs in cells for one in _BAD)
    decided = bad + sum(runs.get(Condition.PASS, 0) for runs in cells)
    return bad / decided if decided else None


def _happened(incident: Incident, starts: Iterable[ProberStart]) -> Iterator[tuple[float, str]]:
    is_outage = incident.status is Condition.OUTAGE
    yield incident.first_at, "last success before" if is_outage else "first finding"
    if incident.last_at > incident.first_at:
        yield incident.last_at, "last run that could not reach the target" if is_outage else "last finding"
    if incident.acknowledged is not None:
        yield incident.acknowledged.at, f"acknowledged by {incident.acknowledged.by}"
    earlier = incident.first_acknowledged_at
    if earlier is not None and (incident.acknowledged is None or earlier < incident.acknowledged.at):
        yield earlier, "first acknowledged"
    if incident.closed_at is not None:
        yield incident.closed_at, "closed"
    yield from ((start.at, f"deployment: {start.instance} started with version {start.version}") for start in starts)
