"""Size of a history: runs the service on its embedded server for a while and measures the files.

    python -m benchmarks.history_size [--seconds 330]

Prints events per run of each probe, bytes per event on disk, and the resulting size per day with the default configuration. Files are
written every five minutes; a shorter measurement results in smaller files, which compress a little worse.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

STOP_MAX_S = 120.0
PROGRAM = [sys.executable, "-c", "import sys; from prober.cli import main; sys.exit(main())", "run"]


@dataclass(frozen=True)
class HistorySize:
    """Size of a written history.

    events, runs  by probe: number of events of the runs that passed, and number of these runs. Runs cut short are not representative.
    all_events    number of events of all runs.
    file_bytes    size of all files: events, runs, findings.
    """

    events: Mapping[str, int]
    runs: Mapping[str, int]
    all_events: int
    file_bytes: int

    @property
    def bytes_per_event(self) -> float:
        """Bytes on disk per event, with its share of the other tables."""
        return self.file_bytes / self.all_events

    def events_per_run(self, probe: str) -> float:
        """Return the mean number of events per run."""
        return self.events[probe] / self.runs[probe]


def measure(seconds: float) -> HistorySize:
    """Run the default configuration for some seconds, and measure its history."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "ORDERING_PROBER_API__PORT": "0",
            "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db",
            "ORDERING_PROBER_HISTORY__LOCATION": f"{folder}/history",
            "ORDERING_PROBER_HISTORY__SPOOL": f"{folder}/spool",
        }
        process = subprocess.Popen(PROGRAM, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.send_signal(signal.SIGINT)
            if process.wait(STOP_MAX_S) != 0:
                raise SystemExit("the service did not run and stop cleanly")
        finally:
            process.kill()
        return counted(Path(folder, "history"))


def counted(history: Path) -> HistorySize:
    """Return the size of a history."""
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=330.0)
    size = measure(parser.parse_args().seconds)
    for probe in size.runs:
        print(f"{probe}: {size.events_per_run(probe):,.0f} events per run, {size.runs[probe]} runs")
    print(f"{size.file_bytes:,} bytes, {size.bytes_per_event:.1f} per event")


if __name__ == "__main__":
    main()
