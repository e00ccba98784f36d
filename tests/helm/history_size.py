"""How large the history of the default configuration is: the service on its embedded server for a while, and the files it wrote."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.integration.programs import program


@dataclass(frozen=True)
class HistorySize:
    """By probe: the events of the runs that passed, and these runs; runs cut short are not representative. Of all runs: events, bytes."""

    events: Mapping[str, int]
    runs: Mapping[str, int]
    all_events: int
    file_bytes: int

    @property
    def bytes_per_event(self) -> float:
        """With its share of the other tables."""
        return self.file_bytes / self.all_events

    def events_per_run(self, probe: str) -> float:
        """The mean."""
        return self.events[probe] / self.runs[probe]


def measure(seconds: float) -> HistorySize:
    """Files are written every five minutes: a shorter measurement makes smaller files, which compress a little worse."""
    with TemporaryDirectory() as folder:
        settings = {
            "ORDERING_PROBER_API__PORT": "0",
            "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db",
            "ORDERING_PROBER_HISTORY__LOCATION": f"{folder}/history",
            "ORDERING_PROBER_HISTORY__SPOOL": f"{folder}/spool",
        }
        with program("run", environ=settings) as running:
            threading.Event().wait(seconds)
            assert running.stop() == 0, running.lines
        return counted(Path(folder, "history"))


def counted(history: Path) -> HistorySize:
    """The content of the files."""
    files = [path for path in history.rglob("*.parquet") if not path.name.startswith(("_", "."))]
    events_of: Counter[str] = Counter()
    probe_of: dict[str, str] = {}
    for path in files:
        kind = path.relative_to(history).parts[0]
        if kind == "events":
            events_of.update(pq.read_table(path, columns=["run_id"])["run_id"].to_pylist())
        if kind == "runs":
            table = pq.read_table(path, columns=["run_id", "probe", "verdict"])
            ended = table.filter(pc.equal(table["verdict"], "PASS"))
            probe_of.update(zip(ended["run_id"].to_pylist(), ended["probe"].to_pylist(), strict=True))
    events: Counter[str] = Counter()
    for run_id, probe in probe_of.items():
        events[probe] += events_of[run_id]
    return HistorySize(events, Counter(probe_of.values()), events_of.total(), sum(path.stat().st_size for path in files))
