"""What became of the messages of a few keys, from all that the files say about them: what waited when, and who received it.

These are the questions that no file can answer alone, since a message may be published in one and acknowledged in another. Each function
has everything about its messages at once (`spark_jobs.parcels`), in any order, and answers with few rows, which Spark adds up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spark_jobs.history import MINUTE_US
from spark_jobs.parcels import starts_of
from spark_jobs.scan import NEVER_US, Ints

Columns: TypeAlias = Mapping[str, NDArray[Any]]

PUBLISHED, ACKED, OBSERVED = 0, 1, 2
"""What happened to a message: it was confirmed, it was acknowledged, or it was received and others had published it."""
UNENDED: Final = -1
STRETCH_BITS: Final = 18
"""Deliveries whose numbers differ in these bits only are put in order together."""


class _Waits(NamedTuple):
    """Messages of candidates that came to wait in a minute and did not any more at the end of another (`gone`), and since when."""

    candidate: Ints
    came: Ints
    gone: Ints
    since_us: Ints


def waits(said: Columns) -> list[dict[str, Any]]:
    """Columns `candidate`, `minute`, and `delta`, by how many more messages wait at its end; or `since_us`, since when the oldest of them.

    said   candidate; message, the same number for the same message; kind; time_us; and `end`, the minute from which on nothing of its
           run waits, `UNENDED` of a run that was cut short.
    """
    order = np.argsort(said["message"])
    starts = starts_of(said["message"][order])
    confirmed, acked = said["kind"][order] != ACKED, said["kind"][order] == ACKED
    time_us, first = said["time_us"][order], order[starts]
    since_us = np.minimum.reduceat(np.where(confirmed, time_us, NEVER_US), starts)
    until_us = np.minimum.reduceat(np.where(acked, time_us, NEVER_US), starts)
    end = said["end"][first].astype(np.int64)
    known = (since_us != NEVER_US) & (end != UNENDED)
    if not known.any():
        return []
    came = since_us[known] // MINUTE_US
    gone = np.where(until_us[known] == NEVER_US, end[known], until_us[known] // MINUTE_US)
    found = _Waits(said["candidate"][first][known].astype(np.int64), came, np.maximum(came, gone), since_us[known])
    return [_deltas(found), _oldest(found)]


def _deltas(found: _Waits) -> dict[str, Any]:
    steps = np.concatenate((np.ones(len(found.came), np.int64), np.full(len(found.gone), -1)))
    places = np.stack((np.tile(found.candidate, 2), np.concatenate((found.came, found.gone))))
    candidate, minute, sums = _summed(places, steps)
    return {"candidate": candidate, "minute": minute, "delta": sums}


def _oldest(found: _Waits) -> dict[str, Any]:
    """A message is the oldest from when all earlier ones are gone until it is gone itself, so no minute comes twice."""
    lasting = found.came < found.gone
    candidate, came, gone, since_us = (values[lasting] for values in found)
    base = int(came.min()) if len(came) else 0
    span = int(gone.max()) - base + 1 if len(gone) else 1
    order = np.lexsort((since_us, candidate))
    first = candidate[order] * span + came[order] - base  # one line of time for all, with a stretch for each candidate
    last = candidate[order] * span + gone[order] - base
    first[1:] = np.maximum(first[1:], np.maximum.accumulate(last)[:-1])
    lengths = np.maximum(last - first, 0)
    ends = np.cumsum(lengths)
    place = np.repeat(first - (ends - lengths), lengths) + np.arange(lengths.sum())
    return {"candidate": place // span, "minute": place % span + base, "since_us": np.repeat(since_us[order], lengths)}


def others_publishes(said: Columns) -> dict[str, Any]:
    """Of what others published, the first delivery stands for the publish: columns `candidate`, `minute`, `publishes`, `bytes`.

    said   as for `waits`, and `bytes`.
    """
    observed = np.flatnonzero(said["kind"] == OBSERVED)
    order = observed[np.lexsort((said["time_us"][observed], said["message"][observed]))]
    first = order[starts_of(said["message"][order])]
    places = np.stack((said["candidate"][first].astype(np.int64), said["time_us"][first] // MINUTE_US))
    candidate, minute, sizes = _summed(places, said["bytes"][first])
    return {
        "candidate": candidate,
        "minute": minute,
        "publishes": _summed(places, np.ones(len(first), np.int64))[2],
        "bytes": sizes,
    }


def stretches(said: Columns) -> dict[str, Any]:
    """Where deliveries, in their order, come to a session, and how many follow: `candidate`, `run`, `number`, `session`, `deliveries`.

    said   candidate, run, number, session: all deliveries whose numbers differ only in the last `STRETCH_BITS`.
    """
    order = np.lexsort((said["number"], said["run"], said["candidate"]))
    sorted_rows = {name: values[order] for name, values in said.items()}
    stretch = sorted_rows["number"] >> STRETCH_BITS
    starts = starts_of(sorted_rows["candidate"], sorted_rows["run"], sorted_rows["session"], stretch)
    columns: dict[str, Any] = {name: values[starts] for name, values in sorted_rows.items()}
    return columns | {"deliveries": np.diff(np.append(starts, len(order)))}


def first_deliveries(said: Columns) -> dict[str, Any]:
    """How many different messages were received: columns `candidate`, `first_deliveries`. `said` has candidate and message."""
    order = np.argsort(said["message"])
    first = order[starts_of(said["message"][order])]
    candidate, count = np.unique(said["candidate"][first], return_counts=True)
    return {"candidate": candidate, "first_deliveries": count}


def _summed(places: Ints, values: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each pair its sum."""
    order = np.lexsort(places[::-1])
    if not len(order):
        return places[0], places[1], values
    starts = starts_of(places[0][order], places[1][order])
    return places[0][order[starts]], places[1][order[starts]], np.add.reduceat(values[order], starts)
