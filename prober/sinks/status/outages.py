"""Since when sites cannot be reached, in one query for all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, and_, func, select

from prober.runs.site import SiteKey
from prober.sinks.status import tables
from prober.sinks.status.rows import text_of
from prober.slo.indicators import Indicator

_BAD = 1
"""Where the bad ones stand among good, bad and undecided."""


def outages_of(run_ids: Collection[str]) -> Select[Any]:
    """One row for the site of each of these runs, which could not reach it and are the newest there.

    `since`: the end of the first run that could not either; `runs`: how many could not since; `unsent`: publishes that were not sent.
    """
    runs, names = tables.runs.c, SiteKey._fields
    site = select(*(runs[name] for name in names)).where(runs.run_id.in_(map(text_of, run_ids))).distinct().cte("site")
    reached = (
        select(runs.started_at)
        .where(*(runs[name] == site.c[name] for name in names), runs.unreachable.is_(False))
        .order_by(runs.started_at.desc(), runs.run_id.desc())
        .limit(1)
    )
    since = select(site, func.coalesce(reached.scalar_subquery(), 0.0).label("reached_at")).cte("since")
    same = and_(*(runs[name] == since.c[name] for name in names), runs.started_at > since.c.reached_at)
    unsent = func.coalesce(runs.checks[(Indicator.PUBLISH_AVAILABILITY.value, _BAD)].as_integer(), 0)
    return (
        select(
            *(since.c[name] for name in names),
            func.min(runs.ended_at).label("since"),
            func.count().label("runs"),
            func.sum(unsent).label("unsent"),
        )
        .select_from(since.join(tables.runs, same))
        .group_by(*(since.c[name] for name in names))
    )
