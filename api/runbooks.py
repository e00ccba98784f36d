"""The runbooks of docs/runbooks as pages, and the links of other pages to them.

The files are in `pages/runbooks`, a link in a checkout and a folder in an installation. They do not change while a process runs, so they
are parsed once. HTML in them is shown as text. Placeholders in commands are filled in from the query of the page's address.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, urlencode

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token

FOLDER: Final = Path(__file__).parent / "pages" / "runbooks"
SUFFIX: Final = ".md"
INDEX: Final = "README"
"""Introduction to all runbooks; part of their list."""
PARAMETERS: Final = re.compile(
    "target|environment|topic|probe|kind|slo|baseline|candidate|own_subscription|instance|component|job|job_name|rule_group|drill"
    "|project|label|operation|id|key"
)
"""Parameters of a runbook's address: labels of alerts, and `id` and `key` of a finding. In commands they are placeholders, in capitals."""
VALUE_LENGTH_MAX: Final = 1024

_OWN: Final = "PubsubProber"
_PLACEHOLDER: Final = re.compile(r"\b[A-Z][A-Z_]*[A-Z]\b")
_PROBER: Final = "$PROBER/"
_FILLED: Final = re.compile(rf'{re.escape(_PROBER)}[^\s"]*|{_PLACEHOLDER.pattern}')
_ADDRESS: Final = re.compile(r"https?://[\w.:\[\]-]+/[\w./~%-]*", re.ASCII)
_PAGE: Final = re.compile(rf"(\w+){re.escape(SUFFIX)}(#.*)?", re.ASCII)
_ROLES: Final = {"table_open": "table", "thead_open": "rowgroup", "tbody_open": "rowgroup", "tr_open": "row"}


@dataclass(frozen=True, slots=True)
class Reader:
    """The request for a runbook.

    root      relative address of the start page, from the requested page.
    address   absolute address of the start page; the browser replaces it if the reader is behind a proxy.
    query     parameters of the page's address. Unknown ones, and values that are unsafe on a command line, are ignored.
    """

    root: str = ""
    address: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, str]:
        """Values of parameters, by name: printable, of limited length, and no options of a command."""
        return {
            name: value
            for name, value in self.query.items()
            if PARAMETERS.fullmatch(name) and value.isprintable() and len(value) <= VALUE_LENGTH_MAX and value[:1] not in ("", "-")
        }


@dataclass(frozen=True, slots=True)
class Runbook:
    """A runbook: `title` and `summary`, its first sentence, as text; the rest as parsed Markdown."""

    name: str
    title: str
    summary: str
    before_sections: tuple[Token, ...]
    sections: tuple[Token, ...]

    @property
    def about(self) -> str:
        """The subject of the alert: the service, or the prober itself."""
        return "prober" if self.name.startswith(_OWN) else "service"

    def lead(self, reader: Reader) -> str:
        """Return the text between title and first section, as HTML."""
        return _html(self.before_sections, reader)

    def body(self, reader: Reader) -> str:
        """Return the sections, as HTML."""
        return _html(self.sections, reader)


