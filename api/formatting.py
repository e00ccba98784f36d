"""Texts of the status page beyond the bare snapshot: numbers and states. Words only; nothing is decided here."""

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
"""How it looks who is late, and the words for it."""

KEY_LENGTH_MAX: Final = 80
UPTIME_RULE: Final = (
    "The share of the minutes in which publishing worked. A minute is up if a publish was confirmed in it. It is down if publishes failed "
    "in it and in both minutes beside it, and none was confirmed. All other minutes are unknown: at least counts them as down, at most as "
    "up. Delivery, order and latency are not part of the agreement."
)
"""The definition of the monthly uptime, for pages."""

BUDGET_LEFT_LOW: Final = 0.5
"""Share of an error budget below which the status page shows the objective."""
_URGENCY: Final = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)

TIMES_FROM: Final = 2.0
"""From so many budgets on, overspending is a multiple and no percentage."""

_UNITS: Final[Mapping[str, Callable[[float], str]]] = {
    "_bytes_per_s": lambda value: f"{size(value)}/s",
    "_messages_per_s": lambda value: f"{amount(value)} messages/s",
    "_per_s": lambda value: f"{amount(value)} per second",
    "_minutes": lambda value: duration(value * MINUTE_S),
    "_s": duration,
}


def is_observed(where: ProbeInstance | RunRecord) -> bool:
    """Whether other programs publish to the topic.

    Their publish times are not recorded, so no latency is known, and deliveries count for no objective.
    """
    return where.probe == ProbeName.OBSERVE


def name(instance: ProbeInstance | InstanceKey | RunRecord) -> str:
    """A probe instance in words; of a run, where it took place."""
    part = f" {instance.part}" if instance.part else ""
    return f"{instance.probe}{part} on {instance.target} ({instance.vantage})"


def look(condition: Condition) -> str:
    """How a condition looks: the name of its icon and style."""
    return "fail" if condition in (Condition.OUTAGE, Condition.BLIND) else condition.lower()


def condition(run: RunSummary | RunRecord) -> Condition:
    """The condition of a run."""
    return of_run(run.verdict, run.reason)


def name_at(instance: InstanceKey) -> str:
    """A probe instance in words, where its target is known."""
    return f"{instance.probe}{f' {instance.part}' if instance.part else ''} ({instance.vantage})"


def why(instance: InstanceSnapshot) -> str:
    """Why a probe instance does not stand at PASS, in one line; empty if it does."""
    reason = instance.last_run.reason if instance.last_run else "no run has ended yet"
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
    """The share that is to be good, and over which period."""
    return f"{share(objective.target)} over {duration(objective.window_s)}"


def meaning(objective: Objective) -> str:
    """The counted things of an objective, and when one is bad, in one sentence."""
    meant = MEANINGS[objective.indicator]
    limit = f" than {duration(objective.threshold_s)}" if objective.threshold_s is not None else ""
    return f"A {meant.unit} is bad if {meant.bad}{limit}."


def found_within(detectable: Iterable[Detectable]) -> str:
    """How rare a fault may be and still be found, for each period."""
    return ", ".join(f"{one_in(one.share)} within {duration(one.within_s)}" for one in detectable)


def proven(slo: SloSnapshot) -> str:
    """Whether the objective is shown to be kept or missed, by what was counted."""
    if slo.error_ratio is None:
        return "unknown"
    return {Verdict.PASS: "proven", Verdict.FAIL: "missed", Verdict.UNKNOWN: "not proven"}[slo.verdict]


def budget(slo: SloSnapshot) -> str:
    """How much of the period's error budget is spent."""
    if slo.budget_left is None:
        return "nothing counted"
    spent = 1.0 - slo.budget_left
    if spent >= TIMES_FROM:
        return f"{amount(spent)} times the budget spent"
    return f"{share(spent)} of the budget spent" if spent else "nothing spent"


def attention(slos: Iterable[SloSnapshot]) -> list[SloSnapshot]:
    """The objectives that need attention.

    These are missed, burn too fast, or have less than `BUDGET_LEFT_LOW` of the budget left.
    """
    return [
        slo
        for slo in slos
        if slo.verdict is Verdict.FAIL or fires(slo) or (slo.budget_left is not None and slo.budget_left < BUDGET_LEFT_LOW)
    ]


