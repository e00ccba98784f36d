"""A topic at work: who is subscribed, and the history that it keeps while somebody may ask for it.

History is needed by the topic's own retention, by subscriptions that retain acknowledged messages, and by snapshots, which stand for
everything published after them too (documentation, "Replay and purge messages"). Without any of these nothing is kept.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from prober.embedded import resources
from prober.embedded.feed import Feed
from prober.embedded.messages import Message


@dataclass(slots=True, eq=False)
class SnapshotState:
    """What a snapshot stands for: these unacknowledged messages, and all that came after message number `frontier`."""

    description: resources.Snapshot
    unacked: list[Message]
    frontier: int


@dataclass(slots=True, eq=False)
class TopicState:
    """A topic, its subscriptions and snapshots by name, and its history, oldest first."""

    settings: resources.Topic
    feeds: dict[str, Feed] = field(default_factory=dict)
    snapshots: dict[str, SnapshotState] = field(default_factory=dict)
    history: deque[Message] = field(default_factory=deque)

    def keep_s(self) -> float:
        """For how long messages are kept here at least, in seconds."""
        wanted = [self.settings.message_retention_s or 0.0]
        wanted += [feed.settings.message_retention_s for feed in self.feeds.values() if feed.settings.retain_acked_messages]
        if self.snapshots:
            wanted.append(resources.SNAPSHOT_LIFETIME_S)
        return max(wanted)

    def remember(self, messages: list[Message], now: float) -> None:
        """Messages were stored."""
        keep_s = self.keep_s()
        if keep_s:
            self.history.extend(messages)
        self.forget(now, keep_s)

    def forget(self, now: float, keep_s: float | None = None) -> None:
        """Drop what nobody may ask for any more."""
        horizon = now - (self.keep_s() if keep_s is None else keep_s)
        if horizon == now:
            horizon = math.inf
        while self.history and self.history[0].publish_time < horizon:
            self.history.popleft()


def replayable(topic: TopicState | None, feed: Feed, now: float) -> Iterator[Message]:
    """Every message that a seek of this subscription can bring back, in the order in which they were stored.

    Those are its backlog, what it retains although it was acknowledged, and, with retention on the topic, also what was published
    before the subscription existed.
    """
    known = {entry.message.sequence: entry.message for entry in feed.entries()}
    if topic is not None:
        retained_s = feed.settings.message_retention_s if feed.settings.retain_acked_messages else -1.0
        topic_s = topic.settings.message_retention_s or -1.0
        for message in topic.history:
            age = now - message.publish_time
            if age <= topic_s or (age <= retained_s and message.sequence > feed.born):
                _accept(feed, message, known)
    yield from (known[sequence] for sequence in sorted(known))


def since_snapshot(topic: TopicState | None, feed: Feed, snapshot: SnapshotState) -> Iterator[Message]:
    """What a seek to a snapshot brings back: what was unacknowledged then, and everything published since."""
    known: dict[int, Message] = {}
    for message in snapshot.unacked:
        _accept(feed, message, known)
    for message in topic.history if topic is not None else ():
        if message.sequence > snapshot.frontier:
            _accept(feed, message, known)
    yield from (known[sequence] for sequence in sorted(known))


def _accept(feed: Feed, message: Message, known: dict[int, Message]) -> None:
    if feed.accepts is None or feed.accepts(message.attributes):
        known[message.sequence] = message
