"""Common parts of several dashboards: kinds of durations, kinds of checks, and the share of due runs with a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashboards.panels import SECONDS, SHARE, Look, Panel, Words, graph_panel, heatmap_panel, stat_panel
from dashboards.queries import BY, RANGE, Query, increase, increase_of, quantile, select, slower_share
from dashboards.thresholds import Thresholds, red_below
from prober.alerting.catalogue import limits
from prober.alerting.findings import OVERDUE, VIOLATED
from prober.alerting.promql import PROCESS, aggregate, ratio
from prober.core.findings import Kind
from prober.core.kinds import Guarantee, breaking
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from prober.sinks.metrics.label_values import SkipReason
from prober.sinks.metrics.scopes import PROBE_INSTANCE
from prober.slo.indicators import Indicator

BUDGET: Final = ("PubsubErrorBudgetBurn",)

# --- durations ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DurationKind:
    """Properties of a kind of duration beside its declaration: its name in titles, and the measured events."""

    name: str
    indicator: Indicator
    meaning: str

    @property
    def family(self) -> Family:
        """Histogram of the durations."""
        return families.LATENCIES[self.indicator]


PUBLISH: Final = DurationKind(
    "Publish latency",
    Indicator.PUBLISH_LATENCY,
    "From the time at which a message was to be sent to the service's confirmation.",
)
END_TO_END: Final = DurationKind(
    "End-to-end latency",
    Indicator.END_TO_END_LATENCY,
    "From the time at which a message was to be sent to its first receipt.",
)
REDELIVERY: Final = DurationKind(
    "Redelivery latency", Indicator.REDELIVERY_LATENCY, "From a refusal or the end of a lease to the next receipt."
)
CONTROL_PLANE: Final = DurationKind(
    "Administration latency",
    Indicator.CONTROL_PLANE_LATENCY,
    "How long administration calls take: topics and subscriptions created, listed, deleted, seeks.",
)
PULL: Final = DurationKind(
    "Pull latency",
    Indicator.PULL_LATENCY,
    "From the time at which the first message of a key was to be sent to its receipt by pull.",
)
PUSH: Final = DurationKind(
    "Push latency",
    Indicator.PUSH_LATENCY,
    "From the time at which the first message of a key was to be sent to its receipt by push.",
)
CREATION_TO_RECEIPT: Final = DurationKind(
    "Creation to first receipt",
    Indicator.CREATION_TO_RECEIPT_LATENCY,
    "From the request to create a subscription to the first receipt there.",
)
HEAD_OF_LINE: Final = DurationKind(
    "Head-of-line delay",
    Indicator.HEAD_OF_LINE_DELAY,
    "How much longer messages of other keys take while one key, or another subscription of the topic, is held unacknowledged.",
)


def duration_panels(durations: DurationKind, thresholds: Thresholds) -> tuple[Panel, ...]:
    """Return the panels of a kind of duration: quantiles, distribution, breakdown of the p99, share above the threshold.

    They fill two rows of two panels, or without an objective one row of three.
    """
    slow = _too_slow(durations, thresholds)
    width = 12 if slow else 8
    return (
        _quantiles(durations, thresholds, width),
        _distribution(durations, thresholds, width),
        _broken_down(durations, thresholds, width),
        *slow,
    )


def _quantiles(durations: DurationKind, thresholds: Thresholds, width: int) -> Panel:
    words = Words(
        f"{durations.name}: 50 %, 95 %, 99 %",
        f"{durations.meaning} Half, 95 % and 99 % took at most this long, estimated from buckets{_line(durations, thresholds)}. Dots are "
        "single messages or calls: they name the run and, if traces are collected, lead to its trace.",
        _runbooks(durations, thresholds),
    )
    asked = [
        Query(quantile(at, durations.family), name, exemplars=at == 0.99)
        for at, name in ((0.5, "50 %"), (0.95, "95 %"), (0.99, "99 %"))
    ]
    return graph_panel(words, Look(SECONDS, thresholds.duration(durations.indicator), width=width), *asked)


def _distribution(durations: DurationKind, thresholds: Thresholds, width: int) -> Panel:
    words = Words(
        f"{durations.name}: distribution",
        f"{durations.meaning} How many took how long. Two bands mean that two different things happen.",
        _runbooks(durations, thresholds),
    )
    asked = Query(aggregate(increase(select(durations.family, "_bucket")), "le"), "{{le}}", exemplars=True)
    return heatmap_panel(words, Look(SECONDS, width=width), asked)


def _broken_down(durations: DurationKind, thresholds: Thresholds, width: int) -> Panel:
    words = Words(
        f"{durations.name}: 99 %, broken down",
        f"{durations.meaning} 99 % took at most this long, broken down by what is chosen above.",
        _runbooks(durations, thresholds),
    )
    return graph_panel(
        words, Look(SECONDS, thresholds.duration(durations.indicator), width=width), quantile(0.99, durations.family, BY)
    )


def _too_slow(durations: DurationKind, thresholds: Thresholds) -> tuple[Panel, ...]:
    """Return the panel of the share above the objective's threshold, by the chosen label; empty without an objective."""
    threshold_s = thresholds.threshold_s(durations.indicator)
    if threshold_s is None:
        return ()
    words = Words(
        f"{durations.name}: share above {threshold_s:g} s",
        f"{durations.meaning} The share that took longer than the objective's threshold, exact, broken down by what is chosen above. "
        "Above the dashed line the error budget does not last its period.",
        BUDGET,
    )
    look = Look(SHARE, thresholds.bad_share(durations.indicator))
    return (graph_panel(words, look, slower_share(durations.family, threshold_s, BY)),)


