"""Handover between the runs of a long-lived probe: a checkpoint contains the waiting messages and their subscription.

A checkpoint is written at the end of a run and taken once, before the next run receives a message. So messages that a run may have received
never wait for another: a process that ends in between leaves a checkpoint without publishes, of which only the names count.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Protocol

from prober.brokers.base import Admin
from prober.clock import wall_s
from prober.core.events import PublishEvent
from prober.errors import BrokerError, CheckpointUnavailable, ProberError
from prober.runs.lifetimes import made_at
from prober.runs.resources import Provisioner

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State that a run left for the next.

    topic, subscription  full names of its resources.
    epoch                epoch of the waiting messages; empty if they were taken.
    left_at              time of their publishing, in seconds since 1970.
    publishes            their publishes, in order; their times are meaningless to other processes.
    """

    topic: str
    subscription: str
    epoch: str = ""
    left_at: float = 0.0
    publishes: tuple[PublishEvent, ...] = ()


class Checkpoints(Protocol):
    """Checkpoints by name. Every method raises CheckpointUnavailable."""

    async def read(self, name: str) -> Checkpoint | None:
        """Return the latest checkpoint, or None."""

    async def take(self, name: str, epoch: str) -> bool:
        """Mark the waiting messages as taken. Return False, without a change, if another epoch waits."""

    async def save(self, name: str, checkpoint: Checkpoint) -> None:
        """Write a checkpoint in place of the latest."""


class CheckpointsInMemory:
    """Checkpoints that last as long as the process."""

    def __init__(self) -> None:
        self._kept: dict[str, Checkpoint] = {}

    async def read(self, name: str) -> Checkpoint | None:
        """Return the latest checkpoint, or None."""
        return self._kept.get(name)

    async def take(self, name: str, epoch: str) -> bool:
        """Mark the waiting messages as taken; see `Checkpoints`."""
        if name not in self._kept or self._kept[name].epoch != epoch:
            return False
        self._kept[name] = replace(self._kept[name], epoch="", publishes=())
        return True

    async def save(self, name: str, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; see `Checkpoints`."""
        self._kept[name] = checkpoint


class RunHandover:
    """The handover of one run (`prober.probes.context.Handover`).

    `problem`: error that keeps the waiting messages unknown, or None.
    """

    def __init__(
        self, name: str, checkpoints: Checkpoints, provisioner: Provisioner, found: Checkpoint | None, problem: ProberError | None
    ) -> None:
        self._name, self._checkpoints, self._problem = name, checkpoints, problem
        self._names = provisioner.resources.topic, provisioner.resources.subscription
        self._found = found

    @property
    def epoch(self) -> str:
        """Epoch of the waiting messages; see `Handover`."""
        return "" if self._found is None else self._found.epoch

    @property
    def waited_s(self) -> float:
        """Waiting time of the messages, in seconds; see `Handover`."""
        return nan if self._found is None or not self._found.epoch else max(0.0, wall_s() - self._found.left_at)

    @property
    def age_s(self) -> float:
        """Age of the topic, in seconds; see `Handover`."""
        made = made_at(self._names[1])
        return nan if made is None else max(0.0, wall_s() - made)

    async def take(self) -> Sequence[PublishEvent]:
        """Return the waiting publishes; see `Handover`."""
        if self._problem is not None:
            raise self._problem
        if self._found is None or not self._found.epoch:
            return ()
        if not await self._checkpoints.take(self._name, self._found.epoch):
            raise CheckpointUnavailable(
                "another process took the checkpoint of the last run, so this one knows nothing of the messages that it finds; "
                "if this persists, give each prober that uses the status store a name of its own"
            )
        return self._found.publishes

    async def leave(self, epoch: str, publishes: Sequence[PublishEvent]) -> None:
        """Leave publishes for the next run; see `Handover`."""
        checkpoint = Checkpoint(*self._names, epoch, wall_s(), tuple(publishes))
        await self._checkpoints.save(self._name, checkpoint)


class Handovers:
    """Handovers of the successive runs of one probe instance. `name`: name of the checkpoint."""

    def __init__(self, name: str, checkpoints: Checkpoints, provisioner: Provisioner) -> None:
        self._name, self._checkpoints, self._provisioner = name, checkpoints, provisioner
        self._dropped = ""

    async def next(self, admin: Admin) -> RunHandover:
        """Return the handover for the next run; the provisioner then has its topic and subscription.

        Raises internal errors only.
        """
        found, problem = None, None
        try:
            found = await self._checkpoints.read(self._name)
            if found is not None and (found.subscription == self._dropped or not await self._adopted(found, admin)):
                self._dropped, found = found.subscription, None
        except (CheckpointUnavailable, BrokerError) as error:
            problem = error
            _log.warning("%s: what waits for the next run is not known: %s", self._name, error)
        return RunHandover(self._name, self._checkpoints, self._provisioner, found, problem)

    async def _adopted(self, found: Checkpoint, admin: Admin) -> bool:
        return await self._provisioner.adopt(found.topic, found.subscription, admin)
