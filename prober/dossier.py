"""What a person needs to believe a finding: the smallest history that shows it, as lines of the file and as a diagram.

A finding names its witnesses; to reduce the history around them, the events of its key are collected in a second pass over the
file. That excerpt is bounded: what happened long before the finding is left out unless it is a witness.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prober.core import diagram
from prober.core.events import Closed, Event, Opened
from prober.core.findings import Finding, Kind
from prober.core.minimise import Minimal, Numbered, concerns, minimise
from prober.core.rules import Rules
from prober.history.trace import FIRST_EVENT_LINE
from prober.judgement import Made

EXCERPT_EVENTS_MAX: Final = 4_000  # and as many beginnings and ends of sessions


@dataclass(frozen=True, slots=True)
class Dossier:
    """The evidence for one finding.

    lines       the lines of the file that make up the smallest history; without one, those around the finding.
    diagram     the same as a drawing.
    heading     what the drawing shows, in words.
    """

    lines: tuple[int, ...]
    diagram: str
    heading: str


class Excerpt:
    """Collects the events that matter to one finding, up to the one after which it was made; bounded."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self._witnesses: dict[int, Event] = {}
        self._near: deque[Numbered] = deque(maxlen=EXCERPT_EVENTS_MAX)
        self._sessions: deque[Numbered] = deque(maxlen=EXCERPT_EVENTS_MAX)

    def add(self, number: int, event: Event) -> None:
        """Take in one event of the finding's key, or of no key."""
        finding = self.made.finding
        if number > self.made.after:
            return
        if finding.kind is not Kind.ORDER_DIVERGENCE and not concerns(event, finding.subscription, finding.key):
            return
        if number in finding.witnesses:
            self._witnesses[number] = event
        near = self._sessions if isinstance(event, (Opened, Closed)) else self._near
        near.append((number, event))

    def events(self) -> list[Numbered]:
        """What was collected, in order."""
        return sorted((self._witnesses | dict(self._near) | dict(self._sessions)).items())


def collect(events: Iterable[Event], wanted: Sequence[Made]) -> list[Excerpt]:
    """One excerpt for each finding, in one pass over the history (or the readable part of it)."""
    excerpts = [Excerpt(made) for made in wanted]
    by_key = defaultdict(list)
    for excerpt in excerpts:
        by_key[excerpt.made.finding.key].append(excerpt)
    last = max((made.after for made in wanted), default=0)
    for number, event in enumerate(events, 1):
        key = getattr(event, "key", None)
        for excerpt in excerpts if key is None else by_key.get(key, ()):
            excerpt.add(number, event)
        if number >= last:
            break
    return excerpts


def dossier(excerpt: Excerpt, rules: Rules) -> Dossier:
    """Reduce an excerpt to the smallest history that still shows the finding, and draw it."""
    finding, events = excerpt.made.finding, excerpt.events()
    minimal = minimise(events, finding, rules)
    if minimal is None:
        return _drawn(events, finding, f"the events around it ({len(events):,} of this key; they alone do not prove it again)")
    return _drawn(minimal.events, minimal.finding, _heading(minimal, len(events)))


def _heading(minimal: Minimal, among: int) -> str:
    size = f"{len(minimal.events):,} of {among:,} events"
    return f"the smallest history that shows it ({size})" if minimal.complete else f"a smaller history that shows it ({size})"


def _drawn(events: Sequence[Numbered], finding: Finding, heading: str) -> Dossier:
    shift = FIRST_EVENT_LINE - 1
    lines = [(number + shift, event) for number, event in events]
    in_lines = replace(finding, witnesses=tuple(number + shift for number in finding.witnesses))
    return Dossier(tuple(line for line, _ in lines), diagram.draw(lines, in_lines, numbers="line"), heading)