def _line(durations: DurationKind, thresholds: Thresholds) -> str:
    return "" if thresholds.threshold_s(durations.indicator) is None else "; the dashed line is the objective's threshold"


def _runbooks(durations: DurationKind, thresholds: Thresholds) -> tuple[str, ...]:
    return () if thresholds.threshold_s(durations.indicator) is None else BUDGET


# --- checks ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckKind:
    """Properties of a kind of check beside its declaration.

    These are its name, the text of a failure, and the guarantee.
    """

    name: str
    broken: str
    indicator: Indicator
    guarantee: Guarantee
    meaning: str

    @property
    def family(self) -> Family:
        """Counter of the checks."""
        return families.CHECKS[self.indicator]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Findings that report a failed check."""
        return breaking(self.guarantee)

    @property
    def runbooks(self) -> tuple[str, ...]:
        """Alerts about failed checks."""
        return (VIOLATED[self.guarantee][0] if self.guarantee in VIOLATED else OVERDUE,)


ORDER: Final = CheckKind(
    "Order",
    "Messages out of order",
    Indicator.ORDER,
    Guarantee.ORDER,
    "Messages of a key are first received in the order in which the service received them.",
)
REDELIVERED: Final = CheckKind(
    "Redelivery",
    "Incomplete redeliveries",
    Indicator.REDELIVERY,
    Guarantee.REDELIVERY,
    "A redelivered message brings all later ones of its key along, acknowledged or not.",
)
AFFINITY: Final = CheckKind(
    "Affinity",
    "Keys moved too early",
    Indicator.AFFINITY,
    Guarantee.ONE_HOLDER,
    "While messages of a key are outstanding, the key stays at one subscriber.",
)
COMPLETENESS: Final = CheckKind(
    "Completeness",
    "Messages late or lost",
    Indicator.COMPLETENESS,
    Guarantee.LIVENESS,
    "What was confirmed is delivered by the deadline.",
)
CHECKS: Final = (ORDER, REDELIVERED, AFFINITY, COMPLETENESS)
INTEGRITY_KINDS: Final = breaking(Guarantee.INTEGRITY)
OVERLAP_KINDS: Final = breaking(Guarantee.ONE_OUTSTANDING)


# --- coverage ----------------------------------------------------------------------------------------------------------------


COMPLETED: Final = red_below(limits("prober")["coverage"])
VERIFIED: Final = red_below(1 - limits("prober")["unknown_share"])
RUN_BY: Final = ", ".join((*PROBE_INSTANCE, *PROCESS))
"""Labels of a probe instance and its prober. Shares over fewer labels hide a failed instance among working ones."""


def due() -> str:
    """Return the query of scheduled runs of each probe instance in the time range, without runs skipped for maintenance."""
    skipped = increase_of(families.SCHEDULER_SKIPS, RUN_BY, RANGE, reason=SkipReason.MAINTENANCE)
    return f"{increase_of(families.PROBE_RUNS_EXPECTED, RUN_BY, RANGE)} - {skipped}"


def completed_panel(width: int) -> Panel:
    """Return the panel of the lowest share of due runs that ended."""
    words = Words(
        "Runs completed",
        "The share of the runs due in the time range, outside of maintenance, that ended, with any verdict: the lowest of all probers, "
        "probes, vantages and parts.",
        ("PubsubProberCoverageLow",),
    )
    return stat_panel(words, aggregate(completed_share(), how="min"), SHARE, COMPLETED, width=width)


def completed_share() -> str:
    """Return the query of the share of due runs that ended, with any verdict, of each probe instance."""
    return ratio(increase_of(families.PROBE_RUNS, RUN_BY, RANGE), f"({due()})")


def verified_share() -> str:
    """Return the query of the share of ended runs with PASS or FAIL, of each probe instance."""
    verified = increase_of(families.PROBE_RUNS, RUN_BY, RANGE, verdict=("pass", "fail"))
    return ratio(verified, increase_of(families.PROBE_RUNS, RUN_BY, RANGE))


# --- findings ----------------------------------------------------------------------------------------------------------------

EVIDENCE: Final = "${status_page:raw}/findings?since=${__from:date:iso}&until=${__to:date:iso}"
"""Address of the findings in the time range on the status page, with their evidence."""
EVIDENCE_OF_KIND: Final = f"{EVIDENCE}&kind=${{__field.labels.kind}}"
"""Address of the findings of the series' kind."""
