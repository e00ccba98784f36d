"""What fire drills tell to the metrics. Their families are apart from everything about services, so that no drill spends a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from typing import Final

from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.sinks.metrics import families
from prober.sinks.metrics.store import MetricStore, content_type_for, render

_FOUND: Final = families.DRILL_FINDINGS.full_name


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
