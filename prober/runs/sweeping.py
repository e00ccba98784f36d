"""The resources of probers that may be deleted.

Callers are the sweep of a prober, and the clean-up of a project.

Ours is what carries our label and has a name as probers give it. The name says which prober made it and when. Whether a prober still uses
it is known only where a status store says which probers live. Silence proves nothing: a prober whose store is down goes on probing. So
what is younger than a day counts as used unless a store was asked, and what a living prober made counts as used at any age.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from prober.brokers.base import Admin
from prober.errors import BrokerError
from prober.probes.resources import OURS
from prober.runs.lifetimes import is_abandoned, made_at


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
