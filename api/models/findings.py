"""Findings, and one of them in full."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self
from urllib.parse import quote

from pydantic import Field, FiniteFloat

from api.models.base import (
    API,
    Answer,
    Count,
    FindingId,
    Instance,
    Key,
    Link,
    Listed,
    OfInstance,
    RunId,
    Seconds,
    Subscription,
    Time,
    values_of,
)
from api.models.runs import ProberStateAnswer
from prober.core.findings import Kind, Status
from prober.sinks.status.records import Evidence, FindingRecord, RunRecord, Shown
from prober.traces.trace import FIRST_EVENT_LINE

NAME_LENGTH_MAX: Final = 100

Explanation = Annotated[
    str,
    Field(
        examples=[
            "Pub/Sub delivered message 4 to A right after message 2 and skipped message 3, which should have been redelivered in between."
        ]
    ),
]
Facts = Annotated[
    Mapping[str, str | int | FiniteFloat | tuple[int, ...] | tuple[str, ...]], Field(examples=[{"seq": 4, "missing": [3]}])
]
Bounds = Annotated[Mapping[str, FiniteFloat | None], Field(examples=[{"delivery_delay_max_s": 5.0, "clock_error_s": 0.0}])]
Event = Annotated[
    Mapping[str, Any],
    Field(examples=[{"t": 1.1, "event": "delivered", "session": "stream-1", "epoch": "e1", "seq": 4, "message_id": "104"}]),
]


class FailingFindingAnswer(Answer, schema="FailingFinding"):
    """A finding that failed a run, in short."""

    finding_id: FindingId
    """Unique; its evidence is at `/api/v1/findings/{finding_id}`, as soon as it has been written."""
    run_id: RunId
    """The run that made it."""
    found_at: Time
    """When the checker made it."""
    kind: Kind
    """The kind of finding; docs/findings.md explains each, and what to do about it."""
    status: Status
    """`violation`: no legal explanation exists. `liveness`: a deadline passed."""
    subscription: Subscription
    """Where."""
    key: Key
    """On which ordering key."""
    t: Seconds
    """When in the run it was decided, in seconds of the run's own clock."""
    explanation: Explanation
    """The finding in plain words."""


class FindingAnswer(OfInstance, FailingFindingAnswer, schema="Finding"):
    """Something that a run found."""

    instance: Instance
    """By which prober."""
    status: Status
    """Certainty of the finding.

    `violation`: it has no legal explanation. `liveness`: a deadline passed. `indeterminate`: it has a legal explanation. `info`: no
    guarantee forbids it, but the publisher's owner should look.
    """
    closed_at: Time | None
    """When its incident was over, or, if it failed no run, when it was found; null: it is open."""
    incident_id: Annotated[str | None, Field(examples=["ordering-1f3a9c02-redelivery"])]
    """The incident that it belongs to; null: it failed no run."""


class FindingPage(Listed):
    """Findings, by when they were found, the newest first."""

    items: tuple[FindingAnswer, ...]
    """The findings."""


class TraceLine(Answer, schema="Line"):
    """A line of the trace."""

    line: int
    """Its number in the trace file, of which line 1 is the header."""
    witness: bool
    """It is part of the proof."""
    event: Event
    """The event, as docs/trace-files.md describes it."""


class SessionAnswer(Answer, schema="Session"):
    """A session that began before the trace does."""

    subscription: Subscription
    """Where it is open."""
    session: Annotated[str, Field(examples=["stream-1"])]
    """Its name in the trace."""
    subscriber: Annotated[str, Field(examples=["A"])]
    """Whose it is."""


class EvidenceAnswer(Answer, schema="Evidence"):
    """The history that shows a finding."""

    proven: bool
    """Verified again, this history alone gives the same finding. Otherwise it is what happened around the finding."""
    complete: bool
    """No single event can be left out of it, but for the acknowledgements and stream breaks that are kept to rule out other reasons."""
    among: Count
    """How many events it was reduced from."""
    events: tuple[TraceLine, ...]
    """The smallest history that shows it, in recorder order."""
    opened: tuple[SessionAnswer, ...]
    """Sessions that began before it does."""

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """The answer for evidence as it is kept."""
        events = evidence.trace.rstrip("\n").split("\n")[FIRST_EVENT_LINE - 1 :]
        lines = (
            {"line": number, "witness": number in evidence.witnesses, "event": json.loads(event)}
            for number, event in enumerate(events, FIRST_EVENT_LINE)
        )
        return cls.model_validate(values_of(cls, evidence) | {"events": tuple(lines)})


