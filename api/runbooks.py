"""The runbooks of docs/runbooks as pages, and how the other pages link them.

Their files are in `pages/runbooks`, which is a link in a checkout and a folder in an installation. They do not change while a process
runs, so they are read once. HTML in them is shown as text, and no link leads to a page that is not served.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token

from prober.alerting.rules import RUNBOOKS

FOLDER: Final = Path(__file__).parent / "pages" / "runbooks"
SUFFIX: Final = ".md"
INDEX: Final = "README"
"""What is said about all of them; part of their list."""

_OWN: Final = "PubsubProber"
_ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
_ROLES: Final = {"table_open": "table", "thead_open": "rowgroup", "tbody_open": "rowgroup", "tr_open": "row"}


@dataclass(frozen=True, slots=True)
class Runbook:
    """A runbook.

    summary   its first sentence, as text; so is the title.
    lead      what stands between its title and its first section, as HTML; `body`: its sections.
    """

    name: str
    title: str
    summary: str
    lead: str
    body: str

    @property
    def about(self) -> str:
        """Whose problem it is about: the service's, or the prober's own."""
        return "prober" if self.name.startswith(_OWN) else "service"


def runbook_address(name: str, base: str | None, root: str) -> str:
    """Where a runbook is read: below `base`, if there is one, else here; `root` is how a page reaches the start page."""
    return f"{base.rstrip('/')}/{name}{SUFFIX}" if base else f"{root}runbooks/{name}"


@cache
def runbooks() -> Mapping[str, Runbook]:
    """Every runbook by name, in alphabetical order, and `INDEX`. Reads and renders the files when it is first called."""
    files = sorted(FOLDER.glob(f"*{SUFFIX}"))
    served = frozenset(path.stem for path in files)
    return MappingProxyType({path.stem: rendered(path.stem, path.read_text(encoding="utf-8"), served) for path in files})


def rendered(name: str, text: str, served: frozenset[str]) -> Runbook:
    """A runbook from its text in Markdown. `served`: the names of all that have a page."""
    root = "" if name == INDEX else "../"
    tokens = _MARKDOWN.parse(text)
    title, *_ = (token.content for token in tokens if token.type == "inline")
    shown = [token for token in tokens[3:] if token.type not in ("blockquote_open", "blockquote_close")]  # without the title
    for token in shown:
        if token.children is not None:
            token.children = list(_with_links(token.children, root, served))
    _name_headings(shown)
    _name_cells(shown)
    begin = next((number for number, token in enumerate(shown) if token.type == "heading_open"), len(shown))
    return Runbook(name, title, _first_sentence(shown), _html(shown[:begin]), _html(shown[begin:]))


def _html(tokens: Sequence[Token]) -> str:
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def _plain(token: Token) -> str:
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children or ())


def _first_sentence(tokens: Sequence[Token]) -> str:
    text = next((_plain(token) for token in tokens if token.type == "inline"), "")
    begin, dot, _ = text.partition(". ")
    return begin + dot.rstrip()


# --- links -------------------------------------------------------------------------------------------------------------------


def _with_links(tokens: Sequence[Token], root: str, served: frozenset[str]) -> Iterator[Token]:
    """The inside of a paragraph: links to what has a page lead there, in the place of others stands the name of the file."""
    named = said = ""
    for token in tokens:
        said += token.content
        if token.type == "link_open":
            address = str(token.attrs["href"])
            led = _led(address, root, served)
            said, named = "", "" if led else posixpath.normpath(posixpath.join(RUNBOOKS, address.partition("#")[0]))
            if led:
                token.attrs["href"] = led
                yield token
        elif token.type == "link_close" and named:
            if named not in said:
                yield Token("text", "", 0, content=" in ")
                yield Token("code_inline", "code", 0, content=named)
            named = ""
        else:
            yield token


def _led(address: str, root: str, served: frozenset[str]) -> str:
    """Where a link leads on the page; empty: nowhere."""
    if _ELSEWHERE.match(address):
        return address
    path, sign, fragment = address.partition("#")
    name = path.removesuffix(SUFFIX)
    if name not in served:
        return ""
    return f"{root}runbooks{'' if name == INDEX else f'/{name}'}{sign}{fragment}"


# --- what a page needs beyond the text ---------------------------------------------------------------------------------------


def _name_headings(tokens: Sequence[Token]) -> None:
    """Sections can be linked, by the names that they have where the files are usually read."""
    for heading, inside in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", re.sub(r"[^\w-]", "", _plain(inside).lower().replace(" ", "-")))


def _name_cells(tokens: Sequence[Token]) -> None:
    """A table stays one for those who hear it also where each row is shown as a card, with the names of its columns."""
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
    """A block of commands, or of a query, that can be copied and scrolled without a mouse."""
    token = tokens[number]
    what = "the query" if token.info == "promql" else "the commands"
    code = f'<code data-copy="{what}">{escape(token.content.rstrip())}</code>'
    return f'<div class="command"><pre tabindex="0">{code}</pre></div>\n'


def _cell_begins(renderer: RendererProtocol, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
    attributes = "".join(f' {name}="{escape(str(value))}"' for name, value in tokens[number].attrs.items())
    return f"<td{attributes}><div>"


def _cell_ends(renderer: RendererProtocol, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
    return "</div></td>\n"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    for name, rule in (("fence", _fence), ("td_open", _cell_begins), ("td_close", _cell_ends)):
        parser.add_render_rule(name, rule)
    return parser


_MARKDOWN: Final = _parser()
