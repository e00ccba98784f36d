"""Docstrings, pages and documents use the words of the field. An exception is an entry of `EXCEPTIONS` with its reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.architecture import tree
from tests.generated import PAGES

BANNED: Final = {
    "told": "reported, recorded",
    "owed": "pending, outstanding",
    "(?:come|comes|came|coming) again": "be redelivered",
    "anew": "again, restart",
    "whoever": "the noun: the caller, the scraper, the subscriber",
    "as ever": "(nothing)",
    "for certain": "provably, definitely",
    "all the same": "(nothing)",
    "so that none": "(nothing)",
    "laid over": "merged",
    "standstill": "process pause, stall",
    "weather": "network conditions",
    "accused?": "report a violation",
    "in vain": "wrongly",
    "lets? go of": "closes",
    "hears": "on_event, receives",
}
"""Words, and what to write instead."""

EXCEPTIONS: Final = {
    ("README.md", "come again"): "quotes a finding",
    ("prober/core/verdict.py", "owed"): "name of an argument",
}
"""Reasons by file and phrase."""

GENERATED: Final = {*PAGES, "docs/detection.md"}
"""Pages that code writes from messages and figures."""

PACKAGES: Final = (*tree.PACKAGES, "dashboards", "benchmarks")


def docstrings(text: str) -> Iterator[str]:
    """Every string of a module that stands alone as a statement."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def prose() -> Iterator[tuple[Path, str]]:
    """Each text that engineers or users read, with its file."""
    for path, text in tree.texts():
        if path.suffix == ".md" and path.parts[0] != "tests" and str(path) not in GENERATED:
            yield path, re.sub(r"`[^`]*`", "`code`", text)
        elif path.suffix == ".html":
            yield path, re.sub(r"{[{%].*?[%}]}", " ", text)
        elif path.suffix == ".py" and path.parts[0] in PACKAGES:
            yield path, re.sub(r"`[^`]*`", "`code`", "\n".join(docstrings(text)))


def complaints(path: Path, text: str) -> Iterator[str]:
    """The banned words of a text, each with its replacement."""
    for word, better in BANNED.items():
        for found in re.finditer(rf"\b{word}\b", text, re.IGNORECASE):
            if (str(path), found[0].lower()) not in EXCEPTIONS:
                line = text[text.rfind("\n", 0, found.start()) + 1 : found.end() + 40].partition("\n")[0]
                yield f"{path}: “{found[0]}”, better {better}: {line.strip()}"


def test_texts_use_the_words_of_the_field() -> None:
    tree.expect_none(complaint for path, text in prose() for complaint in complaints(path, text))


def test_a_banned_word_is_found() -> None:
    (complaint,) = complaints(Path("docs/a.md"), "The probe is told\nthat a message is pending.")
    assert complaint == "docs/a.md: “told”, better reported, recorded: The probe is told"
    assert list(complaints(Path("docs/a.md"), "The store contains retold runs.")) == []
