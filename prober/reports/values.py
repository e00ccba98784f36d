"""The reports of the nightly jobs, as values. `prober.reports.reader` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from prober.core.verdict import Verdict

REPORT_VERSION: Final = 1
"""The version of reports that this program writes and reads; other versions are ignored."""
SUMMARY: Final = "summary.json"
"""The file of a report that is written last: if it exists, the report is complete."""


@dataclass(frozen=True, slots=True)
class JobSummary:
    """The summary of a job about a day.

    verdict      PASS, FAIL or UNKNOWN; each job defines the meaning.
    line         the result as one line of text.
    finished_at  when the job had done its work, seconds since 1970; `duration_s` is its duration.
    rows         the number of rows of each table.
    numbers      all other results of the job, as JSON values; different for each job.
    """

    job: str
    day: date
    verdict: Verdict
    line: str
    finished_at: float
    duration_s: float
    rows: Mapping[str, int]
    numbers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeyCourse:
    """A key in half an hour from `at` on, seconds since 1970: its mean throughput, its largest backlog and its largest age."""

    at: float
    bytes_per_s: float
    backlog: int
    age_s: float


@dataclass(frozen=True, slots=True)
class ReportedKey:
    """A hot key.

    heat       its class, one of `prober.slo.hot_keys.HotKeyClass`. `reasons` contains every class that applies, the most urgent first.
    score      0 to 1 and more: the share of the limit, of unconsumed or stalled messages, or of all messages.
    share      its part of the messages of its topic.
    advice     the recommended action, as text.
    evidence   measured values by name; unmeasured ones have no entry. Units are in the names: mean_bytes_per_s, peak_bytes_per_s,
               peak_messages_per_s, limit_in_s (time until the limit is reached), backlog_max, backlog_last, backlog_slope_per_s, age_max_s,
               age_last_s, stalled_minutes, deliveries, redelivery_amplification, subscriber_changes.
    course     the key over the day; empty for a key that was not examined minute by minute, and in reports of older jobs.
    """

    target: str
    environment: str
    region: str
    topic: str
    subscription: str
    key: str
    heat: str
    score: float
    reasons: tuple[str, ...]
    advice: str
    messages: int
    share: float
    evidence: Mapping[str, float]
    course: tuple[KeyCourse, ...] = ()


@dataclass(frozen=True, slots=True)
class ReverifiedTarget:
    """Results of the repeated verification of a day's runs, on a target.

    complete  whether runs were verified, and the checker failed on none: only then no further violations exist.
    news      violations that were not found online, or whose online result is unknown, by kind.
    """

    complete: bool
    news: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of the messages of a subscription's topic over keys.

    Unknown values are None.

    exact            whether each key was counted, or sketches were used.
    median, p90, p99   quantiles over keys of the number of messages of a key.
    top_share, top_ten_share   the parts of the largest key and of the ten largest ones.
    zipf_exponent    0 for keys with equal load; above 1 few keys carry most.
    hot, left_out    hot keys, and keys that may be hot and were too many to examine.
    """

    target: str
    environment: str
    region: str
    topic: str
    subscription: str
    exact: bool
    keys: int
    messages: int
    bytes: int
    median: int | None
    p90: int | None
    p99: int | None
    top_share: float | None
    top_ten_share: float | None
    zipf_exponent: float | None
    hot: int
    left_out: int


@dataclass(frozen=True, slots=True)
class HotKeysReport:
    """The report of `hot-keys` about a day: the hot keys with the highest scores first, and each subscription that had messages.

    left_out   hot keys that are in the report, or were found, but not given here.
    """

    summary: JobSummary
    keys: tuple[ReportedKey, ...]
    subscriptions: tuple[Spread, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """An objective on a target over one window that ended with the day.

    Unknown values are None.

    minutes                             of the window with a decided event.
    error_ratio_low, error_ratio_high   confidence bounds (Clopper-Pearson) of the error ratio; likewise of the burn rate.
    error_ratio_least, error_ratio_most   if all undecided events were good, or bad.
    budget_left                         of the objective's period: 1 untouched, 0 spent, negative overspent.
    exhausted_in_s                      when the budget is spent at the rate of this window.
    never_exhausted                     true if nothing is being spent.
    """

    objective: str
    indicator: str
    target: str
    window_s: float
    good: int
    bad: int
    undecided: int
    minutes: int
    error_ratio: float | None
    error_ratio_low: float | None
    error_ratio_high: float | None
    error_ratio_least: float | None
    error_ratio_most: float | None
    burn_rate: float | None
    burn_rate_low: float | None
    burn_rate_high: float | None
    budget_left: float | None
    exhausted_in_s: float | None
    never_exhausted: bool


@dataclass(frozen=True, slots=True)
class BurnAlertDay:
    """State of one alert of an objective on a target over the day.

    threshold   the error ratio from which it fires; `can_fire` is false if no error ratio can reach it.
    state       at the end of the day: firing, quiet or unknown; `..._minutes` are the minutes in each.
    firing      when it would have fired: (since, until) in seconds since 1970, whole minutes, the first one first.
    """

    objective: str
    target: str
    severity: str
    long_s: float
    short_s: float
    factor: float
    threshold: float
    can_fire: bool
    state: str
    firing_minutes: int
    quiet_minutes: int
    unknown_minutes: int
    firing: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Spender:
    """A part of an objective's budget spent on the day.

    by      key, subscription, probe, vantage or region; `value` is its name, None if it has none.
    share   of all bad events of the objective and target.
    others  the number of unnamed spenders that this row merges, else 0.
    """

    objective: str
    target: str
    by: str
    value: str | None
    bad: int
    share: float
    others: int


@dataclass(frozen=True, slots=True)
class BurnReport:
    """The report of `slo-burn` about a day, sorted by objective and target.

    left_out   rows that are in the report but not given here.
    """

    summary: JobSummary
    windows: tuple[BurnWindow, ...]
    alerts: tuple[BurnAlertDay, ...]
    spenders: tuple[Spender, ...]
    left_out: int
