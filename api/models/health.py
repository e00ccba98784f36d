"""What an orchestrator is told."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.models.base import Answer


class Readiness(Answer):
    """Whether the service does its work."""

    ready: bool
    """False: not (yet)."""
    problems: Annotated[tuple[str, ...], Field(examples=[["the scheduler has not started"]])]
    """What keeps it from that."""


class Health(Answer):
    """Whether the service can go on without a restart."""

    alive: bool
    """False: only a restart helps."""
