"""How long topics and subscriptions of ours live, and what their names say: which prober made them, when, and whether they stay."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from prober.probes.experiment import SubscriptionPlan
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
