"""Alerts about what the prober depends on and leaves behind: its API and its store, permissions and quotas, leftovers, too many names."""

from __future__ import annotations

from typing import Final

from prober.alerting.promql import (
    PROCESS,
    binary,
    bracketed,
    group_by,
    max_by,
    news,
    prom_duration,
    selector,
    series,
)
from prober.alerting.rules import (
    ON_TARGET,
    REMEMBERED,
    SILENT_FOR_S,
    WINDOW_S,
    AlertingRule,
    Options,
    Severity,
    prober_alert,
)
from prober.brokers.calls import ErrorCode
from prober.sinks.metrics import families
from prober.sinks.metrics.families import TARGET
from prober.slo.objectives import HOUR_S

LEFT_FOR_S: Final = 7 * HOUR_S
"""More than between two sweeps."""
PROJECT: Final = ("project",)
REFUSED: Final = (*TARGET, "operation", "code")
FOLDED: Final = (*TARGET, "label")

STORE_DOWN: Final = f"({max_by(PROCESS, series(families.STATUS_STORE_UP))} == 0)"
"""The processes for which the status store does not answer."""


def rules(options: Options) -> tuple[AlertingRule, ...]:
    """All of them."""
    return (_api_down(options), _store_down(), _not_permitted(), _quota(), _leftovers(), _names_folded())


def _api_down(options: Options) -> AlertingRule:
    """The API as a process of its own; that of a prober is down when the prober is."""
    up = selector("up", PROCESS, job=f"{options.scrape_job}-api")
    gone = binary("unless", group_by(("job",), f"last_over_time({up}[{REMEMBERED}])"), group_by(("job",), up))
    return prober_alert(
        "PubsubProberApiDown",
        binary("or", bracketed(f"{up} == 0"), bracketed(gone)),
        Severity.WARNING,
        "The API does not answer scrapes.",
        "{{ with $labels.instance }}The API at {{ . }} has not answered{{ else }}All of the API has been gone{{ end }} for "
        f"{prom_duration(SILENT_FOR_S)}. Probes and alerts go on; pages and programs may get no answer.",
        PROCESS,
        SILENT_FOR_S,
    )


def _store_down() -> AlertingRule:
    return prober_alert(
        "PubsubProberStatusStoreDown",
        STORE_DOWN,
        Severity.WARNING,
        "The status store does not answer.",
        "The status store has taken nothing from {{ $labels.instance }} and given it nothing for "
        f"{prom_duration(SILENT_FOR_S)}: pages show what was before, and probers cannot divide the work.",
        PROCESS,
        SILENT_FOR_S,
    )


def _not_permitted() -> AlertingRule:
    refused = series(families.TARGET_ERRORS, code=(ErrorCode.PERMISSION_DENIED, ErrorCode.UNAUTHENTICATED))
    return prober_alert(
        "PubsubProberNotPermitted",
        f"{news(REFUSED, refused, WINDOW_S)} > 0",
        Severity.WARNING,
        "A target refuses the prober's account.",
        f"Calls to {{{{ $labels.operation }}}} at {ON_TARGET} ended with {{{{ $labels.code }}}} within the last {prom_duration(WINDOW_S)}: "
        "credentials or roles are missing or were taken away.",
        REFUSED,
    )


def _quota() -> AlertingRule:
    labels = (*TARGET, "operation")
    return prober_alert(
        "PubsubProberQuotaExceeded",
        f"{news(labels, series(families.TARGET_ERRORS, code=ErrorCode.RESOURCE_EXHAUSTED), WINDOW_S)} > 0",
        Severity.WARNING,
        "A target says that a quota is used up.",
        f"Calls to {{{{ $labels.operation }}}} at {ON_TARGET} ended with {ErrorCode.RESOURCE_EXHAUSTED} within the last "
        f"{prom_duration(WINDOW_S)}. The prober, or others in the project, use up a quota.",
        labels,
    )


def _leftovers() -> AlertingRule:
    """What is not known is not a number, and so is not equal to itself."""
    left = max_by(PROJECT, series(families.LEFTOVERS))
    return prober_alert(
        "PubsubProberLeftovers",
        binary("or", f"{left} > 0", f"({left} != {left})"),
        Severity.WARNING,
        "Topics and subscriptions of former probers stay behind.",
        "In the project {{ $labels.project }} the sweep cannot delete what probers have left that are long gone, or cannot look for it, "
        f"for {prom_duration(LEFT_FOR_S)}: it uses up quotas, and subscriptions keep messages.",
        PROJECT,
        LEFT_FOR_S,
    )


def _names_folded() -> AlertingRule:
    return prober_alert(
        "PubsubProberNamesFolded",
        f"{news(FOLDED, series(families.FOLDED_NAMES), WINDOW_S)} > 0",
        Severity.WARNING,
        "Metrics tell names apart no more, because there are too many.",
        f"At {ON_TARGET} there are more names of a {{{{ $labels.label }}}} than metrics tell apart. What is beyond the limit is counted "
        "together as `other`.",
        FOLDED,
    )
