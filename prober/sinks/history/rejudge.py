"""Judges a key again from the history: each of its runs by itself, under the rules that the run was judged under.

The same checker sees the same events in the same order, at first without those of other keys. These matter to it only where something
did not come in time (`ABOUT_TIME`): then the whole run is judged once more with all its keys, and what that says of this one counts. So
the same is said as online, unless the checker has changed since. Witnesses are numbers of events in the run, as in online findings.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prober.core.events import Ended, Event
from prober.core.findings import Finding
from prober.core.judge import Judge
from prober.core.verdict import Verdict
from prober.sinks.history.reader import ALWAYS, HistoryReader, StoredRun, TimeSpan
from prober.sinks.history.schema import ABOUT_TIME
from prober.traces.judgement import Judgement

_DAY_S: Final = 86400.0
_MARGIN_S: Final = 60.0
"""A run's own times are read a little before and after those of its events."""


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A run judged again as far as one key goes. `run` is None if the history holds no row of it; then it is UNKNOWN."""

    run_id: str
    run: StoredRun | None
    judgement: Judgement


def rejudge(reader: HistoryReader, key: str, *, subscription: str | None = None, span: TimeSpan = ALWAYS) -> Iterator[Rejudged]:
    """The judgement of each run that has events of the key in that time, of the whole run, as soon as its end was read.

    With a subscription, what others received is left out. Memory: what the checker needs for the runs that overlap, and 8 bytes for
    each of their events. Raises `HistoryError` if the history cannot be read.
    """
    runs, unknown = runs_about(reader, key, subscription, span)
    for judged in _each(reader, key, runs, subscription, span):
        yield _among_all_keys(reader, key, judged, subscription) if _is_about_time(judged) else judged
    for missing in unknown:
        problem = f"{missing}: the history holds no row of this run, so its rules are not known"
        yield Rejudged(missing, None, Judgement(missing, Verdict.UNKNOWN, malformed=problem))


def others_matter(reader: HistoryReader, run: StoredRun, key: str, subscription: str | None) -> bool:
    """Whether what a run says of a key cannot be told without the events of its other keys."""
    return any(map(_is_about_time, _each(reader, key, {run.run_id: run}, subscription, ALWAYS)))


def _is_about_time(judged: Rejudged) -> bool:
    return any(kind in ABOUT_TIME for kind, _ in judged.judgement.counts)


def _each(
    reader: HistoryReader, key: str, runs: Mapping[str, StoredRun], subscription: str | None, span: TimeSpan
) -> Iterator[Rejudged]:
    """Each run judged by the events of the key alone."""
    under_way: dict[str, _Slice] = {}
    whole = extent(runs.values()) if runs else span
    for recorded in reader.events(key, subscription=subscription, span=whole, run_ids=tuple(runs)):
        judged = under_way.get(recorded.run_id)
        if judged is None:
            judged = under_way[recorded.run_id] = _Slice(runs[recorded.run_id], subscription)
        judged.take(recorded.number, recorded.event)
        if isinstance(recorded.event, Ended):
            yield under_way.pop(recorded.run_id).judged()
    yield from (judged.judged() for judged in under_way.values())


def _among_all_keys(reader: HistoryReader, key: str, alone: Rejudged, subscription: str | None) -> Rejudged:
    """What is found about a key when its run is judged with all keys; `alone` says the rest."""
    run = alone.run
    if run is None:
        return alone
    whole = _Slice(run, subscription, key)
    for recorded in reader.events(None, subscription=subscription, span=extent([run]), run_ids=(run.run_id,)):
        whole.take(recorded.number, recorded.event)
    together = whole.judged().judgement
    counters = {name: count for name, count in alone.judgement.counters.items() if not name.startswith("findings_")}
    for (_, status), count in together.counts.items():
        counters[f"findings_{status}"] = counters.get(f"findings_{status}", 0) + count
    return replace(alone, judgement=replace(together, counters=counters, events=alone.judgement.events))


def runs_about(
    reader: HistoryReader, key: str, subscription: str | None, span: TimeSpan, run_id: str | None = None
) -> tuple[Mapping[str, StoredRun], Sequence[str]]:
    """The runs that have the subscription, and events of the key in that time, and the names of those that have no row.

    `run_id`: only this one.
    """
    wanted = [one for one in reader.run_ids(key, subscription=subscription, span=span) if run_id in (None, one)]
    runs = _runs_named(reader, wanted, span)
    unknown = [one for one in wanted if one not in runs]
    return {one: run for one, run in runs.items() if subscription is None or subscription in run.rules}, unknown


def _runs_named(reader: HistoryReader, run_ids: Sequence[str], span: TimeSpan) -> Mapping[str, StoredRun]:
    """Looks first where the rows of runs of that time should be."""
    if not run_ids:
        return {}
    near = TimeSpan(span.since - _DAY_S, span.until + _DAY_S)
    runs = {run.run_id: run for run in reader.runs(span=near, run_ids=run_ids)}
    rest = [run_id for run_id in run_ids if run_id not in runs]
    if rest and near != ALWAYS:
        runs |= {run.run_id: run for run in reader.runs(run_ids=rest)}
    return {run_id: runs[run_id] for run_id in run_ids if run_id in runs}


def extent(runs: Iterable[StoredRun]) -> TimeSpan:
    """The time that covers all events of these runs, of which there is at least one."""
    listed = list(runs)
    return TimeSpan(min(run.began_at for run in listed) - _MARGIN_S, max(run.ended_at for run in listed) + _MARGIN_S)


class _Slice:
    """A part of a run, on its way through the checker. Findings about other keys than `key` are left out; None: about none."""

    def __init__(self, run: StoredRun, subscription: str | None, key: str | None = None) -> None:
        rules = run.rules if subscription is None else {subscription: run.rules[subscription]}
        self._judge = Judge(rules, self._as_in_run)
        self._run = run
        self._key = key
        self._numbers = array("q")
        self._left_out = False

    def take(self, number: int, event: Event) -> None:
        """Judges the next event, unless it was recorded after judging had stopped."""
        limit = self._run.judged_events
        if self._judge.stopped_because or (limit is not None and number > limit):
            self._left_out = True
            return
        self._numbers.append(number)
        self._judge.observe(event, number)

    def judged(self) -> Rejudged:
        """Settles what is on hold, unless the run was cut off; what is said about the run."""
        if self._judge.ended:
            self._judge.finish(self._numbers[-1] if self._numbers else 0)
        judgement = Judgement(
            self._run.run_id,
            self._judge.verdict(incomplete=self._left_out),
            tuple(self._judge.findings.kept),
            self._judge.findings.counts,
            dict(self._judge.counters),
            len(self._numbers),
            crash=f"{self._run.run_id}: {self._judge.stopped_because}" if self._judge.stopped_because else "",
        )
        return Rejudged(self._run.run_id, self._run, judgement)

    def _as_in_run(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Those about the key, in the numbers of the whole run."""
        return [
            replace(finding, witnesses=tuple(self._numbers[witness - 1] for witness in finding.witnesses))
            for finding in findings
            if self._key in (None, finding.key)
        ]
