"""The messages of a run: rows of the table `messages`, made from the run's events while they are recorded.

A row stands for a message on one subscription. A message that the run published, or that says which epoch and number it has, is named by
these: copies under other message ids belong to it. In a stream without recorded publishes, a message id names the message.

* A message was *to be sent* when the first of its publishes was. Where no publish is on record, the first event about it stands for that.
* It is named by the record that was confirmed first; without a confirmation, by the one that was received first. Nacks and the
  acknowledgement are those of this record; deliveries are those of all records.
* It *waits* from when it was confirmed, or received if that was earlier, until each of its confirmed records was acknowledged or moved to
  the dead-letter topic, or until a seek or filter change, after which it is unknown whether it is still pending; else until the run ends.
* Its *outcome* is the name of the event that ended the wait. Without one it is the last stage that the message reached: `delivered`,
  `published`, `publish_unknown`, `publish` (no answer is on record) or `publish_failed`.
* A later delivery is a redelivery. It was due since the nack, or the end of the lease, that was the last event before it about the record;
  one that came earlier than that has another cause, such as a broken stream.

`spark_jobs.derive` states the same in SQL, for runs whose rows were not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from prober.core.events import (
    Acked,
    DeadLettered,
    Delivered,
    Event,
    FilterChanged,
    LeaseModified,
    Nacked,
    Opened,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
    Sought,
)
from prober.core.rules import Rules
from prober.slo.objectives import whole_micros

NANOS_PER_MICRO: Final = 1000
Row: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class _Publication:
    """A message by what its publisher recorded of it. Times are microseconds since 1970; `first_us` is that of the first event.

    message_id   of the first record that was confirmed; `more_ids` are those of others.
    """

    first_us: int | None = None
    attempts: int = 0
    confirmed: int = 0
    rejected: int = 0
    unknown: int = 0
    intended_us: int | None = None
    published_us: int | None = None
    bytes: int | None = None
    confirmed_us: int | None = None
    confirmed_lagged_us: int | None = None
    message_id: str | None = None
    more_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class _Record:
    """A message id on a subscription and key. `due_us`: since when it is to be redelivered, if the last event says so."""

    nacks: int = 0
    acked_us: int | None = None
    dead_lettered_us: int | None = None
    due_us: int | None = None

    @property
    def end(self) -> tuple[int, str] | None:
        """When its wait ended, and by which event."""
        ends = (self.acked_us, "acked"), (self.dead_lettered_us, "dead_lettered")
        return min(((us, name) for us, name in ends if us is not None), default=None)


@dataclass(slots=True)
class _Receipt:
    """A message by its deliveries on one subscription.

    record    that of `message_id`, which was delivered first; `copies` are those of other ids.
    changes   deliveries to another subscriber than the key's delivery before.
    """

    record: _Record
    first_us: int | None = None
    message_id: str | None = None
    lagged_us: int | None = None
    bytes: int | None = None
    published_us: int | None = None
    deliveries: int = 0
    changes: int = 0
    redeliveries: list[Row] | None = None
    copies: dict[str, _Record] | None = None

    def record_of(self, message_id: str | None) -> _Record:
        """That of this id; an empty one if it was not delivered as this message."""
        return self.record if message_id == self.message_id else (self.copies or {}).get(message_id or "", NO_RECORD)


NO_RECORD: Final = _Record()
NOT_PUBLISHED: Final = _Publication()
NOT_RECEIVED: Final = _Receipt(NO_RECORD)
_Place: TypeAlias = tuple[str, str]
_Name: TypeAlias = tuple[str | None, int | None, str | None]
"""An epoch and a sequence number, or a message id."""


class MessageRows:
    """Takes the events of one run in order, and gives its rows.

    size   rows and redeliveries so far. Memory grows with it, by about a kilobyte each.
    """

    def __init__(self, run_id: str, rules: Mapping[str, Rules], clock_offset_s: float) -> None:
        """`rules`: by subscription. `clock_offset_s` turns an event's `t` into seconds since 1970.

        Every published message belongs to all subscriptions, except those of which the rules state that their filter excludes it.
        """
        self._run_id, self._rules, self._offset_s = run_id, rules, clock_offset_s
        self.size = 0
        self._publications: dict[tuple[str, str, int], _Publication] = {}
        self._receipts: dict[tuple[_Place, _Name], _Receipt] = {}
        self._records: dict[tuple[_Place, str], _Record] = {}
        self._subscribers: dict[_Place, str] = {}
        self._last_subscriber: dict[_Place, str] = {}
        self._unsettled: dict[str, list[tuple[int, str]]] = {}
        self._handlers: Mapping[type[Any], Callable[[Any, float], None]] = {
            PublishInvoked: self._invoked,
            Published: self._published,
            PublishFailed: self._failed,
            PublishUnknown: self._unknown,
            Opened: self._opened,
            Delivered: self._delivered,
            Acked: self._acked,
            Nacked: self._nacked,
            LeaseModified: self._lease_modified,
            DeadLettered: self._dead_lettered,
            Sought: self._sought,
            FilterChanged: self._filter_changed,
        }

    def add(self, event: Event, lagged_s: float = 0.0) -> None:
        """Takes the next event; `lagged_s` as in `EVENTS`."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, lagged_s)

    def rows(self, ended_us: int | None) -> Iterator[Row]:
        """The rows without what all rows of a run share. `ended_us`: when the run ended; None: it was cut short."""
        for (key, epoch, seq), publication in self._publications.items():
            name: _Name = epoch, seq, None
            for place in ((subscription, key) for subscription, rules in self._rules.items() if not rules.excludes(seq)):
                yield self._row(place, name, publication, self._receipts.get((place, name), NOT_RECEIVED), ended_us)
        for (place, name), receipt in self._receipts.items():
            if not self._belongs(place, name):
                yield self._row(place, name, NOT_PUBLISHED, receipt, ended_us)

    # --- the publisher -------------------------------------------------------------------------------------------------------

    def _invoked(self, event: PublishInvoked, _lagged_s: float) -> None:
        now_us, publication = self._publication(event)
        late_us = 0 if event.intended_t is None else whole_micros(event.t - event.intended_t)
        publication.attempts += 1
        publication.intended_us = _least(publication.intended_us, now_us - late_us)
        publication.published_us = _least(publication.published_us, now_us)
        publication.bytes = max(publication.bytes or 0, event.size)

    def _published(self, event: Published, lagged_s: float) -> None:
        now_us, publication = self._publication(event)
        publication.confirmed += 1
        if publication.confirmed_us is None:
            publication.confirmed_us, publication.message_id = now_us, event.message_id
            publication.confirmed_lagged_us = _lag_us(lagged_s)
        elif event.message_id != publication.message_id:
            publication.more_ids = *publication.more_ids, event.message_id

    def _failed(self, event: PublishFailed, _lagged_s: float) -> None:
        self._publication(event)[1].rejected += 1

    def _unknown(self, event: PublishUnknown, _lagged_s: float) -> None:
        self._publication(event)[1].unknown += 1

    def _publication(self, event: PublishInvoked | Published | PublishFailed | PublishUnknown) -> tuple[int, _Publication]:
        now_us, name = self._time_us(event), (event.key, event.epoch, event.seq)
        publication = self._publications.get(name)
        if publication is None:
            self.size += len(self._rules)
            publication = self._publications[name] = _Publication(now_us)
        return now_us, publication

    # --- subscribers ---------------------------------------------------------------------------------------------------------

    def _opened(self, event: Opened, _lagged_s: float) -> None:
        self._subscribers.setdefault((event.subscription, event.session), event.subscriber)

    def _delivered(self, event: Delivered, lagged_s: float) -> None:
        now_us, place, lagged_us = self._time_us(event), (event.subscription, event.key), _lag_us(lagged_s)
        others = event.data_size is not None  # only of these a delivery has a size
        name: _Name = (None, None, event.message_id) if others else (event.epoch, event.seq, None)
        receipt = self._receipts.get((place, name))
        record = self._record(event)
        due_us, record.due_us = record.due_us, None
        if receipt is None:
            self.size += not self._belongs(place, name)
            published_us = event.publish_time // NANOS_PER_MICRO if isinstance(event.publish_time, int) else None
            receipt = _Receipt(record, now_us, event.message_id, lagged_us, event.data_size, published_us)
            self._receipts[place, name] = receipt
        else:
            self.size += 1
            due_us = due_us if due_us is not None and due_us <= now_us else None
            receipt.redeliveries = receipt.redeliveries or []
            receipt.redeliveries.append({"received_at": now_us, "due_at": due_us, "lagged_us": lagged_us})
            if record is not receipt.record:
                receipt.copies = (receipt.copies or {}) | {event.message_id: record}
        receipt.deliveries += 1
        subscriber = self._subscribers.get((event.subscription, event.session), event.session)
        receipt.changes += self._last_subscriber.get(place, subscriber) != subscriber
        self._last_subscriber[place] = subscriber

    def _acked(self, event: Acked, _lagged_s: float) -> None:
        record = self._record(event)
        record.due_us = None
        record.acked_us = _least(record.acked_us, self._time_us(event))

    def _nacked(self, event: Nacked, _lagged_s: float) -> None:
        record = self._record(event)
        record.nacks += 1
        record.due_us = self._time_us(event)

    def _lease_modified(self, event: LeaseModified, _lagged_s: float) -> None:
        self._record(event).due_us = self._time_us(event) + whole_micros(event.seconds)

    def _dead_lettered(self, event: DeadLettered, _lagged_s: float) -> None:
        record = self._record(event)
        record.due_us = None
        record.dead_lettered_us = _least(record.dead_lettered_us, self._time_us(event))

    def _record(self, event: Delivered | Acked | Nacked | LeaseModified | DeadLettered) -> _Record:
        return self._records.setdefault(((event.subscription, event.key), event.message_id), _Record())

    def _sought(self, event: Sought, _lagged_s: float) -> None:
        self._unsettled.setdefault(event.subscription, []).append((self._time_us(event), "sought"))

    def _filter_changed(self, event: FilterChanged, _lagged_s: float) -> None:
        self._unsettled.setdefault(event.subscription, []).append((self._time_us(event), "filter_changed"))

    # --- rows ----------------------------------------------------------------------------------------------------------------

    def _row(self, place: _Place, name: _Name, published: _Publication, received: _Receipt, ended_us: int | None) -> Row:
        message_id = published.message_id or received.message_id
        record = received.record_of(message_id)
        stored_us = _least(published.confirmed_us, received.first_us)
        ends = [record.end, *(received.record_of(one).end for one in published.more_ids)]
        end_us, outcome = self._end_of_wait(place[0], ends, stored_us) or (ended_us, _stage(published, received))
        first_us = _least(published.first_us, received.first_us)
        return {
            "subscription": place[0],
            "key": place[1],
            "epoch": name[0],
            "seq": name[1],
            "message_id": message_id,
            "own": name[0] == self._run_id,
            "bytes": _known(published.bytes, received.bytes),
            "attempts": published.attempts,
            "confirmed": published.confirmed,
            "rejected": published.rejected,
            "unknown": published.unknown,
            "deliveries": received.deliveries,
            "nacks": record.nacks,
            "subscriber_changes": received.changes,
            "intended_at": _known(published.intended_us, first_us),
            "published_at": _known(published.published_us, received.published_us),
            "confirmed_at": published.confirmed_us,
            "received_at": received.first_us,
            "acked_at": record.acked_us,
            "waited_until": end_us if stored_us is not None else None,
            "confirmed_lagged_us": published.confirmed_lagged_us,
            "received_lagged_us": received.lagged_us,
            "outcome": outcome,
            "redeliveries": received.redeliveries,
        }

    def _end_of_wait(
        self, subscription: str, of_records: Sequence[tuple[int, str] | None], stored_us: int | None
    ) -> tuple[int, str] | None:
        """When a wait ended, and by which event; None: by none."""
        known = [end for end in of_records if end is not None]
        ends = [max(known)] if len(known) == len(of_records) else []
        if stored_us is not None:
            ends += [end for end in self._unsettled.get(subscription, ()) if end[0] >= stored_us]
        return min(ends, default=None)

    def _belongs(self, place: _Place, name: _Name) -> bool:
        """Whether an event about its publish is on record, and the subscription has to receive it."""
        (subscription, key), (epoch, seq, _) = place, name
        rules = self._rules.get(subscription)
        if rules is None or epoch is None or seq is None or rules.excludes(seq):
            return False
        return (key, epoch, seq) in self._publications

    def _time_us(self, event: Event) -> int:
        return whole_micros(event.t + self._offset_s)


def _stage(published: _Publication, received: _Receipt) -> str:
    """The last stage that a message reached whose wait no event ended."""
    if received.deliveries:
        return "delivered"
    if published.confirmed:
        return "published"
    if published.unknown:
        return "publish_unknown"
    return "publish" if published.attempts > published.rejected else "publish_failed"


def _known(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


def _least(one: int | None, other: int | None) -> int | None:
    return min(one, other) if one is not None and other is not None else _known(one, other)


def _lag_us(lagged_s: float) -> int | None:
    return whole_micros(lagged_s) if lagged_s else None
