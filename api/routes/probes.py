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
from api.models.base import Answer, Listed, OfPlace, Part, Probe, Target, Vantage
from api.models.probe_instances import InstanceAnswer, InstanceState
from api.query_parameters import QueryParameters, is_at
from prober.probes.catalogue import PROBES
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.condition import Condition, worst_of
from prober.sinks.live.snapshot import InstanceSnapshot, RunOrdered, StatusSnapshot

router = APIRouter(tags=["probes"])

State = TypeVar("State", bound="ProbeState")


class ProbeState(Answer):
    """A probe, and its state on all targets."""

    name: Probe
    """Name of the probe."""
    guarantee: Annotated[str, Field(examples=["Messages of a key are received in the order in which the service received them."])]
    """Guarantee under test, in one sentence."""
    status: Condition
    """Worst status of its probe instances."""
    probe_instances: tuple[InstanceState, ...]
    """All its targets and vantages."""


class ProbeList(Listed):
    """All probes with an instance."""

    items: tuple[ProbeState, ...]
    """The probes."""


class ProbeDetail(ProbeState):
    """A probe with its probe instances in full."""

    probe_instances: tuple[InstanceAnswer, ...]
    """All its targets and vantages, with the last runs and findings."""


class RunOrder(Answer):
    """Selection of the probe instances to run now; by default all of the probe."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[Target | None, Field(max_length=200)] = None
    """Name of the target."""
    vantage: Annotated[Vantage | None, Field(max_length=200)] = None
    """Vantage of the probe instance."""
    part: Annotated[Part | None, Field(max_length=200)] = None
    """Part of the probe's keys."""


class Begun(OfPlace):
    """Result of a request for a run at one probe instance."""

    begun: bool
    """Whether a run has started."""
    run_id: Annotated[str | None, Field(examples=["ordering-1f3a9c02b7d4"])]
    """Id of the started run; null: none."""
    reason: Annotated[str, Field(examples=["a run is under way"])]
    """Reason why no run has started, such as maintenance; empty if one has."""


class RunsBegun(Answer):
    """Result of a request for runs."""

    probe: Probe
    """Name of the probe."""
    probe_instances: tuple[Begun, ...]
    """All requested probe instances."""


WHOLE_BODY = Body(openapi_examples={"everywhere": {"value": {}}, "at one target": {"value": {"target": "europe"}}})
REASONS_SHOWN_MAX: Final = 10
TOKEN = HTTPBearer(auto_error=False, description="The token of `api.token`. `api.middleware` looks at it before anything is done.")

ProbeName = Annotated[str, Path(alias="name", max_length=200, description="Name of the probe.", examples=["ordering"])]


@router.get("/probes", response_description="The probes.")
def probes(snapshot: Snapshot, _: Annotated[QueryParameters, Query()]) -> ProbeList:
    """List all probes with an instance, and their states."""
    names = dict.fromkeys(instance.probe_instance.probe for instance in snapshot.probe_instances)
    return ProbeList(items=tuple(_state(ProbeState, name, snapshot) for name in names))


@router.get("/probes/{name}", response_description="The probe.")
def probe(snapshot: Snapshot, name: ProbeName, _: Annotated[QueryParameters, Query()]) -> ProbeDetail:
    """Return one probe with the last runs and findings of every probe instance."""
    if not _instances_of(snapshot.probe_instances, name):
        raise HTTPException(404, f"no probe is called {name}; there are {_names(snapshot)}")
    return _state(ProbeDetail, name, snapshot)


@router.post(
    "/probes/{name}/runs",
    status_code=202,
    response_description="A run has begun at one probe_instance at least.",
    responses={
        409: problems.documented(
            "No run has begun anywhere; why, probe_instance by probe_instance. Or another prober has these probe_instances."
        )
    },
    dependencies=[Security(TOKEN)],
)
async def run_now(
    view: Service,
    snapshot: Snapshot,
    name: ProbeName,
    _: Annotated[QueryParameters, Query()],
    order: Annotated[RunOrder | None, WHOLE_BODY] = None,
) -> RunsBegun:
    """Start an unscheduled run at each probe instance of a probe in this process, if possible.

    An instance with a run in progress, or under maintenance, starts none. Needs the token: `Authorization: Bearer TOKEN`. The runs appear
    under their ids in `/api/v1/runs` when they have ended; those that end under maintenance do not count, and do not appear.
    """
    order = order or RunOrder()
    mine = [instance for instance in _instances_of(view.snapshot().probe_instances, name) if _is_meant(instance, order)]
    if not mine:
        raise _nobody_runs(name, order, snapshot)
    instances = tuple(_begun(key, view.run_now(key)) for key in (instance.probe_instance.key for instance in mine))
    if not any(instance.begun for instance in instances):
        raise _none_begun(instances)
    return RunsBegun(probe=name, probe_instances=instances)


def _state(kind: type[State], name: str, snapshot: StatusSnapshot) -> State:
    instances = _instances_of(snapshot.probe_instances, name)
    guarantee = PROBES[name].guarantee if name in PROBES else instances[0].probe_instance.guarantee
    status = worst_of(instance.status for instance in instances)
    return kind.model_validate({"name": name, "guarantee": guarantee, "status": status, "probe_instances": instances})


def _instances_of(instances: Iterable[InstanceSnapshot], probe: str) -> list[InstanceSnapshot]:
    return [instance for instance in instances if instance.probe_instance.probe == probe]


def _is_meant(instance: InstanceSnapshot, order: RunOrder) -> bool:
    return is_at(instance.probe_instance, order.target, order.vantage, order.part)


def _names(snapshot: StatusSnapshot) -> str:
    return ", ".join(dict.fromkeys(instance.probe_instance.probe for instance in snapshot.probe_instances)) or "none"


def _begun(key: InstanceKey, ordered: RunOrdered) -> Begun:
    return Begun(
        target=key.target,
        vantage=key.vantage,
        part=key.part,
        begun=ordered.run_id is not None,
        run_id=ordered.run_id,
        reason=ordered.reason,
    )


def _none_begun(instances: Sequence[Begun]) -> HTTPException:
    why = [
        f"{'/'.join(filter(None, (instance.target, instance.vantage, instance.part)))}: {instance.reason}"
        for instance in instances[:REASONS_SHOWN_MAX]
    ]
    more = [f"and {len(instances) - REASONS_SHOWN_MAX} more"] if len(instances) > REASONS_SHOWN_MAX else []
    return HTTPException(409, f"no run has begun: {'; '.join(why + more)}")


def _nobody_runs(name: str, order: RunOrder, snapshot: StatusSnapshot) -> HTTPException:
    """Return the error for a run that this process cannot start: the probe instance does not exist, or belongs to another prober."""
    if any(_is_meant(instance, order) for instance in _instances_of(snapshot.probe_instances, name)):
        others = ", ".join(prober.instance for prober in snapshot.probers if not prober.silent) or "none reports"
        return HTTPException(409, f"this process does not probe there; ask a prober that does (those that report: {others})")
    where = "".join(f", {part}" for part in (order.target, order.vantage, order.part) if part)
    return HTTPException(404, f"no probe runs as {name}{where}; there are {_names(snapshot)}")
