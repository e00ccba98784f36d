"""Metrics of the prober itself and of its fire drills. None measures the service, and no drill spends an error budget."""

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
    """Series about the prober itself."""

    def __init__(self, store: MetricStore, version: str, environments: Iterable[str]) -> None:
        """Create the series. `environments`: those of the targets, for the series of nightly jobs."""
        super().__init__(store, (), ())
        self._jobs: dict[tuple[Job, str], Series] = {}
        self.follow(environments)
        store.info(families.BUILD, (), {"version": version})
        store.gauge(families.CLOCK).set_function(wall_s)

    def follow(self, environments: Iterable[str]) -> None:
        """Replace the environments of the targets."""
        known = {(job, environment) for environment in environments for job in Job}
        for gone in self._jobs.keys() - known:
            self._jobs.pop(gone).forget()
        for job, environment in known - self._jobs.keys():
            self._jobs[job, environment] = Series(self._store, scopes.JOB, (job, job, environment))

    def configured(self, at: float | None) -> None:
        """Report the time of a successful reload, in seconds since 1970; None: the new configuration was rejected."""
        self.set(families.CONFIG_RELOADED, at is not None)
        if at is not None:
            self.set(families.CONFIG_RELOADED_AT, at)

    def internal_error(self, component: Component) -> None:
        """Count an unexpected exception."""
        self.count(families.INTERNAL_ERRORS, component)

    def dropped(self, component: Component, count: int = 1) -> None:
        """Count events or messages that were dropped because a queue or the spool was full."""
        self.count(families.EVENTS_DROPPED, component, by=count)

    def swept(self, project: str, left: int | None) -> None:
        """Report the resources of dead probers left in a project after a cleanup; None: unknown."""
        self._store.gauge(families.LEFTOVERS, project).set(nan if left is None else left)

    def hot_keys(self, target: TargetSettings, counts: Mapping[str, int]) -> None:
        """Report the numbers of hot keys on a target in the newest report, by class."""
        for heat, count in counts.items():
            self._store.gauge(families.HOT_KEYS, *target.series, heat).set(count)

    def reverified(self, target: TargetSettings, counts: Mapping[str, int], *, complete: bool) -> None:
        """Report the findings on a target that only the newest report contains, by kind; if not `complete`, 0 is reported as NaN."""
        for kind in CAN_FAIL:
            count = counts.get(kind, 0)
            known = count or complete
            self._store.gauge(families.REVERIFIED_FINDINGS, *target.series, kind).set(count if known else nan)

    def job_succeeded(self, job: Job, at: float) -> None:
        """Report the time of a nightly job's success, in seconds since 1970."""
        for (name, _), series in self._jobs.items():
            if name == job:
                series.set(families.JOB_LAST_SUCCESS, at)


class DrillMetrics:
    """Metrics of the named drills."""

    def __init__(self, store: MetricStore, drills: Iterable[str]) -> None:
        self._store: Final = store
        self._drills: Final = {drill: Series(store, scopes.DRILL, (drill,)) for drill in drills}

    def of(self, drill: str) -> Series:
        """Return the series of a drill. Raises KeyError for another name."""
        return self._drills[drill]

    def ended(self, drill: str, verdict: Verdict, steps_s: Mapping[str, float | None], at: float) -> None:
        """Report the end of a drill at a time, in seconds since 1970. A step without a duration is NaN."""
        for step, took_s in steps_s.items():
            self._store.gauge(families.DRILL_STEP, drill, step).set(nan if took_s is None else took_s)
        series = self.of(drill)
        series.count(families.DRILL_RUNS, verdict.lower())
        series.set(families.DRILL_LAST_SUCCESS if verdict is Verdict.PASS else families.DRILL_LAST_FAILURE, at)

    def scraped(self, drill: str, statuses: Iterable[Status]) -> float:
        """Return the number of a drill's findings with these statuses, as a scrape shows it now.

        Only that family is rendered, since drills call this every second, on the event loop.
        """
        wanted = [f'status="{status}"' for status in statuses]
        found = self._store.registry.restricted_registry([_FOUND])
        text = render(found, content_type_for(""))
        lines = (line for line in text.decode().splitlines() if line.startswith(f'{_FOUND}{{drill="{drill}"'))
        return sum(float(line.rpartition(" ")[2]) for line in lines if any(label in line for label in wanted))
