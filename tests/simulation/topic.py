"""The topic: one log per key and region, the same for every subscription.

Legal by section 3.1 and rows 1 and 12 of the amendments. Records are appended in real time (L4). The service itself may store a message
a second time under the same id with another publish time, at once or later, like the shadow that a client's retry leaves; that record is
an element of the log of its own. Order is kept within a region only, so each region has a log of its own and nothing relates two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.simulation.faults import Fault
from tests.simulation.options import PublishTime, TopicOptions
from tests.simulation.world import World

LATEST_SECOND_COPY_S = 40.0


@dataclass(frozen=True, slots=True)
class Message:
    """A message as stored. `publish_time` is what deliveries show, None if it is not recorded.

    `confirmed`: the publisher knows of it, so that it must be delivered.
    """

    key: str
    region: str
    epoch: str
    seq: int
    generation: int
    message_id: str
    size: int
    stored_t: float
    publish_time: int | float | str | None = None
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """A message in the publisher's hands."""

    seq: int
    generation: int
    region: str
    size: int


@dataclass(slots=True)
class Topic:
    """Appends messages to the logs of all subscriptions."""

    world: World
    options: TopicOptions
    subscriptions: list[Callable[[Message], None]] = field(default_factory=list)

    def accept(self, key: str, epoch: str, items: list[Item], confirmed: bool) -> list[str]:
        """Store a batch, tell its ids."""
        world = self.world
        messages = [self._stored(key, epoch, item, confirmed) for item in items]
        ids = [message.message_id for message in messages]
        if confirmed and world.fault is not None:
            self._break(messages, ids)
        for message in messages:
            self._append(message)
        for message in messages:
            if world.happens(self.options.store_twice):
                delay = 0.0 if world.random.random() < 0.5 else world.between(0, LATEST_SECOND_COPY_S)
                world.after(delay, lambda message=message: self._store_again(message))  # type: ignore[misc]
        return ids

    def _break(self, messages: list[Message], ids: list[str]) -> None:
        """The bugs of the write path: two messages change places, or their ids do in the answer, or one is lost."""
        world = self.world
        place = world.random.randrange(len(messages))
        if world.broken(Fault.LOST_WRITE, 0.15):
            world.fire(f"{messages.pop(place).message_id} lost")
        elif not place:
            return
        elif world.broken(Fault.BATCH_SWAP, 0.8) or world.broken(Fault.REGION_SWAP, 0.8):
            messages[place - 1], messages[place] = messages[place], messages[place - 1]
            world.fire(f"{messages[place].message_id} after {messages[place - 1].message_id}")
        elif world.broken(Fault.ID_SWAP, 0.8):
            ids[place - 1], ids[place] = ids[place], ids[place - 1]
            world.fire(f"{ids[place]} and {ids[place - 1]} swapped")

    def _stored(self, key: str, epoch: str, item: Item, confirmed: bool) -> Message:
        number = self.world.number()
        message_id = f"{epoch}-{item.seq}-{number}"
        time = self._publish_time(number)
        return Message(key, item.region, epoch, item.seq, item.generation, message_id, item.size, self.world.now, time, confirmed)

    def _store_again(self, message: Message) -> None:
        self.world.note("stored twice under one id")
        self._append(replace(message, stored_t=self.world.now, publish_time=self._publish_time(self.world.number())))

    def _append(self, message: Message) -> None:
        for append in self.subscriptions:
            append(message)

    def _publish_time(self, number: int) -> int | float | str | None:
        """No two records have the same."""
        match self.options.publish_time:
            case PublishTime.NANOSECONDS:
                return int(self.world.now * 1e9) * 1000 + number
            case PublishTime.SECONDS:
                return self.world.now + number * 1e-3
            case PublishTime.TEXT:
                return f"{self.world.now:.3f}s#{number}"
            case _:
                return None
