"""Texts of the status page beyond the bare snapshot: numbers and states. It formats and decides nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Final, NamedTuple

from api.swim_lanes.lettering import clean
from api.words import amount, duration, number, share, size
from prober.core.verdict import Verdict
from prober.monitoring.comparison import Late
from prober.monitoring.top_keys import Interval
from prober.probes.catalogue import ProbeName
from prober.probes.power import one_in
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.schedule.forecast import Detectable
from prober.sinks.live.condition import Condition, of_run
from prober.sinks.live.snapshot import InstanceSnapshot, RunSummary
from prober.sinks.status.records import RunRecord
from prober.slo.budgets import BurnState, SloSnapshot
from prober.slo.confidence import ProportionBounds
from prober.slo.indicators import MEANINGS
from prober.slo.objectives import MINUTE_S, AlertState, Objective, SliCounts
from prober.slo.uptime import MonthlyUptime

INCIDENTS_SHOWN_MAX: Final = 20
LATE: Final = {
    Late.NOBODY: ("pass", "nobody"),
    Late.ONLY_YOURS: ("fail", "only yours"),
    Late.SERVICE: ("fail", "the service"),
    Late.BOTH: ("fail", "both"),
    Late.UNKNOWN: ("unknown", "unknown"),
}
"""Style and words of each late side."""

KEY_LENGTH_MAX: Final = 80
UPTIME_RULE: Final = (
    "The share of the minutes in which publishing worked. A minute is up if a publish was confirmed in it. It is down if publishes failed "
    "in it and in both minutes beside it, and none was confirmed. All other minutes are unknown: at least counts them as down, at most as "
    "up. Delivery, order and latency are not part of the agreement."
)
"""Definition of the monthly uptime, for pages."""

BUDGET_LEFT_LOW: Final = 0.5
"""Share of an error budget below which the status page shows the objective."""
_URGENCY: Final = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)

TIMES_FROM: Final = 2.0
"""Number of budgets from which overspending is a multiple instead of a percentage."""

_UNITS: Final[Mapping[str, Callable[[float], str]]] = {
    "_bytes_per_s": lambda value: f"{size(value)}/s",
    "_messages_per_s": lambda value: f"{amount(value)} messages/s",
    "_per_s": lambda value: f"{amount(value)} per second",
    "_minutes": lambda value: duration(value * MINUTE_S),
    "_s": duration,
}


def is_observed(where: ProbeInstance | RunRecord) -> bool:
    """Return whether other programs publish to the topic.

    Their publish times are not recorded, so no latency is known, and deliveries count for no objective.
    """
    return where.probe == ProbeName.OBSERVE


def name(instance: ProbeInstance | InstanceKey | RunRecord) -> str:
    """Return a probe instance in words; for a run, the instance on which it ran."""
    part = f" {instance.part}" if instance.part else ""
    return f"{instance.probe}{part} on {instance.target} ({instance.vantage})"


def look(condition: Condition) -> str:
    """Return the name of the icon and style of a condition."""
    return "fail" if condition in (Condition.OUTAGE, Condition.BLIND) else condition.lower()


def condition(run: RunSummary | RunRecord) -> Condition:
    """Return the condition of a run."""
    return of_run(run.verdict, run.reason)


def name_at(instance: InstanceKey) -> str:
    """Return a probe instance in words, for a page about its target."""
    return f"{instance.probe}{f' {instance.part}' if instance.part else ''} ({instance.vantage})"


def why(instance: InstanceSnapshot) -> str:
    """Return the reason why a probe instance is not PASS, in one line; empty if it is."""
    unstored = "no run has ended yet" if instance.verdict is None else "the first run has just ended, and is not stored yet"
    reason = instance.last_run.reason if instance.last_run else unstored
    match instance.status:
        case Condition.MAINTENANCE:
            return instance.maintenance or "no reason was given"
        case Condition.OUTAGE if instance.verdict is not Verdict.UNKNOWN:
            return f"stale: no result since the outage began; the last one was {instance.verdict}" if instance.verdict else reason
        case Condition.UNKNOWN if instance.verdict is Verdict.PASS:
            stale = "no prober reports on it any more" if instance.overdue_s is None else _overdue(instance)
            return f"stale: the last run passed, but {stale}"
    return "; ".join(filter(None, (reason, _overdue(instance))))


def target_of(objective: Objective) -> str:
    """Return the required share of good events, and the period."""
    return f"{share(objective.target)} over {duration(objective.window_s)}"


def meaning(objective: Objective) -> str:
    """Return the counted events of an objective, and the definition of a bad one, in one sentence."""
    meant = MEANINGS[objective.indicator]
    limit = f" than {duration(objective.threshold_s)}" if objective.threshold_s is not None else ""
    return f"A {meant.unit} is bad if {meant.bad}{limit}."


def found_within(detectable: Iterable[Detectable]) -> str:
    """Return the smallest rate of faults that is detected, for each period."""
    return ", ".join(f"{one_in(one.share)} within {duration(one.within_s)}" for one in detectable)


def proven(slo: SloSnapshot) -> str:
    """Return whether the counts prove that the objective is met or missed."""
    if slo.error_ratio is None:
        return "unknown"
    return {Verdict.PASS: "proven", Verdict.FAIL: "missed", Verdict.UNKNOWN: "not proven"}[slo.verdict]


def budget(slo: SloSnapshot) -> str:
    """Return the spent part of the period's error budget."""
    if slo.budget_left is None:
        return "nothing counted"
    spent = 1.0 - slo.budget_left
    if spent >= TIMES_FROM:
        return f"{amount(spent)} times the budget spent"
    return f"{share(spent)} of the budget spent" if spent else "nothing spent"


