"""The drills: one for each fault of the embedded server, and a control without a fault, which must have no findings.

A drill has the name of its fault. The fault is planted on some of the probe's keys; the others are its control: a finding on one of them is
as wrong as no finding on the planted keys. The catalogue of faults names the expected findings. A fault without expected findings must not
cause any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from prober.config.sections import CONTROL
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Fault
from prober.probes.catalogue import ProbeName


class DrillSort(StrEnum):
    """Guarantee that a fault breaks.

    Faults of the sorts benign (harmless) and availability (slow) break none and must not be found. CONTROL has no fault.
    """

    ORDER = "order"
    REDELIVERY = "redelivery"
    AFFINITY = "affinity"
    INTEGRITY = "integrity"
    LIVENESS = "liveness"
    AVAILABILITY = "availability"
    BENIGN = "benign"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class DrillPlan:
    """Plan of a drill.

    name    name of its fault, or `control`.
    probe   the probe that can detect the fault.
    fault   the planted fault; its `key` is a pattern for the affected keys. None: no fault.
    """

    name: str
    sort: DrillSort
    probe: ProbeName
    fault: Fault | None

    @property
    def announced(self) -> tuple[str, ...]:
        """Expected kinds of findings, of which the run must make at least one.

        Empty if no finding may report a violation of the service.
        """
        return () if self.fault is None else CATALOGUE[self.fault.name].findings

    def planted_on(self, key: str) -> bool:
        """Return whether the fault may affect a key."""
        return self.fault is not None and fnmatchcase(key, self.fault.key)

    @property
    def sentence(self) -> str:
        """Effect of the fault, in one sentence."""
        return "Nothing is wrong." if self.fault is None else CATALOGUE[self.fault.name].sentence


_ORDERING: Final = ProbeName.ORDERING
_REDELIVERY: Final = ProbeName.REDELIVERY
_PULL: Final = ProbeName.PULL
_ISOLATION: Final = ProbeName.ISOLATION
_CONTROL_PLANE: Final = ProbeName.CONTROL_PLANE
_PUSH: Final = ProbeName.PUSH
_SOME: Final = "ordering-[024]"
_PULLED: Final = "pull-[024]"
_PUSHED: Final = "push-[024]"
_ONE: Final = "ordering-1"
_PUBLISHED: Final = "publish-[024]"
_CONFIRMED: Final = "exactly-once-[024]"
_HELD: Final = "exactly-once-[135]"  # the others are nacked when streams break
_REDELIVERED: Final = "redelivery-*[02468]"

_FAULTS: Final = (
    (DrillSort.ORDER, _ORDERING, Fault("swap_in_batch", key=_SOME)),
    (DrillSort.REDELIVERY, _REDELIVERY, Fault("redeliver_unacked_only", key=_REDELIVERED)),
    (DrillSort.REDELIVERY, _REDELIVERY, Fault("redeliver_single", key=_REDELIVERED)),
    (DrillSort.ORDER, _ORDERING, Fault("swap_across_batches", key=_SOME)),
    (DrillSort.ORDER, ProbeName.PUBLISH, Fault("diverge_subscriptions", key=_PUBLISHED)),
    (DrillSort.ORDER, _ORDERING, Fault("hole", key=_ONE, count=1)),
    (DrillSort.ORDER, ProbeName.LONG_LIVED, Fault("skip_waiting", key="long-lived-[024]", probability=0.5)),
    (DrillSort.ORDER, _ORDERING, Fault("late_fill", key=_SOME, probability=0.2)),
    (DrillSort.REDELIVERY, _REDELIVERY, Fault("reorder_run", key=_REDELIVERED)),
    (DrillSort.REDELIVERY, _ORDERING, Fault("lone_duplicate", key=_SOME)),
    (DrillSort.REDELIVERY, _REDELIVERY, Fault("resume_past_unacked", key=_REDELIVERED)),
    (DrillSort.AFFINITY, _ORDERING, Fault("split_holder", key=_SOME)),
    (DrillSort.AFFINITY, _PULL, Fault("overlap_pull", key=_PULLED)),
    (DrillSort.AFFINITY, _PUSH, Fault("overlap_push", key=_PUSHED)),
    (DrillSort.REDELIVERY, _PUSH, Fault("push_past_failure", key=_PUSHED)),
    (DrillSort.REDELIVERY, ProbeName.EXACTLY_ONCE, Fault("redeliver_after_confirmed_ack", key=_CONFIRMED)),
    (DrillSort.INTEGRITY, _ORDERING, Fault("lose_write", key=_ONE, count=1)),
    (DrillSort.INTEGRITY, _ORDERING, Fault("drop", key=_ONE, count=1)),
    (DrillSort.INTEGRITY, ProbeName.PUBLISH, Fault("filter_leaks", key=_PUBLISHED, probability=0.2)),
    (DrillSort.INTEGRITY, ProbeName.PUBLISH, Fault("filter_drops", key=_PUBLISHED, probability=0.2)),
    (DrillSort.INTEGRITY, _ORDERING, Fault("duplicate_id", key=_ONE, count=1)),
    (DrillSort.INTEGRITY, _ORDERING, Fault("phantom", key=_SOME, probability=0.2)),
    (DrillSort.INTEGRITY, _ORDERING, Fault("wrong_key", key=_SOME, probability=0.2)),
    (DrillSort.INTEGRITY, _ORDERING, Fault("corrupt_payload", key=_SOME, probability=0.2)),
    (DrillSort.LIVENESS, _ORDERING, Fault("stall_key", key=_ONE)),
    (DrillSort.LIVENESS, _ORDERING, Fault("stall_all", start=0.5)),
    (DrillSort.LIVENESS, ProbeName.DEAD_LETTER, Fault("dead_letter_stalls_keys", count=1)),
    (DrillSort.LIVENESS, ProbeName.EXACTLY_ONCE, Fault("break_stalls_keys", key=_HELD)),
    (DrillSort.LIVENESS, _REDELIVERY, Fault("stall_run", key=_REDELIVERED)),
    (DrillSort.LIVENESS, _REDELIVERY, Fault("never_redeliver", key=_REDELIVERED)),
    (DrillSort.AVAILABILITY, _ORDERING, Fault("publish_unavailable", key=_SOME, probability=0.3)),
    (DrillSort.AVAILABILITY, _ORDERING, Fault("publish_slow", key=_SOME, probability=0.3)),
    (DrillSort.AVAILABILITY, _ORDERING, Fault("slow_delivery", key=_SOME)),
    (DrillSort.AVAILABILITY, _PUSH, Fault("throttle_push", key=_PUSHED)),
    (DrillSort.AVAILABILITY, _ISOLATION, Fault("head_of_line", key="isolation-*")),
    (DrillSort.AVAILABILITY, ProbeName.SCALE, Fault("few_keys_at_once", key="scale-*")),
    (DrillSort.AVAILABILITY, _ISOLATION, Fault("sibling_delays", key="isolation-*")),
    (DrillSort.AVAILABILITY, _CONTROL_PLANE, Fault("admin_slow", count=1)),
    (DrillSort.AVAILABILITY, _CONTROL_PLANE, Fault("admin_error", probability=0.3)),
    (DrillSort.AVAILABILITY, _CONTROL_PLANE, Fault("slow_creation", key="control_plane-*")),
    (DrillSort.BENIGN, _ORDERING, Fault("reply_lost", key=_SOME, probability=0.3)),
    (DrillSort.BENIGN, _ORDERING, Fault("zombie_publish", key=_SOME, probability=0.3)),
    (DrillSort.BENIGN, _ORDERING, Fault("partial_batch", key=_SOME, probability=0.3)),
    (DrillSort.BENIGN, _ORDERING, Fault("stream_break", key=_SOME, count=5)),
    (DrillSort.BENIGN, _ORDERING, Fault("jitter", key=_SOME)),
    (DrillSort.BENIGN, _ORDERING, Fault("ack_lost", key=_SOME, probability=0.2)),
    (DrillSort.BENIGN, _ORDERING, Fault("duplicate_publish_same_id", key=_SOME, probability=0.3)),
    (DrillSort.BENIGN, _ORDERING, Fault("early_redelivery", key=_SOME, count=5)),
    (DrillSort.BENIGN, _ORDERING, Fault("forget_holds", key=_SOME, count=5)),
    (DrillSort.BENIGN, _REDELIVERY, Fault("lease_short", key=_REDELIVERED, count=5)),
    (DrillSort.BENIGN, _ORDERING, Fault("half_open_stream", key=_SOME, count=3)),
    (DrillSort.BENIGN, _ORDERING, Fault("slow_ack_extension", key=_SOME, probability=0.3)),
    (DrillSort.BENIGN, _PULL, Fault("lost_pull_answer", key=_PULLED, count=3)),
    (DrillSort.BENIGN, _REDELIVERY, Fault("lost_tail", key=_REDELIVERED)),
    (DrillSort.BENIGN, ProbeName.HOT_KEY, Fault("throttle_key", key="hot-*")),
    (DrillSort.BENIGN, _REDELIVERY, Fault("backoff_ignored", key="redelivery-*")),
    (DrillSort.BENIGN, ProbeName.DEAD_LETTER, Fault("dead_letter_late", key="dead-letter-*")),
)

PLANS: Final = MappingProxyType(
    {fault.name: DrillPlan(fault.name, sort, probe, fault) for sort, probe, fault in _FAULTS}
    | {CONTROL: DrillPlan(CONTROL, DrillSort.CONTROL, _ORDERING, None)}
)
"""All drills by name, the most significant of each sort first."""


def representatives() -> tuple[DrillPlan, ...]:
    """Return one drill of each sort of violation, a benign one, and the control."""
    first: dict[DrillSort, DrillPlan] = {}
    for plan in PLANS.values():
        first.setdefault(plan.sort, plan)
    return tuple(plan for sort, plan in first.items() if sort is not DrillSort.AVAILABILITY)


def chosen(names: Iterable[str]) -> Sequence[DrillPlan]:
    """Return the named drills, each once; without a name, `representatives`. Raises KeyError for an unknown name."""
    return [PLANS[name] for name in dict.fromkeys(names)] or representatives()
