"""Events of a run under way as rows with a lane for the publisher and for each subscriber: who did what with which message."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote

from api.formatting import shown_key
from api.words import number
from prober.core import events
from prober.core.events import EVENT_NAMES, Event
from prober.core.findings import Finding, Kind
from prober.evidence.explain import explain
from prober.sinks.live.feed import Step, WatchedRun

SUBSCRIBERS_MAX: Final = 4
"""Subscribers with a lane of their own; further ones share one."""
SHORT_NAME_MAX: Final = 4
WITNESSES_MAX: Final = 8
"""Events that a finding names."""
_WORDS: Final = {
    events.PublishInvoked: "publish {} →",
    events.Published: "← confirmed {}",
    events.PublishFailed: "← failed {}",
    events.PublishUnknown: "← outcome of {} unknown",
    events.PublishAbandoned: "{} given up",
    events.Delivered: "→ {}",
    events.Acked: "← ack {}",
    events.Nacked: "← nack {}",
    events.AckConfirmed: "→ ack of {} confirmed",
    events.LeaseModified: "← lease of {}",
    events.DeadLettered: "{} dead-lettered",
}


FoundAt: TypeAlias = tuple[Kind, str, str, float]
"""Kind, subscription, key and time of a finding, which tell the findings of a run apart."""


class Witness(NamedTuple):
    """The number of an event that proves a finding; whether its row is shown."""

    number: int
    is_shown: bool


class ShownFinding(NamedTuple):
    """A finding in words, with the events that prove it. `page`: the address of its page, or of its run's; empty: there is none yet."""

    finding: Finding
    words: str
    witnesses: tuple[Witness, ...]
    page: str


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A row: `after_s` its time since the first event; `lane` the number of its lane, None: it concerns all of them."""

    number: int
    after_s: float | None
    lane: int | None
    lane_name: str
    key: str
    words: str
    findings: tuple[ShownFinding, ...]


def lanes_of(run: WatchedRun) -> tuple[str, ...]:
    """The names of the lanes: the publisher, the first subscribers, and how many further ones there are."""
    named = [_name(run, subscriber) for subscriber in list(run.places)[:SUBSCRIBERS_MAX]]
    more = len(run.places) - len(named)
    return ("publisher", *named, *([f"{number(more)} more"] if more else []))


def keys_of(run: WatchedRun, asked: str) -> tuple[str, ...]:
    """The keys of a run that can be chosen, with the one that is asked for; an empty one is none."""
    return tuple(sorted({*run.keys, asked} - {""}))


def silence_s(run: WatchedRun, key: str, now: float) -> float | None:
    """How long a run under way has had no event, or none on a key; None: it has ended. `now` is on the recorder's clock."""
    latest = [step.event.t for step in run.steps_of(key)[-1:] if step.event is not None]
    return None if run.verdict is not None else max(0.0, now - (latest[0] if latest else run.begun_t))


def shown_steps(run: WatchedRun, steps: Iterable[Step], key: str, pages: Mapping[FoundAt, str]) -> Iterator[ShownStep]:
    """The rows of events; of an ordering key without the findings on others. `pages`: the ids of the findings that have a page."""
    kept = run.steps_of(key)
    numbers = {one.message_id: one.seq for one in _events(kept) if isinstance(one, events.Published | events.Delivered)}
    shown, lanes = {step.number for step in kept}, lanes_of(run)
    for step in steps:
        found = [finding for finding in step.findings if key in ("", finding.key)]
        findings = tuple(_finding(run, finding, shown, pages) for finding in found)
        if step.event is None:
            yield ShownStep(step.number, None, None, "", "", f"the run ended: {run.verdict}", findings)
        else:
            words, lane = _words(step.event, numbers), _lane(run, step.event)
            lane_name = "" if lane is None else lanes[lane]
            yield ShownStep(step.number, step.event.t - run.first_t, lane, lane_name, step.key or "", words, findings)


def _events(steps: Iterable[Step]) -> Iterator[Event]:
    return (step.event for step in steps if step.event is not None)


def _finding(run: WatchedRun, finding: Finding, shown: Container[int], pages: Mapping[FoundAt, str]) -> ShownFinding:
    witnesses = tuple(Witness(number, number in shown) for number in finding.witnesses[:WITNESSES_MAX])
    finding_id = pages.get((finding.kind, finding.subscription, finding.key, finding.t))
    page = f"findings/{quote(finding_id, safe='')}" if finding_id else f"runs/{quote(run.run_id, safe='')}" if run.verdict else ""
    return ShownFinding(finding, explain(finding, None), witnesses, page)


def _words(event: Event, numbers: dict[str, int]) -> str:
    message_id = str(getattr(event, "message_id", ""))
    message = getattr(event, "seq", None) or numbers.get(message_id, message_id)
    return _WORDS.get(type(event), EVENT_NAMES[type(event)]).format(message)


def _lane(run: WatchedRun, event: Event) -> int | None:
    if isinstance(event, events.PublishEvent):
        return 0
    session = getattr(event, "session", None)
    if session is None:
        return None
    owner = run.owners.get((getattr(event, "subscription", ""), session), "")
    return 1 + min(run.places.get(owner, SUBSCRIBERS_MAX), SUBSCRIBERS_MAX)


def _name(run: WatchedRun, subscriber: str) -> str:
    short = subscriber.removeprefix(f"{run.run_id}-")
    return f"subscriber {short}" if len(short) <= SHORT_NAME_MAX else shown_key(short)
