"""The objectives of a configuration, for people and for the nightly jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable

from prober.slo.indicators import MEANINGS
from prober.slo.objectives import DAY_S, Objective


def as_text(objectives: Iterable[Objective]) -> str:
    """Two lines for each: what is promised, and when a counted thing is bad."""
    return "\n".join(f"{one.name}\n    {_promise(one)}" for one in objectives)


def as_json(objectives: Iterable[Objective]) -> str:
    """A list of objects: name, indicator, objective, window_s, threshold_s (null without one), labels."""
    rows = [
        {
            "name": one.name,
            "indicator": one.indicator,
            "objective": one.target,
            "window_s": one.window_s,
            "threshold_s": one.threshold_s,
            "labels": dict(one.labels),
        }
        for one in objectives
    ]
    return json.dumps(rows, indent=2)


def _promise(one: Objective) -> str:
    meaning = MEANINGS[one.indicator]
    limit = f" than {one.threshold_s:g} s" if one.threshold_s is not None else ""
    share = f"{one.target * 100:.8g} % over {one.window_s / DAY_S:g} d"
    return f"{share}; counts each {meaning.unit}, which is bad if {meaning.bad}{limit}"
