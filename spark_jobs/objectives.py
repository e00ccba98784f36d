"""The objectives that the jobs judge by: a JSON file that the service's configuration writes, or else the defaults.

The file is a list of objects with `name`, `indicator`, `objective` (the share that is to be good), `window_s`, `threshold_s`
(null where the indicator needs none) and `labels`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from prober.slo.indicators import MEANINGS, Indicator
from prober.slo.objectives import DAY_S, Objective
from spark_jobs.errors import JobError

PERIOD_S: Final = 30 * DAY_S

DEFAULTS: Final = (
    Objective("order", Indicator.ORDER, 0.9999, PERIOD_S),
    Objective("redelivery", Indicator.REDELIVERY, 0.999, PERIOD_S),
    Objective("affinity", Indicator.AFFINITY, 0.99, PERIOD_S),
    Objective("completeness", Indicator.COMPLETENESS, 0.9999, PERIOD_S),
    Objective("publish_availability", Indicator.PUBLISH_AVAILABILITY, 0.9995, PERIOD_S),
    Objective("publish_latency", Indicator.PUBLISH_LATENCY, 0.99, PERIOD_S, 0.5),
    Objective("end_to_end_latency", Indicator.END_TO_END_LATENCY, 0.99, PERIOD_S, 1.0),
    Objective("oldest_unacked_message_age", Indicator.OLDEST_UNACKED_MESSAGE_AGE, 0.99, PERIOD_S, 60.0),
    Objective("stalled_keys", Indicator.STALLED_KEYS, 0.999, PERIOD_S),
)
"""Those of the service when its configuration says nothing."""

NOT_RECORDED: Final = frozenset({Indicator.CONTROL_PLANE_LATENCY})
"""What the history says nothing about."""

_KEYS: Final = {"name", "indicator", "objective", "window_s", "threshold_s", "labels"}


def read_objectives(path: str | None) -> tuple[Objective, ...]:
    """The objectives of a file, those of the service's defaults without one. Raises `JobError` for what is not such a file."""
    if path is None:
        return DEFAULTS
    try:
        objectives = tuple(_objective(one) for one in json.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise JobError(f"{path}: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise JobError(f"{path} is not a list of objectives: {wrong}") from wrong
    if len({objective.name for objective in objectives}) < len(objectives):
        raise JobError(f"{path} has two objectives of one name; each needs its own")
    return objectives


def written(objectives: Iterable[Objective]) -> str:
    """The text of a file with these objectives."""
    rows = [
        {
            "name": one.name,
            "indicator": one.indicator.value,
            "objective": one.target,
            "window_s": one.window_s,
            "threshold_s": one.threshold_s,
            "labels": dict(one.labels),
        }
        for one in objectives
    ]
    return json.dumps(rows, indent=2, sort_keys=True)


def _objective(row: Mapping[str, Any]) -> Objective:
    unknown = set(row) - _KEYS
    if unknown:
        raise ValueError(f"it has {sorted(unknown)[0]!r}, which is none of {', '.join(sorted(_KEYS))}")
    indicator = Indicator(row["indicator"])
    threshold_s = row.get("threshold_s") if MEANINGS[indicator].thresholded else None
    return Objective(row["name"], indicator, row["objective"], row["window_s"], threshold_s, row.get("labels") or {})
