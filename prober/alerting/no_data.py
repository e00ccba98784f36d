"""Alerts about nobody looking.

No data is noticed in five ways, since each alone misses something: the process does not answer a scrape, it answers and no run ends,
it ends runs and none passes, a target that was there is there no more, or a target is under maintenance for too long. One prober that
dies is one page: the ways exclude each other here, or inhibit each other in Alertmanager where they share the labels of a target.
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
    on,
    prom_duration,
    prom_number,
    selector,
    series,
)
from prober.alerting.rules import (
    AT,
    ON_TARGET,
    REMEMBERED,
    SILENT_FOR_S,
    WINDOW_S,
    AlertingRule,
    Options,
    RecordingRule,
    Severity,
    prober_alert,
)
from prober.sinks.metrics import families
from prober.sinks.metrics.families import PREFIX, TARGET, Family
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S

DOWN_FOR_S: Final = 5 * MINUTE_S
ABSENT_FOR_S: Final = 5 * MINUTE_S
"""As long as a prober is down: when the last one is gone, this is all that is told about it."""
STARTING_S: Final = 5 * MINUTE_S
"""So soon after its start a prober need not know yet what is owed."""
KNOWN: Final = f"instance:{PREFIX}_targets:known"
"""What each process probes, and what one probed that does not answer any more, as long as it is scraped and for six hours after."""
FREQUENT_S: Final = 5 * MINUTE_S
"""Probes that run at least so often must have ended a run within the window; rarer ones are judged by the age of the last pass."""
STALE_S: Final = 15 * MINUTE_S
STALE_INTERVALS: Final = 3
STALE_FOR_S: Final = 15 * MINUTE_S
MAINTENANCE_MAX_S: Final = 8 * HOUR_S
"""Of a day: longer maintenance is more likely forgotten than meant."""
MAINTENANCE_STEP_S: Final = 5 * MINUTE_S
DOWN: Final = "PubsubProberDown"


def no_data_rules(options: Options) -> tuple[RecordingRule | AlertingRule, ...]:
    """All of them."""
    return (
        _known(options),
        _down(options),
        _taken_over(options),
        _absent(options),
        _runs_missing(),
        _stale(),
        _vanished(options),
        _maintenance_long(),
    )


def _known(options: Options) -> RecordingRule:
    """Goes on by itself while a process is silent: however long that lasts, it stays known what nobody probes.

    One that is not even asked any more is forgotten as soon as another probes the same: it was replaced.
    """
    now = group_by((*PROCESS, *TARGET), series(families.TARGET_INFO))
    asked = f"{KNOWN} and {on(PROCESS)} ({_up(options)} == 0)"
    return RecordingRule(KNOWN, binary("or", now, bracketed(asked), bracketed(_abandoned(options))))


def _up(options: Options) -> str:
    return selector("up", PROCESS, job=options.scrape_job)


def _silent(options: Options) -> str:
    """The processes that did not answer when they were last asked, also when nobody asks them any more."""
    return f"(last_over_time({_up(options)}[{REMEMBERED}]) == 0)"


def _abandoned(options: Options) -> str:
    """The targets of silent processes that no other process probes."""
    return binary(
        f"unless {on(TARGET)}",
        f"{KNOWN} and {on(PROCESS)} {_silent(options)}",
        group_by(TARGET, series(families.TARGET_INFO)),
    )


def _down(options: Options) -> AlertingRule:
    """Carries the targets that no other process watches, so that it inhibits what is said about them, and only them.

    Where it is not known what a process is to probe, it is not known either that others do; unless it takes the place of one that is told.
    """
    abandoned = bracketed(_abandoned(options))
    unknown = binary("unless on (job)", f"({_up(options)} == 0) unless {on(PROCESS)} {KNOWN}", abandoned)
    return prober_alert(
        DOWN,
        binary("or", abandoned, bracketed(unknown)),
        Severity.CRITICAL,
        "A prober does not answer scrapes.",
        f"{AT} has not answered for {prom_duration(DOWN_FOR_S)}. "
        "{{ with $labels.target }}Nobody probes {{ . }}.{{ else }}Nobody knows what it is to probe.{{ end }}",
        PROCESS,
        DOWN_FOR_S,
    )


def _taken_over(options: Options) -> AlertingRule:
    """Not urgent: everything is probed, and only the next loss would matter."""
    known = f"({_up(options)} == 0) and {on(PROCESS)} {KNOWN}"
    return prober_alert(
        DOWN,
        binary(f"unless {on(PROCESS)}", known, bracketed(_abandoned(options))),
        Severity.WARNING,
        "A prober does not answer scrapes.",
        f"{AT} has not answered for {prom_duration(DOWN_FOR_S)}. Other probers have taken over all that it probed.",
        PROCESS,
        DOWN_FOR_S,
    )


def _absent(options: Options) -> AlertingRule:
    """Says nothing of what is told already: that a prober was down before it was gone."""
    return prober_alert(
        "PubsubProberAbsent",
        binary("unless on (job)", f"absent({_up(options)})", bracketed(_abandoned(options))),
        Severity.CRITICAL,
        "Prometheus knows no prober at all.",
        f"Nothing with the job {options.scrape_job} has been scraped for {prom_duration(ABSENT_FOR_S)}: "
        "no prober runs, or Prometheus does not scrape it under that name.",
        ("job",),
        ABSENT_FOR_S,
    )


def _runs_missing() -> AlertingRule:
    """Also where the scheduler is stuck, which asks for no run then: the counter is flat.

    Not where no prober answers: that has an alert of its own, and this one is over before that hides the word that it is.
    """
    answers = group_by(PROBE, series(families.PROBE_RUNS))
    flat = f"({increase_by(PROBE, series(families.PROBE_RUNS), prom_duration(WINDOW_S))} == 0 and {answers})"
    rare = f"({max_by(PROBE, series(families.PROBE_INTERVAL))} > {prom_number(FREQUENT_S)})"
    expression = binary(f"unless {on(PROBE)}", flat, rare)
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
    expression = binary(f"unless {on(PROBE)}", f"{age} > {limit}", failing)
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


def _vanished(options: Options) -> AlertingRule:
    """Of some targets, while others are probed: where no prober is left at all, that is told instead."""

    def gone(family: Family) -> str:
        selected = series(family)
        return f"{group_by(TARGET, f'last_over_time({selected}[{REMEMBERED}])')} unless {group_by(TARGET, selected)}"

    young = f"time() - {series(families.START)} < {prom_number(STARTING_S)}"
    starting = group_by(TARGET, f"{series(families.TARGET_INFO)} and {on(PROCESS)} {young}")
    owed = binary(f"unless {on(TARGET)}", gone(families.OLDEST_UNACKED_AGE), starting)
    some = binary("or", bracketed(gone(families.TARGET_INFO)), bracketed(owed))
    return prober_alert(
        "PubsubProberSeriesVanished",
        binary("unless on ()", bracketed(some), f"absent({_up(options)})"),
        Severity.CRITICAL,
        "A target that was probed is not probed any more.",
        f"The series of {ON_TARGET} were there within the last {REMEMBERED} and are gone.",
        TARGET,
        SILENT_FOR_S,
    )


def _maintenance_long() -> AlertingRule:
    """Adds up what is under maintenance within a day, in whatever windows: most other alerts are silent for so long."""
    under = max_by(TARGET, series(families.UNDER_MAINTENANCE))
    within = f"sum_over_time(({under})[{prom_duration(DAY_S)}:{prom_duration(MAINTENANCE_STEP_S)}])"
    return prober_alert(
        "PubsubProberMaintenanceLong",
        binary("and", f"{within} * {prom_number(MAINTENANCE_STEP_S)} > {prom_number(MAINTENANCE_MAX_S)}", f"{under} == 1"),
        Severity.WARNING,
        "A target is under maintenance for longer than a working day.",
        f"{ON_TARGET} was under maintenance for {{{{ $value | humanizeDuration }}}} of the last {prom_duration(DAY_S)} and still is: it is "
        "neither probed nor judged, and nobody is told of anything there.",
        TARGET,
    )


def _unless_maintained(expression: str, window_s: float) -> str:
    """Not while a target is under maintenance, nor until the window is past it."""
    was = f"max_over_time({series(families.UNDER_MAINTENANCE)}[{prom_duration(window_s)}])"
    return binary(f"unless {on(TARGET)}", expression, f"({max_by(TARGET, was)} == 1)")
