"""Alerts about nobody looking.

No data is noticed in four ways, since each alone misses something: the process does not answer a scrape, it answers and no run ends,
it ends runs and none passes, or a target that was there is there no more.
"""

from __future__ import annotations

from typing import Final

from prober.alerting.promql import (
    PROBE,
    PROCESS,
    binary,
    bracketed,
    group_by,
    increase_by,
    max_by,
    prom_duration,
    prom_number,
    selector,
    series,
)
from prober.alerting.rules import AT, ON_TARGET, SILENT_FOR_S, WINDOW_S, AlertingRule, Options, Severity, prober_alert
from prober.sinks.metrics import families
from prober.sinks.metrics.families import TARGET, Family
from prober.slo.objectives import HOUR_S, MINUTE_S

REMEMBERED: Final = "6h"
"""For so long it is noticed that a target is missing which was there."""
DOWN_FOR_S: Final = 5 * MINUTE_S
ABSENT_FOR_S: Final = 15 * MINUTE_S
FREQUENT_S: Final = 5 * MINUTE_S
"""Probes that run at least so often must have ended a run within the window; rarer ones are judged by the age of the last pass."""
STALE_S: Final = 15 * MINUTE_S
STALE_INTERVALS: Final = 3
STALE_FOR_S: Final = 15 * MINUTE_S


def rules(options: Options) -> tuple[AlertingRule, ...]:
    """All of them."""
    return (_down(options), _absent(options), _runs_missing(), _stale(), _vanished())


def _down(options: Options) -> AlertingRule:
    """Carries the targets that no other process watches, so that it inhibits what is said about them, and only them."""
    down = f"({selector('up', PROCESS, job=options.scrape_job)} == 0)"
    watched = group_by((*PROCESS, *TARGET), f"last_over_time({series(families.TARGET_INFO)}[{REMEMBERED}])")
    abandoned = binary(
        f"unless on ({', '.join(TARGET)})",
        binary(f"and on ({', '.join(PROCESS)})", watched, down),
        group_by(TARGET, series(families.TARGET_INFO)),
    )
    on_process = ", ".join(PROCESS)
    return prober_alert(
        "PubsubProberDown",
        binary("or", bracketed(abandoned), bracketed(binary(f"unless on ({on_process})", down, bracketed(abandoned)))),
        Severity.CRITICAL,
        "A prober does not answer scrapes.",
        f"{AT} has not answered for {prom_duration(DOWN_FOR_S)}. "
        "{{ with $labels.target }}Nobody probes {{ . }}.{{ else }}What it probed is left to other probers, if there are any.{{ end }}",
        PROCESS,
        DOWN_FOR_S,
    )


def _absent(options: Options) -> AlertingRule:
    return prober_alert(
        "PubsubProberAbsent",
        f"absent({selector('up', PROCESS, job=options.scrape_job)})",
        Severity.CRITICAL,
        "Prometheus knows no prober at all.",
        f"Nothing with the job {options.scrape_job} has been scraped for {prom_duration(ABSENT_FOR_S)}: nobody probes anything.",
        ("job",),
        ABSENT_FOR_S,
    )


def _runs_missing() -> AlertingRule:
    """Also where the scheduler is stuck, which asks for no run then: the counter is flat."""
    flat = f"{increase_by(PROBE, series(families.PROBE_RUNS), prom_duration(WINDOW_S))} == 0"
    rare = f"({max_by(PROBE, series(families.PROBE_INTERVAL))} > {prom_number(FREQUENT_S)})"
    expression = binary(f"unless on ({', '.join(PROBE)})", flat, rare)
    return prober_alert(
        "PubsubProberRunsMissing",
        _unless_maintained(expression, WINDOW_S),
        Severity.CRITICAL,
        "A probe has ended no run for a long time.",
        f"No run of {{{{ $labels.probe }}}} at {ON_TARGET} has ended for {prom_duration(WINDOW_S)}, although the prober answers.",
        PROBE,
        SILENT_FOR_S,
    )


def _stale() -> AlertingRule:
    """Where runs fail, the service is accused elsewhere."""
    age = f"time() - {max_by(PROBE, series(families.PROBE_LAST_SUCCESS))}"
    interval = max_by(PROBE, series(families.PROBE_INTERVAL))
    runs = group_by(PROBE, series(families.PROBE_RUNS))
    limit = f"({prom_number(STALE_S)} + {STALE_INTERVALS} * {interval} or {runs} * {prom_number(STALE_S)})"
    failing = f"({increase_by(PROBE, series(families.PROBE_RUNS, verdict='fail'), prom_duration(HOUR_S))} > 0)"
    expression = binary(f"unless on ({', '.join(PROBE)})", f"{age} > {limit}", failing)
    return prober_alert(
        "PubsubProberStale",
        _unless_maintained(expression, STALE_S),
        Severity.WARNING,
        "No run of a probe has passed for a long time, and none has failed.",
        f"The last run of {{{{ $labels.probe }}}} that passed at {ON_TARGET} was {{{{ $value | humanizeDuration }}}} ago. None has failed "
        "since: the prober cannot judge.",
        PROBE,
        STALE_FOR_S,
    )


def _vanished() -> AlertingRule:
    def gone(family: Family) -> str:
        selected = series(family)
        return f"({group_by(TARGET, f'last_over_time({selected}[{REMEMBERED}])')} unless {group_by(TARGET, selected)})"

    return prober_alert(
        "PubsubProberSeriesVanished",
        binary("or", gone(families.TARGET_INFO), gone(families.OLDEST_UNACKED_AGE)),
        Severity.CRITICAL,
        "A target that was probed is not probed any more.",
        f"The series of {ON_TARGET} were there within the last {REMEMBERED} and are gone.",
        TARGET,
        SILENT_FOR_S,
    )


def _unless_maintained(expression: str, window_s: float) -> str:
    """Not while a target is under maintenance, nor until the window is past it."""
    was = f"max_over_time({series(families.UNDER_MAINTENANCE)}[{prom_duration(window_s)}])"
    return binary(f"unless on ({', '.join(TARGET)})", expression, f"({max_by(TARGET, was)} == 1)")