def runbook_address(name: str, base: str | None, root: str, about: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the address of a runbook: below `base`, or of this service with start page `root`. `about` fills in its placeholders."""
    query = f"?{urlencode(about)}" if about else ""
    return f"{base.rstrip('/')}/{name}{SUFFIX}{query}" if base else f"{root}runbooks/{name}{query}"


@cache
def runbooks() -> Mapping[str, Runbook]:
    """Return all runbooks by name, in alphabetical order, and `INDEX`. Reads the files at the first call."""
    files = sorted(FOLDER.glob(f"*{SUFFIX}"))
    return MappingProxyType({path.stem: parsed(path.stem, path.read_text(encoding="utf-8")) for path in files})


def parsed(name: str, text: str) -> Runbook:
    """Return a runbook from its text in Markdown."""
    tokens = _MARKDOWN.parse(text)
    title, *_ = (token.content for token in tokens if token.type == "inline")
    shown = [token for token in tokens[3:] if token.type not in ("blockquote_open", "blockquote_close")]  # without the title
    _name_headings(shown)
    _name_cells(shown)
    begin = next((number for number, token in enumerate(shown) if token.type == "heading_open"), len(shown))
    return Runbook(name, title, _first_sentence(shown), tuple(shown[:begin]), tuple(shown[begin:]))


def _html(tokens: Sequence[Token], reader: Reader) -> str:
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {"reader": reader}))


def _plain(token: Token) -> str:
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children or ())


def _first_sentence(tokens: Sequence[Token]) -> str:
    text = next((_plain(token) for token in tokens if token.type == "inline"), "")
    begin, dot, _ = text.partition(". ")
    return begin + dot.rstrip()


# --- placeholders and links --------------------------------------------------------------------------------------------------


def _code(text: str, reader: Reader, *, is_query: bool = False) -> str:
    """Return code as HTML with placeholders filled in: quoted for a shell, percent-encoded in an address, in double quotes in PromQL."""
    values = reader.values

    def fill(found: re.Match[str]) -> str:
        word = found[0]
        if word.startswith(_PROBER):
            path = _PLACEHOLDER.sub(lambda name: _value(values, name[0], lambda value: quote(value, safe="")), word)
            return _address(reader) + path.removeprefix(_PROBER)
        return _value(values, word, _in_promql if is_query else shlex.quote)

    return _FILLED.sub(fill, escape(text, quote=False))  # escaping makes no capitals


def _value(values: Mapping[str, str], word: str, written: Callable[[str], str]) -> str:
    value = values.get(word.lower())
    return word if value is None else escape(written(value), quote=False)


def _in_promql(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _address(reader: Reader) -> str:
    """Return the address of the start page. The placeholder stays if the host name of a request is unsafe on a command line."""
    if not _ADDRESS.fullmatch(reader.address):
        return _PROBER
    return f'<span data-address="{escape(reader.root or "./")}">{escape(reader.address)}</span>'


def _link(renderer: RendererProtocol, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
    """Render a link to another runbook as a link to its page with the parameters."""
    address, reader = str(tokens[number].attrs["href"]), env["reader"]
    if page := _PAGE.fullmatch(address):
        name, fragment = page[1], page[2] or ""
        there = f"{reader.root}runbooks" if name == INDEX else runbook_address(name, None, reader.root, reader.values)
        address = there + fragment
    return f'<a href="{escape(address)}">'


# --- elements of a page beyond the text --------------------------------------------------------------------------------------


def _name_headings(tokens: Sequence[Token]) -> None:
    """Give sections the ids that they have where the files are usually read, so that they can be linked."""
    for heading, inside in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", re.sub(r"[^\w-]", "", _plain(inside).lower().replace(" ", "-")))


def _name_cells(tokens: Sequence[Token]) -> None:
    """Add the table roles for screen readers.

    A row that is shown as a card keeps them, with the names of its columns.
    """
    titles: list[str] = []
    column = 0
    for token, inside in pairwise(tokens):
        if token.type in _ROLES:
            token.attrSet("role", _ROLES[token.type])
            column = 0
            titles = [] if token.type == "table_open" else titles
        elif token.type == "th_open":
            titles.append(_plain(inside))
            token.attrSet("role", "columnheader")
            token.attrSet("scope", "col")
        elif token.type == "td_open":
            token.attrSet("role", "cell")
            token.attrSet("data-label", titles[column])
            column += 1


def _fence(renderer: RendererProtocol, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
    """Render a block of commands, or of a query, that can be copied and scrolled without a mouse."""
    token = tokens[number]
    is_query = token.info == "promql"
    code = _code(token.content.rstrip(), env["reader"], is_query=is_query)
    code = f'<code data-copy="{"the query" if is_query else "the commands"}">{code}</code>'
    return f'<div class="command"><pre tabindex="0">{code}</pre></div>\n'


def _inline_code(renderer: RendererProtocol, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
    return f"<code>{_code(tokens[number].content, env['reader'])}</code>"


def _cell_begins(renderer: RendererProtocol, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
    attributes = "".join(f' {name}="{escape(str(value))}"' for name, value in tokens[number].attrs.items())
    return f"<td{attributes}><div>"


def _cell_ends(renderer: RendererProtocol, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
    return "</div></td>\n"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    rules = {"fence": _fence, "code_inline": _inline_code, "link_open": _link, "td_open": _cell_begins, "td_close": _cell_ends}
    for name, rule in rules.items():
        parser.add_render_rule(name, rule)
    return parser


_MARKDOWN: Final = _parser()
