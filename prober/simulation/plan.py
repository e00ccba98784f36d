"""Plan of one simulation, drawn from its seed: probes and their load, faults of the service, and other disturbances.

Half of all simulations are calm apart from one fault of the service, which must be found. A quarter is rough: all events that are legal for
services, networks and probers may happen, and the checker must report no violation. The rest is both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from random import Random
from types import MappingProxyType
from typing import Final

from prober.config.models import ProbeSettings, Schedule
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Fault
from prober.probes.catalogue import PROBES, ProbeName
from prober.simulation.network_conditions import NetworkConditions

WHOLE_HOUR_S: Final = 3600.0

MET_ONLY_BY: Final[Mapping[str, tuple[ProbeName, ...]]] = MappingProxyType(
    {
        "overlap_pull": (ProbeName.PULL,),
        "lost_pull_answer": (ProbeName.PULL,),
        "overlap_push": (ProbeName.PUSH,),
        "push_past_failure": (ProbeName.PUSH,),
        "dead_letter_stalls_keys": (ProbeName.DEAD_LETTER,),
        "redeliver_after_confirmed_ack": (ProbeName.EXACTLY_ONCE,),
        "diverge_subscriptions": (ProbeName.PUBLISH, ProbeName.CONTROL_PLANE),
        "break_stalls_keys": (ProbeName.EXACTLY_ONCE,),
        "filter_leaks": (ProbeName.PUBLISH,),
        "filter_drops": (ProbeName.PUBLISH,),
        "skip_waiting": (ProbeName.LONG_LIVED, ProbeName.SEEK),
        "split_holder": (ProbeName.AFFINITY, ProbeName.ORDERING, ProbeName.REDELIVERY),
        "forget_holds": (ProbeName.EXACTLY_ONCE,),
        "lease_short": (ProbeName.EXACTLY_ONCE,),
        **dict.fromkeys(
            ("redeliver_single", "redeliver_unacked_only", "reorder_run", "lone_duplicate", "stall_run"),
            (ProbeName.REDELIVERY, ProbeName.EXACTLY_ONCE, ProbeName.PULL),
        ),
        "never_redeliver": (ProbeName.REDELIVERY, ProbeName.PULL, ProbeName.PUSH, ProbeName.DEAD_LETTER),
        "resume_past_unacked": (ProbeName.REDELIVERY, ProbeName.AFFINITY),
    }
)
"""Probes by fault, for faults that need a certain kind of subscription or events that only some probes cause."""

TO_BE_FOUND: Final = tuple(name for name, known in sorted(CATALOGUE.items()) if known.findings or known.exactly_once)
ALLOWED: Final = tuple(name for name, known in sorted(CATALOGUE.items()) if name not in TO_BE_FOUND)
"""Faults that violate no guarantee anywhere."""

_SHARES: Final = (0.02, 0.05, 0.2)
_FEW_CASES: Final = frozenset(
    {"resume_past_unacked", "break_stalls_keys", "dead_letter_stalls_keys", "stall_run", "diverge_subscriptions"}
)
"""Faults with only a few opportunities in a run; they are injected in at least `_SHARE_OF_FEW_MIN` of them."""
_SHARE_OF_FEW_MIN: Final = 0.3
_SIDE_SHARES: Final = (0.002, 0.01, 0.05)
_INTERVALS_S: Final = (60, 90, 120)


class Temper(StrEnum):
    """Kind of simulation: calm with a fault, rough without one, or both."""

    CALM = "calm"
    ROUGH = "rough"
    BOTH = "both"


class Trouble(StrEnum):
    """Disturbance around the service that the service does not cause."""

    CUT = "cut"
    """All connections break and new ones fail for a while.

    The cause is the network, or a front end of the service that restarts.
    """
    RESTART = "restart"
    """The prober is stopped, and restarts."""
    KILL = "kill"
    """The prober vanishes from the network, and another one starts."""
    CLOCK = "clock"
    """The clock of the prober's machine is set."""
    PAUSE = "pause"
    """The prober's machine is suspended."""
    BUSY = "busy"
    """The prober's machine is busy for half a minute, repeatedly."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One trouble, `at_s` seconds after the start; `amount`: its duration, or the change of the clock, in seconds."""

    at_s: float
    trouble: Trouble
    amount: float


