"""The `verify` command: judge trace files one after the other, print what was found, and say it all in one exit code."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from tempfile import TemporaryFile
from typing import BinaryIO, Final, TypeAlias, cast

from prober.cli.exit_codes import ExitCode, code_of
from prober.cli.reorder import Measuring, Timeouts
from prober.cli.verify_report import as_json, as_text
from prober.core.events import Event
from prober.core.findings import Status
from prober.core.judge import RecordedFinding, Sort
from prober.core.verdict import Verdict
from prober.evidence.evidence import Proof, collect, proof_of
from prober.traces.judgement import Judgement, judge
from prober.traces.trace import TraceError, TraceReader, open_trace, read_trace

# While the events of an open file, called so, go through the function that it gives, someone may watch how far they are.
Watch: TypeAlias = Callable[[BinaryIO, str], AbstractContextManager[Callable[[Iterable[Event]], Iterable[Event]]]]

STDIN: Final = "-"
EXPLAINED_PER_KIND_MAX: Final = 3

_GRAVITY: Final = (ExitCode.PASS, ExitCode.UNKNOWN, ExitCode.FAIL, ExitCode.MALFORMED)


class Format(StrEnum):
    """What to print."""

    TEXT = "text"
    JSON = "json"


def unwatched(_stream: BinaryIO, _name: str) -> AbstractContextManager[Callable[[Iterable[Event]], Iterable[Event]]]:
    """Nobody watches."""
    return nullcontext(lambda events: events)


@dataclass(frozen=True, slots=True)
class Extras:
    """What is printed besides the verdict and its findings.

    explain   the smallest history that shows a finding, for the first few findings of each kind.
    reorder   how the deliveries came by their numbers, with these timeouts; None: not asked for.
    watch     who may watch how far a file was read.
    """

    explain: bool = False
    reorder: Timeouts | None = None
    watch: Watch = unwatched


def verify(paths: Sequence[str], output: Format, extras: Extras) -> ExitCode:
    """Judge every file and print the outcome to standard output as soon as it is known.

    Each path is a trace file (compressed if it ends in .gz) or `-` for standard input. What makes a file unreadable is one line
    on standard error, and the other files are still judged. The exit code depends on the verdicts only, not on the extras.
    """
    return worst_code([_verify_one(path, output, extras) for path in paths])


def worst_code(judgements: Iterable[Judgement]) -> ExitCode:
    """What the caller learns of several; of none it learns nothing."""
    return max(map(_code_of, judgements), key=_GRAVITY.index, default=ExitCode.UNKNOWN)


def _code_of(judgement: Judgement) -> ExitCode:
    return ExitCode.MALFORMED if judgement.malformed else code_of(judgement.verdict)


def _verify_one(path: str, output: Format, extras: Extras) -> Judgement:
    name = "<stdin>" if path == STDIN else path
    measuring = None if extras.reorder is None else Measuring(name, extras.reorder)
    judgement, dossiers = _judge_file(path, name, extras, measuring)
    order = None if measuring is None else measuring.report()
    if output is Format.JSON:
        print(as_json(judgement, dossiers, order=order), flush=True)
    else:
        print(as_text(judgement, dossiers, order=order), flush=True)
    for trouble in filter(None, (judgement.malformed or judgement.crash, measuring and measuring.fault)):
        print(trouble, file=sys.stderr, flush=True)
    return judgement


def _judge_file(
    path: str, name: str, extras: Extras, measuring: Measuring | None
) -> tuple[Judgement, Mapping[RecordedFinding, Proof]]:
    try:
        with _opened(path, rewindable=extras.explain) as stream:
            start = stream.tell() if extras.explain else 0
            trace = read_trace(stream, name)
            with extras.watch(stream, name) as watched:
                events = watched(trace)
                judgement = judge(name, trace.header, events if measuring is None else measuring.follow(events, trace.header))
            return judgement, _dossiers(judgement, stream, start) if extras.explain else {}
    except TraceError as wrong:
        return Judgement(name, Verdict.UNKNOWN, malformed=str(wrong)), {}


@contextmanager
def _opened(path: str, *, rewindable: bool) -> Iterator[BinaryIO]:
    """The bytes of a trace; what cannot be read twice is copied to a temporary file if that is needed."""
    if os.path.isdir(path):
        raise TraceError(path, 0, "is a folder; give trace files, or one history and nothing else")
    with nullcontext(sys.stdin.buffer) if path == STDIN else open_trace(path) as stream:
        if not rewindable or stream.seekable():
            yield stream
            return
        with TemporaryFile() as copy:
            shutil.copyfileobj(stream, copy)
            copy.seek(0)
            yield cast(BinaryIO, copy)


def _dossiers(judgement: Judgement, stream: BinaryIO, start: int) -> Mapping[RecordedFinding, Proof]:
    """The evidence for the findings that are worth explaining, from reading the file again."""

    def again() -> TraceReader:
        stream.seek(start)
        return read_trace(stream, judgement.path)

    wanted = [] if judgement.crash else list(_explained(judgement.findings))
    try:
        header = again().header
        return {excerpt.made: proof_of(excerpt, header) for excerpt in collect(again, wanted)}
    except Exception as fault:  # a fault of ours, or of the disk, costs the explanation and not the verdict
        print(f"{judgement.path}: cannot explain the findings: {fault!r}; please report this with the file", file=sys.stderr)
        return {}


def _explained(findings: Iterable[RecordedFinding]) -> Iterator[RecordedFinding]:
    seen: Counter[Sort] = Counter()
    for made in findings:
        seen[made.sort] += 1
        if made.finding.status is not Status.INFO and seen[made.sort] <= EXPLAINED_PER_KIND_MAX:
            yield made
