"""The command `ordering-prober export`: verify the order of keys in an export subscription, and state what it cannot prove."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.cli.findings import number_of, printable
from prober.cli.options import Since, Until
from prober.cli.process import Format, code_of, time_of
from prober.cli.terminal import show
from prober.cli.verify_report import EXAMPLES_MAX, LISTED, WIDTH
from prober.core.findings import Status
from prober.durations import duration_s
from prober.errors import ConfigError

if TYPE_CHECKING:
    from prober.exports.sources import ExportedMessage, MessageFields
    from prober.exports.verification import ExportAssumptions, ExportFinding, ExportVerification

MESSAGES_MAX: Final = 2_000_000
FILES_SAY: Final = "In a file the messages of a key must be in order. Over several files they need not be: files are not compared."
TABLE_SAYS: Final = (
    "A table has no order: whether it was written in order cannot be seen, only whether what precedes a message is missing."
)
_COUNTED: Final[Mapping[str, str]] = {
    "without_key": "without an ordering key",
    "redelivered": "delivered again",
    "published_more_than_once": "numbers published more than once",
    "below_and_repeated": "below a later one that is there again",
    "published_out_of_number_order": "published in another order than numbered",
    "keys_in_several_files": "keys in several files",
}


def export(  # noqa: PLR0913, PLR0917  # every option is a parameter
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE", help="Files, patterns, folders, gs://BUCKET/PREFIX, or one bigquery:PROJECT.DATASET.TABLE."
        ),
    ],
    key: Annotated[
        str, typer.Option(metavar="FIELD", help="The ordering key: attribute:NAME, json:FIELD in the data, or column:NAME.")
    ] = "attribute:ordering_key",
    number: Annotated[
        str | None, typer.Option(metavar="FIELD", help="The publisher's number of a message, which grows along its key.")
    ] = None,
    numbers_follow_publishing: Annotated[
        bool,
        typer.Option(
            "--numbers-follow-publishing",
            help="Guarantee: publishers publish in the order of numbers. Needed without publish times.",
        ),
    ] = False,
    clock_error: Annotated[
        str, typer.Option(metavar="DURATION", help="Publish times that are no further apart say nothing about order.")
    ] = "1s",
    since: Since = None,
    until: Until = None,
    messages_max: Annotated[
        int, typer.Option("--messages-max", metavar="NUMBER", min=1, help="Read no more messages than this; each takes memory.")
    ] = MESSAGES_MAX,
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON object.")] = Format.TEXT,
    everything: Annotated[bool, typer.Option("--all", help="Print every finding, not only three of each kind.")] = False,
) -> None:
    """Check the order of keys in an export to Cloud Storage or BigQuery.

    The command only reads.

    Exit code 0: pass. 1: a guarantee was violated. 2: wrong usage, or an export that cannot be read. 3: otherwise undecided.
    """
    from prober.exports.sources import MessageFields, field_path, is_table
    from prober.exports.verification import ExportAssumptions

    fields = MessageFields(field_path(key), None if number is None else field_path(number))
    assumptions = ExportAssumptions(duration_s(clock_error), numbers_follow_publishing)
    tables = [source for source in sources if is_table(source)]
    if tables and len(sources) > 1:
        raise ConfigError("give one table and nothing else, or files: each export is verified for itself")
    if not tables and (since or until):
        raise ConfigError("--since and --until are for tables; of files give those that you mean")
    messages = _of_table(tables[0], fields, since, until) if tables else _of_files(sources, fields)
    verification = _verified(messages, assumptions, messages_max, has_order=not tables)
    name = " ".join(sources)
    if output is Format.JSON:
        print(json.dumps(export_as_json(name, verification), allow_nan=False))
    else:
        note = TABLE_SAYS if tables else FILES_SAY
        show(printable("\n".join(export_as_lines(name, verification, note, everything=everything))))
    raise typer.Exit(int(code_of(verification.verdict)))


def _of_files(sources: Sequence[str], fields: MessageFields) -> Iterator[ExportedMessage]:
    from prober.exports.sources import places, rows

    for place in places(sources):
        for at, row in enumerate(rows(place), 1):
            yield fields.message(row, place.name, at)


def _of_table(source: str, fields: MessageFields, since: str | None, until: str | None) -> Iterator[ExportedMessage]:
    from prober.exports.sources import table_rows

    limits = [None if text is None else time_of(text, 0.0) for text in (since, until)]
    for at, row in enumerate(table_rows(source, fields, *limits), 1):
        yield fields.message(row, source, at)


def _verified(
    messages: Iterator[ExportedMessage], assumptions: ExportAssumptions, most: int, *, has_order: bool
) -> ExportVerification:
    from prober.exports.verification import verify_export

    taken = list(islice(messages, most))
    cut = next(messages, None) is not None
    return verify_export(taken, assumptions, has_order=has_order, cut=cut)


# --- what is printed ---------------------------------------------------------------------------------------------------------


def export_as_lines(name: str, verification: ExportVerification, note: str, *, everything: bool) -> Iterator[str]:
    """Return the verdict line, the findings of each kind, and the limits of such an export."""
    yield f"{name}: {verification.verdict} ({'; '.join(_summary(verification))})"
    for status in LISTED:
        of_kind: dict[str, list[ExportFinding]] = {}
        for finding in verification.findings:
            if finding.status is status:
                of_kind.setdefault(finding.kind, []).append(finding)
        for kind, findings in of_kind.items():
            shown = findings if everything else findings[:EXAMPLES_MAX]
            yield from chain.from_iterable(map(_finding_lines, shown))
            if left := verification.counts[findings[0].kind, status] - len(shown):
                yield f"  and {left:,} more {kind} ({status}){'' if everything else '; --all prints each'}"
    yield _filled(note, "  ")


def _summary(verification: ExportVerification) -> Iterator[str]:
    counters = verification.counters
    yield f"{number_of(counters.get('messages', 0), 'message')} on {number_of(counters.get('keys', 0), 'key')}"
    for status, words in LISTED.items():
        if count := sum(count for (_, counted), count in verification.counts.items() if counted is status):
            yield number_of(count, words)
    yield from (f"{words} {counters[name]:,}" for name, words in _COUNTED.items() if counters.get(name))
    if verification.reason:
        yield verification.reason


def _finding_lines(finding: ExportFinding) -> Iterable[str]:
    on = f", subscription {finding.subscription}" if finding.subscription else ""
    yield f"  {finding.kind} ({finding.status}), key {finding.key}{on}"
    yield _filled(finding.explanation, "    ")


def _filled(text: str, margin: str) -> str:
    return fill(text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False)


def export_as_json(name: str, verification: ExportVerification) -> Mapping[str, object]:
    """Return the object that docs/export.md describes."""
    kept = [finding for finding in verification.findings if finding.status is not Status.INFO]
    left = sum(count for (_, status), count in verification.counts.items() if status is not Status.INFO) - len(kept)
    return {
        "export": name,
        "verdict": verification.verdict.value,
        "reason": verification.reason,
        "findings": [
            {
                "kind": finding.kind.value,
                "status": finding.status.value,
                "subscription": finding.subscription,
                "key": finding.key,
                "explanation": finding.explanation,
                "rows": [{"source": row.source, "row": row.row, "message_id": row.message_id} for row in finding.rows],
            }
            for finding in kept
        ],
        "counters": {**verification.counters, "findings_omitted": left},
    }
