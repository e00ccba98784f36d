"""Incidents: the findings of one cause."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Self
from urllib.parse import quote

from pydantic import AwareDatetime, ConfigDict, Field, FiniteFloat

from api.models.base import API, Answer, Count, FindingId, Link, Listed, Part, Probe, Target, Time, Vantage
from prober.core.findings import Kind, Status
from prober.sinks.live import incidents

IncidentId = Annotated[str, Field(examples=["ordering-1f3a9c02-REDELIVERY_SKIP"])]
NOTE_LENGTH_MAX: Final = 1_000
NAME_LENGTH_MAX: Final = 200
ONE_LINE: Final = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
"""Without control characters, among them line breaks and those that turn the direction of what follows."""
NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Later ends count as this one, which can be written in every time zone; ends before 1970 as the beginning of that."""


class Acknowledgement(Answer):
    """Somebody knows."""

    at: Time
    """Since then."""
    by: Annotated[str, Field(examples=["ada"])]
    """Who, in their own words."""
    note: Annotated[str, Field(examples=["known to the service's owners"])]
    """What they say of it."""
    until: Time | None
    """From then on nobody does any more; null: it holds until the incident is over."""


class Incident(Answer):
    """The findings of one kind at one site, from the first one until runs enough had a chance to show it and did not."""

    incident_id: IncidentId
    """Unique."""
    target: Target
    """On which target."""
    probe: Probe
    """Of which experiment."""
    vantage: Vantage
    """Seen from where."""
    part: Part
    """Which part of the probe's keys, such as `2/4`; empty if they are not divided."""
    kind: Kind
    """What was found."""
    status: Status
    """How sure, at worst."""
    first_at: Time
    """When the first run ended that had it."""
    last_at: Time
    """When the last one did."""
    closed_at: Time | None
    """When it was over; null: it is open."""
    findings: Count
    """How many there were, also of those that are not kept one by one."""
    runs: Count
    """How many runs had it."""
    chances: Count
    """How many could have shown it."""
    met_in_a_row: Count
    """How many of these did not since it was last seen."""
    closes_after: Count
    """How many must not, in a row, to show that it is over."""
    bad_share: Annotated[FiniteFloat | None, Field(examples=[0.012])]
    """The share that ended badly of what the indicator of its kind counts in these runs; null: none counts it."""
    history: Annotated[str, Field(examples=["1110100"])]
    """A 1 for each of the newest 100 chances that showed it and a 0 for each that did not, the newest last."""
    exemplar: Annotated[FindingId | None, Field(examples=["ordering-1f3a9c02-1"])]
    """The finding that stands for it; null: none was kept."""
    exemplar_is_proven: bool
    """Whether that has a trace that `ordering-prober verify` judges the same."""
    acknowledged: Acknowledgement | None
    """Who knows of it; null: nobody says so."""
    findings_link: Annotated[Link, Field(examples=["/api/v1/findings?incident=ordering-1f3a9c02-REDELIVERY_SKIP"])]
    """Those that are kept."""

    @classmethod
    def of(cls, incident: incidents.Incident) -> Self:
        """The answer for an incident as it is kept."""
        own = ("incident_id", "kind", "status", "first_at", "last_at", "closed_at", "findings", "runs", "chances", "met_in_a_row")
        said = incident.acknowledged
        return cls.model_validate(
            {name: getattr(incident, name) for name in (*own, "closes_after", "bad_share", "history")}
            | incident.site._asdict()
            | {
                "exemplar": incident.exemplar.finding_id or None,
                "exemplar_is_proven": incident.exemplar.events is not None,
                "acknowledged": None if said is None else said._asdict(),
                "findings_link": f"{API}/findings?incident={quote(incident.incident_id, safe='')}",
            }
        )


class IncidentPage(Listed):
    """Incidents, by when they began, the newest first."""

    items: tuple[Incident, ...]
    """The incidents."""


class Acknowledge(Answer):
    """That somebody knows, in place of what was said before."""

    model_config = ConfigDict(extra="forbid")

    by: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, pattern=ONE_LINE, examples=["ada"])]
    """Who; one line."""
    note: Annotated[str, Field(max_length=NOTE_LENGTH_MAX, pattern=ONE_LINE, examples=["known to the service's owners"])] = ""
    """What is to be known; one line."""
    until: Annotated[AwareDatetime | None, Field(examples=["2026-03-01T18:00:00Z"])] = None
    """From then on it counts as unknown again; without it, it holds until the incident is over. A time that has passed takes it back."""

    @property
    def until_s(self) -> float | None:
        """The end in seconds since 1970."""
        return None if self.until is None else max(0.0, min(self.until, NEVER).timestamp())
