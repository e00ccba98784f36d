"""The command `ordering-prober history export`, and `ordering-prober verify` of a history."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.cli.bars import while_verifying
from prober.cli.findings import number_of
from prober.cli.options import Since, Until
from prober.cli.process import ExitCode, Format, confirm, help_without_command, time_of
from prober.cli.terminal import show
from prober.cli.verify_report import Source, verification_as_json, verification_as_text, worst_code
from prober.core.verdict import Verdict

if TYPE_CHECKING:
    from prober.sinks.history.reader import TimeSpan
    from prober.sinks.history.reverify import HistorySelection, Reverified

UNASKED_MAX: Final = 10
"""Maximum number of files that the command writes without a question."""
history_app = typer.Typer(
    help="Export trace files from a history.", callback=help_without_command, invoke_without_command=True, rich_markup_mode=None
)


def span_of(since: str | None, until: str | None) -> TimeSpan:
    """Return a span of time from the command line; an omitted bound is open. Raises ConfigError."""
    from prober.sinks.history.reader import TimeSpan

    return TimeSpan(*(time_of(text, default) for text, default in ((since, float("-inf")), (until, float("inf")))))


@history_app.command("export")
def export_key(
    location: Annotated[str, typer.Argument(metavar="HISTORY", help="Folder, or gs:// or s3:// URI.")],
    key: Annotated[str, typer.Option(metavar="KEY", help="The ordering key.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The trace file to write; several runs become FILE-RUN.jsonl.")
    ] = "trace.jsonl",
    subscription: Annotated[
        str | None, typer.Option(metavar="SUBSCRIPTION", help="Only this subscription, by its full name.")
    ] = None,
    since: Since = None,
    until: Until = None,
    yes: Annotated[bool, typer.Option("--yes", help=f"Write more than {UNASKED_MAX} files without asking.")] = False,
) -> None:
    """Write the recorded events of a key as trace files, one per run."""
    from prober.sinks.history.export import export_traces
    from prober.sinks.history.reader import HistoryReader

    def agree(files: int) -> None:
        if files > UNASKED_MAX and not yes:
            confirm(f"Write {files:,} files?", f"add --yes to write {files:,} files, or choose runs with --since or --until")

    reader, span = HistoryReader(location), span_of(since, until)
    written = export_traces(reader, key, output, subscription=subscription, span=span, agree=agree)
    for one in written:
        print(f"{one.path}: run {one.run_id}, {one.events:,} events")


def verify_history(location: str, output: Format, asked: HistorySelection, *, everything: bool) -> ExitCode:
    """Verify every selected run and print the outcomes in the order of time; the last line counts the verdicts.

    Text omits runs that pass, and prints the first findings of each kind in a run, unless `everything` is requested. Witnesses are event
    numbers of the run. A damaged file is named on standard error and omitted. A run that ended because the prober was stopped does not
    make the exit code that of an undecided run. Raises `HistoryError` if the history cannot be read.
    """
    from prober.sinks.history.reader import HistoryReader
    from prober.sinks.history.reverify import reverify

    reader, verified = HistoryReader(location, skip_unreadable=True), []
    reader.must_be_history()
    with while_verifying() as watched:
        for one in reverify(reader, asked, watched):
            verified.append(one)
            if output is Format.JSON:
                print(_as_json(one, location), flush=True)
            elif everything or one.verification.verdict is not Verdict.PASS:
                show(_as_text(one, everything=everything))
            if trouble := one.verification.malformed or one.verification.crash:
                print(trouble, file=sys.stderr, flush=True)
    for path, fault in reader.unreadable.items():
        print(f"{location}/{path}: {fault}; what is in it was not verified", file=sys.stderr)
    if spooled := reader.spooled_bytes():
        print(f"{location}: {spooled:,} bytes of newer records are still in the spool and were not verified", file=sys.stderr)
    if not verified:
        print(f"{location}: no recorded event matches", file=sys.stderr)
    elif output is Format.TEXT:
        show(_summary(location, verified, len(reader.unreadable), everything=everything))
    return ExitCode.MALFORMED if reader.unreadable else worst_code(one.verification for one in _decisive(verified))


def _decisive(verified: Sequence[Reverified]) -> Sequence[Reverified]:
    """Return the runs that decide the exit code: without undecided runs of a stopped prober, if there are others."""
    others = [one for one in verified if not one.stopped or one.verification.verdict is not Verdict.UNKNOWN]
    return others or verified


def _as_json(one: Reverified, location: str) -> str:
    about = {"history": location, "run": one.run_id}
    if one.run is not None:
        about |= {"target": one.run.context.target, "probe": one.run.context.probe}
    if one.why and one.verification.verdict is Verdict.UNKNOWN:
        about |= {"reason": one.why}
    return verification_as_json(one.verification, {}, _source(one), about=about)


def _as_text(one: Reverified, *, everything: bool) -> str:
    verification = one.verification
    if one.run is not None:
        context, began = one.run.context, datetime.fromtimestamp(one.run.began_at, UTC)
        verification = replace(
            verification, path=f"{verification.path} ({context.probe} on {context.target}, {began:%Y-%m-%d %H:%M:%S} UTC)"
        )
    return verification_as_text(verification, {}, _source(one), everything=everything)


def _source(one: Reverified) -> Source:
    return Source(first=1, is_file=False, wall=None if one.run is None else one.run.clock_offset_s, why=one.why)


def _summary(location: str, verified: Sequence[Reverified], unreadable: int, *, everything: bool) -> str:
    counts = Counter(one.verification.verdict for one in verified)
    verdicts = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in Verdict)
    recorded = sum(one.recorded for one in verified)
    # an interruption that stands for a hole is not on record
    used = sum(min(one.verification.events, one.recorded) for one in verified)
    events = number_of(recorded, "recorded event") + (f" ({used:,} verified)" if used < recorded else "")
    files = f", {number_of(unreadable, 'unreadable file')}" if unreadable else ""
    hint = "" if everything or not counts[Verdict.PASS] else "; --all prints those that pass, too"
    return f"{location}: {number_of(len(verified), 'run')}, {events}{files}: {verdicts}{hint}"
