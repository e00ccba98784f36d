"""Events that a doubtful reader needs beside the proof of a finding, although the checker does not; and the identity of findings.

The *streams* of a subscriber beside the delivering one: messages lost with a broken stream are delivered later on another
(docs/model.md, 6.3). If the checker reports that no stream broke, a reader needs their starts and ends.

The *redelivery* of a finding: its start, and the deliveries that it repeated. Without its first message a reader cannot see
the nack, lease or end of a stream that caused it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Final, NamedTuple, TypeAlias

from prober.core.events import Closed, Delivered, Event, Opened
from prober.core.findings import EPOCHS, Fact, Finding

SHOWN_MAX: Final = 8
"""Number of deliveries shown of a redelivery; of a longer one only the first and the last."""


class _Stream(NamedTuple):
    """A stream that was opened and perhaps closed, by events of a history."""

    subscriber: tuple[str, str]
    session: str
    began: tuple[int, Event]
    ended: tuple[int, Event] | None

    def was_open(self, since_t: float, until_t: float) -> bool:
        return self.began[1].t <= until_t and since_t <= (inf if self.ended is None else self.ended[1].t)


def streams_beside(
    events: Iterable[tuple[int, Event]], deliveries: Sequence[Delivered], delay_max_s: float
) -> list[tuple[int, Event]]:
    """Return the starts and ends of the streams of each subscriber that had several during these deliveries, or a delay before."""
    streams = list(_streams(events))
    concerned = {(delivery.subscription, delivery.session) for delivery in deliveries}
    subscribers = {stream.subscriber for stream in streams if (stream.subscriber[0], stream.session) in concerned}
    times = [delivery.t for delivery in deliveries]
    since_t, until_t = min(times, default=inf) - delay_max_s, max(times, default=-inf)
    open_then = [one for one in streams if one.subscriber in subscribers and one.was_open(since_t, until_t)]
    several = Counter(one.subscriber for one in open_then)
    of = [one for one in open_then if several[one.subscriber] > 1]
    return [event for stream in of for event in (stream.began, stream.ended) if event is not None]


def _streams(events: Iterable[tuple[int, Event]]) -> Iterator[_Stream]:
    """Yield all streams that were opened; a reused name is another stream."""
    still_open: dict[tuple[str, str], _Stream] = {}
    for number, event in events:
        if isinstance(event, Opened):
            name = (event.subscription, event.session)
            if name in still_open:
                yield still_open[name]
            still_open[name] = _Stream((event.subscription, event.subscriber), event.session, (number, event), None)
        elif isinstance(event, Closed) and (stream := still_open.pop((event.subscription, event.session), None)) is not None:
            yield stream._replace(ended=(number, event))
    yield from still_open.values()


def redelivery_of(events: Iterable[tuple[int, Event]], finding: Finding) -> list[tuple[int, Event]]:
    """Return the redelivery of the last delivered witness, and the previous delivery of each of its messages.

    The redelivery started where the service last went back. Empty if it did not, or if no witness is a delivery on this key.
    """
    deliveries = [
        (number, event)
        for number, event in events
        if isinstance(event, Delivered) and (event.subscription, event.key) == (finding.subscription, finding.key)
    ]
    ends = max((index for index, (number, _) in enumerate(deliveries) if number in finding.witnesses), default=0)
    begins = _begins(deliveries[: ends + 1])
    if begins is None:
        return []
    run = deliveries[begins : ends + 1]
    shown = run if len(run) <= SHOWN_MAX else [run[0], run[-1]]
    before = {event.message_id: (number, event) for number, event in deliveries[:begins]}
    return [*(before[event.message_id] for _, event in shown if event.message_id in before), *shown]


def _begins(deliveries: Sequence[tuple[int, Delivered]]) -> int | None:
    """Return the index of the latest delivery that went back before its predecessor, by the order of first deliveries."""
    order: dict[str, int] = {}
    places = [order.setdefault(event.message_id, len(order)) for _, event in deliveries]
    return next((index for index in range(len(places) - 1, 0, -1) if places[index] <= places[index - 1]), None)


# --- when two findings, made from different parts of a history, are the same one ----------------------------------------------


Identity: TypeAlias = tuple[str, str, str, str, str, frozenset[tuple[str, Fact]]]

_OF_EPOCH: Final = re.compile(r" of epoch [^ ,:]+")


def identity_of(finding: Finding) -> Identity:
    """Return the facts that identify a finding, independent of the places of its events: no times, no positions."""
    lasting = frozenset(
        (name, fact)
        for name, fact in finding.facts.items()
        if not isinstance(fact, float) and "position" not in name and name != EPOCHS
    )
    return (finding.kind, finding.status, finding.subscription, finding.key, finding.doubt, lasting)


def grounds_of(finding: Finding) -> frozenset[str]:
    """Return the reasons of a finding in a comparable form: without the durations of obstacles, and without the names of epochs."""
    return frozenset(_OF_EPOCH.sub("", one.partition(":")[0] if one.startswith("not delayed ") else one) for one in finding.reasons)
