"""Output of `verify` about one file: text with examples of each kind of finding, or one JSON object with all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from textwrap import fill, indent
from types import MappingProxyType
from typing import Final

from prober.cli.findings import finding_row, number_of, one_line, printable, shortened
from prober.cli.process import ExitCode, code_of
from prober.cli.reorder import MeasuredOrder, order_lines, order_row
from prober.core.findings import Finding, Status
from prober.core.guarded_verifier import RecordedFinding, Sort
from prober.core.kinds import KINDS
from prober.core.verdict import STILL_PENDING, Verdict
from prober.evidence.evidence import Proof
from prober.evidence.explain import explain, further_reasons, reasons_heading
from prober.traces.trace import FIRST_EVENT_LINE
from prober.traces.verification import Verification

WIDTH: Final = 120
WITNESSES_SHOWN_MAX: Final = 20
EXAMPLES_MAX: Final = 3
"""Maximum number of findings of a kind and status that are printed in full, and drawn: they usually have one cause."""

# In the order in which a reader wants them. Information is only counted.
LISTED: Final[Mapping[Status, str]] = {
    Status.VIOLATION: "violation",
    Status.LIVENESS: "liveness finding",
    Status.INDETERMINATE: "indeterminate finding",
}

_GRAVITY: Final = (ExitCode.PASS, ExitCode.UNKNOWN, ExitCode.FAIL, ExitCode.MALFORMED)


def worst_code(verifications: Iterable[Verification]) -> ExitCode:
    """Return the worst exit code of several verifications; without any, that of UNKNOWN."""
    return max(map(_code_of, verifications), key=_GRAVITY.index, default=ExitCode.UNKNOWN)


def _code_of(verification: Verification) -> ExitCode:
    return ExitCode.MALFORMED if verification.malformed else code_of(verification.verdict)


def lines_of(finding: Finding, first: int) -> list[int]:
    """Return the places of the witnesses: line numbers of a trace file, or event numbers of a run."""
    return [witness + first - 1 for witness in finding.witnesses]


@dataclass(frozen=True, slots=True)
class Source:
    """Origin of a verified record.

    first    number of its first event, for the numbers of witnesses.
    is_file  whether that is a line of a trace file; otherwise events have numbers in their run.
    wall     seconds to add to its times to get seconds since 1970; None: unknown.
    why      why a verdict that is not FAIL is UNKNOWN, if the record states it.
    """

    first: int = FIRST_EVENT_LINE
    is_file: bool = True
    wall: float | None = None
    why: str = ""


TRACE_FILE: Final = Source()


def verification_as_json(
    verification: Verification,
    proofs: Mapping[RecordedFinding, Proof],
    source: Source = TRACE_FILE,
    order: MeasuredOrder | None = None,
    about: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return one line: the object that docs/trace-files.md describes.

    `order`: measurements of the order of deliveries, if requested. `about`: more fields, after that of the name.
    """
    row: dict[str, object] = {
        "trace": verification.path,
        **about,
        "verdict": verification.verdict.value,
        "findings": [_finding_row(made, proofs.get(made), source) for made in verification.findings],
        "counters": {
            "events": verification.events,
            **verification.counters,
            "findings_omitted": sum(verification.omitted.values()),
        },
    }
    if verification.omitted:
        row["omitted"] = [
            {"kind": kind, "status": status, "count": count} for (kind, status), count in verification.omitted.items()
        ]
    if order is not None:
        row["order"] = order_row(order)
    if trouble := verification.malformed or verification.crash:
        row["error"] = trouble
    return json.dumps(row, allow_nan=False)


def _finding_row(made: RecordedFinding, proof: Proof | None, source: Source) -> dict[str, object]:
    row: dict[str, object] = finding_row(made.finding, source.wall, lines_of(made.finding, source.first))
    if proof:
        row |= {"minimal_trace": proof.lines or None, "diagram": proof.diagram}
    return row


def verification_as_text(
    verification: Verification,
    proofs: Mapping[RecordedFinding, Proof],
    source: Source = TRACE_FILE,
    order: MeasuredOrder | None = None,
    *,
    everything: bool = False,
) -> str:
    """Return the verdict line, then by kind the findings that are more than information, with their proofs; then the measured order, if
    any.

    The first findings of each kind are printed in full and the others counted, unless `everything` is to be printed.
    """
    measured = () if order is None else order_lines(order)
    return printable("\n".join([*_lines(verification, proofs, source, everything=everything), *measured]))


