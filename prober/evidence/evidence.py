"""The evidence of a finding for a reader: the minimal reproduction, as lines of the file and as a diagram.

A finding names its witnesses; to reduce the history around them, the events of its key are collected by reading the file again,
first the witnesses, then their origins and the events near them. That excerpt is bounded.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from prober.core.events import Closed, Ended, Event, Opened
from prober.core.findings import Finding, Kind
from prober.core.guarded_verifier import RecordedFinding
from prober.core.kinds import KINDS
from prober.evidence.diagram.text import EVENTS_MAX, diagram_as_text
from prober.evidence.minimise import Asked, Minimal, Numbered, OfSession, Origins, concerns, minimise
from prober.traces.header import TraceHeader
from prober.traces.trace import FIRST_EVENT_LINE

EXCERPT_EVENTS_MAX: Final = 4_000  # of each sort
ON_KEY_MAX: Final = 300
"""Number of latest events shown for a whole key."""
LINES_BEFORE: Final = FIRST_EVENT_LINE - 1  # event number 1 is not in line 1

AWAITED_MAX: Final = 6
"""Number of open sessions shown with them if an expected message is missing."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The evidence for one finding.

    lines       the lines of the file that form the minimal reproduction; empty if the excerpt does not prove the finding again.
    diagram     these lines as a drawing; without them, the events around the finding.
    heading     a description of the drawing.
    """

    lines: tuple[int, ...]
    diagram: str
    heading: str


@dataclass(frozen=True, slots=True)
class OnKey:
    """The events of a finding's key on its subscription, and on a compared one, until the finding was made.

    `left_out`: the number of earlier events.
    """

    events: tuple[Numbered, ...]
    left_out: int


class Excerpt:
    """The events that matter to one finding, up to the event after which it was made; bounded.

    These are its witnesses, their origins, the latest events that readers need to verify them, and the latest other events: of its key,
    of its key on other subscriptions, and of sessions.

    A wait ends by the passing of time, not by an event, and an event of any key shows that time. In its place the excerpt contains the end
    of a record that was drained until then.
    """

    def __init__(self, made: RecordedFinding, witnesses: Iterable[Event]) -> None:
        self.made = made
        of = list(witnesses)
        self._origins = Origins(of)
        self._asked = Asked(made.finding.kind, of)
        self._subscriptions = _subscriptions(made.finding)
        self._core: dict[int, Event] = {}
        self._answers: deque[Numbered] = deque(maxlen=EXCERPT_EVENTS_MAX)
        self._near: deque[Numbered] = deque(maxlen=EXCERPT_EVENTS_MAX)
        self._elsewhere: deque[Numbered] = deque(maxlen=EXCERPT_EVENTS_MAX)
        self._sessions: deque[Numbered] = deque(maxlen=EXCERPT_EVENTS_MAX)
        self._passed: dict[int, Event] = {}
        self._count = self._near_count = 0

    def add(self, number: int, event: Event) -> None:
        """Add an event of the finding's key, or of no key."""
        finding = self.made.finding
        if number > self.made.after:
            return
        if number in finding.witnesses or event in self._origins:
            self._core[number] = event
        elif event in self._asked:
            self._answers.append((number, event))
        if isinstance(event, (Opened, Closed)):
            latest = self._sessions
        else:
            is_near = any(concerns(event, subscription, finding.key) for subscription in self._subscriptions)
            latest = self._near if is_near else self._elsewhere
        latest.append((number, event))
        self._count += 1
        self._near_count += latest is self._near

    def pass_time(self, number: int, t: float) -> None:
        """Note the event after which a finding about a wait was made: it shows only that time has passed."""
        if KINDS[self.made.finding.kind].is_wait and number not in self.made.finding.witnesses:
            self._passed = {number: Ended(t, drained=True)}

    def events(self) -> list[Numbered]:
        """Return the collected events, in order."""
        return sorted((self._collected() | self._passed).items())

    def on_key(self) -> OnKey:
        """Return the collected events of the key: the latest ones, the witnesses, and the starts and ends of their sessions."""
        near = dict(list(self._near)[-ON_KEY_MAX:])
        near |= {number: event for number, event in self._core.items() if number in self.made.finding.witnesses}
        sessions = {
            (event.subscription, event.session) for event in near.values() if isinstance(event, OfSession)
        } | self._awaited()
        of_sessions = {
            n: one for n, one in self._sessions if isinstance(one, Opened | Closed) and (one.subscription, one.session) in sessions
        }
        return OnKey(tuple(sorted((near | of_sessions | self._passed).items())), max(0, self._near_count - len(near)))

    def _awaited(self) -> set[tuple[str, str]]:
        """Return the latest sessions that could have received an awaited message.

        Empty for findings without a wait.
        """
        finding = self.made.finding
        if not KINDS[finding.kind].is_wait:
            return set()
        closed = {(one.subscription, one.session) for _, one in self._sessions if isinstance(one, Closed)}
        opened = [(one.subscription, one.session) for _, one in self._sessions if isinstance(one, Opened)]
        return set([one for one in opened if one[0] == finding.subscription and one not in closed][-AWAITED_MAX:])

    def _collected(self) -> dict[int, Event]:
        return self._proof() | dict(self._near) | dict(self._elsewhere) | dict(self._sessions)

    def _proof(self) -> dict[int, Event]:
        return self._core | dict(self._answers) | self._passed

    def opened(self) -> list[Opened]:
        """Return the starts of the collected sessions."""
        return [event for _, event in self._sessions if isinstance(event, Opened)]

    def candidates(self) -> Iterator[list[Numbered]]:
        """Yield the histories to reduce, in the order of the attempts: without its start, the rest of a history may mislead."""
        everything = self.events()
        if self._count > len(self._collected()):
            yield sorted(self._proof().items())
        yield everything


