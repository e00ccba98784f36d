"""Tasks of a Celery worker whose broker is Pub/Sub. They append lines to the file that JOURNAL names."""

import os
import threading
from pathlib import Path

from celery import Celery  # type: ignore[import-not-found]

JOURNAL = Path(os.environ["JOURNAL"])
app = Celery("tasks", broker="gcpubsub://projects/test")
app.conf.update(
    broker_transport_options={"ack_deadline_seconds": 10, "wait_time_seconds": 1},
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
)


def note(line: str) -> None:
    """Append a line."""
    with JOURNAL.open("a", encoding="utf-8") as journal:
        journal.write(f"{line}\n")


@app.task  # type: ignore[untyped-decorator]
def add(number: int) -> None:
    """Note a number."""
    note(str(number))


@app.task  # type: ignore[untyped-decorator]
def wait(gate: str) -> None:
    """Note the start, wait for a file, note the end."""
    note("started")
    while not Path(gate).exists():
        threading.Event().wait(0.05)
    note("finished")
