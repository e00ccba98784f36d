"""The content of a finding's page beyond the finding itself: the drawing, the same as text, and what to do. Words only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from api.models.findings import trace_file_name
from api.swim_lanes import EVENTS_MAX, NARROW, WIDE, NoDiagram, caption, read_evidence, swim_lanes
from api.words import counted, duration, exact, number
from prober.core.events import Delivered, Published
from prober.core.findings import Status
from prober.core.kinds import USUAL
from prober.core.rules import ASSUMED_IN_WORDS
from prober.evidence.advice import ADVICE, SURENESS, SURENESS_OF_USUAL
from prober.evidence.diagram.text import diagram_as_text
from prober.evidence.explain import reasons, reasons_heading
from prober.sinks.status.queries import FindingGroup
from prober.sinks.status.records import Evidence, FindingRecord, RunRecord, Shown
from prober.traces.trace import FIRST_EVENT_LINE

KEY_NOT_KEPT: Final = "everything on its key was not kept when it was found"
MESSAGES_MAX: Final = 20
NOT_PROVEN: Final = "These events alone do not prove it again."


@dataclass(frozen=True, slots=True)
class FindingCase:
    """Everything on the page of a finding.

    run       the one that made it; None: it is not kept any more.
    alike     the findings of the same kind and status on the same key and subscription together.
    drawing   SVG; empty if there is none, and `undrawn` then says why. `narrow` is the same for a phone.
    text      the same lines as text.
    shown     which of the two histories that is.
    """

    record: FindingRecord
    run: RunRecord | None
    alike: FindingGroup | None
    drawing: str
    narrow: str
    undrawn: str
    text: str
    shown: Shown = Shown.SMALLEST

    @property
    def on_key(self) -> bool:
        """Whether everything on the key is shown."""
        return self.shown is Shown.KEY

    @property
    def sentence(self) -> str:
        """The caption of the drawing: what should have happened, and what did."""
        return caption(self.record).sentence

    @property
    def sureness(self) -> str:
        """The meaning of its status."""
        is_usual = self.record.kind in USUAL and self.record.status is Status.VIOLATION
        return SURENESS_OF_USUAL if is_usual else SURENESS[self.record.status]

    @property
    def advice(self) -> str:
        """The first thing to look at; empty if there is nothing special."""
        return ADVICE[self.record.kind].replace("`", "")

    @property
    def assumptions(self) -> tuple[tuple[str, str], ...]:
        """The bounds that the finding relies on, by name.

        An assumption that has no bound is given in words, without a name.
        """
        return tuple(
            ("", words) if (words := ASSUMED_IN_WORDS.get(name)) else (name, "no bound" if bound is None else exact(bound))
            for name, bound in self.record.assumptions.items()
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """The assumptions of the best explanation, or the alternatives with what rules each out."""
        return reasons(self.record.finding, None if self.run is None else self.run.prober.clock_offset_s)

    @property
    def reasons_heading(self) -> str:
        """The heading of the reasons."""
        return reasons_heading(self.record.finding)

    @property
    def heading(self) -> str:
        """The heading of the drawing."""
        evidence = self.record.evidence
        if evidence is None:
            return "There is no drawing"
        if self.on_key:
            return "Everything on this key until then"
        if not evidence.proven:
            return "What happened around it"
        return "The smallest history that shows it" if evidence.complete else "Events that prove it (not the smallest history)"

    @property
    def proof(self) -> str:
        """How much the evidence proves."""
        evidence = self.record.evidence
        if evidence is None:
            return ""
        if self.on_key:
            return self._of_key(evidence)
        among = f"{counted(_events(evidence), 'event')}, taken from {number(evidence.among)}"
        if not evidence.proven:
            return f"{among}. {NOT_PROVEN}"
        return f"{among}. Verified again, they alone give the same finding."

    @staticmethod
    def _of_key(evidence: Evidence) -> str:
        count, left_out = _events(evidence), evidence.among - _events(evidence)
        undrawn = count - EVENTS_MAX
        said = [f"{counted(count, 'event')} on its subscription, from the prober's record."]
        if left_out:
            said.append(f"{number(left_out)} earlier ones are not kept.")
        if undrawn > 0:
            said.append(f"The drawing leaves out {number(undrawn)} of them, which are furthest away; the trace file has them.")
        said.append("Verified again, they give the same finding." if evidence.proven else NOT_PROVEN)
        return " ".join(said)

    @property
    def verified(self) -> str:
        """How much of the run was verified."""
        if self.run is None:
            return "unknown: the run is not kept any more"
        prober = self.run.prober
        if prober.verified is None:
            return f"all of its {number(prober.events)} events"
        because = prober.unverified_because or "no reason was given"
        return f"only the first {number(prober.verified)} of {number(prober.events)} events: {because}"

    @property
    def often(self) -> str:
        """How often the same was found there; empty if only once."""
        if self.alike is None or self.alike.count < 2:
            return ""
        return f"{number(self.alike.count)} times on this key, {number(self.alike.open)} of them open"

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """The messages of the evidence by number and id, the witnesses first."""
        evidence = self.record.evidence
        if evidence is None or not self.drawing:
            return ()
        history = read_evidence(self.record).history
        history.sort(key=lambda numbered: numbered[0] not in evidence.witnesses)
        named = ((str(event.seq), event.message_id) for _, event in history if isinstance(event, Published | Delivered))
        return tuple(dict.fromkeys(named))[:MESSAGES_MAX]

    @property
    def file(self) -> str:
        """The name under which the trace is saved."""
        return f"{trace_file_name(self.record.finding_id, self.shown)}.jsonl"

    @property
    def took(self) -> str:
        """How long the run took."""
        return "" if self.run is None else duration(self.run.duration_s)


def showing(record: FindingRecord, shown: Shown) -> FindingRecord:
    """The finding with what is to be shown as its evidence; `unproven_because` says why there is none."""
    if shown is Shown.SMALLEST:
        return record
    return replace(record, evidence=record.on_key, unproven_because=record.unproven_because or KEY_NOT_KEPT)


def case_of(record: FindingRecord, run: RunRecord | None, alike: FindingGroup | None, shown: Shown = Shown.SMALLEST) -> FindingCase:
    """The page's content. Draws the diagram, so ask from a thread."""
    drawn = showing(record, shown)
    try:
        history, finding, rules, opened = read_evidence(drawn)
        text = diagram_as_text(history, finding, rules, opened=opened, events_max=EVENTS_MAX)
        wide, narrow = (swim_lanes(drawn, standalone=False, sheet=sheet) for sheet in (WIDE, NARROW))
        return FindingCase(drawn, run, alike, wide, narrow, "", text, shown)
    except NoDiagram as reason:
        return FindingCase(drawn, run, alike, "", "", str(reason), "", shown)


def _events(evidence: Evidence) -> int:
    return max(0, len(evidence.trace.splitlines()) - FIRST_EVENT_LINE + 1)
