"""The commands of the runbooks: found in their text, with the placeholders that the page README.md documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import grpc

from prober.core.findings import Kind
from prober.core.verdict import Verdict
from tests.commands import ROOT

FOLDER = ROOT / "docs" / "runbooks"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
LANGUAGES = {"sh", "promql", "yaml"}
PROGRAMS = (
    "ordering-prober",
    "curl",
    "amtool",
    "promtool",
    "kubectl",
    "python",
    "py-spy",
    "df",
)
IN_POD = "kubectl exec POD -- "
_PLACEHOLDER = re.compile(r"\$?\b[A-Z][A-Z_]+\b|\b[A-Z]+(?=-)")
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NO_PLACEHOLDERS = {*Kind, *Verdict, *(code.name for code in grpc.StatusCode), "ALERTS"}
"""Words in capitals that stand for themselves; the last is a metric of Prometheus."""


@dataclass(frozen=True)
class Command:
    """One command line of a page, as it stands there. `query`: it is to be entered in Prometheus."""

    page: str
    text: str
    query: bool = False

    @property
    def program(self) -> str:
        """The program that it calls."""
        return self.text.split()[0]

    @property
    def in_pod(self) -> Command:
        """The command that it runs in a pod; itself if it runs none there."""
        return Command(self.page, self.text.removeprefix(IN_POD))

    @property
    def placeholders(self) -> set[str]:
        """The words that a reader has to replace."""
        return {word for word in _PLACEHOLDER.findall(self.text) if word not in NO_PLACEHOLDERS}

    def filled(self, values: Mapping[str, str]) -> str:
        """With values for the placeholders."""
        return _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), self.text)


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: language and content."""
    return _BLOCK.findall(PAGES[page])


def commands(page: str) -> Iterator[Command]:
    """The commands of a page in their order: those of its blocks, then those in its sentences."""
    for language, body in blocks(page):
        if language == "promql":
            yield Command(page, body.strip(), query=True)
        elif language == "sh":
            lines = body.replace("\\\n", " ").splitlines()
            yield from (Command(page, text) for line in lines if (text := _without_comment(line)))
    for span in re.findall(r"`([^`\n]+)`", _BLOCK.sub("", PAGES[page])):
        if span.split()[0] in PROGRAMS and len(span.split()) > 2:  # what is shorter is only mentioned
            yield Command(page, span)


def documented() -> set[str]:
    """The placeholders in the table of README.md."""
    section = PAGES["README"].partition("## Placeholders")[2].partition("\n## ")[0]
    cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s+)# .*$", "", line).strip()
