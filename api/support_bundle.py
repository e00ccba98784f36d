"""Support bundle of a finding: a zip file with the proof and its context.

    README.txt     the finding, its place and settings, and the commands that verify it again and repeat it
    trace.jsonl    the evidence for `ordering-prober verify`, which also reads it from the bundle
    key.jsonl      all stored events of the key until the finding
    timeline.txt   each event with its time in UTC and complete ids
    diagram.txt    the diagram as text
    finding.json   the finding in the format of the API

Its size is bounded like that of the evidence. It contains names of topics, subscriptions and keys, and message ids, but no message and no
credential. Unknown values are marked as unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from shlex import join
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from api.finding_case import FindingCase
from api.models.findings import FindingDetail, trace_file_name
from prober.runs.probe_instance import ProbeInstance
from prober.traces.header import rules_as_json
from prober.traces.trace import FIRST_EVENT_LINE, TRACE_IN_BUNDLE, TraceError, read_trace

UNKNOWN: Final = "not known"
NOT_KEPT: Final = "not known: the run is not kept any more"
LIBRARIES: Final = ("google-cloud-pubsub", "grpcio")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MEMBER_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Date of every file in the bundle, so that a finding always has the same bundle."""


@dataclass(frozen=True, slots=True)
class SupportBundle:
    """The bundle of one finding. `probe_instance`: present configuration of its probe; None if no prober reports it any more."""

    case: FindingCase
    probe_instance: ProbeInstance | None

    def as_zip(self) -> bytes:
        """Return the zip file."""
        packed = BytesIO()
        with ZipFile(packed, "w") as archive:
            for name, text in self.members().items():
                member = ZipInfo(name, _MEMBER_DATE)
                member.compress_type = ZIP_DEFLATED
                archive.writestr(member, text)
        return packed.getvalue()

    def members(self) -> Mapping[str, str]:
        """Return the files in it by name, without those that need evidence if there is none that can be read."""
        evidence = self.case.record.evidence
        detail = FindingDetail.of(self.case.record, self.case.run).model_dump_json(indent=2)
        texts = {"README.txt": "\n".join(self._readme()) + "\n", "finding.json": detail + "\n"}
        if evidence is not None:
            texts[TRACE_IN_BUNDLE] = evidence.trace
        if self.case.record.on_key is not None:
            texts["key.jsonl"] = self.case.record.on_key.trace
        if evidence is not None and self.case.text:  # it could be read
            texts |= {"timeline.txt": "\n".join(self._timeline(evidence.trace)) + "\n", "diagram.txt": self.case.text + "\n"}
        return texts

    def _readme(self) -> Iterator[str]:
        record, evidence = self.case.record, self.case.record.evidence
        yield from (f"{record.kind} ({record.status}): {record.explanation}", "")
        yield from (f"{name:<26}{value}" for name, value in self._circumstances())
        if self.case.reasons:
            yield from ("", f"{self.case.reasons_heading}:", *(f"    {one}" for one in self.case.reasons))
        if evidence is None:
            yield from ("", f"There is no evidence in here: {self.case.undrawn}.")
        else:
            yield from ("", f"{self.case.heading}: {self.case.proof}", "Verify it again:")
            yield f"    ordering-prober verify --explain {trace_file_name(record.finding_id)}.zip"
            yield from ("", "The bounds that it was verified under, with the settings of the subscription:")
            yield from (f"    {name:<38}{value}" for name, value in _rules(evidence.trace))
        if self.case.run is not None:
            run = self.case.run
            asked = ["--probe", run.probe, "--target", run.target, "--vantage", run.vantage, "--seed", str(run.seed)]
            yield from ("", "Repeat what was random in the run, with the same configuration:")
            yield f"    {join(['ordering-prober', 'check', *asked])}"

    def _circumstances(self) -> Iterator[tuple[str, str]]:
        record, run, instance = self.case.record, self.case.run, self.probe_instance
        yield "finding", record.finding_id
        yield "found at", _utc(record.found_at)
        yield "probe, target, vantage", f"{record.probe}, {record.target}, {record.vantage}"
        yield "key", record.key
        yield "subscription", record.subscription
        yield "topic", NOT_KEPT if run is None else run.topic or UNKNOWN
        yield "region", NOT_KEPT if run is None else run.region or UNKNOWN
        yield "endpoint", UNKNOWN if instance is None else f"{instance.endpoint or UNKNOWN} (as configured now)"
        yield "run", f"{record.run_id}, {NOT_KEPT if run is None else 'started at ' + _utc(run.started_at)}"
        yield "seed", NOT_KEPT if run is None else str(run.seed)
        yield "prober", f"{record.instance}, {NOT_KEPT if run is None else 'version ' + run.prober.version}"
        yield "libraries", ", ".join(map(_installed, LIBRARIES)) + " (where this bundle was made)"
        yield "one publish request", "not recorded: whether two messages were in one"

    def _timeline(self, trace: str) -> Iterator[str]:
        run = self.case.run
        yield f"{'line':>5}  {'UTC by the clock of the prober':<32}  event (publish_time: nanoseconds since 1970, in UTC behind it)"
        for number, line in enumerate(trace.splitlines()[FIRST_EVENT_LINE - 1 :], FIRST_EVENT_LINE):
            event = json.loads(line)
            at = NOT_KEPT if run is None else _utc(event["t"] + run.prober.clock_offset_s)
            stored = event.get("publish_time")
            behind = f"  published at {_utc(stored / 1e9)}" if isinstance(stored, int) else ""
            yield f"{number:>5}  {at:<32}  {line}{behind}"


def _rules(trace: str) -> Iterator[tuple[str, object]]:
    try:
        with read_trace(BytesIO(trace.encode()), "the trace") as opened:
            given = rules_as_json(opened.header.rules)
            yield "mode", opened.header.rules.mode.value
    except TraceError as error:
        yield "cannot be read", error
        return
    yield from ((name, "no bound" if value is None else value) for name, value in given.items())


def _installed(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return f"{library} not installed"


def _utc(at: float) -> str:
    """Return a time in seconds since 1970 as text, to the microsecond; the number itself outside the calendar's range."""
    try:
        return (_EPOCH + timedelta(seconds=at)).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError):
        return f"{at} s since 1970"
