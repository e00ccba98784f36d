"""Common base of all responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

API: Final = "/api/v1"
"""Root path of the API."""

Time: TypeAlias = Annotated[datetime, Field(examples=["2026-03-01T12:00:00Z"])]
Seconds: TypeAlias = Annotated[FiniteFloat, Field(examples=[2.5])]
Count: TypeAlias = Annotated[int, Field(ge=0, examples=[1200])]
RunId: TypeAlias = Annotated[str, Field(examples=["ordering-1f3a9c02"])]
FindingId: TypeAlias = Annotated[str, Field(examples=["ordering-1f3a9c02-1"])]
Target: TypeAlias = Annotated[str, Field(examples=["europe"])]
Probe: TypeAlias = Annotated[str, Field(examples=["ordering"])]
Vantage: TypeAlias = Annotated[str, Field(examples=["wire"])]
Part: TypeAlias = Annotated[str, Field(examples=["2/4"])]
Topic: TypeAlias = Annotated[str, Field(examples=["projects/my-project/topics/okp-ordering"])]
Subscription: TypeAlias = Annotated[str, Field(examples=["projects/my-project/subscriptions/okp-ordering"])]
Key: TypeAlias = Annotated[str, Field(examples=["ordering-3"])]
Instance: TypeAlias = Annotated[str, Field(examples=["prober-0"])]
Labels: TypeAlias = Annotated[Mapping[str, str], Field(examples=[{"team": "messaging"}])]
Link: TypeAlias = Annotated[str, Field(examples=["/api/v1/runs/ordering-1f3a9c02"])]


_MISSING: Final = object()


class Answer(BaseModel):
    """Base of responses. Frozen; read from attributes, or made from named values."""

    model_config = ConfigDict(
        frozen=True, from_attributes=True, use_attribute_docstrings=True, validate_by_name=True, validate_by_alias=True
    )

    def __init_subclass__(cls, schema: str = "", **settings: Any) -> None:
        """Set the name in the OpenAPI document, by default that of the class: `RunAnswer` here is `Run` there."""
        super().__init_subclass__(**settings)
        cls.__qualname__ = cls.model_config["title"] = schema or cls.__name__


def values_of(model: type[BaseModel], source: object) -> dict[str, Any]:
    """Return the fields of a model that a value has as attributes."""
    given = ((name, getattr(source, name, _MISSING)) for name in model.model_fields)
    return {name: value for name, value in given if value is not _MISSING}


class OfPlace(Answer):
    """Fields of the place of a probe: one target, seen from one vantage."""

    target: Target
    """Name of the target."""
    vantage: Vantage
    """Vantage of the observation."""
    part: Part
    """Part of the probe's keys, such as `2/4`; empty if they are not divided."""


class OfInstance(OfPlace):
    """Fields of a probe instance."""

    probe: Probe
    """Name of the probe."""


class Counts(Answer):
    """Numbers of good, bad and undecided events."""

    good: Count
    """Number of good events."""
    bad: Count
    """Number of bad events."""
    undecided: Count
    """Number of events that are neither provably good nor provably bad."""


class Listed(Answer):
    """A page of a list."""

    next_cursor: Annotated[str | None, Field(examples=["WyI4ZDk2OWVlZjZlY2EiLDEuMCwicnVuLTEiXQ"])] = None
    """Value of `cursor` for the next page of the list; null: this is the last page."""
