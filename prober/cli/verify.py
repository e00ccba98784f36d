"""The command `ordering-prober verify`: verify trace files or a recorded history, print the findings, and return one exit code.

Every run of a history has its own rules and its own verdict. The nightly job `reverify` does the same on all cores or a cluster, and
compares the outcome with that of the service.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, Final, cast
from urllib.parse import urlsplit

import typer

from prober.cli.bars import while_reading
from prober.cli.options import Since, Until
from prober.cli.process import ExitCode, Format
from prober.cli.reorder import Measuring, Timeouts
from prober.cli.terminal import show
from prober.cli.verify_report import EXAMPLES_MAX, verification_as_json, verification_as_text, worst_code
from prober.core.findings import Status
from prober.core.guarded_verifier import RecordedFinding, Sort
from prober.core.verdict import Verdict
from prober.durations import duration_s
from prober.errors import ConfigError, ProberError
from prober.evidence.evidence import Excerpt, Proof, collect, on_key_of, proof_of
from prober.traces.header import TraceHeader
from prober.traces.trace import TraceError, TraceReader, open_trace, read_trace
from prober.traces.verification import Verification, verify_trace

PIPE_CLOSED: Final = 141  # as a shell reports SIGPIPE
STDIN: Final = "-"


def verify(  # noqa: PLR0913, PLR0917  # every option is a parameter
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Trace files (.jsonl, .jsonl.gz, - for standard input), support bundles (.zip), or one history."
        ),
    ],
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON object per file and line.")] = Format.TEXT,
    explain: Annotated[
        bool, typer.Option("--explain", help="Of trace files: draw a minimal reproduction of each finding.")
    ] = False,
    on_key: Annotated[
        bool, typer.Option("--on-key", help="With --explain: draw everything on the key instead, until the finding was made.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Print every finding, not only three of each kind; of a history also runs that pass.")
    ] = False,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Of a history: runs and findings with this ordering key.")] = None,
    subscription: Annotated[
        str | None, typer.Option(metavar="SUBSCRIPTION", help="Of a history: runs and findings with it, by its full name.")
    ] = None,
    since: Since = None,
    until: Until = None,
    reorder: Annotated[
        bool, typer.Option("--reorder", help="Of trace files: also show how far each key's messages came out of order.")
    ] = False,
    wait_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="With --reorder: how long to wait for a missing message.")
    ] = "10m",
    idle_timeout: Annotated[str, typer.Option(metavar="DURATION", help="With --reorder: when to forget an idle key.")] = "30m",
) -> None:
    """Verify recorded histories: trace files, or a history of the service.

    Exit code 0: all pass. 1: a guarantee was violated. 2: wrong usage, or a file that cannot be read. 3: otherwise undecided.
    """
    extras = Extras(explain or on_key, _timeouts(wait_timeout, idle_timeout) if reorder else None, everything, on_key)
    try:
        if len(files) == 1 and is_history(files[0]):
            for option, given in (("--reorder", reorder), ("--explain", explain), ("--on-key", on_key)):
                if given:
                    raise ProberError(
                        f"{option} reads trace files; write some from the history with: ordering-prober history export"
                    )
            from prober.cli.history import span_of, verify_history  # takes longer to load than most trace files to verify
            from prober.sinks.history.reverify import HistorySelection

            asked = HistorySelection(key, subscription, span_of(since, until))
            code = int(verify_history(files[0], output, asked, everything=everything))
        else:
            for option, value in (("--key", key), ("--subscription", subscription), ("--since", since), ("--until", until)):
                if value is not None:
                    raise ProberError(f"{option} selects runs of a history, but {files[0]} is a trace file: leave it out")
            code = int(verify_files(files, output, extras))
    except BrokenPipeError:
        # Python would report the error again while it shuts down and flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = PIPE_CLOSED
    raise typer.Exit(code)


def is_history(path: str) -> bool:
    """Return whether a path is a history and not a trace file."""
    return bool(urlsplit(path).scheme in ("gs", "s3", "hdfs")) or os.path.isdir(path)


def _timeouts(wait: str, idle: str) -> Timeouts:
    timeouts = Timeouts(duration_s(wait), duration_s(idle))
    if min(timeouts) <= 0:
        raise ConfigError("--wait-timeout and --idle-timeout must be longer than 0s")
    return timeouts


# --- trace files -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Extras:
    """Output besides the verdict and a few findings of each kind.

    explain      the minimal reproduction, for the first few findings of each kind.
    reorder      measurements of the order of deliveries, with these timeouts; None: not requested.
    everything   all other findings too; JSON always contains them.
    on_key       all events of the finding's key instead of the minimal reproduction.
    """

    explain: bool = False
    reorder: Timeouts | None = None
    everything: bool = False
    on_key: bool = False


def verify_files(paths: Sequence[str], output: Format, extras: Extras) -> ExitCode:
    """Verify every file and print each outcome to standard output as soon as it is known.

    Each path is a trace file (compressed if it ends in .gz) or `-` for standard input. An unreadable file is one line on standard error,
    and the other files are still verified. The exit code depends on the verdicts only, not on the extras.
    """
    return worst_code([_verify_one(path, output, extras) for path in paths])


def _verify_one(path: str, output: Format, extras: Extras) -> Verification:
    name = "<stdin>" if path == STDIN else path
    measuring = None if extras.reorder is None else Measuring(extras.reorder)
    verification, proofs = _verify_file(path, name, extras, measuring)
    order = None if measuring is None else measuring.report()
    if output is Format.JSON:
        print(verification_as_json(verification, proofs, order=order), flush=True)
    else:
        show(verification_as_text(verification, proofs, order=order, everything=extras.everything))
    if trouble := verification.malformed or verification.crash:
        print(trouble, file=sys.stderr, flush=True)
    return verification


def _verify_file(
    path: str, name: str, extras: Extras, measuring: Measuring | None
) -> tuple[Verification, Mapping[RecordedFinding, Proof]]:
    try:
        with _opened(path, rewindable=extras.explain) as stream:
            start = stream.tell() if extras.explain else 0
            trace = read_trace(stream, name)
            with while_reading(stream, name) as watched:
                events = watched(trace)
                verification = verify_trace(
                    name, trace.header, events if measuring is None else measuring.follow(events, trace.header)
                )
            return verification, _proofs(
                verification, stream, start, on_key_of if extras.on_key else proof_of
            ) if extras.explain else {}
    except TraceError as wrong:
        return Verification(name, Verdict.UNKNOWN, malformed=str(wrong)), {}


@contextmanager
def _opened(path: str, *, rewindable: bool) -> Iterator[BinaryIO]:
    """Open a trace; a stream that cannot be read twice is copied to a temporary file if that is needed."""
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


def _proofs(
    verification: Verification, stream: BinaryIO, start: int, shown: Callable[[Excerpt, TraceHeader], Proof]
) -> Mapping[RecordedFinding, Proof]:
    """Return the evidence for the findings to explain, from a second read of the file."""

    def again() -> TraceReader:
        stream.seek(start)
        return read_trace(stream, verification.path)

    wanted = [] if verification.crash else list(_explained(verification.findings))
    try:
        header = again().header
        return {excerpt.made: shown(excerpt, header) for excerpt in collect(again, wanted)}
    except Exception as fault:  # a fault of ours, or of the disk, costs the explanation and not the verdict
        print(f"{verification.path}: cannot explain the findings: {fault!r}; please report this with the file", file=sys.stderr)
        return {}


def _explained(findings: Iterable[RecordedFinding]) -> Iterator[RecordedFinding]:
    seen: Counter[Sort] = Counter()
    for made in findings:
        seen[made.sort] += 1
        if made.finding.status is not Status.INFO and seen[made.sort] <= EXAMPLES_MAX:
            yield made
