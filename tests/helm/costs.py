"""What the shipped values files cost a month: `make generate` writes docs/costs.md.

Everything follows from the rendered chart, the configuration in it and the list prices, but for two measurements: how many series a pod
exports (`tests/helm/scrapes.py`), and how large an event is in the history (`tests/helm/history_size.py`). Tests hold both against the
real thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from prober.config.loading import load
from prober.config.models import Config
from prober.durations import read_duration
from prober.probes.cost import MONTH_S, Bounds, price_usd
from prober.schedule.forecast import monthly_cost
from prober.schedule.instances import PlannedInstance, instances_of
from tests.helm.chart import CASES, CHART, Document, Values, documents
from tests.helm.test_configuration import loaded

_FIRST: Final = ("production", "canary", "staging", "test")
_SHIPPED: Final = {path.stem.removeprefix("values-") for path in CHART.glob("values-*.yaml")}
ENVIRONMENTS: Final = (*_FIRST, *sorted(_SHIPPED - set(_FIRST)))
"""Every values file that is shipped."""

SERIES_ALONE, SERIES_PER_TARGET, SERIES_PER_INSTANCE, SERIES_PER_SUBSCRIPTION, SERIES_OF_API = 79, 219, 27, 158, 73
BYTES_PER_EVENT: Final = 16.9
MORE_BYTES_WITH_RANDOM_IDS: Final = 2.5
"""Of each event, if message ids were random; those of the real service are something between."""
EVENTS_PER_MESSAGE: Final = 2
"""Published or delivered, each is two: asked and confirmed, received and answered."""
JOB_EVENTS_PER_S: Final = 100_000.0
"""Of all nightly jobs together on one core; most of it is verifying every run again."""
JOB_START_S: Final = 120.0
FILES_EVERY_S: Final = 300.0
TABLES: Final = 4

DAY_S: Final = 86_400.0
HOURS: Final = 730.0
GIB: Final = 2**30

USD_PER_MILLION_SAMPLES: Final = 0.06
USD_PER_MILLION_SERIES_READ: Final = 0.50
USD_PER_CPU_HOUR: Final = 0.0445
USD_PER_MEMORY_GIB_HOUR: Final = 0.0049225
USD_PER_BUCKET_GIB: Final = 0.020
USD_PER_THOUSAND_WRITES: Final = 0.005
USD_PER_DISK_GIB: Final = 0.10
USD_PER_DATABASE_HOUR: Final = 0.0413 + 3.75 * 0.007
DATABASE_GIB, USD_PER_DATABASE_GIB = 10, 0.17

_UNITS: Final = {"": 1.0, "m": 1e-3, "Mi": 2.0**20, "Gi": 2.0**30}


@dataclass(frozen=True)
class Environment:
    """One values file, as it is installed; without a name, only the default configuration of the program."""

    name: str

    @property
    def values(self) -> Values:
        """What Helm is given."""
        return CASES[self.name]

    @cached_property
    def config(self) -> Config:
        """What the probers are given."""
        if not self.name:
            return load(None, {})
        with TemporaryDirectory() as folder:
            return loaded(self.values, "prober", Path(folder))

    @property
    def probe_instances(self) -> list[PlannedInstance]:
        """Every probe instance."""
        return [instance for target in self.config.targets for instance in instances_of(target)]

    # --- Pub/Sub -------------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> float:
        """Published and delivered, in a month."""
        return sum(monthly_cost(instance).messages for instance in self.probe_instances)

    @property
    def pubsub_bytes(self) -> Bounds:
        """What Google bills for, in a month."""
        return reduce(add, (monthly_cost(instance).billed for instance in self.probe_instances))

    # --- metrics -------------------------------------------------------------------------------------------------------------

    @property
    def pods(self) -> dict[str, int]:
        """How many pods each part of the service has, at the least."""
        found = {}
        for document in documents(self.values):
            if document["kind"] in ("StatefulSet", "Deployment"):
                found[_component(document)] = document["spec"].get("replicas") or self._replicas_min(document)
        return found

    def _replicas_min(self, document: Document) -> int:
        (scaler,) = (
            one["spec"]
            for one in documents(self.values)
            if one["kind"] == "HorizontalPodAutoscaler" and one["spec"]["scaleTargetRef"]["name"] == document["metadata"]["name"]
        )
        return int(scaler["minReplicas"])

    @property
    def series(self) -> int:
        """What one scrape of all pods brings, at most: as if each of several probers ran everything."""
        subscriptions = sum(plan.ordering for instance in self.probe_instances for plan in instance.experiment.subscriptions)
        of_a_prober = series_of(len(self.config.targets), len(self.probe_instances), subscriptions)
        return self.pods["prober"] * of_a_prober + self.pods.get("api", 0) * SERIES_OF_API

    @property
    def samples(self) -> float:
        """Scraped in a month."""
        return self.series * MONTH_S / read_duration(_scrape_interval(self.values)).total_seconds()

    @property
    def recorded(self) -> float:
        """Samples that recording rules make in a month: each gives one series per target."""
        groups = [
            group for one in documents(self.values) if one["kind"] in ("Rules", "PrometheusRule") for group in one["spec"]["groups"]
        ]
        evaluations = (
            MONTH_S / read_duration(group["interval"]).total_seconds() * sum("record" in rule for rule in group["rules"])
            for group in groups
        )
        return sum(evaluations) * len(self.config.targets)

    # --- history -------------------------------------------------------------------------------------------------------------

    @property
    def has_history(self) -> bool:
        """Whether one is kept."""
        return self.config.history.location is not None

    @property
    def events_per_day(self) -> float:
        """Rows that the history gains."""
        return self.messages * EVENTS_PER_MESSAGE * DAY_S / MONTH_S

    @property
    def history_bytes_per_day(self) -> float:
        """What the history grows by."""
        return self.events_per_day * BYTES_PER_EVENT

    @property
    def history_days(self) -> float:
        """How many days are kept: until `size_max` is met, at most `retention`."""
        settings = self.config.history
        return min(settings.size_max / self.history_bytes_per_day, settings.retention.total_seconds() / DAY_S)

    # --- money ---------------------------------------------------------------------------------------------------------------

    @property
    def pubsub_usd(self) -> Bounds:
        """Messages."""
        return price_usd(self.pubsub_bytes)

    @property
    def metrics_usd(self) -> float:
        """Samples that are ingested, scraped and recorded, and what rules read; nothing unless Google's service does it."""
        if not any(one["kind"] == "PodMonitoring" for one in documents(self.values)):
            return 0.0
        return ((self.samples + self.recorded) * USD_PER_MILLION_SAMPLES + self.recorded * USD_PER_MILLION_SERIES_READ) / 1e6

    @property
    def compute_usd(self) -> float:
        """What the pods request, the jobs for the time that they run."""
        usd = 0.0
        for document in documents(self.values):
            if document["kind"] in ("StatefulSet", "Deployment"):
                usd += HOURS * self.pods[_component(document)] * _usd_per_hour(document["spec"]["template"]["spec"])
            if document["kind"] == "CronJob":
                hours = (self.events_per_day / JOB_EVENTS_PER_S + JOB_START_S) / 3600 * MONTH_S / DAY_S
                usd += hours * _usd_per_hour(document["spec"]["jobTemplate"]["spec"]["template"]["spec"])
        return usd

    @property
    def storage_usd(self) -> float:
        """The bucket of the history, its writes, and all volumes."""
        usd = 0.0
        if str(self.config.history.location).startswith("gs://"):
            kept_gib = self.history_bytes_per_day * self.history_days / GIB
            writes = self.pods["prober"] * TABLES * MONTH_S / FILES_EVERY_S
            usd += kept_gib * USD_PER_BUCKET_GIB + writes / 1000 * USD_PER_THOUSAND_WRITES
        return usd + sum(gib * USD_PER_DISK_GIB for gib in self._volumes_gib())

    def _volumes_gib(self) -> Iterator[float]:
        for document in documents(self.values):
            if document["kind"] == "PersistentVolumeClaim":
                yield quantity(document["spec"]["resources"]["requests"]["storage"]) / GIB
            claims = document["spec"].get("volumeClaimTemplates", ()) if document["kind"] == "StatefulSet" else ()
            for claim in claims:
                yield self.pods[_component(document)] * quantity(claim["spec"]["resources"]["requests"]["storage"]) / GIB

    @property
    def database_usd(self) -> float:
        """The smallest dedicated machine of Cloud SQL, if the status store is PostgreSQL."""
        if not self.values.get("status", {}).get("existingSecret"):
            return 0.0
        return HOURS * USD_PER_DATABASE_HOUR + DATABASE_GIB * USD_PER_DATABASE_GIB

    @property
    def total_usd(self) -> Bounds:
        """Everything."""
        rest = self.metrics_usd + self.compute_usd + self.storage_usd + self.database_usd
        return self.pubsub_usd + Bounds(rest, rest)


