"""Who has a lane in a diagram: the publisher, Pub/Sub, and every subscriber, or every response or request where these hold messages."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prober.core.events import Delivered, Event, Opened, Published, PublishEvent
from prober.core.rules import Mode
from prober.evidence.diagram import OnSession, short
from prober.evidence.naming import HOLDERS

PUBLISHER: Final = 0
SERVICE: Final = 1
SUBSCRIBERS_MAX: Final = 6  # further ones share a last lane; those that a finding is about come first
SESSION_LENGTH_MAX: Final = 10
AGAIN_MAX: Final = 3

Session = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Lane:
    """`role` is what it is, `name` which one; `subscription` is empty unless there are several."""

    role: str
    name: str
    subscription: str = ""


class Columns:
    """Which lane each session belongs to, and how messages and sessions are called in it. `epochs`: short names, if there are several."""

    def __init__(
        self, history: Iterable[tuple[int, Event]], opened: Iterable[Opened], mode: Mode, marked: Container[int] = ()
    ) -> None:
        numbered = tuple(history)
        shown = [event for _, event in numbered]
        begun = [*opened, *(event for event in shown if isinstance(event, Opened))]
        self._owner = {(event.subscription, event.session): event.subscriber for event in begun}
        sessions = dict.fromkeys((event.subscription, event.session) for event in shown if isinstance(event, OnSession))
        self._sessions = tuple(sessions)
        owners = list(dict.fromkeys((subscription, self._of(subscription, session)) for subscription, session in sessions))
        several = len({subscription for subscription, _ in owners}) > 1
        alone = owners
        if len(owners) > SUBSCRIBERS_MAX:
            needed = {self._owner_of(event) for number, event in numbered if number in marked and isinstance(event, OnSession)}
            first = sorted(owners, key=lambda owner: owner not in needed)[: SUBSCRIBERS_MAX - 1]
            alone = [owner for owner in owners if owner in first]
        self._lane = {owner: number for number, owner in enumerate(alone, SERVICE + 1)}
        lanes = [Lane("", "publisher"), Lane("", "Pub/Sub")]
        lanes += [Lane(HOLDERS[mode], subscriber, subscription if several else "") for subscription, subscriber in alone]
        if rest := len(owners) - len(alone):
            lanes.append(Lane(f"{HOLDERS[mode]}s", f"{rest:,} more"))
        self.lanes = tuple(lanes)
        self._seqs = _seqs_by_id(shown)
        epochs = dict.fromkeys(event.epoch for event in shown if isinstance(event, PublishEvent | Delivered))
        self.epochs: Mapping[str, str] = {epoch: f"e{n}" for n, epoch in enumerate(epochs, 1)} if len(epochs) > 1 else {}

    def of(self, subscription: str, session: str) -> int:
        """The lane of a session."""
        return self._lane.get((subscription, self._of(subscription, session)), len(self.lanes) - 1)

    def session(self, subscription: str, session: str) -> str:
        """What tells a session apart from others in its lane; empty if it is alone there."""
        lane = self.of(subscription, session)
        if sum(self.of(*other) == lane for other in self._sessions) == 1:
            return ""
        rest = session.removeprefix(self._of(subscription, session))
        rest = session if not rest or rest[0].isalnum() else rest
        return rest if len(rest) <= SESSION_LENGTH_MAX else f"…{rest[1 - SESSION_LENGTH_MAX :]}"

    def any_of(self, subscription: str) -> int:
        """A lane of a subscription, for what should have been sent there and was not."""
        return next((self.of(*one) for one in self._sessions if one[0] == subscription), SERVICE)

    def message(self, event: PublishEvent | Delivered) -> str:
        """The sequence number, with what tells it apart: its epoch if there are several, and a mark for each republishing."""
        epoch = f"{self.epochs[event.epoch]}:" if self.epochs else ""
        again = "'" * min(event.generation, AGAIN_MAX)
        return f"{epoch}{event.seq}{again}"

    def named(self, message_id: str) -> str:
        """The message that an id stands for, as a reader knows it; the id itself if that is not known."""
        return self._seqs.get(message_id) or short(message_id)

    def _owner_of(self, event: OnSession) -> Session:
        return event.subscription, self._of(event.subscription, event.session)

    def _of(self, subscription: str, session: str) -> str:
        return self._owner.get((subscription, session), session)


def _seqs_by_id(shown: Iterable[Event]) -> Mapping[str, str]:
    """Sequence numbers of ids that stand for one message each."""
    found: dict[str, set[int]] = {}
    for event in shown:
        if isinstance(event, Published | Delivered):
            found.setdefault(event.message_id, set()).add(event.seq)
    return {message_id: str(*seqs) for message_id, seqs in found.items() if len(seqs) == 1}
