"""Findings, as list entries and in full."""

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
    """Summary of a finding that failed a run."""

    finding_id: FindingId
    """Unique; its evidence is at `/api/v1/findings/{finding_id}`, as soon as it has been written."""
    run_id: RunId
    """Id of the run that made it."""
    found_at: Time
    """Time at which the checker made it."""
    kind: Kind
    """Kind of finding; docs/findings.md explains each, with advice."""
    status: Status
    """`violation`: no legal explanation exists. `liveness`: a deadline passed."""
    subscription: Subscription
    """Subscription of the finding."""
    key: Key
    """Ordering key of the finding."""
    t: Seconds
    """Time of the decision, in seconds of the run's own clock."""
    explanation: Explanation
    """Explanation of the finding in plain language."""


class FindingAnswer(OfInstance, FailingFindingAnswer, schema="Finding"):
    """A finding of a run."""

    instance: Instance
    """Name of the prober that made it."""
    status: Status
    """Certainty of the finding.

    `violation`: it has no legal explanation. `liveness`: a deadline passed. `indeterminate`: it has a legal explanation. `info`: no
    guarantee forbids it, but the publisher's owner should look.
    """
    closed_at: Time | None
    """End of its incident, or, if it failed no run, the time of the finding; null: the incident is open."""
    incident_id: Annotated[str | None, Field(examples=["ordering-1f3a9c02-redelivery"])]
    """Id of its incident; null: the finding failed no run."""


class FindingPage(Listed):
    """Findings, ordered by time, the newest first."""

    items: tuple[FindingAnswer, ...]
    """The findings."""


class TraceLine(Answer, schema="Line"):
    """A line of the trace."""

    line: int
    """Line number in the trace file, of which line 1 is the header."""
    witness: bool
    """Whether it is part of the proof."""
    event: Event
    """The event, in the format of docs/trace-files.md."""


class SessionAnswer(Answer, schema="Session"):
    """A session that started before the trace."""

    subscription: Subscription
    """Subscription of the session."""
    session: Annotated[str, Field(examples=["stream-1"])]
    """Name of the session in the trace."""
    subscriber: Annotated[str, Field(examples=["A"])]
    """Subscriber of the session."""


class EvidenceAnswer(Answer, schema="Evidence"):
    """Evidence of a finding: its minimal reproduction."""

    proven: bool
    """Whether a verification of these events alone results in the same finding. If not, they are the events around the finding."""
    complete: bool
    """Whether each event is necessary, except for acknowledgements and stream breaks that rule out other reasons."""
    among: Count
    """Number of events from which it was reduced."""
    events: tuple[TraceLine, ...]
    """The minimal reproduction, in recorder order."""
    opened: tuple[SessionAnswer, ...]
    """Sessions that started before the first event."""

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Return the response for stored evidence."""
        events = evidence.trace.rstrip("\n").split("\n")[FIRST_EVENT_LINE - 1 :]
        lines = (
            {"line": number, "witness": number in evidence.witnesses, "event": json.loads(event)}
            for number, event in enumerate(events, FIRST_EVENT_LINE)
        )
        return cls.model_validate(values_of(cls, evidence) | {"events": tuple(lines)})


class Links(Answer):
    """Related resources of a finding."""

    run: Link
    """The run that made it."""
    trace: Annotated[Link | None, Field(examples=["/api/v1/findings/ordering-1f3a9c02-1/trace"])]
    """The evidence as a trace file, for `ordering-prober verify`; null: none."""
    diagram: Annotated[Link | None, Field(examples=["/api/v1/findings/ordering-1f3a9c02-1/diagram.svg"])]
    """The evidence as a diagram; null: none."""
    bundle: Annotated[Link, Field(examples=["/api/v1/findings/ordering-1f3a9c02-1/bundle"])]
    """The support bundle for the service's support engineers, as a zip file."""
    probe: Annotated[Link, Field(examples=["/api/v1/probes/ordering"])]
    """Current state of its probe."""
    incident: Annotated[Link | None, Field(examples=["/api/v1/incidents/ordering-1f3a9c02-redelivery"])]
    """Its incident, whose exemplar has a proof; null: none."""
    key: Annotated[Link, Field(examples=["/api/v1/keys?key=ordering-3"])]
    """The other findings on its key."""


class FindingDetail(FindingAnswer):
    """A finding with all data that is needed to confirm or refute it."""

    doubt: str
    """Reason why it is only indeterminate; empty otherwise."""
    facts: Facts
    """Named values behind the explanation: sequence numbers, message ids, subscribers, times."""
    assumptions: Bounds
    """Bounds that it relies on, by name; null: no bound."""
    reasons: Annotated[tuple[str, ...], Field(examples=[["not dead-lettered: the subscription has no dead-letter policy"]])]
    """Indeterminate finding: assumptions of the best legal explanation. Violation and liveness: each alternative that was tried, and after
    the colon the recorded fact that rules it out.
    """
    witnesses: Annotated[tuple[int, ...], Field(examples=[[12, 13, 17]])]
    """Numbers of the run's events that prove it; the first event of a run is 1."""
    after: Count
    """Number of the run's events before the finding."""
    evidence: EvidenceAnswer | None
    """The minimal reproduction; null: none."""
    unproven_because: Annotated[str, Field(examples=["proving the findings of its run took longer than 15 s"])]
    """Reason why there is no evidence; empty if there is evidence."""
    prober: ProberStateAnswer | None
    """State of the prober at the end of the run; null: the run is no longer stored."""
    verify_again: Annotated[str | None, Field(examples=["ordering-prober verify --explain ordering-1f3a9c02-1.jsonl"])]
    """Command that verifies the trace file, once it has been saved under that name; null: none."""
    links: Links
    """Related resources."""

    @classmethod
    def of(cls, record: FindingRecord, run: RunRecord | None) -> Self:
        """Return the response for a stored finding, with the run that made it if that is still stored."""
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
    """Return a finding's name in a form for headers, command lines and all file systems."""
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
