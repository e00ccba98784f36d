"""Stories about error budgets."""

from __future__ import annotations

from prober.config.loading import load
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective
from tests.alerts.stories import HERE, Story, of

ORDER = Objective("order", Indicator.ORDER, 0.9999, 30 * DAY_S)
DAILY = Objective("order", Indicator.ORDER, 0.99, DAY_S)
LATE_AGAIN = Objective("redelivery_latency", Indicator.REDELIVERY_LATENCY, 0.99, 30 * DAY_S, 2.5)
SLOW_CALLS = Objective("control_plane_latency", Indicator.CONTROL_PLANE_LATENCY, 0.99, 30 * DAY_S, 5.0)
DEFAULTS = {one.name: one for one in load(None, {}).objectives}
PAGE = {"slo": "order", "severity": "critical"}
TICKET = {"slo": "order", "severity": "warning"}
BURN = "PubsubErrorBudgetBurn"
SPENT = "PubsubErrorBudgetExhausted"


def checks(result: str, family: Family = families.ORDER_CHECKS, **labels: str) -> str:
    """A counter of checks."""
    return of(family, subscription="s", result=result, **labels)


def _bound(objective: Objective) -> str:
    """The threshold of an objective, as an exporter writes the bound of a bucket."""
    return repr(objective.threshold_s)


IN_TIME = _bound(DEFAULTS["end_to_end_latency"])
GOOD, BAD, UNDECIDED = checks("good"), checks("bad"), checks("undecided")

PAGES = (
    Story(
        BURN,
        "an hour's window pages within minutes and ends five after the trouble",
        {GOOD: "0+1200x540", BAD: "0x480 0+12x20 240x40"},
        {"8h": 0, "8h6m": 0, "8h12m": 1, "8h27m": 0},
        every="1m",
        among=PAGE,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "one page lasts from the hour's window to the end of six hours'",
        {GOOD: "0+1200x200", BAD: "0x120 0+12x30 360x60"},
        {"2h": 0, "2h6m": 0, "2h12m": 1, "2h30m": 1, "2h36m": 1, "2h55m": 1, "3h3m": 0},
        every="1m",
        among=PAGE,
        reads=(
            "2h12m",
            {**HERE, "slo": "order", "indicator": "order"},
            "Objective order: 99.99 % over 30d; a message is bad if it was first received out of order. On t (e, r) the error budget burns "
            "18.3 times as fast as the objective allows: over 1h and 5m more than 14.4 times as fast (2 % of a period's budget in 1h), or "
            "over 6h and 30m more than 6 times as fast (5 % of a period's budget in 6h).",
        ),
        summary="t/order (e, r): The error budget of an objective is burning too fast (18.3 times the allowed rate over 1h or 6h).",
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "six hours' window pages for what is slower",
        {GOOD: "0+6000x120", BAD: "0x84 0+5x16 80x20"},
        {"7h": 0, "7h30m": 0, "8h20m": 0, "9h30m": 0},
        every="5m",
        among=PAGE,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "six hours' window sees what an hour's does not",
        {GOOD: "0+6000x160", BAD: "0x84 0+8x70 560x20"},
        {"7h": 0, "9h": 0, "11h": 1, "13h40m": 0},
        every="5m",
        among=PAGE,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "not for one bad thing, however few there were before",
        {GOOD: "0 199x10 199+1200x60", BAD: "0 1x71"},
        {"1m": 0, "5m": 0, "10m": 0, "30m": 0, "1h10m": 0},
        every="1m",
        among={"slo": "order"},
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "not for what is undecided",
        {GOOD: "0+1200x120", BAD: "0x120", UNDECIDED: "0+1200x120"},
        {"1h": 0, "2h": 0},
        every="1m",
        among={"slo": "order"},
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "counters that start again are no trouble",
        {GOOD: "0+1200x60 stale 0+1200x60", BAD: "700x60 stale 0x60"},
        {"30m": 0, "1h": 0, "1h2m": 0, "1h30m": 0, "2h": 0},
        every="1m",
        among={"slo": "order"},
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "goes on when counters start again",
        {GOOD: "0+1200x70 0+1200x60", BAD: "0x60 0+12x10 0+12x60"},
        {"1h": 0, "1h25m": 1, "2h": 1},
        every="1m",
        among=PAGE,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "goes on when another process takes over",
        {
            GOOD: "0+1200x70 stale",
            BAD: "0x60 0+12x10 stale",
            checks("good", instance="j"): "_x72 0+1200x60",
            checks("bad", instance="j"): "_x72 0+12x60",
        },
        {"1h": 0, "1h25m": 1, "2h": 1},
        every="1m",
        among=PAGE,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "ends with the data",
        {GOOD: "0+1200x90 stale", BAD: "0x60 0+12x30 stale"},
        {"1h20m": 1, "2h2m": 0},
        every="1m",
        among=PAGE,
        objectives=(ORDER,),
    ),
    Story(BURN, "no data", {}, {"0s": 0, "1h": 0}, every="15m"),
    Story(
        BURN,
        "one target's trouble is not another's",
        {GOOD: "0+1200x120", BAD: "0x60 0+12x60", checks("good", target="u"): "0+1200000x120", checks("bad", target="u"): "0x120"},
        {"2h": 1},
        every="1m",
        among=PAGE,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "uneven traffic is weighed by what was counted",
        # 1 % of 100 a minute are bad in one half of the time, none of 3,600 a minute in the other: 0.03 % of all, and not 0.5 %.
        {GOOD: ("0+99x10 990+3600x10 " * 12).strip(), BAD: ("0+1x10 10x10 " * 12).strip()},
        {"1h12m": 0, "1h34m": 0},
        every="1m",
        among=PAGE,
        objectives=(ORDER,),
    ),
)

