"""Numbers of good, bad and undecided events: those verified by a run, by indicator, and those that no checker verifies, by objective.

Events verified by a run are counted only after the run has ended. Until then a verdict on hold may turn a good event into a bad one, and
good and bad ones must be counted together, or ratios over short windows would mean nothing.

Undecided events are those that a finding calls indeterminate, those without a place, and pending ones that are not overdue. In doubt
an event is undecided and never good; there are never more good events than observed ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from prober.core.findings import FAILING, Finding, Kind, Status
from prober.core.kinds import kinds_about
from prober.slo.indicators import Indicator
from prober.slo.objectives import Measure, Objective, SliCounts

BREACHES: Final[Mapping[Indicator, frozenset[Kind]]] = MappingProxyType(
    {
        indicator: kinds_about(indicator)
        for indicator in (Indicator.ORDER, Indicator.REDELIVERY, Indicator.AFFINITY, Indicator.COMPLETENESS)
    }
)
"""The findings that make an event bad, by the indicators that runs verify."""

OVERDUE: Final = BREACHES[Indicator.COMPLETENESS]
"""The findings that prove the missed deadline of the messages missing on a key."""

_SEEN: Final = MappingProxyType(
    {
        Indicator.ORDER: ("deliveries_first", "deliveries_unplaced"),
        Indicator.REDELIVERY: ("rewinds",),
        Indicator.AFFINITY: ("deliveries_among_several",),
    }
)
_NEITHER: Final = MappingProxyType({Indicator.ORDER: "deliveries_without_key"})
"""Counters of observed events that have no order to keep."""
_UNDECIDED: Final = MappingProxyType(
    {
        Indicator.ORDER: "deliveries_unplaced",
        Indicator.REDELIVERY: "",
        Indicator.AFFINITY: "affinity_moves_outstanding_unknown",
    }
)

Place = TypeVar("Place", bound=Hashable)
"""A key, or a subscription and a key."""

_FindingCounts = Mapping[tuple[Kind, Status], int]


def is_overdue(finding: Finding) -> bool:
    """Return whether a finding proves that the missing messages of its key missed their deadline."""
    return finding.kind in OVERDUE and finding.status in FAILING


def checks_of(
    counters: Mapping[str, int], findings: _FindingCounts, completeness: SliCounts, *, trusted: bool, proven: bool = True
) -> dict[Indicator, SliCounts]:
    """Return the outcomes of the events that one run verified, by indicator.

    counters, findings  the counters of the checker, and the number of its findings of each kind and status.
    completeness        confirmed messages, by whether they were delivered.
    trusted             False if verification stopped before the end, or after a fault of the prober: then no observed event is good.
    proven              False after a fault of the checker: then no observed event is bad either.
    """
    counts = {indicator: _counts_of(indicator, counters, findings) for indicator in _SEEN}
    counts[Indicator.COMPLETENESS] = completeness
    return counts if trusted and proven else {indicator: _doubted(one, proven=proven) for indicator, one in counts.items()}


def proven_of(checks: Mapping[Indicator, SliCounts]) -> dict[Indicator, SliCounts]:
    """Return the counts of a run that was cut short: proven bad events remain, of the rest nothing is known.

    Publishes that were not sent before the cut do not count.
    """
    return {indicator: SliCounts(bad=one.bad) for indicator, one in checks.items() if indicator in BREACHES and one.bad}


def completeness_of(confirmed: int, missing: Mapping[Place, int], overdue_keys: AbstractSet[Place]) -> SliCounts:
    """Return the confirmed messages of a run: delivered, missing on an overdue key, or missing and perhaps still on their way.

    With several subscriptions a message is pending on each, and a key belongs to one subscription.
    """
    bad = sum(count for key, count in missing.items() if key in overdue_keys)
    undecided = sum(missing.values()) - bad
    return SliCounts(max(0, confirmed - bad - undecided), bad, undecided)


def unsent_of(wanted: int, attempts: int, *, missed: int = 0, unreachable: bool, trusted: bool) -> dict[Indicator, SliCounts]:
    """Return the availability counts of a run for scheduled publishes without an attempt.

    The attempted publishes count by themselves.

    wanted        messages that the run had to publish.
    attempts      attempted publishes, which count by themselves; a repeated attempt is one more.
    missed        messages of the runs that were due while this one waited and got no answer: bad, even if the target answered again at
                  the end.
    unreachable   whether the target could not be reached when the run ended. That is bad: a customer could not have published either.
                  Any other cause may be the prober's, and is undecided.
    trusted       False after a fault of the prober, which may be the cause.
    """
    unsent = max(0, wanted + missed - attempts)
    if not unsent:
        return {}
    bad = (unsent if unreachable else min(unsent, missed)) if trusted else 0
    return {Indicator.PUBLISH_AVAILABILITY: SliCounts(bad=bad, undecided=unsent - bad)}


def _counts_of(indicator: Indicator, counters: Mapping[str, int], findings: _FindingCounts) -> SliCounts:
    bad = _count(findings, indicator, FAILING)
    undecided = max(_count(findings, indicator, {Status.INDETERMINATE}), counters.get(_UNDECIDED[indicator], 0))
    seen = sum(counters.get(name, 0) for name in _SEEN[indicator]) - counters.get(_NEITHER.get(indicator, ""), 0)
    return SliCounts(max(0, seen - bad - undecided), bad, undecided)


def _count(findings: _FindingCounts, indicator: Indicator, statuses: AbstractSet[Status]) -> int:
    return sum(findings.get((kind, status), 0) for kind in BREACHES[indicator] for status in statuses)


def _doubted(one: SliCounts, *, proven: bool) -> SliCounts:
    bad = one.bad if proven else 0
    return SliCounts(bad=bad, undecided=one.decided + one.undecided - bad)


@dataclass(slots=True)
class _Running:
    """The counts for one objective so far."""

    objective: Objective
    good: int = 0
    bad: int = 0
    undecided: int = 0


class SloCounters:
    """Counters, for the objectives of one target, of events that no checker verifies: durations, publishes, slices of time.

    They count from the start of the process; for one thread.
    """

    def __init__(self, objectives: Iterable[Objective]) -> None:
        self._by_indicator: dict[Indicator, list[_Running]] = {}
        self._known: dict[Measure, _Running] = {}
        self.follow(objectives)

    def follow(self, objectives: Iterable[Objective]) -> None:
        """Use these objectives from now on. The counts of a removed objective continue if it returns."""
        self._by_indicator = {}
        for objective in objectives:
            counts = self._known.setdefault(objective.measure, _Running(objective))
            self._by_indicator.setdefault(objective.indicator, []).append(counts)

    def took(self, indicator: Indicator, duration_s: float, lagged_s: float = 0.0) -> bool:
        """Count a duration: bad for each objective with a shorter threshold. Return whether it is decided.

        `lagged_s`: how much of it the event loop lagged. If one objective of the indicator cannot be decided for that reason, none is.
        """
        about = self._by_indicator.get(indicator, ())
        if lagged_s > 0.0 and any(counts.objective.is_doubtful(duration_s, lagged_s) for counts in about):
            self.ended(indicator, undecided=1)
            return False
        for counts in about:
            if counts.objective.is_late(duration_s):
                counts.bad += 1
            else:
                counts.good += 1
        return True

    def ended(self, indicator: Indicator, *, good: int = 0, bad: int = 0, undecided: int = 0) -> None:
        """Count good, bad and undecided events of an indicator."""
        for counts in self._by_indicator.get(indicator, ()):
            counts.good += good
            counts.bad += bad
            counts.undecided += undecided

    @property
    def totals(self) -> dict[str, SliCounts]:
        """The counts of every objective with any, by its name."""
        running = (counts for indicator in self._by_indicator.values() for counts in indicator)
        return {
            counts.objective.name: SliCounts(counts.good, counts.bad, counts.undecided)
            for counts in running
            if counts.good or counts.bad or counts.undecided
        }
