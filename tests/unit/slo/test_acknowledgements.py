"""Time to acknowledge: within five minutes is good, later is bad, what ended before is neither."""

from __future__ import annotations

import pytest

from prober.slo.acknowledgements import WITHIN_S, Acknowledgements, Raised, Timeliness

BEYOND_S = WITHIN_S + 1.0


@pytest.mark.parametrize(
    ("acknowledged_at", "closed_at", "now", "timeliness"),
    [
        (WITHIN_S, None, 900.0, Timeliness.IN_TIME),
        (-3.0, None, 900.0, Timeliness.IN_TIME),
        (WITHIN_S, 60.0, 900.0, Timeliness.IN_TIME),
        (BEYOND_S, None, 900.0, Timeliness.LATE),
        (None, None, BEYOND_S, Timeliness.LATE),
        (None, BEYOND_S, 900.0, Timeliness.LATE),
        (BEYOND_S, BEYOND_S, 900.0, Timeliness.LATE),
        (None, None, WITHIN_S, Timeliness.PENDING),
        (None, WITHIN_S, 900.0, Timeliness.ENDED),
        (BEYOND_S, WITHIN_S, 900.0, Timeliness.ENDED),
        (None, -60.0, 900.0, Timeliness.ENDED),
    ],
)
def test_an_incident_raised_at_zero(
    acknowledged_at: float | None, closed_at: float | None, now: float, timeliness: Timeliness
) -> None:
    assert Raised(0.0, acknowledged_at, closed_at).timeliness(now) is timeliness


def test_the_summary_leaves_out_what_is_undecided() -> None:
    acknowledged = [Raised(0.0, at, None) for at in (60.0, 120.0, 900.0)]
    raised = [*acknowledged, Raised(0.0, None, 10.0), Raised(950.0, None, None)]
    found = Acknowledgements.of(raised, now=1000.0, left_out=2)
    assert found.counts == {Timeliness.IN_TIME: 2, Timeliness.LATE: 1, Timeliness.PENDING: 1, Timeliness.ENDED: 1}
    assert (found.decided, found.ratio, found.median_s, found.left_out) == (3, 2 / 3, 120.0, 2)


def test_without_incidents_nothing_is_known() -> None:
    found = Acknowledgements.of((), now=1000.0)
    assert (found.decided, found.ratio, found.median_s) == (0, None, None)
