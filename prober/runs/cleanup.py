"""What of our own in a project may be deleted: the rule, without a network or a clock.

Ours is what carries our label and has a name as probers give it. The name says which prober made it and when. Whether a prober still
uses it is known only where a status store says which probers live. Silence proves nothing: a prober whose store is down goes on probing.
So what is younger than a day counts as used unless a store was asked, and what a living prober made counts as used at any age.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from prober.runs.resources import ABANDONED_AFTER_S, made_at, subscriptions_first


class Kept(StrEnum):
    """Why something that carries our label is left."""

    NOT_NAMED = "not named as probers name theirs"
    YOUNG = "too young: see --older-than"
    USED = "a living prober uses it: stop the prober, or see --in-use"
    MAY_BE_USED = "younger than a day, and no status store says which probers live: see --in-use"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a clean-up goes.

    older_than_s  what is younger stays.
    living        the probers that live, by name; None: nobody could be asked.
    in_use        delete what probers use, or may use, too.
    """

    older_than_s: float
    living: Collection[str] | None
    in_use: bool = False


def reason_to_keep(name: str, now: float, bounds: Bounds) -> Kept | None:
    """Why a topic or subscription with our label stays, by its full name; None if it goes. `now` is in seconds since 1970."""
    began = made_at(name)
    if began is None:
        return Kept.NOT_NAMED
    if now - began < bounds.older_than_s:
        return Kept.YOUNG
    if bounds.in_use:
        return None
    if bounds.living is None:
        return Kept.MAY_BE_USED if now - began < ABANDONED_AFTER_S else None
    return Kept.USED if _made_by(name, bounds.living) else None


def in_order_of_deletion(names: Iterable[str]) -> list[str]:
    """Subscriptions before topics, each by name."""
    return sorted(names, key=lambda name: (subscriptions_first(name), name))


def _made_by(name: str, probers: Iterable[str]) -> bool:
    """Whether one of these may have made it. A prober `a` may also seem to have made what `a-b` made: rather too much is kept."""
    short = name.rpartition("/")[2]
    return any(short.startswith(f"okp-{prober}-") for prober in probers)
