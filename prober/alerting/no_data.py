"""Alerts about nobody looking.

No data is noticed in five ways, since each alone misses something: the process does not answer a scrape, it answers and no run ends,
it ends runs and none passes, a target that was there is there no more, or a target is under maintenance for too long. One prober that
dies is one page: the ways exclude each other here, or inhibit each other in Alertmanager where they share the labels of a target.
"""

from __future__ import annotations

from typing import Final

from prober.alerting.promql import (
    PROCESS,
    RUN_BY,
    binary,
    bracketed,
    count_by,
    group_by,
    increase_by,
    max_by,
    on,
    outside_maintenance,
    prom_duration,
    prom_number,
    restarted,
    selector,
    series,
)
from prober.alerting.rules import (
    AT,
    COUNT,
    DURATION,
    ON_TARGET,
    PROBE,
    REMEMBERED,
    SILENT_FOR_S,
    WINDOW_S,
    AlertingRule,
    Options,
    RecordingRule,
    Severity,
    Summary,
    either,
    prober_alert,
    subject_of,
)
from prober.sinks.metrics import families
from prober.sinks.metrics.families import PROBE_INSTANCE, TARGET
from prober.sinks.metrics.family import PREFIX, Family
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S

DOWN_FOR_S: Final = 5 * MINUTE_S
ABSENT_FOR_S: Final = 5 * MINUTE_S
"""As long as a prober is down: when the last one is gone, this is all that is told about it."""
STARTING_S: Final = 5 * MINUTE_S
"""So soon after its start a prober need not know yet what is owed."""
KNOWN: Final = f"instance:{PREFIX}_probes:known"
"""The processes that answered, and the probe instances that each runs, or ran before it fell silent: until it is replaced, or six hours
after its last scrape.
"""
RUN: Final = f'{KNOWN}{{probe!=""}}'
"""The probe instances among them."""
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
    """Refers to itself while a process is silent: however long that lasts, its probe instances stay known.

    Those of a process that is scraped no more are forgotten as soon as another prober runs them: the process was replaced.
    """
    assigned = group_by(RUN_BY, series(families.PROBE_ASSIGNED))
    answered = group_by(PROCESS, series(families.START))
    scraped = f"{KNOWN} and {on(PROCESS)} ({_up(options)} == 0)"
    return RecordingRule(KNOWN, binary("or", assigned, answered, bracketed(scraped), bracketed(_abandoned(options))))


def _up(options: Options) -> str:
    return selector("up", PROCESS, job=options.scrape_job)


def _silent(options: Options) -> str:
    """The processes that did not answer their last scrape, also if they are scraped no more."""
    return f"(last_over_time({_up(options)}[{REMEMBERED}]) == 0)"


def _abandoned(options: Options) -> str:
    """The probe instances of silent processes that no other process runs."""
    return binary(
        f"unless {on(PROBE_INSTANCE)}",
        f"{RUN} and {on(PROCESS)} {_silent(options)}",
        group_by(PROBE_INSTANCE, series(families.PROBE_ASSIGNED)),
    )


def _down(options: Options) -> AlertingRule:
    """Carries the targets of which no other prober runs some probe instance, so that it inhibits alerts about the series of these alone.

    If the probe instances of a process are unknown, so is whether others run them; unless it replaces a process that is reported.
    """
    abandoned = bracketed(_abandoned(options))
    unknown = binary("unless on (job)", f"({_up(options)} == 0) unless {on(PROCESS)} {KNOWN}", abandoned)
    return prober_alert(
        DOWN,
        binary("or", count_by((*PROCESS, *TARGET), abandoned), bracketed(unknown)),
        Severity.CRITICAL,
        Summary(
            "A prober does not answer scrapes.",
            either("target", f"probe instances without a prober: {COUNT}", "its probes are unknown"),
            subject=either("target", subject_of((*PROCESS, *TARGET)), subject_of(PROCESS)),
        ),
        f"{AT} has not answered for {prom_duration(DOWN_FOR_S)}. "
        + either(
            "target",
            f"No prober runs {COUNT} of its probe instances at {ON_TARGET}.",
            "Prometheus does not know which probes it ran.",
        ),
        PROCESS,
        DOWN_FOR_S,
    )


def _taken_over(options: Options) -> AlertingRule:
    """Not urgent: every probe instance runs, and only the next loss would matter."""
    known = f"({_up(options)} == 0) and {on(PROCESS)} {KNOWN}"
    return prober_alert(
        DOWN,
        binary(f"unless {on(PROCESS)}", known, bracketed(_abandoned(options))),
        Severity.WARNING,
        Summary("A prober does not answer scrapes."),
        f"{AT} has not answered for {prom_duration(DOWN_FOR_S)}. Other probers have taken over every probe instance that it ran.",
        PROCESS,
        DOWN_FOR_S,
    )


