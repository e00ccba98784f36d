"""Overview: guarantees, error budgets, and the coverage of the prober."""

from __future__ import annotations

from typing import Final

from dashboards.board import Board, PanelRow
from dashboards.boards.subjects import CHECKS, EVIDENCE, EVIDENCE_OF_KIND, VERIFIED, completed_panel, verified_share
from dashboards.panels import (
    COUNT,
    PLAIN,
    SECONDS,
    SHARE,
    Look,
    Panel,
    TableColumn,
    Words,
    graph_panel,
    stat_panel,
    state_timeline_panel,
    table_panel,
)
from dashboards.queries import ALERTS, FIRING_SINCE, RANGE, Query, firing, increase, increase_of, recorded_series, select
from dashboards.thresholds import ANY_IS_BAD, ANY_IS_UNKNOWN, BAD, BUDGET_LEFT, GOOD, NO_VERDICT, UNKNOWN, Thresholds, red_above
from prober.alerting.catalogue import limits
from prober.alerting.objectives import OBJECTIVE, REMAINING, burn_rate_series
from prober.alerting.promql import aggregate
from prober.alerting.rules import Dashboard
from prober.core.findings import Status
from prober.core.verdict import Verdict
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from prober.sinks.metrics.label_values import Bound
from prober.sinks.metrics.scopes import TARGET
from prober.slo.objectives import DAY_S, HOUR_S

UNREACHABLE_RUNS: Final = limits("service")["unreachable_runs"]
SLO: Final = ("slo", *TARGET)

STANDINGS: Final = {0: ("unknown", UNKNOWN), 1: ("no worse", GOOD), 2: ("worse", BAD)}
WORSE: Final = ("PubsubCandidateWorse",)
VERDICTS: Final = {0: ("PASS", GOOD), 1: ("UNKNOWN", UNKNOWN), 2: ("FAIL", BAD), 3: ("FAIL and UNKNOWN", BAD)}
BURNS: Final = {"Burn, 1 h": HOUR_S, "Burn, 6 h": 6 * HOUR_S, "Burn, 3 d": 3 * DAY_S}


def overview_board(thresholds: Thresholds) -> Board:
    """Return the overview dashboard."""
    return Board(
        Dashboard.OVERVIEW,
        "Ordering keys / Overview",
        "Are the guarantees about ordering keys kept, how much of the error budgets is left, and does the prober see enough to say so?",
        (
            PanelRow(
                "Now and in this time range",
                (
                    _alerts(),
                    _violations(),
                    _liveness(),
                    _oldest(thresholds),
                    _budget(),
                    _burn(thresholds),
                    completed_panel(6),
                    _verified(),
                ),
            ),
            PanelRow("Alerts and incidents", (_firing(), _acknowledged())),
            PanelRow("Objectives", (_objectives(thresholds), _budgets(), _burns(thresholds))),
            PanelRow("Runs and findings", (_verdicts(), _findings(), _evidence())),
            PanelRow("Targets", (_targets(),)),
            PanelRow("Candidates beside their baselines", (_standing(), _differing_shares(), _differing_durations())),
        ),
    )


def _violations() -> Panel:
    words = Words(
        "Violations",
        "Findings that no legal behaviour of the service explains, in the time range. Leads to the evidence. "
        "Grey: nothing was verified.",
        ("PubsubOrderViolated", "PubsubRedeliveryViolated", "PubsubIntegrityViolated", "PubsubOverlapViolated"),
    )
    return _findings_number(words, Status.VIOLATION)


def _liveness() -> Panel:
    words = Words(
        "Missed deadlines",
        "Messages that were not delivered, or not redelivered, by their deadline, in the time range. Leads to the evidence. "
        "Grey: nothing was verified.",
        ("PubsubDeliveryOverdue",),
    )
    return _findings_number(words, Status.LIVENESS)


