"""The minimal reproduction of a finding: the smallest history that still proves it, for a reader who cannot study ten thousand events.

The method is delta debugging (Zeller and Hildebrandt, 2002, "ddmin") with the checker itself as the test. A smaller history counts
only if the checker makes *the same* finding from it: the same kind, status, doubt, subscription and key, the same sequence numbers,
message ids and subscribers in its facts, and no other witnesses than the original ones; and only if it makes no finding that the
original history does not produce. So omitted events can neither replace the finding by another nor invent one.
Positions, counts of positions and of epochs, and times are not compared: they change with the omitted events.

A smaller history also has the same reasons (`grounds_of`): events that a reason cites are kept. Readers want to verify the facts behind
them. So the events that they need (`Asked`) are restored at the end, if the finding stays the same with them: the publishes, the
acknowledgements and nacks of skipped messages, the leases of held messages, the starts and ends of the sessions.

Cheap reductions are tried first: the events of this key on this subscription, up to the deciding one; then the witnesses and that event
alone; then these with the publishes and sessions of their messages; then all events of the messages that the finding names, and of
growing numbers of the latest messages. Usually one of these suffices, and ddmin has little left to do, for a history of any length. It
omits whole messages before single events, since half a message looks like a pending one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final, TypeAlias

from prober.core.events import (
    AckConfirmed,
    Acked,
    Closed,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Opened,
    PublishEvent,
    PublishInvoked,
)
from prober.core.findings import Finding, Kind, Status
from prober.core.kinds import KINDS, Guarantee
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from prober.evidence.naming import NamedMessage, named_in
from prober.evidence.surroundings import Identity, grounds_of, identity_of, redelivery_of, streams_beside

RUNS_MAX: Final = 2_000
WORK_MAX: Final = 200_000
"""Limits of the checker runs for one reduction, and of their total cost (`Verifier.work`): a few seconds."""
LATEST: Final = 50
"""Number of latest events that are tried first; four times as many after each failure."""
EVIDENCE_MAX: Final = 40
"""Number of latest events that are restored for readers: a history has to stay small enough to read."""

Numbered: TypeAlias = tuple[int, Event]
Unit: TypeAlias = Sequence[Numbered]
OfMessage: TypeAlias = PublishEvent | Delivered
OfSession: TypeAlias = Delivered | Acked | Nacked | AckConfirmed | LeaseModified
Answer: TypeAlias = Acked | Nacked | AckConfirmed | LeaseModified

_number = itemgetter(0)
_HOLD: Final = (Acked, Nacked, LeaseModified)
_ASKED: Final[Mapping[Kind, tuple[type[Answer], ...]]] = {
    **{kind: _HOLD for kind, one in KINDS.items() if one.guarantee not in {Guarantee.ORDER, Guarantee.INTEGRITY}},
    Kind.EOD_REDELIVERY_AFTER_ACK: (*_HOLD, AckConfirmed),
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: (*_HOLD, AckConfirmed),
}
"""The answers that matter to a finding, by kind; none for other kinds.

Publishes and the starts and ends of sessions matter as well.
"""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Minimal:
    """A reduced history.

    events      the remaining events, in order, with the numbers of the original history.
    evidence    the numbers of the events that only readers need, and the proof does not.
    finding     the finding as the checker makes it from these events alone; its witnesses have original numbers.
    runs        the number of checker runs.
    complete    whether no single further event can be omitted (1-minimal); False if the budget was used up before that was known.
    """

    events: tuple[Numbered, ...]
    finding: Finding
    runs: int
    complete: bool
    evidence: frozenset[int] = frozenset()


def are_answers_kept(kind: Kind) -> bool:
    """Return whether a minimal reproduction of a kind contains the acknowledgements of its deliveries."""
    return kind in _ASKED


def concerns(event: Event, subscription: str, key: str) -> bool:
    """Return whether an event can matter to a key on a subscription, by its fields."""
    return getattr(event, "subscription", subscription) == subscription and getattr(event, "key", key) == key


def findings_in(events: Sequence[Numbered], verifier: Verifier) -> Iterator[tuple[int, Finding]]:
    """Yield every finding of a history with the number of events after which it was made; witnesses have the events' own numbers."""
    for count, (_, event) in enumerate(events, 1):
        for finding in verifier.observe(event):
            yield count, _renumbered(finding, events)
    for finding in verifier.finish():
        yield len(events), _renumbered(finding, events)