@dataclass(frozen=True, slots=True)
class Plan:
    """One simulation. `fault`: the fault to find, among `faults`; empty if there is none."""

    seed: int
    hours: float
    temper: Temper
    probes: Mapping[ProbeName, ProbeSettings]
    conditions: NetworkConditions
    fault: str
    faults: tuple[Fault, ...]
    disturbances: tuple[Disturbance, ...]


def planned(seed: int, hours: float, defaults: Mapping[ProbeName, ProbeSettings], faults: Sequence[str] = ()) -> Plan:
    """Return the plan of a seed. `faults`: the fault is one of these, and there is no other disturbance."""
    rng = Random(f"plan {seed}")
    temper = Temper.CALM if faults else rng.choice((Temper.CALM, *Temper))
    names = tuple(faults) or TO_BE_FOUND
    fault = "" if temper is Temper.ROUGH else names[seed % len(names)]
    chosen = _chosen(rng, fault)
    armed = _armed(rng, fault, temper)
    return Plan(
        seed,
        hours,
        temper,
        {name: _settings(rng, name, defaults[name]) for name in chosen},
        _conditions(rng),
        fault,
        armed,
        () if temper is Temper.CALM else _disturbances(rng, hours * WHOLE_HOUR_S),
    )


def _chosen(rng: Random, fault: str) -> tuple[ProbeName, ...]:
    """Return the probes of a simulation, with one that can meet the fault."""
    fit = MET_ONLY_BY.get(fault, tuple(map(ProbeName, PROBES)))
    first = rng.choice(fit)
    second = rng.choice(list(map(ProbeName, PROBES)))
    return tuple(dict.fromkeys((first, second)))


def _settings(rng: Random, name: ProbeName, settings: ProbeSettings) -> ProbeSettings:
    """Return the settings of a probe: frequent enough for a few runs, with few more keys than it needs."""
    changed: dict[str, object] = {
        "schedule": Schedule(interval=timedelta(seconds=rng.choice(_INTERVALS_S))),
        "ack_deadline": timedelta(seconds=rng.choice((10, 10, 15))),
    }
    changed |= {key: rng.choice(choices) for key, choices in PROBES[name].simulated.items()}
    return settings.model_copy(update=changed)


def _conditions(rng: Random) -> NetworkConditions:
    latency_s = rng.choice((0.0005, 0.005, 0.04, 0.1))
    return NetworkConditions(
        latency_s=latency_s,
        jitter_s=latency_s * rng.choice((0.0, 0.5, 2.0)),
        lull_share=rng.choice((0.0, 0.0, 0.001, 0.005)),
        lull_s=rng.uniform(0.1, 0.8),
        disorder_s=rng.choice((0.0, latency_s, 0.05)),
    )


def _armed(rng: Random, fault: str, temper: Temper) -> tuple[Fault, ...]:
    armed = []
    if fault:
        share = max(rng.choice(_SHARES), _SHARE_OF_FEW_MIN if fault in _FEW_CASES else 0.0)
        armed.append(Fault(fault, share, seed=rng.getrandbits(31)))
    if temper is not Temper.CALM:
        benign = rng.sample(ALLOWED, rng.randint(1, 4))
        armed += [Fault(name, rng.choice(_SIDE_SHARES), seed=rng.getrandbits(31)) for name in benign if name != fault]
    return tuple(armed)


def _disturbances(rng: Random, until_s: float) -> tuple[Disturbance, ...]:
    """Return up to four disturbances, in the order of time."""
    drawn = []
    for _ in range(rng.randint(1, 4)):
        trouble = rng.choice(list(Trouble))
        amount = {
            Trouble.CUT: rng.choice((0.1, 1.0, 5.0, 20.0)),
            Trouble.KILL: rng.choice((0.1, 5.0)),
            Trouble.CLOCK: rng.choice((-3600.0, -5.0, 0.5, 5.0, 7200.0)),
            Trouble.PAUSE: rng.choice((0.3, 1.5, 2.5, 8.0, 60.0)),
            Trouble.BUSY: rng.choice((0.02, 0.2, 0.6)),
        }.get(trouble, 0.0)
        drawn.append(Disturbance(rng.uniform(10.0, until_s), trouble, amount))
    return tuple(sorted(drawn, key=lambda one: one.at_s))
