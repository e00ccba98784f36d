"""Names, messages, docstrings, pages and documents use the words of the field. An exception is an entry with its reason."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.architecture import tree

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
    "judg(?:e|es|ed|ing|ement|ements)": "verify, verification, verdict",
    "unjudged": "unverified",
    "chances?": "opportunity, probability, at random",
    "promis(?:e|es|ed|ing)": "guarantee",
    "certainly": "provably, definitely",
    "struck": "injected",
}
"""Words, and what to write instead."""

BANNED_NAMES: Final = {
    **dict.fromkeys(("told", "untold"), "reported, recorded, notified"),
    **dict.fromkeys(("judge", "judges", "judged", "judging", "judgement", "judgements"), "verify, verification, verdict"),
    "unjudged": "unverified",
    **dict.fromkeys(("rejudge", "rejudged"), "reverify, reverified"),
    **dict.fromkeys(("chance", "chances"), "opportunity, rng, random"),
    **dict.fromkeys(("promise", "promises", "promised"), "guarantee, objective"),
    **dict.fromkeys(("owed", "owes"), "pending"),
    "struck": "injected",
    "certainly": "provably",
}
"""Words of identifiers and file names, and what to name things instead."""

EXCEPTIONS: Final = {
    ("docs/mkdocs.yaml", "weather"): "name of an icon",
}
"""Reasons by file and phrase."""

KEPT_NAMES: Final = {
    "redelivery_promised": "rule of trace files, which other programs write",
}
"""Identifiers that keep a banned word, with reasons."""

RECORDED: Final = ("tests/vectors/", "tests/compat/", "docs/images/", "api/pages/static/")
"""Folders of recorded files, and of libraries in JavaScript, where `Promise` is a type of the language."""

PACKAGES: Final = (*tree.PACKAGES, "dashboards", "benchmarks")

SUBJECTS: Final = re.compile(r"(What|Who|Whoever|Nobody|Somebody|Such(?! as)|So many)\b[^?]*")
"""Sentences without a noun as their subject; questions are fine."""

WITH_SUBJECTS: Final = (
    "api/",
    "dashboards/",
    "prober/alerting/",
    "prober/cli/",
    "prober/config/",
    "prober/drills/",
    "prober/reports/",
    "spark_jobs/",
)
"""Packages of which each sentence of a docstring has a noun as its subject, as have the documents."""

MESSAGES: Final = (".yaml", ".tpl", ".txt", ".toml")
"""Suffixes of files outside of tests that hold messages to users: rules, the chart, settings of tools."""


def strings(text: str) -> Iterator[str]:
    """Every string of a module (docstrings, messages, the constant parts of formatted strings) and every comment."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    yield from re.findall("#.*", text)  # also in strings, which is the same text


def names(text: str) -> Iterator[str]:
    """Every identifier of a module that may have a banned word: to read the tokens of all modules takes long."""
    if not re.search("|".join(BANNED_NAMES), text, re.IGNORECASE):
        return
    yield from (token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.NAME)


def words(name: str) -> list[str]:
    """The words of an identifier or file name, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def docstrings(text: str) -> Iterator[str]:
    """Every string of a module that stands alone as a statement."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def without_subject(text: str) -> Iterator[str]:
    """The sentences that begin with a pronoun in place of a noun; headings, and words in italics or as code, are left out."""
    plain = re.sub(r"`[^`]*`|\*[^*\n]+\*|^#.*$", "code", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n\s*[*|-] |\|", plain):
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split())):
            if SUBJECTS.fullmatch(sentence):
                yield sentence


def prose() -> Iterator[tuple[Path, str]]:
    """Each text that engineers or users read, with its file."""
    for path, text in tree.texts():
        if path.parts[0] in ("tests", "constraints") or str(path).startswith(RECORDED):
            continue
        if path.suffix == ".md" or path.suffix in MESSAGES:
            yield path, re.sub(r"`[^`\n]*`", "`code`", text)
        elif path.suffix == ".html":
            yield path, re.sub(r"{[{%].*?[%}]}", " ", text)
        elif path.suffix == ".py" and path.parts[0] in PACKAGES:
            yield path, re.sub(r"`[^`]*`", "`code`", "\n".join(strings(text)))


def complaints(path: Path, text: str) -> Iterator[str]:
    """The banned words of a text, each with its replacement."""
    if not re.search("|".join(BANNED), text, re.IGNORECASE):
        return
    for word, better in BANNED.items():
        for found in re.finditer(rf"\b{word}\b", text, re.IGNORECASE):
            if (str(path), found[0].lower()) not in EXCEPTIONS:
                line = text[text.rfind("\n", 0, found.start()) + 1 : found.end() + 40].partition("\n")[0]
                yield f"{path}: “{found[0]}”, better {better}: {line.strip()}"


def name_complaints(path: Path, named: Iterable[str]) -> Iterator[str]:
    """The identifiers with a banned word, each once, with a replacement."""
    for name in sorted(set(named) - set(KEPT_NAMES)):
        for word in words(name):
            if word in BANNED_NAMES:
                yield f"{path}: `{name}`, better {BANNED_NAMES[word]}"


def test_texts_use_the_words_of_the_field() -> None:
    tree.expect_none(complaint for path, text in prose() for complaint in complaints(path, text))


def test_names_use_the_words_of_the_field() -> None:
    tree.expect_none(complaint for path, text in tree.sources() for complaint in name_complaints(path, names(text)))
    tree.expect_none(
        complaint for path in tree.files() if not str(path).startswith(RECORDED) for complaint in name_complaints(path, path.parts)
    )


def test_sentences_have_a_noun_as_their_subject() -> None:
    found = [(path, docstrings(text)) for path, text in tree.sources(*PACKAGES) if str(path).startswith(WITH_SUBJECTS)]
    found += [(path, iter([text])) for path, text in prose() if path.suffix == ".md"]
    tree.expect_none(f"{path}: {sentence}" for path, texts in found for text in texts for sentence in without_subject(text))


def test_a_banned_word_is_found() -> None:
    (complaint,) = complaints(Path("docs/a.md"), "The probe is told\nthat a message is pending.")
    assert complaint == "docs/a.md: “told”, better reported, recorded: The probe is told"
    assert list(complaints(Path("docs/a.md"), "The store contains retold runs.")) == []


def test_a_banned_word_is_found_in_messages_and_names() -> None:
    source = 'def judge(run_told, redelivery_promised):\n    return f"{run_told} has to come again"\n'
    assert list(strings(source)) == [" has to come again"]
    (complaint,) = complaints(Path("prober/a.py"), "\n".join(strings(source)))
    assert complaint == "prober/a.py: “come again”, better be redelivered: has to come again"
    assert list(name_complaints(Path("prober/a.py"), names(source))) == [
        "prober/a.py: `judge`, better verify, verification, verdict",
        "prober/a.py: `run_told`, better reported, recorded, notified",
    ]
    assert words("HTTPServer_told2") == ["http", "server", "told"]


def test_a_sentence_without_a_noun_as_its_subject_is_found() -> None:
    text = "# What it is\n\nIt runs. What it finds\nis reported. What for? *What to do* helps.\n* Nobody looks.\n\n| Such rows | So many |"
    assert list(without_subject(text)) == ["What it finds is reported.", "Nobody looks.", "Such rows", "So many"]