def _renumbered(finding: Finding, events: Sequence[Numbered]) -> Finding:
    return replace(finding, witnesses=tuple(events[witness - 1][0] for witness in finding.witnesses))


class Origins:
    """The origins of some events: the publish events of their messages, and the starts of their sessions."""

    def __init__(self, events: Iterable[Event]) -> None:
        of = list(events)
        self._messages = {(event.key, event.epoch, event.seq) for event in of if isinstance(event, OfMessage)}
        self._sessions = {(event.subscription, event.session) for event in of if isinstance(event, OfSession)}

    def __contains__(self, event: Event) -> bool:
        if isinstance(event, Opened):
            return (event.subscription, event.session) in self._sessions
        return isinstance(event, PublishEvent) and (event.key, event.epoch, event.seq) in self._messages


class Asked:
    """The events that readers need to verify deliveries: their publishes, their answers, and the starts and ends of their sessions."""

    def __init__(self, kind: Kind, deliveries: Iterable[Event]) -> None:
        self._answers = _ASKED.get(kind, ())
        of = [event for event in deliveries if isinstance(event, Delivered)] if self._answers else []
        self._published = {(event.key, event.epoch, event.seq) for event in of}
        self._messages = {(event.subscription, event.message_id) for event in of}
        self._sessions = {(event.subscription, event.session) for event in of}

    def __contains__(self, event: Event) -> bool:
        if isinstance(event, Opened | Closed):
            return (event.subscription, event.session) in self._sessions
        if isinstance(event, PublishInvoked):
            return (event.key, event.epoch, event.seq) in self._published
        return isinstance(event, self._answers) and (event.subscription, event.message_id) in self._messages

    def among(self, events: Sequence[Numbered]) -> Iterator[Numbered]:
        """Yield these events of a history, without lease changes that a later one of the same delivery replaced."""
        latest = {
            (event.subscription, event.session, event.message_id): number
            for number, event in events
            if isinstance(event, LeaseModified)
        }
        void = {number for number, event in events if isinstance(event, LeaseModified)} - set(latest.values())
        return (one for one in events if one[1] in self and one[0] not in void)


@dataclass(slots=True)
class _Trial:
    """Trials of the checker with candidate histories, within a budget: does a candidate prove the wanted finding?"""

    wanted: Finding
    rules: Rules
    subscriptions: tuple[str, ...]
    runs_left: int
    work_left: int
    late: Callable[[], bool] = _never
    allowed: frozenset[Identity] = frozenset()
    spent: bool = False
    runs: int = 0
    _identity: Identity = field(init=False)
    _grounds: frozenset[str] = field(init=False)
    _named: frozenset[NamedMessage] = field(init=False)

    def __post_init__(self) -> None:
        self._identity, self._grounds = identity_of(self.wanted), grounds_of(self.wanted)
        self._named = named_in(self.wanted.facts)

    def is_wanted(self, finding: Finding) -> bool:
        """Return whether a finding is the wanted one: the same identity and reasons, and no further witnesses."""
        same = identity_of(finding) == self._identity and grounds_of(finding) == self._grounds
        return same and set(finding.witnesses) <= set(self.wanted.witnesses)

    def is_about(self, number: int, event: Event) -> bool:
        """Return whether an event is a witness, or the delivery of a message that the finding names."""
        if number in self.wanted.witnesses:
            return True
        return isinstance(event, Delivered) and NamedMessage(event.seq, event.epoch) in self._named

    def run(self, events: Sequence[Numbered]) -> list[tuple[int, Finding]]:
        """Return the relevant findings of a history (all but information); none after the budget is used up."""
        if self.runs_left < 1 or self.work_left < len(events) or self.late():
            self.spent = True
            return []
        verifier = Verifier(self.rules, subscriptions=self.subscriptions)
        found = list(findings_in(events, verifier))
        self.runs_left -= 1
        self.work_left -= verifier.work
        self.runs += 1
        return [(count, finding) for count, finding in found if finding.status is not Status.INFO or self.is_wanted(finding)]

    def proof(self, events: Sequence[Numbered]) -> Finding | None:
        """Return the wanted finding as proven by these events; None if they do not prove it, or produce a new finding."""
        findings = [finding for _, finding in self.run(events)]
        if any(identity_of(finding) not in self.allowed for finding in findings):
            return None
        return next(filter(self.is_wanted, findings), None)

    def start_from(self, events: Sequence[Numbered]) -> Sequence[Numbered] | None:
        """Return these events up to the deciding one, if they prove the finding; their other findings are allowed from then on."""
        found = self.run(events)
        decided = next((count for count, finding in found if self.is_wanted(finding)), None)
        if decided is None:
            return None
        self.allowed = frozenset(identity_of(finding) for _, finding in found)
        return events[:decided] if self.proof(events[:decided]) else events