def _subscriptions(finding: Finding) -> tuple[str, ...]:
    """Return the subscriptions of a finding: two if it compares them."""
    compares = finding.kind is Kind.ORDER_DIVERGENCE
    return (finding.subscription, str(finding.facts["other"])) if compares else (finding.subscription,)


def collect(read: Callable[[], Iterable[Event]], wanted: Sequence[RecordedFinding]) -> list[Excerpt]:
    """Collect one excerpt for each finding, in the order of `wanted`, in two passes over the history.

    `read` restarts the history, or its readable part, for each pass. Raises the errors of `read`.
    """
    last = max((made.after for made in wanted), default=0)
    numbers = {number for made in wanted for number in made.finding.witnesses}
    witnesses = {number: event for number, event in enumerate(islice(read(), last), 1) if number in numbers}
    excerpts = [Excerpt(made, (witnesses[n] for n in made.finding.witnesses if n in witnesses)) for made in wanted]
    by_key, by_end = defaultdict(list), defaultdict(list)
    for excerpt in excerpts:
        by_key[excerpt.made.finding.key].append(excerpt)
        by_end[excerpt.made.after].append(excerpt)
    for number, event in enumerate(islice(read(), last), 1):
        key = getattr(event, "key", None)
        for excerpt in excerpts if key is None else by_key.get(key, ()):
            excerpt.add(number, event)
        for excerpt in by_end.get(number, ()):
            excerpt.pass_time(number, event.t)
    return excerpts


def proof_of(excerpt: Excerpt, header: TraceHeader) -> Proof:
    """Reduce an excerpt of a trace to the minimal reproduction of the finding, and draw it."""
    finding = excerpt.made.finding
    for events in excerpt.candidates():
        if minimal := minimise(events, finding, header.rules, subscriptions=(header.subscription,)):
            lines = tuple(number + LINES_BEFORE for number, _ in minimal.events)
            return Proof(lines, _drawn(minimal.events, minimal.finding, header, excerpt), _heading(minimal, len(events)))
    events = excerpt.events()
    heading = f"what happened around it ({len(events):,} events, which alone do not prove it again)"
    return Proof((), _drawn(events, finding, header, excerpt), heading)


def on_key_of(excerpt: Excerpt, header: TraceHeader) -> Proof:
    """Draw all collected events on the key of a finding until it was made; the heading states the number of omitted ones."""
    on_key = excerpt.on_key()
    among = f" and {on_key.left_out:,} earlier ones" if on_key.left_out else ""
    heading = f"everything on this key until then ({len(on_key.events):,} events{among})"
    return Proof((), _drawn(on_key.events, excerpt.made.finding, header, excerpt, events_max=ON_KEY_MAX), heading)


def _heading(minimal: Minimal, among: int) -> str:
    size = f"{len(minimal.events):,} of {among:,} events"
    what = "minimal reproduction" if minimal.complete else "reproduction, not reduced to the minimum"
    return f"{what} ({size})"


def _drawn(
    events: Sequence[Numbered], finding: Finding, header: TraceHeader, excerpt: Excerpt, *, events_max: int = EVENTS_MAX
) -> str:
    lines = [(number + LINES_BEFORE, event) for number, event in events]
    in_lines = replace(finding, witnesses=tuple(number + LINES_BEFORE for number in finding.witnesses))
    return diagram_as_text(lines, in_lines, header.rules, opened=excerpt.opened(), events_max=events_max)
