"""Prober health: errors, capacity and coverage of the prober itself. No panel is about a probed service."""

from __future__ import annotations

from typing import Final

from dashboards.board import Board, PanelRow
from dashboards.boards.subjects import COMPLETED, RUN_BY, VERIFIED, completed_panel, completed_share, due, verified_share
from dashboards.panels import (
    COUNT,
    SECONDS,
    SHARE,
    Look,
    Panel,
    TableColumn,
    Words,
    graph_panel,
    heatmap_panel,
    stat_panel,
    table_panel,
)
from dashboards.queries import RANGE, SCRAPE_DURATION, SCRAPE_SAMPLES, UP, Query, increase, increase_of, quantile, scraped, select
from dashboards.thresholds import ALL_NEEDED, ANY_IS_BAD, Thresholds, red_above
from prober.alerting.catalogue import limits
from prober.alerting.promql import aggregate, percent
from prober.alerting.rules import Dashboard
from prober.sinks.metrics import families
from prober.sinks.metrics.scopes import TARGET

LIMITS: Final = limits("prober")
LAG: Final = red_above(LIMITS["lag_s"])
LAG_QUANTILE: Final = LIMITS["lag_quantile"]
LAG_SHARE: Final = percent(LAG_QUANTILE)
DRILL_AGE: Final = red_above(LIMITS["drill_late_s"])


def prober_board(thresholds: Thresholds) -> Board:
    """Return the dashboard of the prober's health."""
    del thresholds  # objectives are about services
    return Board(
        Dashboard.PROBER,
        "Ordering keys / Prober health",
        "Is the prober itself well, and does it do what the schedule asks for? Nothing here says anything about a service.",
        (
            PanelRow("At a glance", (_up(), _running_since(), completed_panel(4), _errors_now(), _dropped_now(), _lag_now())),
            PanelRow("Runs", (_ended(), _skipped(), _probes())),
            PanelRow("Processes and pushes", (_processes(), _pushes())),
            PanelRow("Internal errors and dropped events", (_errors(), _dropped(), _writes(), _oddities())),
            PanelRow("What is left behind", (_leftovers_now(), _leftovers())),
            PanelRow("Event loop and scrapes", (_lag(), _lag_distribution(), _undecided(), _scrape_duration(), _scrape_size())),
            PanelRow("Fire drills", (_drills(), _drill_steps(), _drill_findings())),
        ),
    )


def _up() -> Panel:
    words = Words(
        "Probers up",
        "The share of the probers that answered the last scrape, of those that Prometheus scrapes.",
        (
            "PubsubProberDown",
            "PubsubProberAbsent",
            "PubsubProberSeriesVanished",
        ),
    )
    up = scraped(UP)
    return stat_panel(words, f"sum({up}) / count({up})", SHARE, ALL_NEEDED, width=4)


def _running_since() -> Panel:
    words = Words("Shortest uptime", "How long the prober that started last has been running.")
    age = f"time() - {aggregate(select(families.START), how='max')}"
    return stat_panel(words, age, SECONDS, width=4)


def _errors_now() -> Panel:
    words = Words(
        "Internal errors",
        "Errors of the prober itself, in the time range. The log has the tracebacks.",
        ("PubsubProberInternalErrors",),
    )
    found = increase_of(families.INTERNAL_ERRORS, window=RANGE)
    return stat_panel(words, found, COUNT, ANY_IS_BAD, width=4)


def _dropped_now() -> Panel:
    words = Words(
        "Events dropped",
        "Recorded events that the prober dropped in the time range because it could not write them.",
        ("PubsubProberEventsDropped",),
    )
    dropped = increase_of(families.EVENTS_DROPPED, window=RANGE)
    return stat_panel(words, dropped, COUNT, ANY_IS_BAD, width=4)


def _lag_now() -> Panel:
    words = Words(
        f"Event loop lag ({LAG_SHARE})",
        f"How much later than it asked for the prober wakes up: {LAG_SHARE} of the times by less than this.",
        ("PubsubProberLagging",),
    )
    return stat_panel(words, quantile(LAG_QUANTILE, families.LOOP_LAG), SECONDS, LAG, width=4)


def _ended() -> Panel:
    words = Words(
        "Runs by verdict",
        "Finished runs, by verdict. UNKNOWN says that the run reached no verdict; the log gives the reason.",
        ("PubsubProberVerdictsUnknown",),
    )
    ended = increase_of(families.PROBE_RUNS, "verdict")
    return graph_panel(words, Look(COUNT, bars=True), Query(ended, "{{verdict}}"))


def _skipped() -> Panel:
    words = Words(
        "Runs that did not start",
        "Runs that were due and did not start, by reason: the run before was still going on (overlap), the prober slept or was busy "
        "(misfire), or the target was under maintenance.",
        ("PubsubProberRunsMissing",),
    )
    skipped = increase_of(families.SCHEDULER_SKIPS, "reason")
    return graph_panel(words, Look(COUNT, bars=True), skipped)