def minimise(
    events: Iterable[Numbered],
    finding: Finding,
    rules: Rules,
    *,
    subscriptions: Iterable[str],
    runs_max: int = RUNS_MAX,
    work_max: int = WORK_MAX,
    late: Callable[[], bool] = _never,
) -> Minimal | None:
    """Reduce a history to a minimal reproduction of the finding; None if these events do not prove it.

    `events` are numbered like the finding's witnesses, ascending; `rules` and `subscriptions` are those with which the checker made the
    finding. The events may be an excerpt of the history, if the excerpt alone proves the finding. The checker runs at most `runs_max`
    times, at a total cost of at most `work_max`; beyond that the smallest history so far is returned and `complete` is False. The same
    holds once `late` returns True: then only the cheap reductions are tried, without ddmin.
    """
    trial = _Trial(finding, rules, tuple(subscriptions), runs_max, work_max)
    start = _first_cut(list(events), trial)
    if start is None:
        return None
    likely = _likely_first(start, trial)
    trial.late = late
    best = _ddmin(likely, trial)
    complete, trial.late = not trial.spent, _never
    shown = _with_evidence(start, best, trial, one_by_one=complete)
    trial.runs_left, trial.work_left = 1, len(shown)  # outside the budget: the returned history is always verified again
    proof = trial.proof(shown)
    needed = {number for number, _ in best}
    evidence = frozenset(number for number, _ in shown if number not in needed)
    return Minimal(tuple(shown), proof, trial.runs, complete, evidence) if proof else None


def is_proven_by(events: Sequence[Numbered], finding: Finding, rules: Rules, *, subscriptions: Iterable[str]) -> bool:
    """Return whether the checker makes the finding from these events, regardless of others."""
    trial = _Trial(finding, rules, tuple(subscriptions), 1, len(events))
    return any(trial.is_wanted(found) for _, found in trial.run(events))


def _asked_for(events: Sequence[Numbered], best: Sequence[Numbered], trial: _Trial) -> list[Numbered]:
    """Return the events that readers need and the proof lacks, at most `EVIDENCE_MAX`.

    First the redelivery of the finding, then the starts and ends of its subscribers' streams if they had several, then the events of these
    and of the messages that the finding names, then the events of the rest.
    """
    needed, kind = {number for number, _ in best}, trial.wanted.kind
    redelivered = redelivery_of(events, trial.wanted) if KINDS[kind].guarantee is Guarantee.REDELIVERY else []
    wanted = {number: event for number, event in redelivered if number not in needed}
    named = [*redelivered, *(one for one in best if trial.is_about(*one))]
    if trial.rules.mode is Mode.STREAMING:
        delivered = [event for _, event in named if isinstance(event, Delivered)]
        beside = streams_beside(events, delivered, trial.rules.delivery_delay_max_s)
        wanted |= dict([one for one in beside if one[0] not in needed][-EVIDENCE_MAX:])
    for deliveries in (named, best):
        asked = Asked(kind, (event for _, event in deliveries))
        found = [one for one in asked.among(events) if one[0] not in needed | wanted.keys()]
        wanted |= dict(found[max(0, len(found) - EVIDENCE_MAX + len(wanted)) :])
    return sorted(wanted.items())