def _findings_number(words: Words, status: Status) -> Panel:
    found = increase_of(families.FINDINGS, window=RANGE, status=status)
    verified = " + ".join(increase_of(checks.family, window=RANGE) for checks in CHECKS)
    address = f"{EVIDENCE}&status={status}"
    return stat_panel(words, f"{found} and ({verified}) > 0", COUNT, ANY_IS_BAD, address=address)


def _budget() -> Panel:
    words = Words(
        "Least error budget left",
        "What is left of the error budget that is spent most, over its objective's period. Below 0 it is overspent.",
        ("PubsubErrorBudgetExhausted",),
    )
    return stat_panel(words, aggregate(recorded_series(REMAINING), how="min"), SHARE, BUDGET_LEFT)


def _burn(thresholds: Thresholds) -> Panel:
    words = Words(
        "Fastest budget burn (1 h)",
        "How many times as fast as allowed the fastest error budget burned over the last hour. At 1 a budget lasts exactly its period.",
        ("PubsubErrorBudgetBurn",),
    )
    return stat_panel(words, aggregate(recorded_series(burn_rate_series(HOUR_S)), how="max"), PLAIN, thresholds.burn(HOUR_S))


def _oldest(thresholds: Thresholds) -> Panel:
    words = Words(
        "Oldest unacknowledged",
        "The age of the oldest message that no subscriber has acknowledged, right now.",
        ("PubsubOldestUnackedAgeRising",),
    )
    return stat_panel(words, aggregate(select(families.OLDEST_UNACKED_AGE), how="max"), SECONDS, thresholds.age())


def _verified() -> Panel:
    words = Words(
        "Runs verified",
        "The share of the runs that ended in the time range which ended with PASS or FAIL: the lowest of all probers, probes, vantages and "
        "parts. The others are UNKNOWN.",
        ("PubsubProberVerdictsUnknown",),
    )
    return stat_panel(words, aggregate(verified_share(), how="min"), SHARE, VERIFIED)


def _alerts() -> Panel:
    """Return the panel of firing alerts. Without the always firing watchdog the rules are not loaded: unknown."""
    words = Words("Firing alerts", "How many alerts of the prober's rules fire now. Grey: the rules of alerts/ are not loaded.")
    count = aggregate(firing(ALERTS, alertstate="firing"), how="count")
    watched = f'0 * count({ALERTS}{{alertname="PubsubProberWatchdog",alertstate="firing"}})'
    return stat_panel(words, f"{count} or {watched}", COUNT, ANY_IS_BAD)


def _objectives(thresholds: Thresholds) -> Panel:
    words = Words(
        "Objectives",
        "Each objective, how much of the error budget is left, and how fast it burns. At a burn rate of 1 a budget lasts exactly its "
        "period. Needs the recording rules of alerts/. The name leads to its page.",
        ("PubsubErrorBudgetBurn", "PubsubProberRecordingsMissing"),
    )
    left = aggregate(recorded_series(REMAINING), SLO, "min")
    burning = aggregate(recorded_series(burn_rate_series(HOUR_S)), SLO, "group")
    objective = f"{burning} * on (slo) group_left () {aggregate(OBJECTIVE, 'slo', 'max')}"
    columns = [
        TableColumn("Objective", objective, SHARE, decimals=2),
        TableColumn("Budget left", left, SHARE, BUDGET_LEFT, decimals=1),
        *(
            TableColumn(
                name, aggregate(recorded_series(burn_rate_series(window_s)), SLO, "max"), PLAIN, thresholds.burn(window_s), 2
            )
            for name, window_s in BURNS.items()
        ),
    ]
    return table_panel(words, Look(SHARE, width=24, height=13), SLO, columns, "${status_page:raw}/slos/${__value.text}")


def _budgets() -> Panel:
    words = Words(
        "Error budget left",
        "The share of each error budget that is left, over the objective's period. Below 0 it is overspent.",
        ("PubsubErrorBudgetExhausted",),
    )
    return graph_panel(
        words,
        Look(SHARE, BUDGET_LEFT, maximum=1.0, minimum=None),
        Query(aggregate(recorded_series(REMAINING), "slo", "min"), "{{slo}}"),
    )


