"""Checkpoints of long-lived probes: alike in memory and in every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from prober.core.events import PublishAbandoned, Published, PublishFailed, PublishInvoked, PublishUnknown
from prober.errors import CheckpointUnavailable
from prober.runs.handover import Checkpoint, Checkpoints, CheckpointsInMemory
from prober.sinks.status.checkpoints import StoredCheckpoints
from prober.sinks.status.database import Database
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import sqlite_url

NAME = "europe/long_lived/wire"
PUBLISHES = (
    PublishInvoked(0.0, "a", "e", 1, 0, None, 256, "europe-west1"),
    PublishInvoked(0.0, "a", "e", 2, 0, None, 64, "europe-west1"),
    Published(0.0, "a", "e", 1, "17", 0),
    PublishUnknown(0.0, "a", "e", 2, 0),
    PublishInvoked(0.0, "a", "e", 2, 1, None, 64, "europe-west1"),
    PublishFailed(0.0, "a", "e", 2, 1),
    PublishAbandoned(0.0, "a", "e", 2, 1),
)
LEFT = Checkpoint("projects/p/topics/t", "projects/p/subscriptions/s", "e", 1_700_000_000.5, PUBLISHES)
TAKEN = replace(LEFT, epoch="", publishes=())


async def live(checkpoints: Checkpoints) -> None:
    """From the first run on."""
    assert await checkpoints.read(NAME) is None
    assert not await checkpoints.take(NAME, "e")
    await checkpoints.save(NAME, LEFT)
    assert await checkpoints.read(NAME) == LEFT
    assert not await checkpoints.take(NAME, "another")
    assert await checkpoints.read(NAME) == LEFT
    assert await checkpoints.take(NAME, "e")
    assert await checkpoints.read(NAME) == TAKEN
    assert not await checkpoints.take(NAME, "e")
    await checkpoints.save(NAME, LEFT)
    later = replace(LEFT, epoch="f", publishes=tuple(replace(event, epoch="f") for event in PUBLISHES[:3]))
    await checkpoints.save(NAME, later)
    assert await checkpoints.read(NAME) == later
    assert await checkpoints.read("europe/long_lived/library") is None


def test_in_memory() -> None:
    asyncio.run(live(CheckpointsInMemory()))


def test_in_a_store(database: Database, store: StatusStore) -> None:
    asyncio.run(live(StoredCheckpoints(database, "me")))
    assert asyncio.run(StoredCheckpoints(database, "somebody else").read(NAME)) is None


def test_a_store_that_is_not_there_is_one_clear_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    database = Database(sqlite_url(tmp_path_factory.mktemp("empty")))
    checkpoints = StoredCheckpoints(database, "me")
    for call in (checkpoints.read(NAME), checkpoints.take(NAME, "e"), checkpoints.save(NAME, LEFT)):
        with pytest.raises(CheckpointUnavailable, match="the status store keeps what runs hand over to each other"):
            asyncio.run(call)
    database.close()
