"""Events of a run under way as rows with a lane for the publisher and for each subscriber: who did what with which message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from api.formatting import shown_key
from api.words import number
from prober.core import events
from prober.core.events import EVENT_NAMES, Event
from prober.core.findings import Finding
from prober.evidence.explain import explain
from prober.sinks.live.feed import Step, WatchedRun

SUBSCRIBERS_MAX: Final = 4
"""Subscribers with a lane of their own; further ones share one."""
SHORT_NAME_MAX: Final = 4
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


class ShownFinding(NamedTuple):
    """A finding in words, with the numbers of the events that prove it."""

    finding: Finding
    words: str


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A row: `after_s` its time since the first event; `lane` the number of its lane, None: it concerns all of them."""

    number: int
    after_s: float | None
    lane: int | None
    key: str
    words: str
    findings: tuple[ShownFinding, ...]


def lanes_of(run: WatchedRun) -> tuple[str, ...]:
    """The names of the lanes: the publisher, the first subscribers, and how many further ones there are."""
    named = [_name(run, subscriber) for subscriber in list(run.places)[:SUBSCRIBERS_MAX]]
    more = len(run.places) - len(named)
    return ("publisher", *named, *([f"{number(more)} more"] if more else []))


def keys_of(run: WatchedRun) -> tuple[str, ...]:
    """The keys of the events that are kept."""
    return tuple(sorted({_key_of(step.event) for step in run.steps} - {""}))


def shown_steps(run: WatchedRun, steps: Iterable[Step], key: str) -> Iterator[ShownStep]:
    """The rows of events; without those of other keys than `key`, unless that is empty."""
    numbers = {one.message_id: one.seq for one in _events(run) if isinstance(one, events.Published | events.Delivered)}
    for step in steps:
        if not key or _key_of(step.event) in ("", key):
            findings = tuple(ShownFinding(finding, explain(finding, None)) for finding in step.findings)
            if step.event is None:
                yield ShownStep(step.number, None, None, "", f"the run ended: {run.verdict}", findings)
            else:
                words, lane = _words(step.event, numbers), _lane(run, step.event)
                yield ShownStep(step.number, step.event.t - run.first_t, lane, _key_of(step.event), words, findings)


def _events(run: WatchedRun) -> Iterator[Event]:
    return (step.event for step in run.steps if step.event is not None)


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


def _key_of(event: Event | None) -> str:
    """The ordering key of an event; empty: it has none, or concerns all of them."""
    return str(getattr(event, "key", ""))
