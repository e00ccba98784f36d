"""How the prober itself is, and its fire drills, told to the metrics. Nothing here is the service's doing, and no drill spends a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import nan
from typing import Final

from prober.brokers.base import PushOutcome
from prober.clock import wall_s
from prober.config.models import TargetSettings
from prober.core.findings import Kind, Status
from prober.core.kinds import CAN_FAIL
from prober.core.verdict import Verdict
from prober.sinks.metrics import families
from prober.sinks.metrics.label_values import Component, Job
from prober.sinks.metrics.store import MetricStore, content_type_for, render

_FOUND: Final = families.DRILL_FINDINGS.full_name


class ProberHealth:
    """How the prober itself is. Nothing here is the service's doing. Its methods may be called in any thread; none blocks or raises."""

    def __init__(self, store: MetricStore, version: str, environments: Iterable[str]) -> None:
        """`environments`: those of the targets, whose nightly jobs it tells about."""
        self._errors = {component: store.counter(families.INTERNAL_ERRORS, component) for component in Component}
        self._dropped = {component: store.counter(families.EVENTS_DROPPED, component) for component in Component}
        self._pushes = {outcome: store.counter(families.PUSH_REQUESTS, outcome) for outcome in PushOutcome}
        self._history_failures = store.counter(families.HISTORY_FAILURES)
        self._status_up = store.gauge(families.STATUS_STORE_UP)
        self._status_failures = store.counter(families.STATUS_FAILURES)
        self._configured, self._configured_at = store.gauge(families.CONFIG_RELOADED), store.gauge(families.CONFIG_RELOADED_AT)
        self._start, self._reports_expected = store.gauge(families.START), store.gauge(families.REPORTS_EXPECTED)
        self._hot_keys = partial(store.gauge, families.HOT_KEYS)
        self._reverified = partial(store.gauge, families.REVERIFIED_FINDINGS)
        self._leftovers = partial(store.gauge, families.LEFTOVERS)
        self._lag = store.histogram(families.LOOP_LAG)
        self._store = store
        self._environments: frozenset[str] = frozenset()
        self.follow(environments)
        store.info(families.BUILD, (), {"version": version})
        store.gauge(families.CLOCK).set_function(wall_s)

    def follow(self, environments: Iterable[str]) -> None:
        """These are the environments of the targets from now on."""
        before, self._environments = self._environments, frozenset(environments)
        for job in Job:
            for gone in before - self._environments:
                self._store.forget(job_name=job, environment=gone)
            for where in sorted(self._environments):
                self._store.gauge(families.JOB_LAST_SUCCESS, job, job, where)

    def configured(self, at: float | None) -> None:
        """A configuration was taken over at a time, seconds since 1970; None: it was refused, and the old one stays."""
        self._configured.set(at is not None)
        if at is not None:
            self._configured_at.set(at)

    def internal_error(self, component: Component) -> None:
        """An unexpected exception was caught."""
        self._errors[component].inc()

    def dropped(self, component: Component, count: int = 1) -> None:
        """Events or messages were dropped, because a queue or the spool was full."""
        self._dropped[component].inc(count)

    def swept(self, project: str, left: int | None) -> None:
        """What probers that are gone have left in a project was looked for; so much is still there, or None if that is not known."""
        self._leftovers(project).set(nan if left is None else left)

    def pushed(self, outcome: PushOutcome) -> None:
        """A request came to the endpoint that Pub/Sub pushes to."""
        self._pushes[outcome].inc()

    def history_failed(self) -> None:
        """The history could not be written."""
        self._history_failures.inc()

    def status_failed(self) -> None:
        """The status store could not be written."""
        self._status_failures.inc()

    def status_answers(self, answers: bool) -> None:
        """Whether the status store took, or gave, what it was last asked for."""
        self._status_up.set(answers)

    def lagged(self, lag_s: float) -> None:
        """The event loop woke up later than asked for."""
        self._lag.observe(max(0.0, lag_s))

    def started(self, at: float, *, reports_expected: bool = False) -> None:
        """The prober started, seconds since 1970; `reports_expected`: it knows where nightly jobs leave their reports."""
        self._start.set(at)
        self._reports_expected.set(reports_expected)

    def hot_keys(self, target: TargetSettings, counts: Mapping[str, int]) -> None:
        """The newest report has so many hot keys of each class on a target."""
        for heat, count in counts.items():
            self._hot_keys(target.name, target.environment, target.region, heat).set(count)

    def reverified(self, target: TargetSettings, counts: Mapping[str, int], *, complete: bool) -> None:
        """The newest report found so much on a target that was not found before, by kind; only if it is `complete`, no count is 0."""
        for kind in CAN_FAIL:
            count = counts.get(kind, 0)
            known = count or complete
            self._reverified(target.name, target.environment, target.region, kind).set(count if known else nan)

    def job_succeeded(self, job: Job, at: float) -> None:
        """A nightly job succeeded at a time, seconds since 1970."""
        for where in self._environments:
            self._store.gauge(families.JOB_LAST_SUCCESS, job, job, where).set(at)


class DrillMetrics:
    """The metrics of drills with these names. Everything that they count is at 0 from the start; how long steps took is not there yet."""

    def __init__(self, store: MetricStore, drills: Iterable[str]) -> None:
        self._store = store
        for drill in drills:
            store.gauge(families.DRILL_LAST_SUCCESS, drill)
            store.gauge(families.DRILL_LAST_FAILURE, drill)
            for verdict in Verdict:
                store.counter(families.DRILL_RUNS, drill, verdict.lower())
            for kind in Kind:
                for status in Status:
                    store.counter(families.DRILL_FINDINGS, drill, kind, status)

    def found(self, drill: str, kind: Kind, status: Status, count: int = 1) -> None:
        """The checker found something in a drill."""
        self._store.counter(families.DRILL_FINDINGS, drill, kind, status).inc(count)

    def ended(self, drill: str, verdict: Verdict, steps_s: Mapping[str, float | None], at: float) -> None:
        """A drill ended at a time, seconds since 1970. A step that did not come, or was not followed, is not a number."""
        for step, took_s in steps_s.items():
            self._store.gauge(families.DRILL_STEP, drill, step).set(nan if took_s is None else took_s)
        self._store.counter(families.DRILL_RUNS, drill, verdict.lower()).inc()
        last = families.DRILL_LAST_SUCCESS if verdict is Verdict.PASS else families.DRILL_LAST_FAILURE
        self._store.gauge(last, drill).set(at)

    def scraped(self, drill: str, statuses: Iterable[Status]) -> float:
        """How many findings of these statuses a scrape shows at this moment for a drill; read from the text that it gets.

        Only that family is written for it: drills ask every second, on the event loop.
        """
        wanted = [f'status="{status}"' for status in statuses]
        found = self._store.registry.restricted_registry([_FOUND])
        text = render(found, content_type_for(""))
        lines = (line for line in text.decode().splitlines() if line.startswith(f'{_FOUND}{{drill="{drill}"'))
        return sum(float(line.rpartition(" ")[2]) for line in lines if any(label in line for label in wanted))
