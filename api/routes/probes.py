"""Probes, and runs on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Body, Path, Query, Security
from fastapi.security import HTTPBearer
from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException

from api import problems
from api.dependencies import Service, Snapshot
from api.models.base import Answer, Listed, Part, Probe, Target, Vantage
from api.models.sites import SiteAnswer, SiteState
from api.query_parameters import QueryParameters, is_at
from prober.probes.catalogue import PROBES
from prober.runs.site import SiteKey
from prober.sinks.live.condition import Condition, worst_of
from prober.sinks.live.snapshot import RunOrdered, SiteSnapshot, StatusSnapshot

router = APIRouter(tags=["probes"])

State = TypeVar("State", bound="ProbeState")


class ProbeState(Answer):
    """A probe, and how it stands everywhere."""

    name: Probe
    """Its name."""
    promise: Annotated[str, Field(examples=["Messages of a key are received in the order in which the service received them."])]
    """The promise that it tests, in one sentence."""
    status: Condition
    """The worst of its sites."""
    sites: tuple[SiteState, ...]
    """Every target and vantage that it probes."""


class ProbeList(Listed):
    """Every probe that runs somewhere."""

    items: tuple[ProbeState, ...]
    """The probes."""


class ProbeDetail(ProbeState):
    """A probe with its sites in full."""

    sites: tuple[SiteAnswer, ...]
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


WHOLE_BODY = Body(openapi_examples={"everywhere": {"value": {}}, "at one target": {"value": {"target": "europe"}}})
REASONS_SHOWN_MAX: Final = 10
TOKEN = HTTPBearer(auto_error=False, description="The token of `api.token`. `api.access` looks at it before anything is done.")

ProbeName = Annotated[str, Path(alias="name", max_length=200, description="Name of the probe.", examples=["ordering"])]


@router.get("/probes", response_description="The probes.")
def probes(snapshot: Snapshot, _: Annotated[QueryParameters, Query()]) -> ProbeList:
    """Every probe that runs somewhere, and how it stands there."""
    names = dict.fromkeys(site.site.probe for site in snapshot.sites)
    return ProbeList(items=tuple(_state(ProbeState, name, snapshot) for name in names))


@router.get("/probes/{name}", response_description="The probe.")
def probe(snapshot: Snapshot, name: ProbeName, _: Annotated[QueryParameters, Query()]) -> ProbeDetail:
    """One probe with the last runs and findings of every site."""
    if not _sites_of(snapshot.sites, name):
        raise HTTPException(404, f"no probe is called {name}; there are {_names(snapshot)}")
    return _state(ProbeDetail, name, snapshot)


@router.post(
    "/probes/{name}/runs",
    status_code=202,
    response_description="A run has begun at one site at least.",
    responses={409: problems.documented("No run has begun anywhere; why, site by site. Or another prober has these sites.")},
    dependencies=[Security(TOKEN)],
)
async def run_now(
    view: Service,
    snapshot: Snapshot,
    name: ProbeName,
    _: Annotated[QueryParameters, Query()],
    order: Annotated[RunOrder | None, WHOLE_BODY] = None,
) -> RunsBegun:
    """Begins a run at each site of a probe that this process probes, beyond the schedule, where one can begin.

    None begins where one is under way, nor under maintenance. Needs the token: `Authorization: Bearer TOKEN`. The runs appear
    under their ids in `/api/v1/runs` when they have ended; those that end under maintenance do not count, and do not appear.
    """
    order = order or RunOrder()
    mine = [site for site in _sites_of(view.snapshot().sites, name) if _is_meant(site, order)]
    if not mine:
        raise _nobody_runs(name, order, snapshot)
    sites = tuple(_begun(key, view.run_now(key)) for key in (site.site.key for site in mine))
    if not any(site.begun for site in sites):
        raise _none_begun(sites)
    return RunsBegun(probe=name, sites=sites)


def _state(kind: type[State], name: str, snapshot: StatusSnapshot) -> State:
    sites = _sites_of(snapshot.sites, name)
    promise = PROBES[name].promise if name in PROBES else sites[0].site.promise
    status = worst_of(site.status for site in sites)
    return kind.model_validate({"name": name, "promise": promise, "status": status, "sites": sites})


def _sites_of(sites: Iterable[SiteSnapshot], probe: str) -> list[SiteSnapshot]:
    return [site for site in sites if site.site.probe == probe]


def _is_meant(site: SiteSnapshot, order: RunOrder) -> bool:
    return is_at(site.site, order.target, order.vantage, order.part)


def _names(snapshot: StatusSnapshot) -> str:
    return ", ".join(dict.fromkeys(site.site.probe for site in snapshot.sites)) or "none"


def _begun(key: SiteKey, ordered: RunOrdered) -> Begun:
    return Begun(
        target=key.target,
        vantage=key.vantage,
        part=key.part,
        begun=ordered.run_id is not None,
        run_id=ordered.run_id,
        reason=ordered.reason,
    )


def _none_begun(sites: Sequence[Begun]) -> HTTPException:
    """Why no run has begun anywhere; so many sites are named."""
    why = [f"{'/'.join(filter(None, (site.target, site.vantage, site.part)))}: {site.reason}" for site in sites[:REASONS_SHOWN_MAX]]
    more = [f"and {len(sites) - REASONS_SHOWN_MAX} more"] if len(sites) > REASONS_SHOWN_MAX else []
    return HTTPException(409, f"no run has begun: {'; '.join(why + more)}")


def _nobody_runs(name: str, order: RunOrder, snapshot: StatusSnapshot) -> HTTPException:
    """Why this process cannot begin a run: there is no such site, or another prober has it."""
    if any(_is_meant(site, order) for site in _sites_of(snapshot.sites, name)):
        others = ", ".join(prober.instance for prober in snapshot.probers if not prober.silent) or "none reports"
        return HTTPException(409, f"this process does not probe there; ask a prober that does (those that report: {others})")
    where = "".join(f", {part}" for part in (order.target, order.vantage, order.part) if part)
    return HTTPException(404, f"no probe runs as {name}{where}; there are {_names(snapshot)}")
