"""All metrics of one prober."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prober.config import TargetSettings
from prober.sinks.metrics import exposition
from prober.sinks.metrics.backlog import BacklogCollector, Snapshot
from prober.sinks.metrics.drills import DrillMetrics
from prober.sinks.metrics.health import Health
from prober.sinks.metrics.labels import Component
from prober.sinks.metrics.store import Store
from prober.sinks.metrics.targets import TargetMetrics
from prober.slo.objectives import Objective


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

        `backlog` is asked by each `look` what is owed, by subscription.
        """
        metrics = TargetMetrics(self._store, target, topics, subscriptions)
        self._backlogs.watch(metrics, backlog)
        return metrics

    def drills(self, names: Iterable[str]) -> DrillMetrics:
        """The metrics of fire drills with these names, at 0 from now on."""
        return DrillMetrics(self._store, names)

    def look(self) -> None:
        """Asks what is owed, for the pages that are rendered from now on. To be called on the event loop, where that changes."""
        self._backlogs.look()

    def render(self, content_type: str) -> bytes:
        """A page in one of the formats of `exposition`. May be called in any thread, while metrics are counted."""
        return exposition.render(self._store.registry, content_type)