def _with_evidence(events: Sequence[Numbered], best: Sequence[Numbered], trial: _Trial, *, one_by_one: bool) -> Sequence[Numbered]:
    """Restore the events that readers need, also outside the budget: all or, if that changes the finding, each that does not."""
    wanted = _asked_for(events, best, trial)
    trial.runs_left, trial.work_left = 1 + len(wanted), (1 + len(wanted)) * (len(best) + len(wanted))
    everything = sorted([*best, *wanted], key=_number)
    if not wanted or trial.proof(everything):
        return everything
    for one in wanted if one_by_one else ():
        candidate = sorted([*best, one], key=_number)
        if trial.proof(candidate):
            best = candidate
    return best


def _first_cut(events: Sequence[Numbered], trial: _Trial) -> Sequence[Numbered] | None:
    wanted = trial.wanted
    same_key = [(n, event) for n, event in events if getattr(event, "key", wanted.key) == wanted.key]
    same_subscription = [(n, event) for n, event in same_key if concerns(event, wanted.subscription, wanted.key)]
    for candidate in (same_subscription, same_key, events):  # the wider ones for findings across subscriptions
        if (start := trial.start_from(candidate)) is not None:
            return start
    return None


def _likely_first(events: Sequence[Numbered], trial: _Trial) -> Sequence[Numbered]:
    for candidate in _likely(events, trial):
        if len(candidate) < len(events) and trial.proof(candidate):
            return candidate
    return events


def _likely(events: Sequence[Numbered], trial: _Trial) -> Iterator[Sequence[Numbered]]:
    """Yield parts of the history that may prove the finding, in growing size."""
    decides = events[-1][0]  # when a deadline has passed, that is not a witness
    witnesses = [(n, event) for n, event in events if n == decides or n in trial.wanted.witnesses]
    yield witnesses
    yield _with_origins(events, witnesses)
    messages = _by_message(events)
    named = {n for n, event in events if n == decides or trial.is_about(n, event)}
    latest = 0
    while latest < len(events):
        begin = events[-latest][0] if latest else decides
        yield _with_origins(events, _joined(one for one in messages if any(n in named or n >= begin for n, _ in one)))
        latest = 4 * latest or LATEST


def _by_message(events: Sequence[Numbered]) -> list[list[Numbered]]:
    """Return all events, grouped by message. Events without a message, such as the start of a session, form separate groups."""
    of_id = {event.message_id: (event.key, event.epoch, event.seq) for _, event in events if isinstance(event, Delivered)}
    units: dict[object, list[Numbered]] = {}
    for number, event in events:
        if isinstance(event, OfMessage):
            message: object = (event.key, event.epoch, event.seq)
        else:
            message = of_id.get(getattr(event, "message_id", ""), number)
        units.setdefault(message, []).append((number, event))
    return list(units.values())


def _joined(units: Iterable[Unit]) -> list[Numbered]:
    return sorted((one for unit in units for one in unit), key=_number)


def _with_origins(events: Sequence[Numbered], wanted: Sequence[Numbered]) -> Sequence[Numbered]:
    """Return some events with all publishes of their messages and the starts of their sessions."""
    origins = Origins(event for _, event in wanted)
    kept = {n for n, _ in wanted}
    return [(n, event) for n, event in events if n in kept or event in origins]


def _ddmin(events: Sequence[Numbered], trial: _Trial) -> Sequence[Numbered]:
    """Omit ever smaller groups of messages, then of events, then single events, while the rest proves the finding."""
    messages = _by_message(events)
    if len(messages) < len(events):
        events = _joined(_smallest(messages, trial))
    return _joined(_smallest([[event] for event in events], trial))


def _smallest(units: Sequence[Unit], trial: _Trial) -> Sequence[Unit]:
    size = max(1, len(units) // 2)
    while not trial.spent:
        smaller = _without_chunks(units, size, trial)
        if size == 1 and len(smaller) == len(units):
            break
        units, size = smaller, max(1, size // 2)
    return units


def _without_chunks(units: Sequence[Unit], size: int, trial: _Trial) -> Sequence[Unit]:
    start = 0
    while start < len(units) and not trial.spent:
        rest = [*units[:start], *units[start + size :]]
        if trial.proof(_joined(rest)):
            units = rest
        else:
            start += size
    return units
