"""Publisher: accepted, rejected and unanswered publishes, and latencies."""

from __future__ import annotations

from collections.abc import Callable

from dashboards.board import Board, PanelRow
from dashboards.boards.subjects import PUBLISH, duration_panels
from dashboards.panels import (
    COUNT,
    PER_SECOND,
    SECONDS,
    SHARE,
    Look,
    Panel,
    TableColumn,
    Words,
    graph_panel,
    stat_panel,
    table_panel,
)
from dashboards.queries import BY, RANGE, Query, increase, increase_of, rate, rate_of, select
from dashboards.thresholds import ANY_IS_UNKNOWN, Thresholds, red_above
from prober.alerting.catalogue import limits
from prober.alerting.promql import Labels, aggregate, ratio
from prober.alerting.rules import Dashboard
from prober.brokers.calls import Operation
from prober.probes.context import DeliveryKind
from prober.sinks.metrics import families
from prober.sinks.metrics.label_values import PublishOutcome
from prober.sinks.metrics.scopes import TARGET
from prober.slo.indicators import Indicator


def publisher_board(thresholds: Thresholds) -> Board:
    """Return the dashboard of the publisher."""
    return Board(
        Dashboard.PUBLISHER,
        "Ordering keys / Publisher",
        "Does the service take messages, how fast, and how often does nobody know whether it did?",
        (
            PanelRow(
                "At a glance",
                (_confirmed(thresholds), _published(), _rejected(thresholds), _unsent(thresholds), _unknown(), _duplicates()),
            ),
            PanelRow("Availability", (_outcomes(), _not_confirmed(thresholds), _unreachable(), _errors())),
            PanelRow("Latency", duration_panels(PUBLISH, thresholds)),
            PanelRow("By topic", (_topics(thresholds),)),
        ),
        by=("topic", "target", "region", "environment", "instance"),
    )


def _confirmed(thresholds: Thresholds) -> Panel:
    words = Words(
        "Publishes confirmed",
        "The share of the publishes that the schedule wanted which the service confirmed, in the time range.",
        ("PubsubErrorBudgetBurn",),
    )
    steps = thresholds.good_share(Indicator.PUBLISH_AVAILABILITY)
    return stat_panel(words, _share_in_range(PublishOutcome.CONFIRMED), SHARE, steps, width=8)


def _published() -> Panel:
    words = Words("Messages published", "Messages that the prober tried to publish in the time range, whatever the outcome.")
    return stat_panel(words, increase_of(families.PUBLISHES, window=RANGE), COUNT, width=8)


def _rejected(thresholds: Thresholds) -> Panel:
    words = Words("Publishes rejected", "The share of publishes that the service refused, in the time range.")
    steps = thresholds.bad_share(Indicator.PUBLISH_AVAILABILITY)
    return stat_panel(words, _share_in_range(PublishOutcome.REJECTED), SHARE, steps, width=8)


def _unsent(thresholds: Thresholds) -> Panel:
    words = Words(
        "Publishes never sent",
        "The share of the publishes that the schedule wanted which were not sent, in the time range, since the target was unreachable.",
        ("PubsubTargetUnreachable", "PubsubErrorBudgetBurn"),
    )
    share = ratio(increase_of(families.PUBLISHES_UNSENT, window=RANGE), _wanted(_increase_in_range))
    return stat_panel(words, share, SHARE, thresholds.bad_share(Indicator.PUBLISH_AVAILABILITY), width=8)


def _unknown() -> Panel:
    words = Words(
        "Publishes without an answer",
        "Publishes without a definite answer, in the time range: the service may have stored them or not.",
        ("PubsubPublishesUnknown",),
    )
    unknown = increase_of(families.PUBLISHES, window=RANGE, outcome=PublishOutcome.UNKNOWN)
    return stat_panel(words, unknown, COUNT, ANY_IS_UNKNOWN, width=8)


def _duplicates() -> Panel:
    words = Words(
        "Duplicates received", "Messages received that a retry of the publisher stored a second time. Allowed, and worth knowing."
    )
    copies = increase_of(families.DELIVERIES, window=RANGE, kind=DeliveryKind.PUBLISHER_DUPLICATE)
    return stat_panel(words, copies, COUNT, width=8)


