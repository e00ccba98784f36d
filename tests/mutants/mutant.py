"""A deliberate bug in the checker: a value that says what to replace where, and what that breaks.

The text to replace must occur exactly once in its file. A mutant that no longer applies is an error, not a mutant that survives:
it would prove nothing any more without anybody noticing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

CORE = Path("prober/core")


class Removes(StrEnum):
    """A rule is missed by a history that violates a guarantee, an excuse by a legal history that is accused."""

    RULE = "rule"
    EXCUSE = "excuse"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug.

    name        unique; what `--only` takes.
    file        in the core.
    before      the exact source text; `after` takes its place.
    breaks      one sentence: what the checker does wrong then.
    removes     a rule, an excuse, or nothing at all (the identity).
    """

    name: str
    file: str
    before: str
    after: str
    breaks: str
    removes: Removes

    def apply(self, source: str) -> str:
        """The mutated source text of the file. Raises ValueError when the text to replace does not occur exactly once."""
        found = source.count(self.before)
        if found != 1:
            raise ValueError(f"mutant {self.name}: its text occurs {found} times in {self.file}, not once")
        return source.replace(self.before, self.after)

    def path(self, root: Path) -> Path:
        """Where its file is below a copy of the project."""
        return root / CORE / self.file


def rule(name: str, file: str, before: str, after: str, breaks: str) -> Mutant:
    """A bug because of which a violated guarantee goes unnoticed."""
    return Mutant(name, file, before, after, breaks, Removes.RULE)


def excuse(name: str, file: str, before: str, after: str, breaks: str) -> Mutant:
    """A bug because of which a legal service is accused, or accused without a doubt."""
    return Mutant(name, file, before, after, breaks, Removes.EXCUSE)
