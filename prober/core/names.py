"""Names of a key's records in sentences: the sequence number, with the epoch and the message id if that alone is ambiguous."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from prober.core.facts import Delivery, deliveries_of
from prober.core.findings import Facts

if TYPE_CHECKING:
    from prober.core.key import KeyChecker
    from prober.core.publications import Publication


class RecordName(NamedTuple):
    """The name of a record of message `seq` of an epoch.

    token, stamp    the hash of its message id, and of its publish time, 0 if that is not known.
    message_id, publish_time    empty and None if they are forgotten.
    """

    epoch: str
    seq: int
    token: int
    stamp: int = 0
    message_id: str = ""
    publish_time: float | str | None = None

    @classmethod
    def of(cls, record: Named) -> RecordName:
        """Return the name of a delivered record, or of the primary of a publication."""
        if isinstance(record, RecordName):
            return record
        if isinstance(record, Delivery):
            event = record.event
            return cls(record.epoch, record.seq, record.token, record.stamp, event.message_id, event.publish_time)
        return cls(record.epoch.name, record.seq, record.token or 0, 0, record.message_id)


Named: TypeAlias = "Delivery | Publication | RecordName"


def words_for(key: KeyChecker, record: Named) -> str:
    """Return `message 3`; `message 3 of epoch e2` if the key has several epochs; `message 3 (id b3)` if several records of it are known."""
    name = RecordName.of(record)
    epoch = f" of epoch {name.epoch}" if key.collector.epochs > 1 and name.epoch else ""
    message_id = _id_if_several(key, name)
    return f"message {name.seq}{epoch}" + (f" (id {message_id})" if message_id else "")


def id_of(key: KeyChecker, fact: str, record: Named) -> Facts:
    """Return the fact `<fact>_id` if several records of the message are known; else no fact."""
    message_id = _id_if_several(key, RecordName.of(record))
    return {f"{fact}_id": message_id} if message_id else {}


def ids_of(key: KeyChecker, fact: str, records: Iterable[Named]) -> Facts:
    """Return the fact `<fact>_ids` for a list of messages: empty ids for messages with one known record; no fact if all are empty."""
    ids = tuple(_id_if_several(key, RecordName.of(one)) for one in records)
    return {f"{fact}_ids": ids} if any(ids) else {}


def _id_if_several(key: KeyChecker, name: RecordName) -> str:
    """Return the message id of a record, if its message has another record; with the publish time, if the id has another record too."""
    publication = key.group.find(name.epoch, name.seq)
    renamed = publication is not None and publication.token not in {None, name.token}
    twice = key.collector.repeated.get((name.epoch, name.seq))
    if not renamed and twice is None:
        return ""
    came = list(deliveries_of(key.newest(name.token)))
    message_id = name.message_id or (came[0].event.message_id if came else "")
    stored = name.publish_time or next((one.event.publish_time for one in came if one.stamp == name.stamp), None)
    return f"{message_id}, publish time {stored}" if twice and stored is not None else message_id
