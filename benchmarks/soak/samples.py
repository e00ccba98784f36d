"""State of all parts at one moment: resources of the processes, metrics of the probers, lists of their API."""

from __future__ import annotations

import json
import resource
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from prober.core.findings import FAILING
from prober.sinks.metrics.family import PREFIX
from prober.sinks.metrics.label_values import Component, SkipReason
from tests.integration.programs import get

MIB: Final = 1024 * 1024
PAGE_BYTES: Final = resource.getpagesize()
LAG_SHARE: Final = 0.99
PATIENCE_S: Final = 60.0
"""Timeout for the metrics of a busy machine, in seconds."""
READ: Final[Mapping[str, tuple[str, ...]]] = {
    "probe_runs": ("target", "probe", "verdict"),
    "probe_runs_expected": ("target", "probe"),
    "scheduler_skips": ("target", "probe", "reason"),
    "findings": ("kind", "status"),
    "deliveries": ("target",),
    "internal_errors": ("component",),
    "events_dropped": ("component",),
    "history_failures": (),
    "status_failures": (),
    "status_store_up": (),
    "config_last_reload_successful": (),
}
"""Metrics to read, and the labels by which they are summed."""
_PARTS: Final = ("internal_errors", "events_dropped")
_WHOLE: Final = ("history_failures", "status_failures")
HISTORY_DROPPED: Final = f"events_dropped of {Component.HISTORY}"

Labels: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Occupied:
    """Resources of a process.

    computed_s  CPU time of its first thread, which runs the event loop.
    waited_s    time in which that thread was ready and waited for a processor.
    """

    memory_mib: float
    descriptors: int
    threads: int
    computed_s: float
    waited_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """State of all parts, `t` seconds after the start.

    lags     number of event loop delays of the service up to each bound, cumulative.
    metrics  values of `READ` by the values of their labels, summed over all probers.
    probers  number of probers.
    """

    t: float
    service: Occupied
    target: Occupied
    lags: Mapping[float, float]
    metrics: Mapping[str, Mapping[Labels, float]]
    probers: int = 1

    def value(self, name: str) -> float:
        """Return a metric, summed over all labels."""
        return sum(self.metrics[name].values())

    @property
    def reported(self) -> dict[str, float]:
        """Findings that report a violation of a service, by kind."""
        return {kind: count for (kind, status), count in self.metrics["findings"].items() if status in FAILING and count}

    @property
    def failures(self) -> dict[str, float]:
        """Numbers of failures and dropped data of the probers, so far."""
        parts = {f"{name} of {part}": count for name in _PARTS for (part,), count in self.metrics[name].items()}
        return parts | {name: self.value(name) for name in _WHOLE}

    def skipped(self, reason: SkipReason) -> float:
        """Return the number of runs skipped for a reason."""
        return sum(count for (_, _, why), count in self.metrics["scheduler_skips"].items() if why == reason)

    def verdicts(self, probe: str | None = None) -> Counter[str]:
        """Return the number of runs by verdict."""
        total: Counter[str] = Counter()
        for (_, name, verdict), count in self.metrics["probe_runs"].items():
            if count and probe in (None, name):
                total[verdict.upper()] += int(count)
        return total


def lag_s(now: Sample, before: Sample | None = None) -> float:
    """Return the p99 of event loop delays since an earlier sample, as a bound of the histogram; infinite above the last bound."""
    counts = {bound: count - (before.lags[bound] if before is not None else 0.0) for bound, count in now.lags.items()}
    enough = LAG_SHARE * max(counts.values(), default=0.0)
    return min((bound for bound, count in counts.items() if count >= enough), default=float("inf"))


def occupied(pid: int) -> Occupied:
    """Return the present resources of a process."""
    process = Path(f"/proc/{pid}")
    computed, waited, _ = (process / "task" / str(pid) / "schedstat").read_text().split()
    return Occupied(
        int((process / "statm").read_text().split()[1]) * PAGE_BYTES / MIB,
        len(list((process / "fd").iterdir())),
        len(list((process / "task").iterdir())),
        int(computed) / 1e9,
        int(waited) / 1e9,
    )


def sample(t: float, urls: Sequence[str], service_pid: int, target_pid: int) -> Sample:
    """Read a sample, of the service first. Raises OSError if a prober does not answer in time."""
    metrics: dict[str, dict[Labels, float]] = {name: defaultdict(float) for name in READ}
    lags: dict[float, float] = {}
    for url in urls:
        for family in text_string_to_metric_families(get(f"{url}/metrics", PATIENCE_S)):
            name = family.name.removeprefix(f"{PREFIX}_")
            if name in READ:
                _add(family, READ[name], metrics[name])
            elif name == "loop_lag_seconds" and not lags:
                lags = {float(one.labels["le"]): one.value for one in family.samples if one.name.endswith("_bucket")}
    return Sample(t, occupied(service_pid), occupied(target_pid), lags, metrics, len(urls))


def _add(family: Metric, labels: Labels, sums: dict[Labels, float]) -> None:
    for one in family.samples:
        if not one.name.endswith("_created"):
            sums[tuple(one.labels[label] for label in labels)] += one.value


def runs(url: str) -> list[Mapping[str, Any]]:
    """Return all runs."""
    return list(_listed(f"{url}/api/v1/runs?limit=100"))


def violations(url: str) -> Iterator[Mapping[str, Any]]:
    """Yield all findings that report a violation of a service, with their evidence."""
    for status in sorted(FAILING):
        for one in _listed(f"{url}/api/v1/findings?limit=100&status={status}"):
            yield _answer(f"{url}/api/v1/findings/{one['finding_id']}")


def counted(sample: Sample) -> Counter[tuple[str, str]]:
    """Return the number of runs in the metrics by target and verdict, in the form of a count over the list of runs."""
    total: Counter[tuple[str, str]] = Counter()
    for (target, _, verdict), count in sample.metrics["probe_runs"].items():
        total[target, verdict.upper()] += int(count)
    return total


def _listed(address: str) -> Iterator[Mapping[str, Any]]:
    after = ""
    while after is not None:
        page = _answer(f"{address}{after}")
        yield from page["items"]
        after = page["next_cursor"] and f"&cursor={page['next_cursor']}"


def _answer(address: str) -> Any:
    return json.loads(get(address, PATIENCE_S))
