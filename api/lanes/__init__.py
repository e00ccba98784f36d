"""The swim-lane diagram of a finding: who sent what to whom, when, and where that broke a promise.

`captions.py` says it in a sentence, `columns.py` who has a lane, `rows.py` what happens on which line, `drawing.py` puts that on paper.
Everything in it comes from the trace that proves the finding, so a diagram is as bounded as that is.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Final

from api.lanes.captions import caption
from api.lanes.columns import Columns
from api.lanes.drawing import draw
from api.lanes.rows import Numbered, rows
from prober.core.events import Opened
from prober.sinks.status.records import Evidence, FindingRecord
from prober.traces.header import TraceHeader
from prober.traces.trace import FIRST_EVENT_LINE, TraceError, read_trace

STYLE: Final = (Path(__file__).parents[1] / "pages" / "static" / "lanes.css").read_text(encoding="utf-8")
"""How a diagram looks, in the light and in the dark. The pages load it as a style sheet; a file carries it inside."""


__all__ = ["STYLE", "NoDiagram", "caption", "diagram", "read_evidence"]


class NoDiagram(Exception):
    """There is nothing to draw. The text is one line and says why."""


def diagram(record: FindingRecord, *, standalone: bool = True) -> str:
    """The evidence of a finding as an SVG document. A `standalone` one has its style inside, and its sentence above it (`caption`).

    Names from outside are escaped, cut where they are long, and shown without characters that cannot be printed. Raises `NoDiagram` if
    the finding has no evidence, or one that cannot be read.
    """
    if record.evidence is None:
        raise NoDiagram(record.unproven_because or "it was kept without evidence")
    header, history = read_evidence(record.evidence)
    opened = [Opened(0.0, one.subscription, one.session, one.subscriber) for one in record.evidence.opened]
    columns = Columns(history, opened, header.mode, record.evidence.witnesses)
    said = caption(record)
    lines = rows(history, columns, header.rules, said, record)
    return draw(record, said, columns, lines, STYLE if standalone else "")


def read_evidence(evidence: Evidence) -> tuple[TraceHeader, list[Numbered]]:
    """The header of a trace and its events, numbered by their lines. Raises `NoDiagram` if it cannot be read, or holds none."""
    try:
        with read_trace(BytesIO(evidence.trace.encode()), "the trace") as trace:
            history = list(enumerate(trace, FIRST_EVENT_LINE))
    except (TraceError, UnicodeError) as error:
        raise NoDiagram(f"its evidence cannot be read: {error}") from error
    if not history:
        raise NoDiagram("its evidence holds no event")
    return trace.header, history
