"""Messages of a run: rows of the table `messages`, derived from the run's events during recording.

A row describes a message on one subscription. Epoch and number identify a message that the run published, or that contains them: copies
under other message ids belong to it. In a stream without recorded publishes, the message id identifies the message. A *record* is a copy
that the service stored under a message id.

* The *intended time* of a message is the earliest of its publishes. Without a recorded publish it is the time of the first event about the
message.
* Its *message id* is that of the record that was confirmed first; without a confirmation, of the one that was received first. Nacks and the
acknowledgement are those of this record; deliveries are those of all records.
* It *waits* from its confirmation, or from its first delivery if that was earlier. The wait ends when each of its confirmed records is
acknowledged or moved to the dead-letter topic; or at a seek or filter change, after which it is unknown whether the message is still
pending; otherwise at the end of the run.
* Its *outcome* is the name of the event that ended the wait. Without such an event it is the last stage that the message reached:
`delivered`, `published`, `publish_unknown`, `publish` (no answer is recorded) or `publish_failed`.
* A later delivery is a *redelivery*. If the last event about the record before it is a nack or a lease modification, the redelivery is due
from the nack, or from the end of the lease. An earlier redelivery has another cause, such as a broken stream, and no due time.

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
    """Publishes of a message. Times are microseconds since 1970; `first_us` is that of the first event.

    message_id   of the record that was confirmed first; `more_ids` are the ids of other records.
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
    """A message id on a subscription and key. `due_us`: time from which a redelivery is due, if the latest event sets one."""

    nacks: int = 0
    acked_us: int | None = None
    dead_lettered_us: int | None = None
    due_us: int | None = None

    @property
    def end(self) -> tuple[int, str] | None:
        """End of the wait, and the event that ended it; None: it has not ended."""
        ends = (self.acked_us, "acked"), (self.dead_lettered_us, "dead_lettered")
        return min(((us, name) for us, name in ends if us is not None), default=None)


@dataclass(slots=True)
class _Receipt:
    """Deliveries of a message on one subscription.

    record    of `message_id`, which was delivered first; `copies` are the records of other ids.
    changes   deliveries to another subscriber than that of the key's previous delivery.
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
        """Return the record of a message id; an empty record if this message has no delivery with the id."""
        return self.record if message_id == self.message_id else (self.copies or {}).get(message_id or "", NO_RECORD)


NO_RECORD: Final = _Record()
NOT_PUBLISHED: Final = _Publication()
NOT_RECEIVED: Final = _Receipt(NO_RECORD)
_Place: TypeAlias = tuple[str, str]
_Name: TypeAlias = tuple[str | None, int | None, str | None]
"""Identity of a message: an epoch and a sequence number, or a message id."""


class MessageRows:
    """Rows of the messages of one run, collected from its events in order.

    size   number of rows and redeliveries so far. Each takes about a kilobyte of memory.
    """

    def __init__(self, run_id: str, rules: Mapping[str, Rules], clock_offset_s: float) -> None:
        """Start without events. `rules`: by subscription. `clock_offset_s` converts an event's `t` to seconds since 1970.

        Every published message belongs to all subscriptions, except those whose filter excludes it according to their rules.
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
        """Take the next event; `lagged_s` as in `EVENTS`."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, lagged_s)

    def rows(self, ended_us: int | None) -> Iterator[Row]:
        """Yield the rows, without the columns that all rows of a run share.

        `ended_us`: end of the run; None: the run was cut short.
        """
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
        others = event.data_size is not None  # only deliveries of foreign messages have a size
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
        """Return the end of a wait, and the event that ended it; None if no event ended it."""
        known = [end for end in of_records if end is not None]
        ends = [max(known)] if len(known) == len(of_records) else []
        if stored_us is not None:
            ends += [end for end in self._unsettled.get(subscription, ()) if end[0] >= stored_us]
        return min(ends, default=None)

    def _belongs(self, place: _Place, name: _Name) -> bool:
        """Return whether the message has a recorded publish and the subscription must receive it."""
        (subscription, key), (epoch, seq, _) = place, name
        rules = self._rules.get(subscription)
        if rules is None or epoch is None or seq is None or rules.excludes(seq):
            return False
        return (key, epoch, seq) in self._publications

    def _time_us(self, event: Event) -> int:
        return whole_micros(event.t + self._offset_s)


def _stage(published: _Publication, received: _Receipt) -> str:
    """Return the last stage of a message whose wait no event ended."""
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
