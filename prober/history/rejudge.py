"""Judges a key again from the history: each of its runs by itself, under the rules that the run was judged under.

The same checker sees the same events in the same order, apart from those of other keys, which do not matter to it. So it says the same
as it did online, unless the checker has changed since. Witnesses are numbers of events in the run, as in online findings.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prober.core.events import Ended, Event
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.core.verdict import Verdict, verdict_of
from prober.core.verifier import Verifier
from prober.history.reader import ALWAYS, HistoryReader, Span
from prober.history.records import StoredRun
from prober.judgement import Judgement, Tally

_DAY_S: Final = 86400.0
_MARGIN_S: Final = 60.0
"""A run's own times are read a little before and after those of its events."""


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A run judged again as far as one key goes. `run` is None if the history holds no row of it; then it is UNKNOWN."""

    run_id: str
    run: StoredRun | None
    judgement: Judgement


def rejudge(
    reader: HistoryReader, key: str, *, subscription: str | None = None, span: Span = ALWAYS, run_id: str | None = None
) -> Iterator[Rejudged]:
    """The judgement of each run that has events of the key in that time, of the whole run, as soon as its end was read.

    With a subscription, what others received is left out. Memory: what the checker needs for the runs that overlap, and 8 bytes for
    each of their events. Raises `HistoryError` if the history cannot be read.
    """
    runs, unknown = runs_about(reader, key, subscription, span, run_id)
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
    for missing in unknown:
        problem = f"{missing}: the history holds no row of this run, so its rules are not known"
        yield Rejudged(missing, None, Judgement(missing, Verdict.UNKNOWN, malformed=problem))


def runs_about(
    reader: HistoryReader, key: str, subscription: str | None, span: Span, run_id: str | None
) -> tuple[Mapping[str, StoredRun], Sequence[str]]:
    """The runs that have the subscription, and events of the key in that time, and the names of those that have no row."""
    wanted = [one for one in reader.run_ids(key, subscription=subscription, span=span) if run_id in (None, one)]
    runs = _runs_named(reader, wanted, span)
    unknown = [one for one in wanted if one not in runs]
    return {one: run for one, run in runs.items() if subscription is None or subscription in run.rules}, unknown


def _runs_named(reader: HistoryReader, run_ids: Sequence[str], span: Span) -> Mapping[str, StoredRun]:
    """Looks first where the rows of runs of that time should be."""
    if not run_ids:
        return {}
    near = Span(span.since - _DAY_S, span.until + _DAY_S)
    runs = {run.run_id: run for run in reader.runs(span=near, run_ids=run_ids)}
    rest = [run_id for run_id in run_ids if run_id not in runs]
    if rest and near != ALWAYS:
        runs |= {run.run_id: run for run in reader.runs(run_ids=rest)}
    return {run_id: runs[run_id] for run_id in run_ids if run_id in runs}


def extent(runs: Iterable[StoredRun]) -> Span:
    """The time that covers all events of these runs, of which there is at least one."""
    listed = list(runs)
    return Span(min(run.began_at for run in listed) - _MARGIN_S, max(run.ended_at for run in listed) + _MARGIN_S)


class _Slice:
    """One key's part of a run, on its way through the checker."""

    def __init__(self, run: StoredRun, subscription: str | None) -> None:
        rules: Mapping[str, Rules] = run.rules
        if subscription is not None:
            rules = {subscription: rules[subscription]}
        self._run = run
        self._verifier = Verifier(next(iter(rules.values()), Rules()), subscriptions=rules, rules_by_subscription=rules)
        self._numbers = array("q")
        self._tally = Tally()
        self._left_out = False
        self._crash = ""

    def take(self, number: int, event: Event) -> None:
        """Judges the next event, unless it was recorded after judging had stopped."""
        limit = self._run.judged_events
        if self._crash or (limit is not None and number > limit):
            self._left_out = True
            return
        self._numbers.append(number)
        try:
            self._tally.add(map(self._as_in_run, self._verifier.observe(event)), number)
        except Exception as fault:  # a fault of ours is neither the service's nor a pass
            self._crash = f"{self._run.run_id}: the checker failed at event {number}: {fault!r}; please report this"

    def judged(self) -> Rejudged:
        """Settles what is on hold; what is said about the run."""
        number = self._numbers[-1] if self._numbers else 0
        if not self._crash:
            self._tally.add(map(self._as_in_run, self._verifier.finish()), number)
        verdict = verdict_of(failed=self._tally.failed, owed=self._left_out or self._verifier.owed)
        judgement = Judgement(
            self._run.run_id,
            Verdict.UNKNOWN if self._crash else verdict,
            tuple(self._tally.kept),
            self._tally.counts,
            dict(self._verifier.counters),
            len(self._numbers),
            crash=self._crash,
        )
        return Rejudged(self._run.run_id, self._run, judgement)

    def _as_in_run(self, finding: Finding) -> Finding:
        return replace(finding, witnesses=tuple(self._numbers[witness - 1] for witness in finding.witnesses))
