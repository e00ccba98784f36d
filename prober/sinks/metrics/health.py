"""The prober itself, and its fire drills, in the metrics. Nothing here is the service's doing, and no drill spends a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from typing import Final

from prober.clock import wall_s
from prober.config.models import TargetSettings
from prober.core.findings import Status
from prober.core.kinds import CAN_FAIL
from prober.core.verdict import Verdict
from prober.sinks.metrics import families, scopes
from prober.sinks.metrics.label_values import Component, Job
from prober.sinks.metrics.store import MetricStore, Series, content_type_for, render

_FOUND: Final = families.DRILL_FINDINGS.full_name


class ProberHealth(Series):
    """The series about the prober itself."""

    def __init__(self, store: MetricStore, version: str, environments: Iterable[str]) -> None:
        """`environments`: those of the targets, whose nightly jobs it reports on."""
        super().__init__(store, (), ())
        self._jobs: dict[tuple[Job, str], Series] = {}
        self.follow(environments)
        store.info(families.BUILD, (), {"version": version})
        store.gauge(families.CLOCK).set_function(wall_s)

    def follow(self, environments: Iterable[str]) -> None:
        """These are the environments of the targets from now on."""
        known = {(job, environment) for environment in environments for job in Job}
        for gone in self._jobs.keys() - known:
            self._jobs.pop(gone).forget()
        for job, environment in known - self._jobs.keys():
            self._jobs[job, environment] = Series(self._store, scopes.JOB, (job, job, environment))

    def configured(self, at: float | None) -> None:
        """A configuration was taken over at a time, seconds since 1970; None: it was refused, and the old one stays."""
        self.set(families.CONFIG_RELOADED, at is not None)
        if at is not None:
            self.set(families.CONFIG_RELOADED_AT, at)

    def internal_error(self, component: Component) -> None:
        """An unexpected exception was caught."""
        self.count(families.INTERNAL_ERRORS, component)

    def dropped(self, component: Component, count: int = 1) -> None:
        """Events or messages were dropped, because a queue or the spool was full."""
        self.count(families.EVENTS_DROPPED, component, by=count)

    def swept(self, project: str, left: int | None) -> None:
        """A project was searched for what probers that are gone have left there: so much is still there, or None if that is not known."""
        self._store.gauge(families.LEFTOVERS, project).set(nan if left is None else left)

    def hot_keys(self, target: TargetSettings, counts: Mapping[str, int]) -> None:
        """The newest report has so many hot keys of each class on a target."""
        for heat, count in counts.items():
            self._store.gauge(families.HOT_KEYS, *target.series, heat).set(count)

    def reverified(self, target: TargetSettings, counts: Mapping[str, int], *, complete: bool) -> None:
        """The newest report found so much on a target that was not found before, by kind; only if it is `complete`, no count is 0."""
        for kind in CAN_FAIL:
            count = counts.get(kind, 0)
            known = count or complete
            self._store.gauge(families.REVERIFIED_FINDINGS, *target.series, kind).set(count if known else nan)

    def job_succeeded(self, job: Job, at: float) -> None:
        """A nightly job succeeded at a time, seconds since 1970."""
        for (name, _), series in self._jobs.items():
            if name == job:
                series.set(families.JOB_LAST_SUCCESS, at)


class DrillMetrics:
    """The metrics of drills with these names."""

    def __init__(self, store: MetricStore, drills: Iterable[str]) -> None:
        self._store: Final = store
        self._drills: Final = {drill: Series(store, scopes.DRILL, (drill,)) for drill in drills}

    def of(self, drill: str) -> Series:
        """The series of a drill. KeyError for another name."""
        return self._drills[drill]

    def ended(self, drill: str, verdict: Verdict, steps_s: Mapping[str, float | None], at: float) -> None:
        """A drill ended at a time, seconds since 1970. A step that did not come, or was not followed, is not a number."""
        for step, took_s in steps_s.items():
            self._store.gauge(families.DRILL_STEP, drill, step).set(nan if took_s is None else took_s)
        series = self.of(drill)
        series.count(families.DRILL_RUNS, verdict.lower())
        series.set(families.DRILL_LAST_SUCCESS if verdict is Verdict.PASS else families.DRILL_LAST_FAILURE, at)

    def scraped(self, drill: str, statuses: Iterable[Status]) -> float:
        """How many findings of these statuses a scrape shows at this moment for a drill; read from the text that it gets.

        Only that family is written for it: drills ask every second, on the event loop.
        """
        wanted = [f'status="{status}"' for status in statuses]
        found = self._store.registry.restricted_registry([_FOUND])
        text = render(found, content_type_for(""))
        lines = (line for line in text.decode().splitlines() if line.startswith(f'{_FOUND}{{drill="{drill}"'))
        return sum(float(line.rpartition(" ")[2]) for line in lines if any(label in line for label in wanted))
