"""Topics and subscriptions that stay for days: who may delete them when."""

from __future__ import annotations

import asyncio

from prober.probes.resources import OURS
from prober.runs.lifetimes import CleanupBounds, Kept, reason_to_keep, sweep
from tests.unit.runs.test_resources import DAY_S, NOW, Service, name_of


def test_what_lasts_is_swept_when_nobody_can_be_using_it_any_more() -> None:
    service = Service({name_of(DAY_S, lasting=True): OURS, name_of(11 * DAY_S, "gone", lasting=True): OURS})
    assert asyncio.run(sweep(service, "projects/p", NOW)) == (1, 0)
    assert set(service.there) == {name_of(DAY_S, lasting=True)}
    unasked = CleanupBounds(DAY_S, living=None)
    assert reason_to_keep(name_of(9 * DAY_S, lasting=True), NOW, unasked) is Kept.MAY_BE_USED
    assert reason_to_keep(name_of(11 * DAY_S, lasting=True), NOW, unasked) is None
    assert reason_to_keep(name_of(2 * DAY_S, lasting=True), NOW, CleanupBounds(DAY_S, living=())) is None
