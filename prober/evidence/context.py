"""What a sceptic asks of a proof: was it published, acknowledged, refused, how long was its lease, was the stream open?

The smallest history that proves a finding needs little of this: what was skipped may have been acknowledged or not, the promise is the
same. But whoever reads it wants to rule out the innocent explanations by himself. So these events are kept although the proof holds
without them. Of lease changes only the latest of each delivery counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from prober.core.events import AckConfirmed, Acked, Closed, Delivered, Event, LeaseModified, Nacked, Opened, PublishInvoked
from prober.core.findings import Kind

Numbered: TypeAlias = tuple[int, Event]
Answer: TypeAlias = Acked | Nacked | AckConfirmed | LeaseModified

EVIDENCE_MAX: Final = 40
"""Events that are kept for a sceptic, the latest ones: a history that is read has to stay small."""

_REDELIVERY: Final = (Acked, Nacked)
_HOLD: Final = (Acked, Nacked, LeaseModified)
_ASKED: Final[Mapping[Kind, tuple[type[Answer], ...]]] = {
    Kind.REDELIVERY_SKIP: _REDELIVERY,
    Kind.PULL_BATCH_ORDER: _REDELIVERY,
    Kind.PUSH_ADVANCE_PAST_NACK: _REDELIVERY,
    Kind.REDELIVERY_STALL: _REDELIVERY,
    Kind.AFFINITY_SPLIT: _HOLD,
    Kind.PULL_OVERLAP: _HOLD,
    Kind.PUSH_OVERLAP: _HOLD,
    Kind.EOD_REDELIVERY_AFTER_ACK: (*_HOLD, AckConfirmed),
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: (*_HOLD, AckConfirmed),
    Kind.UNACKED_STALL: _HOLD,
}
"""Which answers matter to a finding, besides the publishes, and the beginnings and ends of the sessions. For other kinds nobody asks."""


class Asked:
    """Contains the events that are asked for about deliveries: where they come from, what became of them, when their sessions were open."""

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
        """Those of a history, but for lease changes that a later one of the same delivery made void."""
        latest = {
            (event.subscription, event.session, event.message_id): number
            for number, event in events
            if isinstance(event, LeaseModified)
        }
        void = {number for number, event in events if isinstance(event, LeaseModified)} - set(latest.values())
        return (one for one in events if one[1] in self and one[0] not in void)