def _outcomes() -> Panel:
    words = Words("Publishes by outcome", "Publishes that the schedule wanted, per second, by what became of them.")
    asked = [
        Query(rate_of(families.PUBLISHES, "outcome"), "{{outcome}}"),
        Query(rate_of(families.PUBLISHES_UNSENT), "never sent"),
    ]
    return graph_panel(words, Look(PER_SECOND, bars=True), *asked)


def _not_confirmed(thresholds: Thresholds) -> Panel:
    words = Words(
        "Publishes not confirmed",
        "The share of publishes that were rejected, not answered, or never sent since the target was unreachable, by what is chosen "
        "above. Above the dashed line the error budget does not last its period.",
        ("PubsubErrorBudgetBurn",),
    )
    lost = rate_of(families.PUBLISHES, BY, outcome=(PublishOutcome.REJECTED, PublishOutcome.UNKNOWN))
    look = Look(SHARE, thresholds.bad_share(Indicator.PUBLISH_AVAILABILITY))
    return graph_panel(words, look, ratio(_with_unsent(lost, rate, BY), _wanted(rate, BY)))


def _unreachable() -> Panel:
    words = Words(
        "Runs in a row that could not reach the target",
        "Up to the last run, the most on any subscription, by target. From the dashed line on, and if no publish is confirmed meanwhile, "
        "somebody is paged.",
        ("PubsubTargetUnreachable",),
    )
    runs = aggregate(select(families.UNREACHABLE_RUNS), "target", "max")
    return graph_panel(words, Look(COUNT, red_above(limits("service")["unreachable_runs"])), runs)


def _errors() -> Panel:
    words = Words(
        "Errors of calls to publish, by code",
        "Calls that ended with an error, repetitions of the client library included, by gRPC status code. Empty: none did, if the panels "
        "above show publishes.",
        ("PubsubProberNotPermitted", "PubsubProberQuotaExceeded"),
    )
    failed = increase_of(families.TARGET_ERRORS, "code", operation=Operation.PUBLISH)
    return graph_panel(words, Look(COUNT, bars=True), Query(f"{failed} > 0", "{{code}}"))


def _topics(thresholds: Thresholds) -> Panel:
    words = Words("Topics", "What was published to each topic in the time range, and how fast that was.")
    by = ("topic", *TARGET)
    published = increase_of(families.PUBLISHES, by, RANGE)
    latency = select(families.PUBLISH_LATENCY, "_bucket")
    columns = [
        TableColumn("Published", published, COUNT),
        TableColumn(
            "Confirmed", _share_in_range(PublishOutcome.CONFIRMED, by), SHARE, thresholds.good_share(Indicator.PUBLISH_AVAILABILITY)
        ),
        TableColumn(
            "Unknown",
            increase_of(families.PUBLISHES, by, RANGE, outcome=PublishOutcome.UNKNOWN),
            COUNT,
            ANY_IS_UNKNOWN,
        ),
        TableColumn(
            "99 %",
            f"histogram_quantile(0.99, {aggregate(increase(latency, RANGE), ('le', *by))})",
            SECONDS,
            thresholds.duration(Indicator.PUBLISH_LATENCY),
        ),
    ]
    return table_panel(words, Look(COUNT, width=24, height=8), by, columns)


def _share_in_range(outcome: PublishOutcome, by: Labels = "") -> str:
    return ratio(increase_of(families.PUBLISHES, by, RANGE, outcome=outcome), _wanted(_increase_in_range, by))


def _increase_in_range(selector: str) -> str:
    return increase(selector, RANGE)


def _wanted(growth: Callable[[str], str], by: Labels = "") -> str:
    """Return the query of the scheduled publishes: attempted ones, and those not sent because the target was unreachable."""
    return _with_unsent(aggregate(growth(select(families.PUBLISHES)), by), growth, by)


def _with_unsent(part: str, growth: Callable[[str], str], by: Labels) -> str:
    """Add unsent publishes to a query; probers of older versions do not count them."""
    return f"({part} + {aggregate(growth(select(families.PUBLISHES_UNSENT)), by)} or {part})"
