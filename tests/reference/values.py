"""The values that a history consists of: sessions, attempts to publish, and copies, each one delivery of a record."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from prober.core.events import Delivered

Record: TypeAlias = tuple[str, int | float | str | None]
Message: TypeAlias = tuple[str, int]
"""Epoch and sequence number."""


@dataclass(slots=True)
class Session:
    """A stream, a response or a request; `closed` is infinite while nobody noticed an end."""

    name: str
    owner: str | None
    opened: float = -inf
    closed: float = inf
    lost: bool = False
    answered: float = inf
    max_messages: float = inf
    max_bytes: float = inf


@dataclass(slots=True)
class Attempt:
    """One publish of a sequence number: a generation of it."""

    invoked: float
    region: str
    size: int
    failed: bool = False
    ok: float = inf
    message_id: str = ""


@dataclass(slots=True)
class Copy:
    """One delivery, sent between `lo` and `t`. `lo` and `t` of different sessions may be off by the clock error."""

    number: int
    t: float
    session: Session
    record: Record
    message: Message
    event: Delivered
    lo: float = -inf
    acks: list[float] = field(default_factory=list)
    nacks: list[float] = field(default_factory=list)
    leases: list[tuple[float, float]] = field(default_factory=list)

    @property
    def owner(self) -> str | None:
        return self.session.owner
