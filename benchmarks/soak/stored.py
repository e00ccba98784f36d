"""What the service keeps, as its API lists it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from time import sleep
from typing import Any

from api.limits import RATE
from benchmarks.soak.samples import PATIENCE_S, Sample
from prober.core.findings import FAILING
from tests.integration.programs import get


def runs(url: str) -> list[Mapping[str, Any]]:
    """All runs."""
    return list(_listed(f"{url}/api/v1/runs?limit=100"))


def accusations(url: str) -> Iterator[Mapping[str, Any]]:
    """Every finding that accuses a service, with its evidence."""
    for status in sorted(FAILING):
        for one in _listed(f"{url}/api/v1/findings?limit=100&status={status}"):
            yield _answer(f"{url}/api/v1/findings/{one['finding_id']}")


def counted(sample: Sample) -> Counter[tuple[str, str]]:
    """How many runs the metrics counted, by target and verdict, as a list of runs would be counted."""
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
    sleep(1 / RATE.per_s)  # as fast as one client may ask
    return json.loads(get(address, PATIENCE_S))
