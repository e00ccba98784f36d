"""Probes, and runs that are asked for."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from api.models.base import Answer, Listed, Part, Probe, Target, Vantage
from api.models.sites import Site, SiteState
from prober.core.verdict import Verdict


class ProbeState(Answer):
    """A probe, and how it stands everywhere."""

    name: Probe
    """Its name."""
    promise: Annotated[str, Field(examples=["Messages of a key are received in the order in which the service received them."])]
    """The promise that it tests, in one sentence."""
    status: Verdict | None
    """The worst of its sites; null: all are under maintenance."""
    sites: tuple[SiteState, ...]
    """Every target and vantage that it probes."""


class ProbeList(Listed):
    """Every probe that runs somewhere."""

    items: tuple[ProbeState, ...]
    """The probes."""


class ProbeDetail(ProbeState):
    """A probe with its sites in full."""

    sites: tuple[Site, ...]
    """Every target and vantage that it probes, with the last runs and findings."""


class RunOrder(Answer):
    """Where a probe is to run now; without it at all its sites."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[Target | None, Field(max_length=200)] = None
    """Only on this target."""
    vantage: Annotated[Vantage | None, Field(max_length=200)] = None
    """Only from this vantage."""
    part: Annotated[Part | None, Field(max_length=200)] = None
    """Only this part of the keys."""


class Begun(Answer):
    """What became of the wish for a run at one site."""

    target: Target
    """Name of the target."""
    vantage: Vantage
    """From where it looks."""
    part: Part
    """Which part of the probe's keys, such as `2/4`; empty if they are not divided."""
    begun: bool
    """Whether a run has begun."""
    run_id: Annotated[str | None, Field(examples=["ordering-1f3a9c02b7d4"])]
    """The run that has begun; null: none has."""
    reason: Annotated[str, Field(examples=["a run is under way"])]
    """Why none has begun, such as maintenance; empty if one has."""


class RunsBegun(Answer):
    """What became of the wish for runs."""

    probe: Probe
    """Name of the probe."""
    sites: tuple[Begun, ...]
    """Every site that was asked for."""
