"""Publisher: does the service take messages, how fast, and how often does nobody know whether it did?"""

from __future__ import annotations

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
from dashboards.promql import BY, RANGE, Query, increase, rate, ratio, select, total
from dashboards.thresholds import ANY_IS_UNKNOWN, NO_JUDGEMENT, Thresholds
from prober.probes.context import DeliveryKind
from prober.sinks.metrics import families
from prober.sinks.metrics.families import PublishOutcome
from prober.slo.indicators import Indicator


def board(thresholds: Thresholds) -> Board:
    """The dashboard."""
    return Board(
        "okp-publisher",
        "Ordering keys / Publisher",
        "Does the service take messages, how fast, and how often does nobody know whether it did?",
        (
            PanelRow("At a glance", (_confirmed(thresholds), _published(), _rejected(thresholds), _unknown(), _duplicates())),
            PanelRow("Availability", (_outcomes(), _not_confirmed(thresholds))),
            PanelRow("Latency", duration_panels(PUBLISH, thresholds)),
            PanelRow("By topic", (_topics(thresholds),)),
        ),
        by=("topic", "target", "region", "environment", "instance"),
    )


def _confirmed(thresholds: Thresholds) -> Panel:
    words = Words(
        "Publishes confirmed",
        "The share of publishes that the service confirmed, in the time range.",
        ("PubsubErrorBudgetBurn",),
    )
    look = Look(SHARE, thresholds.good_share(Indicator.PUBLISH_AVAILABILITY), width=5, height=4)
    return stat_panel(words, look, Query(_share_in_range(PublishOutcome.CONFIRMED), instant=True))


def _published() -> Panel:
    words = Words("Messages published", "Messages that the prober tried to publish in the time range, whatever the outcome.")
    return stat_panel(
        words, Look(COUNT, width=5, height=4), Query(total(increase(select(families.PUBLISHES), RANGE)), instant=True)
    )


def _rejected(thresholds: Thresholds) -> Panel:
    words = Words("Publishes rejected", "The share of publishes that the service refused, in the time range.")
    look = Look(SHARE, thresholds.bad_share(Indicator.PUBLISH_AVAILABILITY), width=5, height=4)
    return stat_panel(words, look, Query(_share_in_range(PublishOutcome.REJECTED), instant=True))


def _unknown() -> Panel:
    words = Words(
        "Publishes without an answer",
        "Publishes without a definite answer, in the time range: the service may have stored them or not.",
        ("PubsubPublishesUnknown",),
    )
    unknown = total(increase(select(families.PUBLISHES, outcome=PublishOutcome.UNKNOWN), RANGE))
    return stat_panel(words, Look(COUNT, ANY_IS_UNKNOWN, width=5, height=4), Query(unknown, instant=True))


def _duplicates() -> Panel:
    words = Words(
        "Duplicates received", "Messages received that a retry of the publisher stored a second time. Allowed, and worth knowing."
    )
    copies = total(increase(select(families.DELIVERIES, kind=DeliveryKind.PUBLISHER_DUPLICATE), RANGE))
    return stat_panel(words, Look(COUNT, NO_JUDGEMENT, width=4, height=4), Query(copies, instant=True))


def _outcomes() -> Panel:
    words = Words("Publishes by outcome", "Messages published per second, by what became of them.")
    return graph_panel(words, Look(PER_SECOND, bars=True), Query(total(rate(select(families.PUBLISHES)), "outcome"), "{{outcome}}"))


def _not_confirmed(thresholds: Thresholds) -> Panel:
    words = Words(
        "Publishes not confirmed",
        "The share of publishes that were rejected or not answered, by what is chosen above. Above the dashed line "
        "the error budget does not last its period.",
        ("PubsubErrorBudgetBurn",),
    )
    lost = total(rate(select(families.PUBLISHES, outcome=(PublishOutcome.REJECTED, PublishOutcome.UNKNOWN))), BY)
    look = Look(SHARE, thresholds.bad_share(Indicator.PUBLISH_AVAILABILITY))
    return graph_panel(words, look, Query(ratio(lost, total(rate(select(families.PUBLISHES)), BY))))


def _topics(thresholds: Thresholds) -> Panel:
    words = Words("Topics", "What was published to each topic in the time range, and how fast that was.")
    by = "environment, region, target, topic"
    published = total(increase(select(families.PUBLISHES), RANGE), by)
    latency = select(families.PUBLISH_LATENCY, "_bucket")
    columns = [
        TableColumn("Published", published, COUNT),
        TableColumn(
            "Confirmed", _share_in_range(PublishOutcome.CONFIRMED, by), SHARE, thresholds.good_share(Indicator.PUBLISH_AVAILABILITY)
        ),
        TableColumn(
            "Unknown", total(increase(select(families.PUBLISHES, outcome=PublishOutcome.UNKNOWN), RANGE), by), COUNT, ANY_IS_UNKNOWN
        ),
        TableColumn(
            "99 %",
            f"histogram_quantile(0.99, {total(increase(latency, RANGE), f'le, {by}')})",
            SECONDS,
            thresholds.duration(Indicator.PUBLISH_LATENCY),
        ),
    ]
    headings = {"topic": "Topic", "target": "Target", "environment": "Environment", "region": "Region"}
    return table_panel(words, Look(COUNT, width=24, height=8), headings, columns)


def _share_in_range(outcome: PublishOutcome, by: str = "") -> str:
    part = total(increase(select(families.PUBLISHES, outcome=outcome), RANGE), by)
    return ratio(part, total(increase(select(families.PUBLISHES), RANGE), by))