def _absent(options: Options) -> AlertingRule:
    """Says nothing of what is told already: that a prober was down before it was gone."""
    return prober_alert(
        "PubsubProberAbsent",
        binary("unless on (job)", f"absent({_up(options)})", bracketed(_abandoned(options))),
        Severity.CRITICAL,
        Summary("Prometheus knows no prober at all."),
        f"Nothing with the job {options.scrape_job} has been scraped for {prom_duration(ABSENT_FOR_S)}: "
        "no prober runs, or Prometheus does not scrape it under that name.",
        ("job",),
        ABSENT_FOR_S,
    )


def _runs_missing() -> AlertingRule:
    """A prober that ends no run of a probe assigned to it, also if its scheduler is stuck and asks for none; or a probe without a prober.

    Not if the prober does not answer: that has an alert of its own, which fires later than this one ends.
    """
    flat = f"{increase_by(RUN_BY, series(families.PROBE_RUNS), prom_duration(WINDOW_S))} == 0"
    assigned = group_by(RUN_BY, outside_maintenance(series(families.PROBE_ASSIGNED), WINDOW_S))
    frequent = f"{max_by(RUN_BY, series(families.PROBE_INTERVAL))} <= {prom_number(FREQUENT_S)}"
    configured = group_by(PROBE_INSTANCE, outside_maintenance(series(families.PROBE_INTERVAL), WINDOW_S))
    unassigned = f"{configured} unless {on(PROBE_INSTANCE)} {series(families.PROBE_ASSIGNED)}"
    return prober_alert(
        "PubsubProberRunsMissing",
        binary("or", bracketed(binary("and", flat, assigned, frequent)), bracketed(unassigned)),
        Severity.CRITICAL,
        Summary(
            "A probe has ended no run for a long time.",
            subject=either("instance", subject_of(RUN_BY), f"{subject_of(PROBE_INSTANCE)}, no prober"),
        ),
        either(
            "instance",
            f"{AT} has ended no run of {PROBE} at {ON_TARGET} for {prom_duration(WINDOW_S)}, although it answers.",
            f"No prober has run {PROBE} at {ON_TARGET} for {prom_duration(SILENT_FOR_S)}, although probers answer.",
        ),
        RUN_BY,
        SILENT_FOR_S,
    )


def _stale() -> AlertingRule:
    """A probe that has not passed since its prober began to run it is judged from then on. If runs fail, alerts about the service fire."""
    assigned = series(families.PROBE_ASSIGNED)
    since = max_by(RUN_BY, f"{series(families.PROBE_LAST_SUCCESS)} > {assigned} or {assigned}")
    limit = f"({prom_number(STALE_S)} + {STALE_INTERVALS} * {max_by(RUN_BY, series(families.PROBE_INTERVAL))})"
    failing = f"({increase_by(RUN_BY, series(families.PROBE_RUNS, verdict='fail'), prom_duration(HOUR_S))} > 0)"
    return prober_alert(
        "PubsubProberStale",
        outside_maintenance(binary("unless", f"time() - {since} > {limit}", failing), STALE_S),
        Severity.WARNING,
        Summary("No run of a probe has passed for a long time, and none has failed.", DURATION),
        f"{AT} has seen no run of {PROBE} pass at {ON_TARGET} for {DURATION}. None has failed since: the prober cannot judge.",
        RUN_BY,
        STALE_FOR_S,
    )


def _vanished(options: Options) -> AlertingRule:
    """Of some targets, while others are probed: where no prober is left at all, that is told instead."""

    def gone(family: Family) -> str:
        selected = series(family)
        return f"{group_by(TARGET, f'last_over_time({selected}[{REMEMBERED}])')} unless {group_by(TARGET, selected)}"

    starting = group_by(TARGET, f"{series(families.TARGET_INFO)} and {on(PROCESS)} {restarted(STARTING_S)}")
    owed = binary(f"unless {on(TARGET)}", gone(families.OLDEST_UNACKED_AGE), starting)
    some = binary("or", bracketed(gone(families.TARGET_INFO)), bracketed(owed))
    return prober_alert(
        "PubsubProberSeriesVanished",
        binary("unless on ()", bracketed(some), f"absent({_up(options)})"),
        Severity.CRITICAL,
        Summary("A target that was probed is not probed any more."),
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
        Summary("A target is under maintenance for longer than a working day.", DURATION),
        f"{ON_TARGET} was under maintenance for {DURATION} of the last {prom_duration(DAY_S)} and still is. Probers with that "
        "maintenance neither probe nor judge it, and their series fire no alerts.",
        TARGET,
    )
