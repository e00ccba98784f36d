"""Several probers of a group on one PostgreSQL: the work is divided, and nobody is accused when they come, go and are killed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey
from prober.schedule.sharding import LEASE_S, TICK_S
from prober.sinks.history.reader import HistoryReader
from prober.sinks.status.database import Database
from prober.sinks.status.listings import RunFilter
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import RunRecord
from prober.sinks.status.store import StatusStore
from tests.integration.programs import Program, eventually, program, server, service, status
from tests.unit.sinks.status.postgresql import PostgreSQL, binaries

pytestmark = pytest.mark.nightly

INTERVAL_S = 2.0
RUN_MAX_S = 60.0
PARTS = {"ordering": 3, "redelivery": 1, "affinity": 2}
INSTANCES = {
    InstanceKey("emulator", probe, "wire", f"{part}/{parts}" if parts > 1 else "")
    for probe, parts in PARTS.items()
    for part in range(1, parts + 1)
}


class Group:
    """Probers of one group, each a process of its own, and what the store knows of them all."""

    def __init__(self, target: str, url: str, history: Path, processes: ExitStack) -> None:
        self._environ = {
            "PUBSUB_EMULATOR_HOST": target,
            "ORDERING_PROBER_STATUS__URL": url,
            "ORDERING_PROBER_SHARDING__GROUP": "together",
            "ORDERING_PROBER_HISTORY__LOCATION": str(history),
            "ORDERING_PROBER_TARGETS__0__PROBES": json.dumps(list(PARTS)),
        }
        for probe, parts in PARTS.items():
            prefix = f"ORDERING_PROBER_PROBES__{probe.upper()}"
            self._environ |= {
                f"{prefix}__SCHEDULE": f'{{"interval": "{INTERVAL_S:g}s"}}',
                f"{prefix}__JITTER": "0s",
                f"{prefix}__PARTS": str(parts),
            }
        self._environ["ORDERING_PROBER_PROBES__ORDERING__RATE"] = "4000"
        self._spool, self._processes = history.parent, processes
        self.database = Database(url)
        StatusStore(self.database).prepare()
        self.queries = StatusQueries(self.database)

    def start(self, name: str) -> Program:
        own = {"ORDERING_PROBER_INSTANCE": name, "ORDERING_PROBER_HISTORY__SPOOL": str(self._spool / f"spool-{name}")}
        running, _ = self._processes.enter_context(service(**self._environ, **own))
        return running

    def start_api(self) -> str:
        """An API in a process of its own, and its address."""
        api = self._processes.enter_context(program("api", environ=self._environ | {"ORDERING_PROBER_API__PORT": "0"}))
        return api.said(r"status page: (\S+)/")

    def share(self, name: str) -> set[InstanceKey]:
        """The probe instances that a prober says it works at."""
        return {reported.probe_instance.key for reported in self.queries.probe_instances() if reported.instance == name}

    def divided_among(self, *names: str) -> bool:
        """Whether every probe instance is at one of these and none at two, and nobody has nothing."""
        shares = [self.share(name) for name in names]
        return all(shares) and set.union(*shares) == INSTANCES and sum(map(len, shares)) == len(INSTANCES)

    def runs(self) -> list[RunRecord]:
        """All of them, in the order in which they began."""
        found: list[RunRecord] = []
        cursor = None
        while True:
            page = self.queries.runs(RunFilter(), limit=500, cursor=cursor)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found[::-1]

    def run_again_everywhere(self) -> None:
        """Waits until every probe instance has had two more runs."""
        before = {instance: len(runs) for instance, runs in by_instance(self.runs()).items()}
        eventually(lambda: all(len(by_instance(self.runs())[instance]) >= before.get(instance, 0) + 2 for instance in INSTANCES))


def shown(url: str) -> list[InstanceKey]:
    """The probe instances as the API shows them; none of them has failed."""
    reported = status(url)
    assert reported["verdict"] != Verdict.FAIL, reported
    return sorted(
        InstanceKey(instance["target"], instance["probe"], instance["vantage"], instance["part"])
        for instance in reported["probe_instances"]
    )


def by_instance(runs: list[RunRecord]) -> dict[InstanceKey, list[RunRecord]]:
    found: dict[InstanceKey, list[RunRecord]] = defaultdict(list)
    for run in runs:
        result = run.result
        found[InstanceKey(result.target, result.probe, result.vantage, result.part)].append(run)
    return found


def overlapping(spans: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Where one begins before the one before has ended."""
    return ((ended, began) for (_, ended), (began, _) in pairwise(sorted(spans)) if began < ended)


def test_one_is_added_one_is_killed_and_one_is_removed_under_load(tmp_path: Path) -> None:
    with PostgreSQL(binaries()) as postgresql, server() as (_, target), ExitStack() as processes:
        group = Group(target, postgresql.new_database(), tmp_path / "history", processes)
        zero, one = group.start("prober-0"), group.start("prober-1")
        eventually(lambda: group.divided_among("prober-0", "prober-1"))
        group.run_again_everywhere()

        two = group.start("prober-2")
        eventually(lambda: group.divided_among("prober-0", "prober-1", "prober-2"))
        group.run_again_everywhere()
        api = group.start_api()
        eventually(lambda: shown(api) == sorted(INSTANCES))

        one.kill()
        eventually(lambda: group.share("prober-0") | group.share("prober-2") == INSTANCES)
        group.run_again_everywhere()

        assert zero.stop() == 0
        eventually(lambda: group.share("prober-2") == INSTANCES)
        group.run_again_everywhere()
        eventually(lambda: shown(api) == sorted(INSTANCES))
        assert two.stop() == 0

        runs = by_instance(group.runs())
        group.database.close()
    assert runs.keys() == INSTANCES
    for instance, done in runs.items():
        verdicts = {run.verdict for run in done}
        assert verdicts - {Verdict.UNKNOWN} == {Verdict.PASS}, instance  # one that stood still on a busy machine says so
        assert not list(overlapping([(run.started_at, run.ended_at) for run in done])), instance
        pauses = [later.result.started_at - earlier.result.started_at for earlier, later in pairwise(done)]
        assert max(pauses) < INTERVAL_S + LEASE_S + 3 * TICK_S + RUN_MAX_S, instance

    reader = HistoryReader(str(tmp_path / "history"))
    spans = {
        stored.run_id: (stored.result.started_at, stored.result.started_at + stored.result.duration_s)
        for stored in reader.runs()
        if stored.result is not None
    }
    for done in runs.values():
        for run in done:
            assert run.run_id in spans or run.prober.instance == "prober-1", "only the one that was killed may lose the last second"
    rows = pq.read_table(tmp_path / "history" / "events", columns=["key", "run_id"], partitioning=None)
    for key, run_ids in zip(*rows.group_by("key").aggregate([("run_id", "distinct")]).to_pydict().values(), strict=True):
        mine = [spans[run_id] for run_id in run_ids if run_id in spans]
        assert not key or not list(overlapping(mine)), key  # messages without a key are published by every part