class Links(Answer):
    """Where more about a finding is."""

    run: Link
    """The run that made it."""
    trace: Annotated[Link | None, Field(examples=["/api/v1/findings/ordering-1f3a9c02-1/trace"])]
    """The evidence as a trace file, for `ordering-prober verify`; null: there is none."""
    diagram: Annotated[Link | None, Field(examples=["/api/v1/findings/ordering-1f3a9c02-1/diagram.svg"])]
    """The evidence as a drawing; null: there is none."""
    bundle: Annotated[Link, Field(examples=["/api/v1/findings/ordering-1f3a9c02-1/bundle"])]
    """The support bundle for the service's support engineers, as a zip file."""
    probe: Annotated[Link, Field(examples=["/api/v1/probes/ordering"])]
    """How its probe stands."""
    incident: Annotated[Link | None, Field(examples=["/api/v1/incidents/ordering-1f3a9c02-redelivery"])]
    """Its incident, whose exemplar has a proof; null: there is none."""
    key: Annotated[Link, Field(examples=["/api/v1/keys?key=ordering-3"])]
    """The other findings on its key."""


class FindingDetail(FindingAnswer):
    """A finding with everything that is needed to believe it, or to doubt it."""

    doubt: str
    """Why it is only indeterminate; empty otherwise."""
    facts: Facts
    """Named values behind the explanation: sequence numbers, message ids, subscribers, times."""
    assumptions: Bounds
    """The bounds that it relies on, by name; null: no bound."""
    reasons: Annotated[tuple[str, ...], Field(examples=[["not dead-lettered: the subscription has no dead-letter policy"]])]
    """An indeterminate finding: what the best legal explanation assumes. Violation and liveness: each alternative that was tried, and
    after the colon the recorded fact that rules it out."""
    witnesses: Annotated[tuple[int, ...], Field(examples=[[12, 13, 17]])]
    """The numbers of the run's events that prove it; the first event of a run is 1."""
    after: Count
    """The number of the run's events after which it was made."""
    evidence: EvidenceAnswer | None
    """The smallest history that shows it; null: there is none."""
    unproven_because: Annotated[str, Field(examples=["proving the findings of its run took longer than 15 s"])]
    """Why there is no evidence; empty if there is."""
    prober: ProberStateAnswer | None
    """How the prober was when the run ended; null: the run is not kept any more."""
    verify_again: Annotated[str | None, Field(examples=["ordering-prober verify --explain ordering-1f3a9c02-1.jsonl"])]
    """The command that verifies the trace file again, once it has been saved under that name; null: there is none."""
    links: Links
    """Where more about it is."""

    @classmethod
    def of(cls, record: FindingRecord, run: RunRecord | None) -> Self:
        """The answer for a finding as it is kept, with the run that made it if that is still there."""
        evidence = record.evidence
        file = f"{trace_file_name(record.finding_id)}.jsonl"
        return cls.model_validate(
            values_of(cls, record)
            | {
                "evidence": None if evidence is None else EvidenceAnswer.of(evidence),
                "prober": None if run is None else run.prober,
                "verify_again": None if evidence is None else f"ordering-prober verify --explain {file}",
                "links": _links(record),
            }
        )


def trace_file_name(finding_id: str, shown: Shown = Shown.SMALLEST) -> str:
    """A finding's name as it may stand in a header, on a command line and on any file system."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", finding_id)[:NAME_LENGTH_MAX].strip("-") or "finding"
    return f"{name}-key" if shown is Shown.KEY else name


def _links(record: FindingRecord) -> Links:
    here = f"{API}/findings/{quote(record.finding_id, safe='')}"
    has_trace = record.evidence is not None
    return Links(
        run=f"{API}/runs/{quote(record.run_id, safe='')}",
        trace=f"{here}/trace" if has_trace else None,
        diagram=f"{here}/diagram.svg" if has_trace else None,
        bundle=f"{here}/bundle",
        probe=f"{API}/probes/{quote(record.probe, safe='')}",
        incident=None if record.incident_id is None else f"{API}/incidents/{quote(record.incident_id, safe='')}",
        key=f"{API}/keys?key={quote(record.key, safe='')}",
    )
