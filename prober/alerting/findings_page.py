"""The tables of docs/findings.md, made from what is known of each kind of finding. `make generate` writes the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prober.alerting.findings import alerts_of
from prober.core.findings import Kind, Status
from prober.core.kinds import KINDS, Guarantee
from prober.evidence.advice import ADVICE

BEGINNING: Final = "<!-- what follows is made by `make generate`; do not change it by hand -->\n"
END: Final = "<!-- end of what is made -->\n"


def with_tables(page: str) -> str:
    """The page with its tables as they should be. Raises ValueError if it has not the place for them, which is marked."""
    before, _, rest = page.partition(BEGINNING)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError("the page does not say where the tables belong")
    return before + BEGINNING + "".join(f"\n{line}\n" for line in _sections()) + "\n" + END + after


def _sections() -> Iterator[str]:
    for guarantee in Guarantee:
        kinds = [kind for kind, meaning in KINDS.items() if meaning.guarantee is guarantee]
        rows = ["| kind | event | first check | alert |", "|---|---|---|---|", *map(_row, kinds)]
        yield f"## {guarantee.capitalize()}: {guarantee.sentence}"
        yield "\n".join(rows)


def _row(kind: Kind) -> str:
    meaning = KINDS[kind]
    info = "info: " if meaning.statuses[0] is Status.INFO else ""
    alerts = ", ".join(f"[{name}](runbooks/{name}.md)" for name in alerts_of(kind))
    return f"| `{kind}` | {info}{meaning.happened} | {ADVICE[kind]} | {alerts} |"
