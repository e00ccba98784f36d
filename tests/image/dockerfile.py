"""The Dockerfile as instructions, stage by stage."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tests.commands import ROOT

_STAGE: Final = re.compile(r"(?P<base>\S+) AS (?P<name>\S+)")


@dataclass(frozen=True)
class Stage:
    """One stage: what it is called, what it is built on, its instructions in order."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def of(self, word: str) -> list[str]:
        """What follows an instruction's word, each time."""
        return [rest for said, rest in self.instructions if said == word]


def stages(text: str) -> dict[str, Stage]:
    """The stages of a Dockerfile, by name."""
    found: dict[str, Stage] = {}
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            match = _STAGE.fullmatch(rest)
            assert match is not None, line
            stage = found[match["name"]] = Stage(match["name"], match["base"])
        elif word:
            stage.instructions.append((word, rest.strip()))
    return found


TEXT: Final = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STAGES: Final = stages(TEXT)
TARGETS: Final = ("service", "jobs", "jobs-gcs")


def said(stage: Stage, word: str) -> list[str]:
    """What holds in a stage: its own instructions after those of what it is built on."""
    return (said(STAGES[stage.base], word) if stage.base in STAGES else []) + stage.of(word)
