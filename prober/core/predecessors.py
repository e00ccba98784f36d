"""What may have been sent immediately before a delivery (section 6.2 of the specification).

On one session the order of arrival is that of sending. When several sessions deliver a key, a delivery may have been sent right after any
of several others: those that were not certainly followed by something that certainly came before it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.rules import Rules
from prober.core.sessions import Arrival, Span, Tracks


class Predecessor(NamedTuple):
    """What may have been sent immediately before a delivery, the highest of it: its position and event.

    `sent_after_t`: it was not sent before that.
    """

    position: int
    number: int
    sent_after_t: float


NONE: Final = Predecessor(0, 0, LONG_AGO)


def highest(rules: Rules, tracks: Tracks, arrival: Arrival, besides: int = 0) -> Predecessor:
    """The highest possible predecessor. `besides`: not the delivery of that event on another session."""
    own, spans = _possible(rules, tracks, arrival, besides)
    best = max(spans, key=lambda span: span.position, default=None)
    if own and (best is None or own >= best.position):
        return _on_own_session(rules, arrival)
    return NONE if best is None else _elsewhere(rules, best)


def possible(rules: Rules, tracks: Tracks, arrival: Arrival) -> list[Predecessor]:
    """All possible predecessors."""
    own, spans = _possible(rules, tracks, arrival, 0)
    elsewhere = [_elsewhere(rules, span) for span in spans]
    return [_on_own_session(rules, arrival), *elsewhere] if own else elsewhere


def _on_own_session(rules: Rules, arrival: Arrival) -> Predecessor:
    track = arrival.track
    return Predecessor(arrival.own, track.last_number, max(track.last_t - rules.delivery_delay_max_s, track.session.opened_t))


def _elsewhere(rules: Rules, span: Span) -> Predecessor:
    return Predecessor(span.position, span.number, max(span.last_t - rules.delivery_delay_max_s, span.sent_after_t))


def _possible(rules: Rules, tracks: Tracks, arrival: Arrival, besides: int) -> tuple[int, list[Span]]:
    """The position of the one on its own session, 0 if that is none, and those on others."""
    eps, moment_t = rules.clock_error_s, arrival.lo - rules.clock_error_s
    certain: list[Span] = []
    found: list[Span] = []
    latest_t = arrival.track.last_t if arrival.own else LONG_AGO
    for spans in _pasts(tracks, arrival, besides):
        known: Span | None = None
        for span in spans:
            if span.first_t < moment_t:
                known = span if span.last_t < moment_t else None
                latest_t = max(latest_t, span.last_t if known else span.first_t)
            if span.last_t >= moment_t:
                found.append(span)
        if known is not None:
            certain.append(known)
    followed_t = latest_t - rules.delivery_delay_max_s - eps
    found += [span for span in certain if span.last_t >= followed_t]
    tracks.forget_before(min(followed_t, arrival.t - 3 * (rules.delivery_delay_max_s + eps)))
    return arrival.own if arrival.track.last_t >= followed_t else 0, found


def _pasts(tracks: Tracks, arrival: Arrival, besides: int) -> list[list[Span]]:
    """What was delivered elsewhere, session by session."""
    pasts = [*(track.past() for track in tracks.others(arrival.track)), *tracks.past]
    return [[span for span in spans if span.number != besides] for spans in pasts] if besides else pasts