def _lines(
    verification: Verification, proofs: Mapping[RecordedFinding, Proof], source: Source, *, everything: bool
) -> Iterator[str]:
    yield f"{verification.path}: {verification.verdict} ({_counted(verification, source)})"
    for sort in sorted({made.sort: None for made in verification.findings}, key=_rank):
        if sort[1] not in LISTED:
            continue
        of_sort = [made for made in verification.findings if made.sort == sort]
        shown = of_sort if everything else of_sort[:EXAMPLES_MAX]
        for made in shown:
            yield from _finding_lines(verification.path, made, proofs.get(made), source)
        yield from _more(of_sort[len(shown) :], verification.omitted.get(sort, 0), source.wall)


def _rank(sort: Sort) -> int:
    """Return the sort key of a kind; the sort is stable, so that equal findings keep their order."""
    return list(LISTED).index(sort[1]) if sort[1] in LISTED else len(LISTED)


def _more(unshown: Sequence[RecordedFinding], omitted: int, wall: float | None) -> Iterator[str]:
    """Return the number of unprinted findings of one kind and status, with their keys, last time, and the broken guarantee."""
    if unshown:
        (kind, status), keys = unshown[0].sort, len({made.finding.key for made in unshown})
        last = _when(unshown[-1].finding.t, wall)
        yield f"  and {len(unshown):,} more {kind} ({status}), on {number_of(keys, 'key')}, the last at {last}"
        yield f"    all about the guarantee that {KINDS[kind].guarantee.sentence}; --all prints each"
    if omitted:
        yield f"  and {omitted:,} more of that kind, which are only counted"


def _counted(verification: Verification, source: Source) -> str:
    parts = [number_of(verification.events, "event")]
    for status, words in LISTED.items():
        if count := sum(count for (_, counted), count in verification.counts.items() if counted is status):
            parts.append(number_of(count, words))
    parts += [f"{kind} {count:,}" for (kind, status), count in verification.counts.items() if status is Status.INFO]
    return "; ".join(filter(None, [*parts, _remark(verification, source)]))


def _remark(verification: Verification, source: Source) -> str:
    if verification.malformed:
        return (
            f"verified up to {'a malformed line' if source.is_file else 'damaged events'}"
            if verification.events
            else "not readable"
        )
    if verification.crash:
        return "the checker failed"
    if verification.verdict is Verdict.PASS and not any(name.startswith("deliveries_") for name in verification.counters):
        return "nothing to verify: no delivery is on record"
    return (source.why or STILL_PENDING) if verification.verdict is Verdict.UNKNOWN else ""


def _finding_lines(path: str, made: RecordedFinding, proof: Proof | None, source: Source) -> Iterator[str]:
    finding, wall = made.finding, source.wall
    where = f"key {shortened(finding.key)}, subscription {one_line(finding.subscription)}"
    yield f"  {finding.kind} ({finding.status}) at {_when(finding.t, wall)}, {where}"
    yield fill(explain(finding, wall), WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    yield f"    witnesses: {_places(path, lines_of(finding, source.first), source)}"
    if proof and (further := further_reasons(finding, wall)):
        yield f"    {reasons_heading(finding)}:"
        yield from (fill(one, WIDTH, initial_indent="    - ", subsequent_indent="      ") for one in further)
    if proof:
        yield f"    {proof.heading}:"
        yield indent(proof.diagram, "    ")


def _when(t: float, wall: float | None) -> str:
    at = "" if wall is None else f" ({datetime.fromtimestamp(t + wall, UTC):%Y-%m-%d %H:%M:%S} UTC)"
    return f"{t:.6g} s{at}"


def _places(path: str, lines: Sequence[int], source: Source) -> str:
    named = " ".join(f"{path}:{line}" if source.is_file else str(line) for line in lines[:WITNESSES_SHOWN_MAX])
    shown = named if source.is_file else f"event{'s' * (len(lines) != 1)} {named}"
    return shown if len(lines) <= WITNESSES_SHOWN_MAX else f"{shown} and {len(lines) - WITNESSES_SHOWN_MAX:,} more"
