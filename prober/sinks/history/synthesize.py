"""Makes days of history out of nothing, with known hot keys, known burn and known violations: what jobs are tested and measured with.

The files are those of a real history, written through the same schema. What was planted stands in `truth.json` beside them. The same
recipe gives the same history. Apart from what is planted, everything is legal, and the checker passes it.

On each day and target there is one long run of traffic (`synthesis.traffic`, a probe of its own) and many short experiments
(`synthesis.experiments`, as of the probe `ordering`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from prober.core.events import Delivered, Event, Published
from prober.core.findings import FAILING, Kind, Status
from prober.core.judge import KeptFindings
from prober.core.rules import Rules
from prober.core.verdict import Verdict, verdict_of
from prober.core.verifier import Verifier
from prober.sinks.history.encoding import EventCounts, EventEncoder, events_table
from prober.sinks.history.reader import HistoryReader, TimeSpan
from prober.sinks.history.rejudge import rejudge
from prober.sinks.history.schema import EVENTS, RUNS
from prober.sinks.history.store import HistoryError, HistoryStore
from prober.sinks.history.synthesis import experiments, plan
from prober.sinks.history.synthesis.experiments import Breach
from prober.sinks.history.synthesis.output import RunOutcome, TargetFiles, Truth
from prober.sinks.history.synthesis.plan import PlantedHeat, Recipe, SyntheticTarget, TroubleKind
from prober.sinks.history.synthesis.traffic import SyntheticTraffic
from prober.slo.counts import checks_of, completeness_of, is_overdue
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, SliCounts

TRUTH: Final = "truth.json"
ORDERING: Final = "ordering"
TRAFFIC: Final = "traffic"
"""Busy traffic with hot keys: no probe of ours, each of which disturbs something that it does not measure."""
_STOOD_STILL: Final = "the prober's process stood still for 3.0 s"


def make_history(location: str, recipe: Recipe, progress: Callable[[int], None] = lambda _events: None) -> Truth:
    """Writes a history to a location where there is none yet; returns what stands in its `truth.json`.

    `progress` is told how many events have been written so far. Memory does not grow with the history. Raises `HistoryError` if the
    location cannot be used or holds a history already.
    """
    store = HistoryStore(location)
    try:
        if next(store.contents(), None) is not None:
            raise HistoryError(f"{location} holds a history already; give an empty folder")
        truth = Truth(recipe)
        for target in plan.targets(recipe):
            output = TargetFiles(store, target, recipe.start)
            for day in range(recipe.days):
                _Day(recipe, output, day, truth, location).make(progress)
        store.write(TRUTH, pa.py_buffer(truth.as_json()))
    except OSError as error:
        raise HistoryError(f"{location} cannot be written: {str(error).partition(chr(10))[0]}") from error
    return truth


class _Day:
    """One day of one target."""

    def __init__(self, recipe: Recipe, output: TargetFiles, day: int, truth: Truth, location: str) -> None:
        self._recipe = recipe
        self._output = output
        self._target: SyntheticTarget = output.target
        self._day = day
        self._truth = truth
        self._location = location
        self._midnight_t = self._target.t0 + day * DAY_S
        self._windows = plan.windows(recipe, self._target, day)
        self._chance = random.Random(f"{recipe.seed} {self._target.number} {day}")
        self._runs: list[dict[str, object]] = []
        self._findings: list[dict[str, object]] = []

    def make(self, progress: Callable[[int], None]) -> None:
        """Writes it."""
        for window in self._windows:
            self._truth.add_window(self._target, self._day, window)
        self._make_experiments()
        progress(self._truth.events)
        self._make_traffic(progress)
        self._output.finish_day(self._runs, self._findings)

    def _run_id(self, probe: str) -> str:
        self._truth.runs += 1
        return f"{probe}-{self._chance.getrandbits(48):012x}"

    def _at(self, t: float) -> float:
        return t + self._output.origin.clock_offset_s

    # --- experiments ---------------------------------------------------------------------------------------------------------

    def _make_experiments(self) -> None:
        batches: list[pa.RecordBatch] = []
        for begin_s, breach in self._schedule():
            t = self._midnight_t + begin_s
            run = self._output.context(self._run_id(ORDERING), ORDERING, t)
            subscription = self._target.subscription(ORDERING)
            events = experiments.events_of(experiments.SyntheticRun(subscription, run.run_id, t), breach)
            batches += EventEncoder(run, self._output.origin).batches(1, events)
            stood_still = any(one.covers(begin_s) for one in self._windows if one.trouble is TroubleKind.PROBER_STOOD_STILL)
            outcome = _judged(events, subscription, trusted=not stood_still)
            self._runs += [self._output.begin(run, t), self._output.end(run, outcome)]
            self._findings += self._output.found(run, outcome.findings)
            self._truth.events += len(events)
            self._truth.count(self._target, self._day, outcome.checks or {})
            if breach is not None:
                at = self._at(t)
                self._truth.add_violation(self._target, run.run_id, subscription, experiments.PLANTED_KEY, at, breach.found)
        self._output.write(EVENTS, events_table(batches))

    def _schedule(self) -> Iterator[tuple[float, Breach | None]]:
        """When experiments begin, in seconds from midnight, and what is planted in them."""
        due = {} if self._recipe.is_quiet(self._day) else dict(experiments.PLANTED_BREACHES)
        begin_s = 60.0 + 7.0 * self._target.number
        while begin_s + experiments.LONGEST_S < DAY_S:
            reached = next((at for at in sorted(due) if at <= begin_s), None)
            broken = any(one.covers(begin_s) for one in self._windows if one.trouble is TroubleKind.ORDER_BROKEN)
            yield begin_s, due.pop(reached) if reached is not None else experiments.ORDER_BROKEN if broken else None
            begin_s += self._recipe.experiment_every_s

    # --- traffic -------------------------------------------------------------------------------------------------------------

    def _make_traffic(self, progress: Callable[[int], None]) -> None:
        recipe, target = self._recipe, self._target
        run_id = self._run_id(TRAFFIC)
        keys = plan.key_traffic(recipe, target, self._day)
        traffic = SyntheticTraffic(
            keys,
            self._windows,
            recipe.messages_per_day,
            epoch=run_id,
            t0=self._midnight_t,
            stamp=self._day * recipe.targets + target.number,
            seed=f"{recipe.seed} {target.number} {self._day} traffic",
        )
        run = self._output.context(run_id, TRAFFIC, self._midnight_t)
        self._output.write_rows(RUNS, [self._output.begin(run, self._midnight_t)])
        number = 1
        for rows in traffic.chunks():
            self._output.write_traffic(run, number, rows)
            number += rows.num_rows
            self._truth.events += rows.num_rows
            progress(self._truth.events)
        for key in keys:
            if key.hot is not None:
                self._truth.add_hot_key(target, self._day, key, traffic.totals.messages[key.name])
            if key.hot is PlantedHeat.STALLED:
                found = {(Kind.STUCK, Status.LIVENESS)}
                at = self._at(self._midnight_t)
                self._truth.add_violation(target, run_id, target.subscription(TRAFFIC), key.name, at, found)
        outcome = self._traffic_outcome(
            run_id, [key.name for key in keys if key.hot is PlantedHeat.STALLED or key.roams], traffic, number - 1
        )
        self._runs.append(self._output.end(run, outcome))
        self._findings += self._output.found(run, outcome.findings)
        self._truth.count(target, self._day, outcome.checks or {})

    def _traffic_outcome(self, run_id: str, remarkable: Sequence[str], traffic: SyntheticTraffic, events: int) -> RunOutcome:
        """As if all keys had been judged: the checker sees those on which it has something to find, the others count."""
        findings = KeptFindings()
        counters = Counter(traffic.totals.counters)
        reader = HistoryReader(self._location)
        day = TimeSpan(self._at(self._midnight_t), self._at(self._midnight_t) + DAY_S)
        for key in remarkable:
            for judged in rejudge(reader, key, span=day, run_id=run_id, alone=True):
                for made in judged.judgement.findings:
                    findings.add([made.finding], made.after)
                for name in ("affinity_moves_outstanding_no", "findings_info", "findings_liveness"):
                    counters[name] += judged.judgement.counters.get(name, 0)
        missing = traffic.totals.undelivered
        checks = _checks(counters, findings, missing, trusted=True)
        verdict = verdict_of(failed=findings.failed, owed=bool(missing))
        return RunOutcome(
            self._midnight_t + DAY_S - 1.0,
            verdict,
            EventCounts(events, 0, None),
            tuple(findings.kept),
            dict(findings.counts),
            {**counters, "keys": len(traffic.totals.messages)},
            checks,
            reason=_reason(verdict, findings),
        )


def _judged(events: Sequence[Event], subscription: str, *, trusted: bool) -> RunOutcome:
    """What the checker says of an experiment; nothing if its recorder stood still."""
    verifier = Verifier(Rules(), subscriptions=(subscription,))
    findings = KeptFindings()
    for number, event in enumerate(events, 1):
        findings.add(verifier.observe(event), number)
    findings.add(verifier.finish(), len(events))
    published = {event.message_id: event.key for event in events if isinstance(event, Published)}
    received = {event.message_id for event in events if isinstance(event, Delivered)}
    missing = Counter(key for message_id, key in published.items() if message_id not in received)
    checks = _checks(verifier.counters, findings, missing, trusted=trusted)
    if not trusted:
        return RunOutcome(events[-1].t, Verdict.UNKNOWN, EventCounts(len(events), 0, 0), checks=checks, reason=_STOOD_STILL)
    verdict = verdict_of(failed=findings.failed, owed=verifier.owed)
    counts = EventCounts(len(events), 0, None)
    kept, counters = tuple(findings.kept), dict(verifier.counters)
    return RunOutcome(events[-1].t, verdict, counts, kept, dict(findings.counts), counters, checks, _reason(verdict, findings))


def _checks(
    counters: Mapping[str, int], findings: KeptFindings, missing: Mapping[str, int], *, trusted: bool
) -> dict[Indicator, SliCounts]:
    overdue = frozenset(made.finding.key for made in findings.kept if is_overdue(made.finding))
    completeness = completeness_of(counters["publishes_confirmed"], missing, overdue)
    return checks_of(counters, findings.counts, completeness, trusted=trusted)


def _reason(verdict: Verdict, findings: KeptFindings) -> str:
    kinds = {kind for kind, status in findings.counts if status in FAILING}
    return ", ".join(sorted(kinds)) if verdict is Verdict.FAIL else ""