def fires(slo: SloSnapshot) -> bool:
    """Whether an alert about the burn rate of an objective fires."""
    return any(burn.state is AlertState.FIRING for burn in slo.burn)


def tally(slos: Iterable[SloSnapshot]) -> str:
    """How many objectives are in each state, in words."""
    return ", ".join(f"{count} {state}" for state, count in Counter(map(proven, slos)).most_common())


class Standing(NamedTuple):
    """The targets on which an objective has one state."""

    verdict: Verdict
    proven: str
    budget: str
    fires: bool
    targets: tuple[str, ...]


def standings(slos: Iterable[SloSnapshot]) -> list[Standing]:
    """The states of an objective with their targets; states that need attention first."""
    targets: dict[tuple[Verdict, str, str, bool], list[str]] = {}
    for slo in slos:
        targets.setdefault((slo.verdict, proven(slo), budget(slo), fires(slo)), []).append(slo.target)
    found = [Standing(*state, tuple(names)) for state, names in targets.items()]
    return sorted(found, key=lambda one: (not one.fires, _URGENCY.index(one.verdict)))


def first_sentence(text: str) -> str:
    """The first sentence of an explanation."""
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)[0]


def measured_share(slo: SloSnapshot) -> str:
    """The measured share of the period."""
    return f"{share(slo.measured)} of {duration(slo.objective.window_s)}"


def counts_text(total: SliCounts) -> str:
    """Good, bad and, if there are any, undecided things in words."""
    undecided = f", {number(total.undecided)} undecided" if total.undecided else ""
    return f"{number(total.good)} good, {number(total.bad)} bad{undecided}"


def burn_rate_text(burn_rate: float | None) -> str:
    """A burn rate; what is not known is no number."""
    return "unknown" if burn_rate is None else amount(burn_rate)


def burning(burn: BurnState) -> str:
    """The state of an alert, in words."""
    state = {
        AlertState.FIRING: f"fires ({burn.severity})",
        AlertState.QUIET: "quiet",
        AlertState.UNKNOWN: "unknown, too little was decided",
    }[burn.state]
    return (
        f"{duration(burn.window_s)}: burn rate {burn_rate_text(burn.burn_rate)}, fires above {burn_rate_text(burn.factor)}: {state}"
    )


def exhausted(seconds: float | None) -> str:
    """When a budget is spent if it goes on like this."""
    if seconds is None:
        return "unknown"
    if seconds == inf:
        return "never"
    return "spent" if seconds <= 0.0 else duration(seconds)


def shown_key(key: str) -> str:
    """An ordering key as it may stand on a page: not endless, nothing that cannot be seen, and never nothing."""
    return clean(key, KEY_LENGTH_MAX) or "(empty)"


def measured(name: str, value: float) -> tuple[str, str]:
    """A measurement of a report about a key: its name and value in words. The unit is at the end of the name."""
    for ending, written in _UNITS.items():
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " "), written(value)
    return name.replace("_", " "), amount(value)


def score(value: float) -> str:
    """How near a key is to a limit, which is 100 %; beyond it, how many times it."""
    return share(value) if value <= 1.0 else f"{amount(value)} times"


def interval(value: Interval, written: Callable[[float], str]) -> str:
    """An interval; one value where both ends are written alike."""
    low, high = written(value.low), written(value.high)
    return low if low == high else f"{low} to {high}"


def _overdue(instance: InstanceSnapshot) -> str:
    return "" if instance.overdue_s is None else f"a run is overdue by {duration(instance.overdue_s)}"


def between(bounds: ProportionBounds) -> str:
    """A share that is known to lie between two bounds."""
    low, high = map(share, bounds)
    return low if low == high else f"at least {low}, at most {high}"


def credit(one: MonthlyUptime) -> str:
    """The tier of the agreement that a month falls into, as far as it is known."""
    least, most = ("none" if bound == 0.0 else share(bound) for bound in one.credit)
    return least if least == most else f"unknown: {least} to {most}"
