"""Content of a finding's page beyond the finding itself: the diagram, its text, and advice. Texts only."""

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
    """Content of the page of a finding.

    run       run that made it; None: it is no longer stored.
    alike     all findings of the same kind and status on the same key and subscription.
    drawing   SVG; empty if there is none, and `undrawn` then contains the reason. `narrow`: the version for a phone.
    text      the same lines as text.
    shown     selected history of the two.
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
        """Whether all events of the key are shown."""
        return self.shown is Shown.KEY

    @property
    def sentence(self) -> str:
        """Caption of the diagram: expected and actual behaviour."""
        return caption(self.record).sentence

    @property
    def sureness(self) -> str:
        """Meaning of its status."""
        is_usual = self.record.kind in USUAL and self.record.status is Status.VIOLATION
        return SURENESS_OF_USUAL if is_usual else SURENESS[self.record.status]

    @property
    def advice(self) -> str:
        """First check to make; empty without a special one."""
        return ADVICE[self.record.kind].replace("`", "")

    @property
    def assumptions(self) -> tuple[tuple[str, str], ...]:
        """Bounds that the finding relies on, by name.

        An assumption without a bound is a text without a name.
        """
        return tuple(
            ("", words) if (words := ASSUMED_IN_WORDS.get(name)) else (name, "no bound" if bound is None else exact(bound))
            for name, bound in self.record.assumptions.items()
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Assumptions of the best explanation, or the alternatives with the fact that rules each out."""
        return reasons(self.record.finding, None if self.run is None else self.run.prober.clock_offset_s)

    @property
    def reasons_heading(self) -> str:
        """Heading of the reasons."""
        return reasons_heading(self.record.finding)

    @property
    def heading(self) -> str:
        """Heading of the diagram."""
        evidence = self.record.evidence
        if evidence is None:
            return "There is no drawing"
        if self.on_key:
            return "Everything on this key until then"
        if not evidence.proven:
            return "What happened around it"
        return "Minimal reproduction" if evidence.complete else "Events that prove it (not minimal)"

    @property
    def proof(self) -> str:
        """Strength of the evidence."""
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
        """Verified part of the run."""
        if self.run is None:
            return "unknown: the run is not kept any more"
        prober = self.run.prober
        if prober.verified is None:
            return f"all of its {number(prober.events)} events"
        because = prober.unverified_because or "no reason was given"
        return f"only the first {number(prober.verified)} of {number(prober.events)} events: {because}"

    @property
    def often(self) -> str:
        """Number of equal findings on the key; empty if it is the only one."""
        if self.alike is None or self.alike.count < 2:
            return ""
        return f"{number(self.alike.count)} times on this key, {number(self.alike.open)} of them open"

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """Messages of the evidence by number and id, the witnesses first."""
        evidence = self.record.evidence
        if evidence is None or not self.drawing:
            return ()
        history = read_evidence(self.record).history
        history.sort(key=lambda numbered: numbered[0] not in evidence.witnesses)
        named = ((str(event.seq), event.message_id) for _, event in history if isinstance(event, Published | Delivered))
        return tuple(dict.fromkeys(named))[:MESSAGES_MAX]

    @property
    def file(self) -> str:
        """File name for the trace."""
        return f"{trace_file_name(self.record.finding_id, self.shown)}.jsonl"

    @property
    def took(self) -> str:
        """Duration of the run."""
        return "" if self.run is None else duration(self.run.duration_s)


def showing(record: FindingRecord, shown: Shown) -> FindingRecord:
    """Return the finding with the selected events as its evidence; `unproven_because`: reason why there are none."""
    if shown is Shown.SMALLEST:
        return record
    return replace(record, evidence=record.on_key, unproven_because=record.unproven_because or KEY_NOT_KEPT)


def case_of(record: FindingRecord, run: RunRecord | None, alike: FindingGroup | None, shown: Shown = Shown.SMALLEST) -> FindingCase:
    """Return the content of the page. It draws the diagram, so call it in a thread."""
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
