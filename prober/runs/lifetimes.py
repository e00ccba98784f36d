"""How long topics and subscriptions of ours live, and what their names say: which prober made them, when, and whether they stay.

Callers are the sweep of a prober, and the clean-up of a project.

Ours is what carries our label and has a name as probers give it. The name says which prober made it and when. Whether a prober still uses
it is known only where a status store says which probers live. Silence proves nothing: a prober whose store is down goes on probing. So
what is younger than a day counts as used unless a store was asked, and what a living prober made counts as used at any age.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from prober.brokers.base import Admin
from prober.errors import BrokerError
from prober.probes.experiment import SubscriptionPlan
from prober.probes.resources import OURS
from prober.runs.probe_instance import CHANGING
from prober.slo.objectives import DAY_S

RENEWED_AFTER_S: Final = 6 * 3600.0
RENEWED_AT_LATEST_S: Final = 18 * 3600.0
ABANDONED_AFTER_S: Final = 24 * 3600.0
"""A resource of this age is unused: it was renewed long before."""
LASTING: Final = "lasting"
"""What the names of topics and subscriptions end with, before the part that changes, that stay for days."""


class Lifetime(NamedTuple):
    """Ages at which topics and subscriptions are renewed or count as unused.

    They are renewed earlier if nothing is pending there, and later in any case.

    Times in seconds since they were made. `stays`: they are not deleted when the process ends, nor made again while it goes on.
    """

    renewed_after_s: float
    renewed_at_latest_s: float
    abandoned_after_s: float
    stays: bool = False


USUAL: Final = Lifetime(RENEWED_AFTER_S, RENEWED_AT_LATEST_S, ABANDONED_AFTER_S)
LONG: Final = Lifetime(7 * DAY_S, 8 * DAY_S, 10 * DAY_S, stays=True)
"""A subscription keeps messages for seven days, so nothing waits for longer."""

_NAME: Final = re.compile(rf"projects/[^/]+/(?:topics|subscriptions)/okp-.*{CHANGING}")
_LASTING_NAME: Final = re.compile(rf"{_NAME.pattern.removesuffix(CHANGING)}-{LASTING}{CHANGING}")
_SHORT_NAME: Final = re.compile(rf"(okp-.*){CHANGING}")


def names_in_metrics(name: str, subscriptions: Iterable[SubscriptionPlan]) -> tuple[str, ...]:
    """What verified subscriptions are called in metrics: their names without the part that changes. `name`: what follows `okp-` in all."""
    return tuple("-".join(filter(None, ("okp", name, plan.name))) for plan in subscriptions if plan.is_verified)


def steady_name(name: str) -> str | None:
    """A short name of a topic or subscription of ours without the part that changes, as metrics have it; None for any other name."""
    found = _SHORT_NAME.fullmatch(name)
    return None if found is None else found[1]


def made_at(name: str) -> float | None:
    """When a topic or subscription of ours was made, by its full name, in seconds since 1970; None for a name that is not ours."""
    found = _NAME.fullmatch(name)
    return None if found is None else float(int(found[1], 16))


def is_abandoned(name: str, now: float) -> bool:
    """Whether a resource of ours is so old that no prober can be using it any more."""
    made = made_at(name)
    lifetime = LONG if _LASTING_NAME.fullmatch(name) else USUAL
    return made is not None and now - made > lifetime.abandoned_after_s


# --- the resources of probers that may be deleted -----------------------------------------------------------------------------


def subscriptions_first(name: str) -> bool:
    """The order of deletion: subscriptions first.

    A topic without subscriptions is of no use, but a subscription without its topic still looks like a probe's.
    """
    return "/topics/" in name


class Swept(NamedTuple):
    """How much was deleted, and how much is still there because it could not be."""

    deleted: int
    left: int


async def sweep(admin: Admin, project: str, now: float) -> Swept:
    """Deletes what probers that are long gone have left in a project, `projects/p`. Raises BrokerError if it cannot be listed."""
    names = [name for name in await admin.owned(project, OURS) if is_abandoned(name, now)]
    names.sort(key=subscriptions_first)
    deleted = left = 0
    for name in names:
        try:
            deleted += await admin.delete(name, OURS)
        except BrokerError:
            left += 1
    return Swept(deleted, left)


class Kept(StrEnum):
    """Why something that carries our label is left."""

    NOT_NAMED = "not named as probers name theirs"
    YOUNG = "too young: see --older-than"
    USED = "a living prober uses it: stop the prober, or see --in-use"
    MAY_BE_USED = "younger than a day (ten if it lasts), and no status store says which probers live: see --in-use"


@dataclass(frozen=True, slots=True)
class CleanupBounds:
    """How far a clean-up goes.

    older_than_s  what is younger stays.
    living        the probers that live, by name; None: unknown.
    in_use        delete what probers use, or may use, too.
    """

    older_than_s: float
    living: Collection[str] | None
    in_use: bool = False


def reason_to_keep(name: str, now: float, bounds: CleanupBounds) -> Kept | None:
    """Why a topic or subscription with our label stays, by its full name; None if it goes. `now` is in seconds since 1970."""
    began = made_at(name)
    if began is None:
        return Kept.NOT_NAMED
    if now - began < bounds.older_than_s:
        return Kept.YOUNG
    if bounds.in_use:
        return None
    if bounds.living is None:
        return None if is_abandoned(name, now) else Kept.MAY_BE_USED
    return Kept.USED if _made_by(name, bounds.living) else None


def in_order_of_deletion(names: Iterable[str]) -> list[str]:
    """Subscriptions before topics, each by name."""
    return sorted(names, key=lambda name: (subscriptions_first(name), name))


def _made_by(name: str, probers: Iterable[str]) -> bool:
    """Whether one of these may have made it. A prober `a` may also seem to have made what `a-b` made: rather too much is kept."""
    short = name.rpartition("/")[2]
    return any(short.startswith(f"okp-{prober}-") for prober in probers)