def _burns(thresholds: Thresholds) -> Panel:
    words = Words(
        "Budget burn rate (1 h)",
        "How many times as fast as allowed each error budget burned over the last hour. Above the dashed line somebody is paged.",
        ("PubsubErrorBudgetBurn",),
    )
    return graph_panel(
        words,
        Look(PLAIN, thresholds.burn(HOUR_S)),
        Query(aggregate(recorded_series(burn_rate_series(HOUR_S)), "slo", "max"), "{{slo}}"),
    )


def _verdicts() -> Panel:
    words = Words(
        "Verdicts by probe",
        "How the runs of each probe ended: FAIL is a violated guarantee, UNKNOWN says nothing about the service. A gap: no run ended.",
        ("PubsubProberVerdictsUnknown", "PubsubProberRunsMissing"),
    )
    by = ("probe", *TARGET)
    ended = {verdict: increase_of(families.PROBE_RUNS, by, verdict=verdict.lower()) for verdict in Verdict}
    any_ended = increase_of(families.PROBE_RUNS, by)
    expr = f"(2 * ({ended[Verdict.FAIL]} > bool 0) + ({ended[Verdict.UNKNOWN]} > bool 0)) and {any_ended} > 0"
    return state_timeline_panel(words, Look(PLAIN), VERDICTS, Query(expr, "{{target}} {{probe}}"))


def _findings() -> Panel:
    words = Words("Findings by kind", "What the checker found: violations and missed deadlines. A click leads to the evidence.")
    found = increase_of(families.FINDINGS, "kind", status=(Status.VIOLATION, Status.LIVENESS))
    return graph_panel(words, Look(COUNT, bars=True), f"{found} > 0", address=EVIDENCE_OF_KIND)


def _evidence() -> Panel:
    words = Words(
        "Findings and their evidence",
        "What the checker found in the time range. The kind leads to these findings on the status page, each with the "
        "events that prove it.",
    )
    by = ("kind", "status", *TARGET)
    found = increase_of(families.FINDINGS, by, RANGE, status=(Status.VIOLATION, Status.LIVENESS))

    address = f"{EVIDENCE}&kind=${{__value.text}}&target=${{__data.fields.Target}}"
    columns = [TableColumn("Findings", f"{found} > 0", COUNT)]
    return table_panel(words, Look(COUNT, width=24, height=6), by, columns, address)


def _firing() -> Panel:
    words = Words(
        "Firing alerts by target",
        "Alerts of the prober's rules that fire now; the name leads to the runbook. Without a target an alert is about the prober itself. "
        "No data: none fires, if the number of firing alerts is 0.",
    )
    by = ("alertname", "severity", "owner", "slo", *TARGET)
    since = f"{firing(FIRING_SINCE)} and ignoring (alertstate) {firing(ALERTS, alertstate='firing')}"

    columns = [TableColumn("For", f"time() - {aggregate(since, by, 'min')}", SECONDS, decimals=0)]
    address = "${runbooks:raw}/${__value.text}.md"
    return table_panel(words, Look(SECONDS, width=24, height=9), by, columns, address, sort="Severity")


def _acknowledged() -> Panel:
    words = Words(
        "Incidents by time to acknowledge",
        "Incidents raised in the last 30 days: acknowledged within 5 minutes (`in_time`), later or not (`late`), not yet (`pending`), or "
        "ended before without an acknowledgement (`ended`). No alert follows. Empty: the status store cannot be read.",
    )
    asked = Query(aggregate(select(families.INCIDENTS_ACKNOWLEDGED), "timeliness", how="max"), "{{timeliness}}")
    return graph_panel(words, Look(COUNT, width=24, height=6), asked)


