"""Lifetimes of the prober's topics and subscriptions, and the selection of resources to delete.

Their names state the prober, the creation time and whether they last. The sweep of a prober and the clean-up of a project delete unused
resources.

A prober's resource has the prober's label and a name in this format. Only a status store knows which probers are live. Its silence proves
nothing: a prober whose store is down continues probing. So resources younger than a day count as used unless a store was queried, and
resources of a live prober count as used at any age.
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
"""Age at which a resource is unused, in seconds: it was renewed long before."""
LASTING: Final = "lasting"
"""Ending of the names of topics and subscriptions that stay for days, before the variable part."""


class Lifetime(NamedTuple):
    """Ages at which topics and subscriptions are renewed or count as unused, in seconds since their creation.

    They are renewed after `renewed_after_s` if no message is pending, after `renewed_at_latest_s` in any case. `stays`: they are not
    deleted when the process ends, and not recreated while it runs.
    """

    renewed_after_s: float
    renewed_at_latest_s: float
    abandoned_after_s: float
    stays: bool = False


USUAL: Final = Lifetime(RENEWED_AFTER_S, RENEWED_AT_LATEST_S, ABANDONED_AFTER_S)
LONG: Final = Lifetime(7 * DAY_S, 8 * DAY_S, 10 * DAY_S, stays=True)
"""Lifetime of lasting resources. A subscription keeps messages for seven days, so no message waits for longer."""

_NAME: Final = re.compile(rf"projects/[^/]+/(?:topics|subscriptions)/okp-.*{CHANGING}")
_LASTING_NAME: Final = re.compile(rf"{_NAME.pattern.removesuffix(CHANGING)}-{LASTING}{CHANGING}")
_SHORT_NAME: Final = re.compile(rf"(okp-.*){CHANGING}")


def names_in_metrics(name: str, subscriptions: Iterable[SubscriptionPlan]) -> tuple[str, ...]:
    """Return the names of verified subscriptions in metrics, without their variable part.

    `name`: common part of all names after `okp-`.
    """
    return tuple("-".join(filter(None, ("okp", name, plan.name))) for plan in subscriptions if plan.is_verified)


def steady_name(name: str) -> str | None:
    """Return the short name of a prober's topic or subscription without its variable part, as in metrics; None for any other name."""
    found = _SHORT_NAME.fullmatch(name)
    return None if found is None else found[1]


def made_at(name: str) -> float | None:
    """Return the creation time of a prober's topic or subscription by its full name, in seconds since 1970; None for any other name."""
    found = _NAME.fullmatch(name)
    return None if found is None else float(int(found[1], 16))


def is_abandoned(name: str, now: float) -> bool:
    """Return whether a prober's resource is so old that no prober can be using it any more."""
    made = made_at(name)
    lifetime = LONG if _LASTING_NAME.fullmatch(name) else USUAL
    return made is not None and now - made > lifetime.abandoned_after_s


# --- the resources of probers that may be deleted -----------------------------------------------------------------------------


def subscriptions_first(name: str) -> bool:
    """Return the sort key of the order of deletion: subscriptions before topics.

    A topic without subscriptions is useless, but a subscription without its topic is still recognizable as a probe's.
    """
    return "/topics/" in name


class Swept(NamedTuple):
    """Numbers of deleted resources, and of resources whose deletion failed."""

    deleted: int
    left: int


async def sweep(admin: Admin, project: str, now: float) -> Swept:
    """Delete resources of probers that are long gone from a project, `projects/p`.

    Raises BrokerError if the project cannot be listed.
    """
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
    """Reason to keep a labelled resource."""

    NOT_NAMED = "not named as probers name theirs"
    YOUNG = "too young: see --older-than"
    USED = "a living prober uses it: stop the prober, or see --in-use"
    MAY_BE_USED = "younger than a day (ten if it lasts), and no status store says which probers live: see --in-use"


@dataclass(frozen=True, slots=True)
class CleanupBounds:
    """Limits of a clean-up.

    older_than_s  smallest age of deleted resources, in seconds.
    living        names of the live probers; None: unknown.
    in_use        delete resources that probers use, or may use, too.
    """

    older_than_s: float
    living: Collection[str] | None
    in_use: bool = False


def reason_to_keep(name: str, now: float, bounds: CleanupBounds) -> Kept | None:
    """Return the reason to keep a labelled topic or subscription, by its full name; None to delete it. `now`: seconds since 1970."""
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
    """Return subscriptions before topics, each by name."""
    return sorted(names, key=lambda name: (subscriptions_first(name), name))


def _made_by(name: str, probers: Iterable[str]) -> bool:
    """Return whether one of the probers may have created a resource.

    A prober `a` seems to have created the resources of `a-b`, too: too many rather than too few are kept.
    """
    short = name.rpartition("/")[2]
    return any(short.startswith(f"okp-{prober}-") for prober in probers)
