"""From which moment on the order of sends is certain: what was sent before it cannot have been sent after anything else (section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

from prober.checker.facts import Delivery, surely_before
from prober.core.rules import Rules


def has_one_order(rules: Rules, window: Sequence[Delivery]) -> bool:
    """Whether each delivery of a window was sent before the next one in every legal order."""
    return all(surely_before(rules, one, other) for one, other in pairwise(window))


def certain_count(rules: Rules, window: Sequence[Delivery], horizon_t: float) -> int:
    """How many deliveries of a window were certainly sent before the rest, and before all that may still come.

    window      in the order in which they are taken to have been sent.
    horizon_t   what comes from now on was sent after it.
    """
    count = 0
    latest: dict[str, float] = {}
    bounds = _bounds_behind(window)
    for index, one in enumerate(window):
        if one.t >= horizon_t:
            break
        latest[one.session.name] = max(latest.get(one.session.name, -inf), one.t)
        (first_t, session), second_t = bounds[index + 1]
        apart = all(t + rules.clock_error_s < (second_t if name == session else first_t) for name, t in latest.items())
        if apart and _is_last(rules, window, index):
            count = index + 1
    return count


def _is_last(rules: Rules, window: Sequence[Delivery], index: int) -> bool:
    """Whether a delivery was certainly sent after all those before it: only then the state behind it is the same in every order."""
    return all(surely_before(rules, other, window[index]) for other in window[:index])


def _bounds_behind(window: Sequence[Delivery]) -> list[tuple[tuple[float, str], float]]:
    """For each place in the window: the earliest send behind it, its session, and the earliest of any other session."""
    bounds: list[tuple[tuple[float, str], float]] = [((inf, ""), inf)]
    for one in reversed(window):
        (first_t, session), second_t = bounds[-1]
        sent_t, name = one.earliest_t, one.session.name
        if name == session:
            bounds.append(((min(first_t, sent_t), name), second_t))
        elif sent_t < first_t:
            bounds.append(((sent_t, name), first_t))
        else:
            bounds.append(((first_t, session), min(second_t, sent_t)))
    bounds.reverse()
    return bounds