def _targets() -> Panel:
    words = Words(
        "Targets",
        "Every target: how its runs ended in the time range, how many keys stand still there now, and how many runs in a row, up to the "
        "last one, could not reach it. The target's name leads to its findings.",
        ("PubsubTargetUnreachable", "PubsubKeysStalled"),
    )
    runs = {verdict: increase_of(families.PROBE_RUNS, TARGET, RANGE, verdict=verdict.lower()) for verdict in Verdict}
    found = increase(select(families.FINDINGS, status=(Status.VIOLATION, Status.LIVENESS)), RANGE)
    columns = [
        TableColumn("PASS", runs[Verdict.PASS], COUNT),
        TableColumn("FAIL", runs[Verdict.FAIL], COUNT, ANY_IS_BAD),
        TableColumn("UNKNOWN", runs[Verdict.UNKNOWN], COUNT, ANY_IS_UNKNOWN),
        TableColumn("Findings", aggregate(found, TARGET), COUNT, ANY_IS_BAD),
        TableColumn("Stalled keys", aggregate(select(families.STALLED_KEYS), TARGET), COUNT, ANY_IS_BAD),
        TableColumn(
            "Unreachable runs", aggregate(select(families.UNREACHABLE_RUNS), TARGET, "max"), COUNT, red_above(UNREACHABLE_RUNS)
        ),
        TableColumn("Maintenance", aggregate(select(families.UNDER_MAINTENANCE), TARGET, "max"), "bool_yes_no", NO_VERDICT),
    ]
    return table_panel(
        words, Look(COUNT, width=24, height=6), TARGET, columns, "${status_page:raw}/findings?target=${__value.text}"
    )


def _standing() -> Panel:
    words = Words(
        "How candidates stand",
        "Of each comparison of the configuration: is the candidate no worse than its baseline, worse in something, or can nobody tell yet? "
        "Empty: no comparison is configured.",
        WORSE,
    )
    states = " or ".join(
        f"{code} * {select(families.COMPARISON_STANDING, standing=word.replace(' ', '_'))}" for code, (word, _) in STANDINGS.items()
    )
    asked = Query(aggregate(states, "baseline, candidate", how="max"), "{{candidate}} beside {{baseline}}")
    return state_timeline_panel(words, Look(PLAIN, width=24, height=5), STANDINGS, asked)


def _differing_shares() -> Panel:
    words = Words(
        "By how much more is bad at the candidate",
        "Shares of the candidate less those of its baseline, in the runs of the comparison's window: what they probably differ by, between "
        "what the difference lies, how much is allowed. Worse: all of that lies above what is allowed. Not known: too few pairs of runs.",
        WORSE,
    )
    return _differences(words, families.COMPARISON_RATIO, SHARE)


def _differing_durations() -> Panel:
    words = Words(
        "By how much longer it takes at the candidate",
        "Durations at the candidate less those at its baseline, median (p50) and 99th percentile (p99) of a run; the columns are those of "
        "the table beside it.",
        WORSE,
    )
    return _differences(words, families.COMPARISON_SECONDS, SECONDS)


def _differences(words: Words, family: Family, unit: str) -> Panel:
    """Return the table of compared aspects: all with a margin, also those with an unknown difference."""
    by = ("aspect", "candidate", "baseline")
    reported = {bound: aggregate(select(family, bound=bound), by, "max") for bound in Bound}
    allowed, low = reported[Bound.MARGIN], reported[Bound.LOW]
    compared = f"{allowed} == {allowed}"  # NaN is not equal to itself
    columns = (
        TableColumn("Difference", f"{reported[Bound.ESTIMATE]} and {compared}", unit),
        TableColumn("At least", f"{low} and {compared}", unit),
        TableColumn("At most", f"{reported[Bound.HIGH]} and {compared}", unit),
        TableColumn("Allowed", compared, unit),
        TableColumn("Worse", f"({low} > bool {allowed}) and {low} == {low}", "bool_yes_no", ANY_IS_BAD),
    )
    return table_panel(words, Look(unit, height=9), by, columns)