TICKETS = (
    Story(
        BURN,
        "a day's trouble is one ticket and ends six hours after it",
        {GOOD: "0+6000x1200", BAD: "0x900 0+6x140 840x160"},
        {"75h": 0, "77h": 0, "85h": 1, "90h": 1, "93h30m": 0},
        every="5m",
        among=TICKET,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "three days' window writes a ticket for what is slower still",
        {GOOD: "0+18000x533", BAD: "0x300 0+3.6x167 600x66"},
        {"75h": 0, "105h": 0, "115h": 1, "125h": 0},
        every="15m",
        among=TICKET,
        objectives=(ORDER,),
    ),
    Story(
        BURN,
        "28 days have their own factors",
        {GOOD: "0+1200x200", BAD: "0x120 0+12x80"},
        {"2h": 0, "2h12m": 1},
        every="1m",
        among=PAGE,
        objectives=(Objective("order", Indicator.ORDER, 0.9999, 28 * DAY_S),),
    ),
    Story(
        SPENT,
        "says so when the period's budget is spent and takes it back when the trouble is older than the period",
        {GOOD: "0+100x420", BAD: "0x48 0+60x48 2880x330"},
        {"4h": 0, "4h20m": 0, "5h": 1, "12h": 1, "34h": 0},
        every="5m",
        among={"slo": "order"},
        reads=(
            "12h",
            {**HERE, "slo": "order", "indicator": "order"},
            "Objective order: 99 % over 1d; a message is bad if it was first received out of order. On t (e, r) 860.7% of "
            "the error budget of 1d is spent.",
        ),
        summary="t/order (e, r): The error budget of an objective is spent (860.7%).",
        objectives=(DAILY,),
    ),
    Story(
        SPENT,
        "says nothing eight minutes after the first start",
        {GOOD: "0+6000x20", BAD: "0 60x20"},
        {"8m": 0, "15m": 0, "20m": 0},
        every="1m",
        objectives=(ORDER,),
    ),
    Story(
        SPENT,
        "what was spent in a part of the period is that part of its budget",
        # 1.8 % where 1 % is allowed, for half of the day, is nine tenths of the budget; in the whole day it would be too much.
        {GOOD: "0+982x200", BAD: "0+18x200"},
        {"4h": 0, "12h": 0, "13h": 0, "15h": 1},
        every="5m",
        objectives=(DAILY,),
    ),
    Story(
        SPENT,
        "time in which nothing was decided spends nothing",
        {GOOD: "0+982x120 stale", BAD: "0+18x120 stale"},
        {"11h": 0, "14h": 0, "20h": 0},
        every="5m",
        objectives=(DAILY,),
    ),
    Story(SPENT, "not for a few things", {GOOD: "0+1x60", BAD: "0 1x60"}, {"2h": 0, "4h": 0}, every="5m", objectives=(DAILY,)),
    Story(SPENT, "no data", {}, {"2h": 0}, every="30m"),
)


