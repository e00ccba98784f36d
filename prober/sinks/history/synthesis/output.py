"""What is left of a synthetic history: its files, as the writer of a real one would have made them, and `truth.json`, which lists what was
planted and what a direct count of it gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

import orjson
import pyarrow as pa

from prober.core.findings import Kind, Status
from prober.core.judge import RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.history.arrow import conform
from prober.sinks.history.encoding import (
    EventCounts,
    Origin,
    RunContext,
    beginning_row,
    divided,
    ending_row,
    finding_row,
    rows_batch,
    shared_columns,
    wall_time,
)
from prober.sinks.history.schema import EVENTS, FINDINGS, RUNS, Table, history_file_name
from prober.sinks.history.store import HistoryStore
from prober.sinks.history.synthesis.plan import (
    ZIPF_EXPONENT,
    KeyTraffic,
    Recipe,
    SyntheticTarget,
    TroubleWindow,
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
                "topic": target.topic("traffic"),
                "subscription": target.subscription("traffic"),
                "key": key.name,
                "class": key.hot,
                "until": _moment(self.recipe.start + day * DAY_S + key.until_s),
                "share": key.share,
                "messages": messages,
                "messages_per_s": per_s,
                "bytes_per_s": per_s * key.size,
            }
        )

    def add_window(self, target: SyntheticTarget, day: int, window: TroubleWindow) -> None:
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
            "zipf": [{"target": one.name, "topic": one.topic("traffic"), "exponent": ZIPF_EXPONENT} for one in zipf],
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


# --- files -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What is known of a run when it is over."""

    ended_t: float
    verdict: Verdict
    counts: EventCounts
    findings: tuple[RecordedFinding, ...] = ()
    finding_counts: Mapping[tuple[Kind, Status], int] | None = None
    counters: Mapping[str, int] | None = None
    checks: Mapping[Indicator, SliCounts] | None = None
    reason: str = ""


class TargetFiles:
    """The files of one target's prober; `start` is when its history begins, in seconds since 1970."""

    def __init__(self, store: HistoryStore, target: SyntheticTarget, start: float) -> None:
        self.target = target
        self.origin = Origin(target.process, start - target.t0)
        self._store = store
        self._segments = count(1)

    def context(self, run_id: str, probe: str, t: float) -> RunContext:
        """A run that begins at `t`."""
        target = self.target
        rules = {target.subscription(probe): Rules()}
        about = target.name, target.environment, target.region, probe, "wire", target.topic(probe)
        return RunContext(run_id, *about, rules, t + self.origin.clock_offset_s)

    def write(self, table: Table, rows: pa.Table) -> None:
        """Writes rows with all columns of the table."""
        if rows.num_rows:
            for file in divided(rows, table, history_file_name(table, self.target.process, next(self._segments))):
                self._store.write(file.path, file.content)

    def write_rows(self, table: Table, rows: Iterable[Mapping[str, object]]) -> None:
        """The same for rows as mappings."""
        self.write(table, conform(pa.Table.from_batches([rows_batch(table, rows)]), table))

    def write_traffic(self, run: RunContext, first: int, rows: pa.Table) -> None:
        """Writes events of one run in recorder order, the first of which has that number."""
        size = rows.num_rows
        on_subscription = rows["on_subscription"].combine_chunks().fill_null(False)
        shared = shared_columns(run, self.origin) | {"topic": run.topic}
        columns = {name: rows[name] for name in rows.column_names if name != "on_subscription"}
        columns |= {name: pa.repeat(value, size) for name, value in shared.items()}
        columns["number"] = pa.arange(first, first + size)
        columns["time"] = wall_time(rows["t"], self.origin.clock_offset_s)
        columns["subscription"] = pa.array([None, next(iter(run.rules))]).take(on_subscription.cast(pa.int8()))
        self.write(EVENTS, conform(pa.table(columns), EVENTS))

    def begin(self, run: RunContext, t: float) -> dict[str, object]:
        """The row of a run that begins at `t`."""
        return beginning_row(run, self.origin, t)

    def end(self, run: RunContext, outcome: RunOutcome) -> dict[str, object]:
        """The row of a run that is over."""
        result = RunResult(
            run.run_id,
            run.probe,
            run.target,
            run.vantage,
            outcome.verdict,
            outcome.reason,
            run.started_at,
            outcome.ended_t + self.origin.clock_offset_s - run.started_at,
            topic=run.topic,
            subscription=next(iter(run.rules)),
            counts=outcome.finding_counts or Counter(made.sort for made in outcome.findings),
            counters=outcome.counters or {},
            checks=outcome.checks or {},
        )
        return ending_row(run, self.origin, outcome.ended_t, result, outcome.counts)

    def found(self, run: RunContext, findings: Iterable[RecordedFinding]) -> list[dict[str, object]]:
        """The rows of a run's findings."""
        return [finding_row(made, run, self.origin) for made in findings]

    def finish_day(self, runs: list[dict[str, object]], findings: list[dict[str, object]]) -> None:
        """Writes the rows of a day."""
        self.write_rows(RUNS, runs)
        self.write_rows(FINDINGS, findings)
