"""Output of a finding by commands: its fields in a JSON document, and its lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from prober.core.findings import Finding
from prober.evidence.explain import PUBSUB, explain, reasons

KEY_SHOWN_MAX: Final = 72
KEY_END_SHOWN: Final = 16
"""Characters of a long key in text, and how many of them are from its end."""


def finding_row(
    finding: Finding, offset_s: float | None, witnesses: Sequence[int] | None = None, service: str = PUBSUB
) -> dict[str, Any]:
    """Return the fields of a finding in every document.

    offset_s   seconds to add to its times to get seconds since 1970; None: unknown.
    witnesses  the places of the events that prove it, by default their numbers.
    """
    return {
        "kind": finding.kind,
        "status": finding.status,
        "subscription": finding.subscription,
        "key": finding.key,
        "t": finding.t,
        "explanation": explain(finding, offset_s, service),
        "reasons": list(reasons(finding, offset_s)),
        "witnesses": list(finding.witnesses if witnesses is None else witnesses),
    }


def finding_lines(
    finding: Finding, offset_s: float | None, blamed: str = "", group: str = "", count: int = 1, service: str = PUBSUB
) -> Iterator[str]:
    """Return a finding as two lines.

    blamed  the side with the cause, in place of the status.
    group   which messages of the key.
    count   number of findings of its kind and status that it represents.
    service name of the service under test.
    """
    where = f"key {shortened(finding.key)}" if finding.key else "without a key"
    times = f"{count:,} times, for example " if count > 1 else ""
    yield printable(f"  {finding.kind} ({blamed or finding.status}), {times}{where}{group}")
    yield printable(f"    {explain(finding, offset_s, service)}")


def shortened(key: str) -> str:
    """Return the key in one line, or its start and its end if it is long."""
    key = one_line(key)
    if len(key) <= KEY_SHOWN_MAX:
        return key
    return f"{key[: KEY_SHOWN_MAX - KEY_END_SHOWN]}...{key[-KEY_END_SHOWN:]} ({len(key):,} characters)"


def one_line(name: str) -> str:
    """Return a name with its line breaks escaped, so that it cannot imitate a line of the program."""
    return "".join(ascii(c)[1:-1] if c.isspace() and c != " " else c for c in name)


def printable(text: str) -> str:
    """Return text without control characters: a key must not control a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def number_of(count: int, of: str) -> str:
    """Return a count with its word, in the plural unless it is one."""
    return f"{count:,} {of}{'s' * (count != 1)}"
