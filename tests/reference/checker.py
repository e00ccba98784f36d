"""The definite findings of a history, by the reference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from prober.core.events import Delivered, Event, Opened
from prober.core.findings import Kind
from prober.core.kinds import KINDS, WITHIN_A_REGION
from prober.core.rules import Rules
from tests.reference.explanation import Search
from tests.reference.facts import Facts, keys_of
from tests.reference.integrity import conflicts, integrity
from tests.reference.liveness import Overdue
from tests.reference.values import Record


@dataclass(slots=True)
class Opinion:
    """What is definitely wrong: each entry names the rules of which one was broken. `gave_up`: some of it was too much to explain."""

    broken: set[frozenset[Kind]] = field(default_factory=set)
    where: list[str] = field(default_factory=list)
    gave_up: bool = False

    @property
    def kinds(self) -> set[Kind]:
        return {kind for kinds in self.broken for kind in kinds}

    def add(self, kinds: frozenset[Kind], where: str) -> None:
        self.broken.add(kinds)
        self.where.append(f"{'|'.join(sorted(kinds))} {where}")


def opinion(rules: Rules, events: Iterable[Event], by_subscription: dict[str, Rules] | None = None) -> Opinion:
    """Judges all keys of all subscriptions of a history."""
    events = list(events)
    result = Opinion()
    for kind in conflicts(events):
        result.add(frozenset({kind}), "ids")
    logs: dict[str, dict[str, Log]] = {}
    for subscription in _subscriptions(events):
        mine = (by_subscription or {}).get(subscription, rules)
        keys = {key: Facts(subscription, key, mine, events) for key in keys_of(events, subscription)}
        for key, facts in keys.items():
            log = _judge_key(result, facts, [other for name, other in keys.items() if name != key])
            logs.setdefault(key, {})[subscription] = Log(facts, log)
    for by_name in (logs[key] for key in logs if key):
        for one, other in combinations(by_name.values(), 2):
            if _diverge(one, other):
                result.add(frozenset({Kind.ORDER_DIVERGENCE}), f"{one.facts.subscription} {other.facts.subscription}")
    return result


def _subscriptions(events: list[Event]) -> list[str]:
    return list(dict.fromkeys(event.subscription for event in events if isinstance(event, Opened | Delivered)))


def _judge_key(result: Opinion, facts: Facts, others: list[Facts]) -> set[tuple[Record, ...]]:
    search = Search(facts)
    for breach in search.run():
        if not facts.key:
            break  # messages without an ordering key have no order
        result.add(breach.kinds, f"{facts.key} event {breach.number} t={breach.t:.3f}")
    result.gave_up |= search.gave_up
    for kind in integrity(facts):
        result.add(frozenset({kind}), facts.key)
    logs = search.logs()
    if logs:
        for kind in Overdue(facts, others, min(logs)).kinds():
            if facts.key or KINDS[kind].promise not in WITHIN_A_REGION:
                result.add(frozenset({kind}), facts.key)
    return logs


@dataclass(frozen=True, slots=True)
class Log:
    """The logs that one subscription may have been sent from."""

    facts: Facts
    logs: set[tuple[Record, ...]]


def _diverge(one: Log, other: Log) -> bool:
    """No log of the one fits a log of the other; where the record may have a hole, or a seek came, nothing is compared."""
    if one.facts.all_grace_periods() or other.facts.all_grace_periods():
        return False
    return bool(one.logs and other.logs) and not any(_fit(one, left, other, right) for left in one.logs for right in other.logs)


def _fit(one: Log, left: tuple[Record, ...], other: Log, right: tuple[Record, ...]) -> bool:
    regions = {one.facts.region(record, one.facts.message_of(record)) for record in left}
    return all(_fit_in_region(one, _of_region(one, left, region), other, _of_region(other, right, region)) for region in regions)


def _of_region(log: Log, records: tuple[Record, ...], region: str | None) -> list[Record]:
    return [record for record in records if log.facts.region(record, log.facts.message_of(record)) == region]


def _fit_in_region(one: Log, left: list[Record], other: Log, right: list[Record]) -> bool:
    common = [record for record in left if record in right]
    if common != [record for record in right if record in left]:
        return False
    return _complete(other, left, right, common) and _complete(one, right, left, common)


def _complete(log: Log, theirs: list[Record], mine: list[Record], common: list[Record]) -> bool:
    """Nothing is missing in `mine` that lies between records that both have."""
    rules = log.facts.rules
    if not common or rules.filtered or rules.dead_letter_max_attempts:
        return True
    if not rules.subscription_predates_first_publish or rules.message_retention_s < log.facts.end:
        return True
    last = theirs.index(common[-1])
    return all(record in mine or log.facts.message_of_id(record[0]) is None for record in theirs[:last])
