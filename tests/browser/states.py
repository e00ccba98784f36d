"""Small services in one state each: what a person on call may meet at 3 a.m. At noon, with runs that end at fixed times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.runs.probe_instance import ProbeInstance
from tests.browser.world import EUROPE
from tests.unit.api.asking import NOON, StubView, end, view

PROBES: Final = (
    "affinity",
    "control_plane",
    "dead_letter",
    "exactly_once",
    "ordering",
    "publish",
    "pull",
    "push",
    "redelivery",
    "seek",
)
INSTANCES: Final = tuple(replace(EUROPE, probe=probe) for probe in PROBES)
EVERY_S: Final = 60.0
RUNS: Final = 10


def healthy() -> StubView:
    """Every run passes."""
    return _after({})


def starting() -> StubView:
    """Seven probes have a verdict, three have none yet."""
    asked = view(*INSTANCES)
    for instance in INSTANCES[:7]:
        end(asked, instance, Verdict.PASS, at=NOON - 9.0)
    for instance in INSTANCES[7:]:
        asked.live.started(instance, NOON - 20.0)
    return asked


def outage() -> StubView:
    """Two probes could not reach the target, the newest runs of the others passed before."""
    asked = _after({}, until=NOON - 4 * EVERY_S)
    for probe in ("ordering", "publish"):
        instance = _instance(probe)
        end(
            asked,
            instance,
            Verdict.UNKNOWN,
            reason="publishing to europe: no connection within 10 s",
            at=NOON - 30.0,
            unreachable=True,
        )
    return asked


def blind() -> StubView:
    """The target answers, and refuses every subscriber."""
    asked = view(*INSTANCES)
    for number in range(3):
        for instance in INSTANCES:
            reason = "StreamingPull was refused: PERMISSION_DENIED; grant roles/pubsub.subscriber to the prober"
            end(asked, instance, Verdict.UNKNOWN, reason=reason, at=NOON - EVERY_S * (3 - number))
    return asked


def three_faults() -> StubView:
    """Order, redelivery and loss, shown by several probes in every run."""
    everywhere = {
        "ordering": (Kind.ORDER_GAP,),
        "redelivery": (Kind.ORDER_GAP, Kind.REDELIVERY_SKIP),
        "pull": (Kind.ORDER_INVERSION,),
        "seek": (Kind.STUCK,),
        "push": (Kind.STUCK,),
    }
    return _after(everywhere)


def intermittent() -> StubView:
    """One swap in ten runs, some minutes ago."""
    return _after({"ordering": (Kind.ORDER_INVERSION,)}, only=4)


def unusual() -> StubView:
    """Only what Google documents as usual is missing."""
    return _after({"affinity": (Kind.AFFINITY_SPLIT,)})


STATES: Final[Mapping[str, Callable[[], StubView]]] = {
    "healthy": healthy,
    "starting": starting,
    "outage": outage,
    "blind": blind,
    "three-faults": three_faults,
    "intermittent": intermittent,
    "unusual": unusual,
}


def _after(found: Mapping[str, tuple[Kind, ...]], *, until: float = NOON, only: int | None = None) -> StubView:
    """After some runs of every probe, of which all or one find these kinds."""
    asked = view(*INSTANCES)
    for number in range(RUNS):
        for place, instance in enumerate(INSTANCES):
            kinds = found.get(instance.probe, ()) if only in (None, number) else ()
            at = until - EVERY_S * (RUNS - number) + place
            verdict = Verdict.FAIL if kinds else Verdict.PASS
            end(asked, instance, verdict, *map(_finding, kinds), reason=", ".join(sorted(kinds)), at=at)
    for instance in INSTANCES:
        asked.live.planned(instance, NOON + 20.0)
    return asked


def _finding(kind: Kind) -> Finding:
    status = Status.LIVENESS if kind is Kind.STUCK else Status.VIOLATION
    facts: Facts = {
        "seq": 4,
        "seqs": (4,),
        "count": 1,
        "since_t": 1.0,
        "missing": (3,),
        "missing_count": 1,
        "after": 2,
        "skipped": (3,),
        "skipped_count": 1,
        "subscriber": "A",
        "holder": "B",
        "held": (1,),
    }
    return Finding(kind, status, EUROPE.subscription, "orders-1042", 3.5, (1, 2), facts)


def _instance(probe: str) -> ProbeInstance:
    return next(instance for instance in INSTANCES if instance.probe == probe)