def series_of(targets: int, instances: int, subscriptions: int) -> int:
    """How many series a prober exports about so many targets with so many probe instances and subscriptions in all."""
    return SERIES_ALONE + SERIES_PER_TARGET * targets + SERIES_PER_INSTANCE * instances + SERIES_PER_SUBSCRIPTION * subscriptions


def quantity(text: str | int) -> float:
    """A quantity as Kubernetes writes it."""
    found = re.fullmatch(r"([\d.]+)(\w*)", str(text))
    assert found is not None, text
    return float(found[1]) * _UNITS[found[2]]


def _usd_per_hour(pod: dict[str, Any]) -> float:
    beside = [container for container in pod.get("initContainers", ()) if container.get("restartPolicy") == "Always"]
    requests = [container["resources"]["requests"] for container in (*pod["containers"], *beside)]
    cpu, memory = (sum(quantity(one[what]) for one in requests) for what in ("cpu", "memory"))
    return cpu * USD_PER_CPU_HOUR + memory / GIB * USD_PER_MEMORY_GIB_HOUR


def _component(document: Document) -> str:
    return str(document["metadata"]["labels"]["app.kubernetes.io/component"])


def _scrape_interval(values: Values) -> str:
    return str(values.get("scrape", {}).get("interval", "30s"))
