"""All metrics of one prober."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prober.config import TargetSettings
from prober.core.slo import Objective
from prober.metrics import exposition
from prober.metrics.backlog import BacklogCollector, Snapshot
from prober.metrics.drills import DrillMetrics
from prober.metrics.health import Health
from prober.metrics.labels import Component
from prober.metrics.store import Store
from prober.metrics.targets import TargetMetrics


class Metrics:
    """The door: what is watched, how the prober is, and what a scrape gets."""

    def __init__(self, objectives: Iterable[Objective] = (), version: str = "") -> None:
        self._store: Final = Store(objectives)
        self.health: Final = Health(self._store, version)
        self._backlogs: Final = BacklogCollector(lambda: self.health.internal_error(Component.METRICS))
        self._store.registry.register(self._backlogs)

    def watch(
        self,
        target: TargetSettings,
        topics: Iterable[str] = (),
        subscriptions: Iterable[str] = (),
        backlog: Snapshot = dict,
    ) -> TargetMetrics:
        """The metrics of a target. What may happen to these topics and subscriptions is at 0 from now on; others may follow.

        `backlog` is asked for each scrape what is owed, by subscription.
        """
        metrics = TargetMetrics(self._store, target, topics, subscriptions)
        self._backlogs.watch(metrics, backlog)
        return metrics

    def drills(self, names: Iterable[str]) -> DrillMetrics:
        """The metrics of fire drills with these names, at 0 from now on."""
        return DrillMetrics(self._store, names)

    def expose(self, accept: str = "") -> tuple[str, bytes]:
        """What a scrape with this Accept header gets: content type and body."""
        return exposition.expose(self._store.registry, accept)
