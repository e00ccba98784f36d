"""A process that writes a history until it is killed: `python -m tests.integration.history_writer LOCATION RUN_ID [SPOOL]`.

It says on standard output what it recorded, as lines of a number and the time. Segments are short, so that it ships all the time.
"""

from __future__ import annotations

import sys
from itertools import count
from threading import Event as Alarm

from prober.clock import monotonic_s, wall_s
from prober.config.sections import HistorySettings
from prober.core.events import Acked
from prober.core.rules import Rules
from prober.sinks.history import writer as writer_module
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.writer import HistoryWriter


def main(location: str, run_id: str, spool: str | None = None) -> None:
    """Records for ever."""
    writer_module.SEGMENT_AGE_MAX_S = 0.3  # type: ignore[misc]
    writer_module.SHIP_EVERY_S = 0.05  # type: ignore[misc]
    writer = HistoryWriter(HistorySettings(location=location, spool=spool))
    writer.start()
    log = writer.begin(RunContext(run_id, "demo", "test", "local", "ordering", "wire", "topic", {"s": Rules()}, wall_s()))
    pause = Alarm()
    for number in count(1):
        t = monotonic_s()
        log.record(Acked(t, "s", f"k{number % 5}", "A", str(number)))
        print(number, t, flush=True)
        pause.wait(0.001)


if __name__ == "__main__":
    main(*sys.argv[1:])
