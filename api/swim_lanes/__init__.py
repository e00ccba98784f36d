"""The swim-lane diagram of a finding, as a picture.

It shows the messages between client and service over time, and the point at which a guarantee was violated.

`prober.evidence.diagram` selects the content, `captions.py` writes the sentences, `layout.py` computes the positions, and `drawing.py`
draws with `lettering.py`. All content comes from the trace that proves the finding, so a diagram is as bounded as the trace.
"""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from api.swim_lanes.captions import caption
from api.swim_lanes.drawing import as_svg
from api.swim_lanes.layout import NARROW, WIDE, Sheet
from prober.core.events import Opened
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.evidence.diagram.rows import diagram_of
from prober.evidence.diagram.text import collapsed
from prober.evidence.minimise import Numbered
from prober.sinks.status.records import FindingRecord
from prober.traces.trace import FIRST_EVENT_LINE, TraceError, read_trace

EVENTS_MAX: Final = 200
STYLE: Final = (Path(__file__).parents[1] / "pages" / "static" / "lanes.css").read_text(encoding="utf-8")
"""Style of diagrams, for light and dark mode. The pages load it as a style sheet; a file contains it."""

__all__ = ["NARROW", "STYLE", "WIDE", "NoDiagram", "caption", "read_evidence", "swim_lanes"]


class NoDiagram(Exception):
    """There is nothing to draw. The text is one line with the reason."""


class DrawnEvidence(NamedTuple):
    """Evidence of a finding for a diagram: its events by the lines of the trace, which the finding lists as its witnesses."""

    history: list[Numbered]
    finding: Finding
    rules: Rules
    opened: list[Opened]


def swim_lanes(record: FindingRecord, *, standalone: bool = True, sheet: Sheet = WIDE) -> str:
    """Return the evidence of a finding as an SVG document that fits on a sheet.

    A `standalone` document contains its style, and its sentence above the diagram (`caption`).

    External names are escaped, shortened, and shown without unprintable characters. Raises `NoDiagram` if the finding has no readable
    evidence.
    """
    history, finding, rules, opened = read_evidence(record)
    diagram = diagram_of(history, finding, rules, opened=opened, subscribers_max=sheet.subscribers_max, rows_max=EVENTS_MAX)
    return as_svg(collapsed(diagram), caption(record), STYLE if standalone else "", sheet)


def read_evidence(record: FindingRecord) -> DrawnEvidence:
    """Return the evidence to draw, at least one event. Raises `NoDiagram` if it is missing, unreadable or empty."""
    evidence = record.evidence
    if evidence is None:
        raise NoDiagram(record.unproven_because or "it was kept without evidence")
    try:
        with read_trace(BytesIO(evidence.trace.encode()), "the trace") as trace:
            history = list(enumerate(trace, FIRST_EVENT_LINE))
    except (TraceError, UnicodeError) as error:
        raise NoDiagram(f"its evidence cannot be read: {error}") from error
    if not history:
        raise NoDiagram("its evidence holds no event")
    opened = [Opened(0.0, one.subscription, one.session, one.subscriber) for one in evidence.opened]
    return DrawnEvidence(history, replace(record.finding, witnesses=evidence.witnesses), trace.header.rules, opened)
