"""Checkpoints of long-lived probes (`prober.runs.handover`) in the status store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeVar

from sqlalchemy import delete, select, update

from prober.core.events import EVENT_NAMES, EVENT_TYPES, PublishEvent
from prober.errors import CheckpointUnavailable
from prober.runs.handover import Checkpoint
from prober.sinks.status.columns import storable, values_of
from prober.sinks.status.database import Database, StatusError
from prober.sinks.status.prober_records import CheckpointRecord, WaitingPublish

_FIELDS: Final = ("key", "seq", "generation", "message_id", "size", "region")
_Answer = TypeVar("_Answer")


class StoredCheckpoints:
    """Checkpoints of one prober, or of all probers that share its work (`prober.runs.handover.Checkpoints`)."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner

    async def read(self, name: str) -> Checkpoint | None:
        """See `Checkpoints.read`."""
        return await _in_thread(lambda: self._read(self._stored(name)))

    async def take(self, name: str, epoch: str) -> bool:
        """See `Checkpoints.take`."""
        return await _in_thread(lambda: self._take(self._stored(name), epoch))

    async def save(self, name: str, checkpoint: Checkpoint) -> None:
        """See `Checkpoints.save`."""
        await _in_thread(lambda: self._save(self._stored(name), checkpoint))

    def _stored(self, name: str) -> str:
        return f"{self._owner}/{storable(name)}"

    def _read(self, name: str) -> Checkpoint | None:
        with self._database.reading() as connection:
            found = connection.execute(select(CheckpointRecord.__table__).where(CheckpointRecord.name == name)).mappings().first()
            if found is None:
                return None
            waiting = select(WaitingPublish.__table__).where(WaitingPublish.name == name).order_by(WaitingPublish.position)
            events = tuple(_event(dict(row), found["epoch"]) for row in connection.execute(waiting).mappings())
        return Checkpoint(found["topic"], found["subscription"], found["epoch"], found["left_at"], events)

    def _take(self, name: str, epoch: str) -> bool:
        waiting = (CheckpointRecord.name == name, CheckpointRecord.epoch == epoch)
        with self._database.writing() as connection:
            taken = connection.execute(update(CheckpointRecord).where(*waiting).values(epoch="")).rowcount > 0
            if taken:
                connection.execute(delete(WaitingPublish).where(WaitingPublish.name == name))
        return taken

    def _save(self, name: str, checkpoint: Checkpoint) -> None:
        record = CheckpointRecord(name, checkpoint.topic, checkpoint.subscription, checkpoint.epoch, checkpoint.left_at)
        rows = [values_of(_row(name, position, event)) for position, event in enumerate(checkpoint.publishes)]
        with self._database.writing() as connection:
            connection.execute(delete(CheckpointRecord).where(CheckpointRecord.name == name))
            connection.execute(delete(WaitingPublish).where(WaitingPublish.name == name))
            connection.execute(self._database.insert(CheckpointRecord).values(values_of(record)))
            if rows:
                connection.execute(self._database.insert(WaitingPublish), rows)


def _row(name: str, position: int, event: PublishEvent) -> WaitingPublish:
    empty: dict[str, Any] = {"message_id": "", "size": 0, "region": ""}
    known: dict[str, Any] = {field: getattr(event, field, empty.get(field)) for field in _FIELDS}
    return WaitingPublish(name=name, position=position, event=EVENT_NAMES[type(event)], **known)


def _event(row: dict[str, Any], epoch: str) -> PublishEvent:
    kind: Any = EVENT_TYPES[row["event"]]
    known = {field.name for field in fields(kind)}
    event: PublishEvent = kind(t=0.0, epoch=epoch, **{field: row[field] for field in _FIELDS if field in known})
    return event


async def _in_thread(work: Callable[[], _Answer]) -> _Answer:
    try:
        return await asyncio.to_thread(work)
    except StatusError as error:
        raise CheckpointUnavailable(f"the status store keeps what runs hand over to each other: {error}") from error
