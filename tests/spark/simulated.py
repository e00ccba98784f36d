"""Two days on which simulated probers work, side by side and for a few minutes: the last half minute of one day and the first of the next.

Nothing goes wrong on the first day. From midnight on each of them has trouble of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from prober.config.models import Schedule
from prober.embedded.faults import Fault
from prober.simulation.network_conditions import CALM
from prober.simulation.plan import Disturbance, Plan, Temper, Trouble
from prober.simulation.virtual_time import STARTED_AT
from prober.simulation.world import Simulated, defaults, simulate
from prober.slo.objectives import HOUR_S, MINUTE_S
from tests.spark.taped import DAY, MIDNIGHT

QUIET: Final = DAY - timedelta(days=1)
"""The first of both days."""
MIDNIGHT_S: Final = MIDNIGHT - STARTED_AT.timestamp()
"""How long after the begin of a simulation the second one begins."""
TARGET: Final = defaults().targets[0].name


def plan(
    seed: int,
    *probes: str,
    faults: Sequence[Fault] = (),
    trouble: Disturbance | None = None,
    every_s: float = MINUTE_S,
    for_s: float = 3 * MINUTE_S,
) -> Plan:
    """A few minutes of these probes in calm network conditions."""
    schedule = {"schedule": Schedule(interval=timedelta(seconds=every_s))}
    settings = {name: known.model_copy(update=schedule) for name, known in defaults().targets[0].probes.items() if name in probes}
    fault = faults[0].name if faults else ""
    return Plan(seed, for_s / HOUR_S, Temper.CALM, settings, CALM, fault, tuple(faults), () if trouble is None else (trouble,))


def from_midnight(name: str, probability: float) -> Fault:
    """A fault that does not strike on the first day."""
    return Fault(name, probability, start=MIDNIGHT_S)


PLANS: Final = (
    plan(1, "ordering", "redelivery", faults=[from_midnight("swap_in_batch", 0.1)]),
    plan(2, "affinity", "pull", faults=[from_midnight("split_holder", 0.1)]),
    plan(3, "ordering", "region", faults=[from_midnight("stall_key", 0.002)], every_s=90.0, for_s=178.0),
    plan(4, "ordering", "limits", faults=[from_midnight("slow_delivery", 0.3), from_midnight("publish_slow", 0.05)]),
    plan(5, "redelivery", "ordering", trouble=Disturbance(61.5, Trouble.PAUSE, 8.0)),
    plan(6, "ordering", trouble=Disturbance(66.0, Trouble.KILL, 5.0)),
    plan(7, "push", "control_group", faults=[from_midnight("reply_lost", 0.05)]),
    # A run that goes on at midnight.
    plan(8, "redelivery", faults=[from_midnight("redeliver_unacked_only", 0.5)], every_s=MIDNIGHT_S - 1.0, for_s=MIDNIGHT_S + 10.0),
)
LATE: Final = plan(9, "ordering", faults=[Fault("swap_in_batch", 0.1)], for_s=MIDNIGHT_S / 2)
"""All of the first day."""


def simulate_days(history: Path) -> list[Simulated]:
    """Writes what happens as a history; returns what the simulations know of it."""
    return [simulate(one, str(history)) for one in PLANS]
