"""Smallest violation rate that is found, from the opportunities of a run.

`prober.core.coverage` counts the opportunities.

If the service violates a guarantee at each opportunity with probability p, independently, n opportunities find a violation with probability
1 - (1 - p)^n. An intermittent fault is found less often.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pow
from typing import Final

from prober.core.coverage import OPPORTUNITIES
from prober.slo.objectives import HOUR_S

SURE: Final = 0.95


def share_found(opportunities: float, sure: float = SURE) -> float:
    """Return the smallest share of violations that is found with probability `sure`."""
    return 1.0 - pow(1.0 - sure, 1.0 / opportunities) if opportunities else 1.0


def one_in(share: float) -> str:
    """Return a share in words, to two digits: `1 in 150,000`."""
    return f"1 in {int(float(f'{1.0 / share:.1e}')):,}"


def power_as_text(planned: Mapping[str, int], period_s: float) -> str:
    """Return the opportunities of a run by kind, and the fault rates that a run and an hour find."""
    lines = []
    for counter in (name for name in OPPORTUNITIES if name in planned):
        opportunities = planned[counter]
        hourly = opportunities * HOUR_S / period_s
        lines.append(
            f"    {opportunities:,} opportunities a run, {hourly:,.0f} an hour: {OPPORTUNITIES[counter]} ({counter})\n"
            f"        {SURE:.0%} sure to find a fault in {one_in(share_found(opportunities))} of them by one run, "
            f"in {one_in(share_found(hourly))} within an hour\n"
        )
    return "".join(lines)