def _probes() -> Panel:
    words = Words(
        "Probes",
        "Every probe with its vantage, its part of the keys and the prober that runs it now: runs that were due in the time range outside "
        "of maintenance, the share that ended, the share of these that ended with PASS or FAIL, and the age of the last PASS.",
        ("PubsubProberStale", "PubsubProberCoverageLow", "PubsubProberVerdictsUnknown"),
    )
    unknown = increase_of(families.PROBE_RUNS, RUN_BY, RANGE, verdict="unknown")
    skipped = increase_of(families.SCHEDULER_SKIPS, RUN_BY, RANGE)
    passed = aggregate(f"{select(families.PROBE_LAST_SUCCESS)} > 0", RUN_BY, "max")
    columns = [
        TableColumn("Due", _run_now(due()), COUNT),
        TableColumn("Completed", _run_now(completed_share()), SHARE, COMPLETED, 1),
        TableColumn("Verified", _run_now(verified_share()), SHARE, VERIFIED, 1),
        TableColumn("Unknown", _run_now(unknown), COUNT),
        TableColumn("Skipped", _run_now(skipped), COUNT),
        TableColumn("Planned every", _run_now(aggregate(select(families.PROBE_INTERVAL), RUN_BY, "max")), SECONDS),
        TableColumn("Passed ago", _run_now(f"time() - {passed}"), SECONDS, decimals=0),
    ]
    labels = ("probe", "vantage", "part", *TARGET, "instance")
    return table_panel(words, Look(COUNT, width=24, height=7), labels, columns)


def _processes() -> Panel:
    words = Words(
        "Probers",
        "Each process: how long it has been running, whether its status store answers, whether the configuration file is in force as it "
        "was last seen (1) or was refused (0), and how old the configuration in force is.",
        ("PubsubProberStatusStoreDown", "PubsubProberConfigRefused"),
    )
    columns = [
        TableColumn("Uptime", f"time() - {aggregate(select(families.START), 'instance', 'max')}", SECONDS, decimals=0),
        TableColumn("Status store up", aggregate(select(families.STATUS_STORE_UP), "instance", "min"), COUNT, ALL_NEEDED),
        TableColumn("Configuration in force", aggregate(select(families.CONFIG_RELOADED), "instance", "min"), COUNT, ALL_NEEDED),
        TableColumn(
            "Age of the configuration",
            f"time() - {aggregate(select(families.CONFIG_RELOADED_AT), 'instance', 'max')}",
            SECONDS,
            decimals=0,
        ),
    ]
    return table_panel(words, Look(COUNT, width=12, height=6), ("instance",), columns)


def _pushes() -> Panel:
    words = Words(
        "Push requests by outcome",
        "Requests to the endpoint that Pub/Sub pushes to: taken, left over from an earlier run, or refused, with the reason.",
    )
    pushed = increase_of(families.PUSH_REQUESTS, "outcome")
    return graph_panel(words, Look(COUNT, bars=True, width=12, height=6), pushed)


def _run_now(expr: str) -> str:
    """Restrict a query to the probers that run the probe instance now; other probers export its series too."""
    return f"{expr} and on ({RUN_BY}) {select(families.PROBE_ASSIGNED)}"


def _errors() -> Panel:
    words = Words(
        "Internal errors by component",
        "Errors of the prober itself. Each is in the log with its traceback; the run is UNKNOWN.",
        ("PubsubProberInternalErrors",),
    )
    return graph_panel(words, Look(COUNT, ANY_IS_BAD, bars=True), increase_of(families.INTERNAL_ERRORS, "component"))


def _dropped() -> Panel:
    words = Words(
        "Events dropped by component",
        "Recorded events that the prober dropped, by the component that could not write them. Verdicts do not depend on them.",
        ("PubsubProberEventsDropped",),
    )
    return graph_panel(words, Look(COUNT, ANY_IS_BAD, bars=True), increase_of(families.EVENTS_DROPPED, "component"))


def _writes() -> Panel:
    words = Words(
        "Failed writes",
        "Failed attempts to write the history or the status store, and failed OpenTelemetry exports. Only exports are not tried again.",
        (
            "PubsubProberHistoryFailing",
            "PubsubProberStatusStoreFailing",
        ),
    )
    asked = [
        Query(increase_of(family), name)
        for name, family in (
            ("history", families.HISTORY_FAILURES),
            ("status store", families.STATUS_FAILURES),
            ("OpenTelemetry", families.EXPORT_FAILURES),
        )
    ]
    return graph_panel(words, Look(COUNT, bars=True), *asked)