def attention(slos: Iterable[SloSnapshot]) -> list[SloSnapshot]:
    """Return the objectives that need attention.

    These are missed, burn too fast, or have less than `BUDGET_LEFT_LOW` of the budget left.
    """
    return [
        slo
        for slo in slos
        if slo.verdict is Verdict.FAIL or fires(slo) or (slo.budget_left is not None and slo.budget_left < BUDGET_LEFT_LOW)
    ]


def fires(slo: SloSnapshot) -> bool:
    """Return whether an alert about the burn rate of an objective fires."""
    return any(burn.state is AlertState.FIRING for burn in slo.burn)


def tally(slos: Iterable[SloSnapshot]) -> str:
    """Return the number of objectives in each state, in words."""
    return ", ".join(f"{count} {state}" for state, count in Counter(map(proven, slos)).most_common())


class Standing(NamedTuple):
    """Targets on which an objective has one state."""

    verdict: Verdict
    proven: str
    budget: str
    fires: bool
    targets: tuple[str, ...]


def standings(slos: Iterable[SloSnapshot]) -> list[Standing]:
    """Return the states of an objective with their targets; states that need attention first."""
    targets: dict[tuple[Verdict, str, str, bool], list[str]] = {}
    for slo in slos:
        targets.setdefault((slo.verdict, proven(slo), budget(slo), fires(slo)), []).append(slo.target)
    found = [Standing(*state, tuple(names)) for state, names in targets.items()]
    return sorted(found, key=lambda one: (not one.fires, _URGENCY.index(one.verdict)))


def first_sentence(text: str) -> str:
    """Return the first sentence of an explanation."""
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)[0]


def measured_share(slo: SloSnapshot) -> str:
    """Return the measured share of the period."""
    return f"{share(slo.measured)} of {duration(slo.objective.window_s)}"


def counts_text(total: SliCounts) -> str:
    """Return the numbers of good, bad and, if any, undecided events in words."""
    undecided = f", {number(total.undecided)} undecided" if total.undecided else ""
    return f"{number(total.good)} good, {number(total.bad)} bad{undecided}"


def burn_rate_text(burn_rate: float | None) -> str:
    """Return a burn rate; an unknown one is not a number."""
    return "unknown" if burn_rate is None else amount(burn_rate)


def burning(burn: BurnState) -> str:
    """Return the state of an alert, in words."""
    state = {
        AlertState.FIRING: f"fires ({burn.severity})",
        AlertState.QUIET: "quiet",
        AlertState.UNKNOWN: "unknown, too little was decided",
    }[burn.state]
    return (
        f"{duration(burn.window_s)}: burn rate {burn_rate_text(burn.burn_rate)}, fires above {burn_rate_text(burn.factor)}: {state}"
    )


def exhausted(seconds: float | None) -> str:
    """Return the time until a budget is spent at the current rate."""
    if seconds is None:
        return "unknown"
    if seconds == inf:
        return "never"
    return "spent" if seconds <= 0.0 else duration(seconds)


def shown_key(key: str) -> str:
    """Return an ordering key in a form for pages: of limited length, with visible characters, never empty."""
    return clean(key, KEY_LENGTH_MAX) or "(empty)"


def measured(name: str, value: float) -> tuple[str, str]:
    """Return a measurement of a report about a key: its name and value in words. The unit is at the end of the name."""
    for ending, written in _UNITS.items():
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " "), written(value)
    return name.replace("_", " "), amount(value)


def score(value: float) -> str:
    """Return the load of a key in percent of a limit; above it, as a multiple."""
    return share(value) if value <= 1.0 else f"{amount(value)} times"


def interval(value: Interval, written: Callable[[float], str]) -> str:
    """Return an interval; one value if both ends are written alike."""
    low, high = written(value.low), written(value.high)
    return low if low == high else f"{low} to {high}"


def _overdue(instance: InstanceSnapshot) -> str:
    return "" if instance.overdue_s is None else f"a run is overdue by {duration(instance.overdue_s)}"


def between(bounds: ProportionBounds) -> str:
    """Return a share between two bounds."""
    low, high = map(share, bounds)
    return low if low == high else f"at least {low}, at most {high}"


def credit(one: MonthlyUptime) -> str:
    """Return the tier of the service level agreement for a month, as far as it is known."""
    least, most = ("none" if bound == 0.0 else share(bound) for bound in one.credit)
    return least if least == most else f"unknown: {least} to {most}"
