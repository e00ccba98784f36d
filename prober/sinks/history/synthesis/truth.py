"""What was planted in a synthetic history, and what a direct count of it gives: `truth.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from prober.core.findings import Kind, Status
from prober.sinks.history.synthesis.plan import (
    ZIPF_EXPONENT,
    KeyTraffic,
    Recipe,
    SyntheticTarget,
    Window,
    targets,
)
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, SliCounts


@dataclass(slots=True)
class Truth:
    """Collected while the history is made."""

    recipe: Recipe
    events: int = 0
    runs: int = 0
    hot_keys: list[dict[str, object]] = field(default_factory=list)
    windows: list[dict[str, object]] = field(default_factory=list)
    violations: list[dict[str, object]] = field(default_factory=list)
    tallies: dict[tuple[str, str, Indicator], SliCounts] = field(default_factory=dict)

    def add_hot_key(self, target: SyntheticTarget, day: int, key: KeyTraffic, messages: int) -> None:
        """A key of the traffic that is hot on that day, and how many messages it had."""
        per_s = messages / key.until_s
        self.hot_keys.append(
            {
                "date": self.recipe.date(day),
                "target": target.name,
                "topic": target.topic("hot_key"),
                "subscription": target.subscription("hot_key"),
                "key": key.name,
                "class": key.hot,
                "until": _moment(self.recipe.start + day * DAY_S + key.until_s),
                "share": key.share,
                "messages": messages,
                "messages_per_s": per_s,
                "bytes_per_s": per_s * key.size,
            }
        )

    def add_window(self, target: SyntheticTarget, day: int, window: Window) -> None:
        """A time in which something went wrong."""
        midnight = self.recipe.start + day * DAY_S
        self.windows.append(
            {
                "target": target.name,
                "trouble": window.trouble,
                "since": _moment(midnight + window.begin_s),
                "until": _moment(midnight + window.end_s),
                "amount": window.amount,
            }
        )

    def add_violation(
        self, target: SyntheticTarget, run_id: str, subscription: str, key: str, at: float, found: Iterable[tuple[Kind, Status]]
    ) -> None:
        """What has to be found on a key in a run that begins `at`; nothing else may be found there but information."""
        findings = [{"kind": kind, "status": status} for kind, status in sorted(found)]
        about = {"target": target.name, "run_id": run_id, "subscription": subscription, "key": key, "run_began": _moment(at)}
        self.violations.append({**about, "findings": findings})

    def count(self, target: SyntheticTarget, day: int, checks: Mapping[Indicator, SliCounts]) -> None:
        """Adds the checks of a run that ended on that day."""
        for indicator, tally in checks.items():
            name = target.name, self.recipe.date(day), indicator
            self.tallies[name] = self.tallies.get(name, SliCounts()) + tally

    def as_json(self) -> bytes:
        """The file."""
        recipe = self.recipe
        zipf = [one for one in targets(recipe) if one.number == 1]
        content: dict[str, Any] = {
            "recipe": asdict(recipe) | {"start": _moment(recipe.start)},
            "events": self.events,
            "runs": self.runs,
            "quiet_dates": [recipe.date(day) for day in range(recipe.days) if recipe.is_quiet(day)],
            "hot_keys": self.hot_keys,
            "zipf": [{"target": one.name, "topic": one.topic("hot_key"), "exponent": ZIPF_EXPONENT} for one in zipf],
            "windows": self.windows,
            "violations": self.violations,
            "tallies": [
                {"target": target, "date": date, "indicator": indicator, **asdict(tally)}
                for (target, date, indicator), tally in sorted(self.tallies.items())
            ],
        }
        return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