def _oddities() -> Panel:
    words = Words(
        "Clock errors, merged names, forgotten keys",
        "Durations that came out negative because a clock is wrong, names that were counted as `other` because there were too many, and "
        "ordering keys of observed streams that were forgotten because there were more than `keys_max`.",
        ("PubsubProberClockWrong", "PubsubProberNamesFolded"),
    )
    asked = [
        Query(increase_of(families.NEGATIVE_DURATIONS, "duration"), "negative {{duration}}"),
        Query(increase_of(families.FOLDED_NAMES, "label"), "merged {{label}}"),
        Query(increase_of(families.KEYS_FORGOTTEN, "target"), "forgotten keys {{target}}"),
    ]
    return graph_panel(words, Look(COUNT, bars=True), *asked)


def _leftovers_now() -> Panel:
    words = Words(
        "Topics and subscriptions left behind",
        "Topics and subscriptions of probers that are long gone and could not be deleted, in all projects. Grey: nobody has looked, or the "
        "last look failed in some project, and nothing was left in the others.",
        ("PubsubProberLeftovers",),
    )
    known, found = _left(), aggregate(f"{_left()} > 0")  # an unknown project does not hide leftovers of another
    return stat_panel(words, f"{found} or {aggregate(known)}", COUNT, ANY_IS_BAD, width=8, height=6)


def _leftovers() -> Panel:
    words = Words(
        "Left behind, by project",
        "Topics and subscriptions of probers that are long gone and could not be deleted, by project. No value: the look failed.",
        ("PubsubProberLeftovers",),
    )
    return graph_panel(words, Look(COUNT, ANY_IS_BAD, width=16, height=6), Query(_left(), "{{project}}"))


def _left() -> str:
    """Return the query of leftover resources; `max`, since one prober may not see all that another one sees in the same project."""
    return aggregate(select(families.LEFTOVERS), "project", "max")


def _undecided() -> Panel:
    words = Words(
        "Undecided durations",
        "Durations that are late, perhaps only because the event loop lagged: neither good nor bad, and in no latency panel.",
        ("PubsubProberLatenciesUndecided", "PubsubProberLagging"),
    )
    return graph_panel(
        words,
        Look(COUNT, bars=True, width=24, height=6),
        increase_of(families.UNDECIDED_DURATIONS, "duration"),
    )


def _lag() -> Panel:
    words = Words(
        "Event loop lag by prober",
        f"How much later than it asked for each prober wakes up: {LAG_SHARE} of the times by less than this.",
        ("PubsubProberLagging",),
    )
    return graph_panel(words, Look(SECONDS, LAG), quantile(LAG_QUANTILE, families.LOOP_LAG, "instance"))


def _lag_distribution() -> Panel:
    words = Words(
        "Event loop lag: distribution", "How much later than they asked for the probers woke up, measured four times a second."
    )
    return heatmap_panel(words, Look(SECONDS), Query(aggregate(increase(select(families.LOOP_LAG, "_bucket")), "le"), "{{le}}"))


def _scrape_duration() -> Panel:
    words = Words("Scrape duration by prober", "How long Prometheus waited for /metrics.")
    return graph_panel(words, Look(SECONDS), aggregate(scraped(SCRAPE_DURATION), "instance", "max"))


def _scrape_size() -> Panel:
    words = Words(
        "Samples per scrape by prober",
        "How many values a scrape returns. It depends on the configuration, not on traffic or keys.",
    )
    return graph_panel(words, Look(COUNT), aggregate(scraped(SCRAPE_SAMPLES), "instance", "max"))


def _drills() -> Panel:
    words = Words(
        "Fire drills",
        "Faults planted on purpose in a server of the prober's own, to see that somebody is notified. No drill spends an error budget.",
        ("PubsubProberDrillOverdue",),
    )
    passed = aggregate(f"{select(families.DRILL_LAST_SUCCESS)} > 0", "drill", "max")
    columns = [
        TableColumn("Passed", increase_of(families.DRILL_RUNS, "drill", RANGE, verdict="pass"), COUNT),
        TableColumn(
            "Not passed",
            increase_of(families.DRILL_RUNS, "drill", RANGE, verdict=("fail", "unknown")),
            COUNT,
            ANY_IS_BAD,
            0,
        ),
        TableColumn("Passed ago", f"time() - {passed}", SECONDS, DRILL_AGE, 0),
    ]
    return table_panel(words, Look(COUNT, height=6), ("drill",), columns)


def _drill_steps() -> Panel:
    words = Words("Fire drills: time to each step", "How long after the fault each step of the newest drill was reached.")
    return graph_panel(words, Look(SECONDS, height=6), aggregate(select(families.DRILL_STEP), "drill, step", "max"))


def _drill_findings() -> Panel:
    words = Words("Fire drills: findings", "What the checker found in drills: the planted faults, by kind.")
    found = increase_of(families.DRILL_FINDINGS, "drill, kind")
    return graph_panel(words, Look(COUNT, bars=True, width=24, height=6), f"{found} > 0")