def _fast(name: str, series: dict[str, str], *objectives: Objective, severity: str = "critical") -> Story:
    return Story(
        BURN,
        f"{name} counts what it says",
        series,
        {"1h": 0, "2h": 1},
        every="1m",
        among={"slo": name, "severity": severity},
        objectives=objectives or (DEFAULTS[name],),
    )


def _latency(family: Family, *objectives: Objective, severity: str = "critical", **labels: str) -> Story:
    name = family.name.removesuffix("_seconds")
    quick = of(family, "_bucket", le=_bound(*objectives or (DEFAULTS[name],)), **labels)
    series = {quick: "0+100x60 6000+50x60", of(family, "_count", **labels): "0+100x120"}
    return _fast(name, series, *objectives, severity=severity)


def _of_checks(name: str, family: Family, severity: str = "critical") -> Story:
    series = {checks("good", family): "0+1200x60 72000+600x60", checks("bad", family): "0x60 0+600x60"}
    return _fast(name, series, severity=severity)


INDICATORS = (
    _of_checks("order", families.ORDER_CHECKS),
    _of_checks("redelivery", families.REDELIVERY_CHECKS),
    _of_checks("affinity", families.AFFINITY_CHECKS, "warning"),
    Story(
        BURN,
        "what the service does not guarantee pages nobody",
        {
            checks("good", families.AFFINITY_CHECKS): "0+1200x60 72000+600x60",
            checks("bad", families.AFFINITY_CHECKS): "0x60 0+600x60",
        },
        {"1h": 0, "2h": 0},
        every="1m",
        among={"slo": "affinity", "severity": "critical"},
        objectives=(DEFAULTS["affinity"],),
    ),
    _of_checks("completeness", families.DELIVERY_CHECKS),
    _fast(
        "publish_availability",
        {
            of(families.PUBLISHES, topic="p", outcome="confirmed"): "0+1200x120",
            of(families.PUBLISHES, topic="p", outcome="rejected"): "0x60 0+60x60",
            of(families.PUBLISHES, topic="p", outcome="unknown"): "0x60 0+60x60",
        },
    ),
    Story(
        BURN,
        "what could not be sent is bad for as long as the target is unreachable",
        {
            of(families.PUBLISHES, topic="p", outcome="confirmed"): "0+1200x60 72000x240",
            of(families.PUBLISHES, topic="p", outcome="rejected"): "0x300",
            of(families.PUBLISHES, topic="p", outcome="unknown"): "0x300",
            of(families.PUBLISHES_UNSENT, topic="p"): "0x60 0+1200x240",
        },
        {"55m": 0, "1h5m": 1, "2h": 1, "5h": 1},
        every="1m",
        among={"slo": "publish_availability", "severity": "critical"},
    ),
    Story(
        BURN,
        "what passed its deadline and never came is as bad as what came late",
        {
            of(families.END_TO_END_LATENCY, "_bucket", subscription="s", le=IN_TIME): "0+1200x60 72000x240",
            of(families.END_TO_END_LATENCY, "_count", subscription="s"): "0+1200x60 72000x240",
            of(families.OVERDUE, subscription="s"): "0x60 0+1200x240",
        },
        {"55m": 0, "1h5m": 1, "2h": 1, "5h": 1},
        every="1m",
        among={"slo": "end_to_end_latency", "severity": "critical"},
    ),
    Story(
        BURN,
        "an administration call that failed is as bad as one that came late",
        {
            of(families.CONTROL_PLANE_LATENCY, "_bucket", operation="list", le=_bound(SLOW_CALLS)): "0+1200x60 72000x240",
            of(families.CONTROL_PLANE_LATENCY, "_count", operation="list"): "0+1200x60 72000x240",
            of(families.CONTROL_PLANE_FAILURES, operation="list"): "0x60 0+1200x240",
        },
        {"55m": 0, "1h5m": 1, "2h": 1, "5h": 1},
        every="1m",
        among={"slo": "control_plane_latency", "severity": "critical"},
    ),
    _latency(families.PUBLISH_LATENCY, topic="p"),
    _latency(families.END_TO_END_LATENCY, subscription="s"),
    _latency(families.REDELIVERY_LATENCY, LATE_AGAIN, subscription="s"),
    _latency(families.HEAD_OF_LINE_DELAY, subscription="s", severity="warning"),
    _latency(families.PULL_LATENCY, subscription="s"),
    _latency(families.PUSH_LATENCY, subscription="s"),
    _latency(families.CREATION_TO_RECEIPT_LATENCY, subscription="s"),
    _latency(families.CONTROL_PLANE_LATENCY, SLOW_CALLS, operation="list"),
    _fast("oldest_unacked_message_age", {of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x60 61x60"}),
    _fast(
        "stalled_keys",
        {of(families.STALLED_KEYS, subscription="s"): "0x60 2x60", of(families.PROBED_KEYS, subscription="s"): "10x120"},
    ),
    Story(
        BURN,
        "minutes under maintenance do not count",
        {of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x60 61x60", of(families.UNDER_MAINTENANCE): "0x58 1x62"},
        {"1h30m": 0, "2h": 0},
        every="1m",
        among={"slo": "oldest_unacked_message_age"},
        objectives=(DEFAULTS["oldest_unacked_message_age"],),
    ),
    Story(
        BURN,
        "minutes under the maintenance of another prober count",
        {of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x60 61x60", of(families.UNDER_MAINTENANCE, instance="j"): "1x120"},
        {"1h3m": 0, "1h6m": 1},
        every="1m",
        among={"slo": "oldest_unacked_message_age", "severity": "critical"},
        objectives=(DEFAULTS["oldest_unacked_message_age"],),
    ),
    Story(
        BURN,
        "minutes of a probe_instance that was given up do not count",
        {
            of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x60 61x60",
            of(families.OLDEST_UNACKED_AGE, subscription="s2", instance="j"): "0x120",
            of(families.PROBED_KEYS, subscription="s"): "10x120",
            of(families.PROBED_KEYS, subscription="s2", instance="j"): "0x120",
        },
        {"1h3m": 0, "1h6m": 1},
        every="1m",
        among={"slo": "oldest_unacked_message_age", "severity": "critical"},
        objectives=(DEFAULTS["oldest_unacked_message_age"],),
    ),
    Story(
        BURN,
        "minutes in which the age may be the prober's own doing do not count",
        {
            of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x60 61x60",
            of(families.UNDECIDED_DURATIONS, duration="oldest_unacked_message_age"): "0x59 0+1x61",
        },
        {"1h30m": 0, "2h": 0},
        every="1m",
        among={"slo": "oldest_unacked_message_age"},
        objectives=(DEFAULTS["oldest_unacked_message_age"],),
    ),
    Story(
        BURN,
        "a bound may be written without its decimal",
        {
            of(
                families.END_TO_END_LATENCY,
                "_bucket",
                le=IN_TIME.removesuffix(".0"),
                subscription="s",
            ): "0+100x120",
            of(families.END_TO_END_LATENCY, "_count", subscription="s"): "0+100x120",
        },
        {"2h": 0},
        every="1m",
        among={"slo": "end_to_end_latency"},
        objectives=(DEFAULTS["end_to_end_latency"],),
    ),
)

STORIES = (*PAGES, *TICKETS, *INDICATORS)
