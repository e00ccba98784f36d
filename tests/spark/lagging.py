"""A run during which the event loop lagged."""

from __future__ import annotations

from prober.core.events import Delivered, Nacked, Opened, Published, PublishInvoked, PublishUnknown
from tests.spark.taped import S, Taped


def lagged() -> Taped:
    """What lag of the event loop may have made late; the last message was published twice, so that Spark, no executor, finishes it."""
    run = Taped("ordering-lagged").add(Opened(1200.0, S, "A", "A"))
    for seq, took, lagged_s in (
        (1, 3.0, 2.95),
        (2, 3.0, 2.0),
        (3, 0.05, 0.04),
        (4, 0.3, 0.25),
        (5, 1.2, 0.1),
        (6, 1.000001, 0.000001),
    ):
        at = 1200.0 + 5 * seq
        run.add(PublishInvoked(at, "k", run.run_id, seq))
        run.add(Published(at + took, "k", run.run_id, seq, f"{run.run_id}-{seq}"), lagged_s=lagged_s)
        run.add(Delivered(at + took, S, "k", "A", run.run_id, seq, f"{run.run_id}-{seq}"), lagged_s=lagged_s)
    run.add(PublishInvoked(1240.0, "k", run.run_id, 7), PublishUnknown(1241.0, "k", run.run_id, 7))
    run.add(PublishInvoked(1241.1, "k", run.run_id, 7, generation=1))
    run.add(Published(1241.3, "k", run.run_id, 7, "again", generation=1), lagged_s=1.25)
    run.add(Delivered(1241.4, S, "k", "A", run.run_id, 7, "again", generation=1), lagged_s=1.35)
    for at, again, lagged_s in ((1250.0, 2.0, 1.9), (1255.0, 2.0, 1.0), (1260.0, 0.2, 0.2)):
        run.add(Nacked(at, S, "k", "A", f"{run.run_id}-1"))
        run.add(Delivered(at + again, S, "k", "A", run.run_id, 1, f"{run.run_id}-1"), lagged_s=lagged_s)
    return run.ended(1200.0, 1270.0)
