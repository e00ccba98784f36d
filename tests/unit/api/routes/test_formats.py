"""Numbers have one format on all pages: what is written is what `words` writes, and nothing else writes numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from api import formatting
from api.templates import PAGES as TEMPLATES
from prober.sinks.status.queries import StatusQueries
from prober.slo.budgets import slo_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts
from tests.browser.looking import PAGES
from tests.browser.world import World
from tests.unit.api.asking import NOON
from tests.unit.api.pages import VOID
from tests.unit.api.routes.test_page_kept import get

QUOTED = frozenset({"code", "pre", "script", "style"})
"""What is in them is not ours to write."""
PROSE = ("/docs", "/runbooks")
"""Pages that nothing measured is written into."""
ALLOWED = re.compile(
    r"""\d{4}-\d\d(?:-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?)?  # months, days and times
    | \d\d:\d\d(?::\d\d)?
    | version\ \S+
    | (?<!\S)[^\s\d]*[a-z]\S*\d\S*  # names
    | \d[\d.]*:\d+  # addresses
    """,
    re.VERBOSE,
)
NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?P<after>\ ?[^\s\d]*)")
UNITS = frozenset({"ms", "s", "min", "h", "d", "B", "kB", "MB", "GB", "%"})


class Text(HTMLParser):
    """What people read or hear of a page, without what is quoted."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.said: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_drawing = tag == "svg" and (dict(attrs).get("class") or "").startswith("lanes")
        is_quoted = is_drawing or tag in QUOTED or any(quoted for _, quoted in self._open)
        if tag not in VOID:
            self._open.append((tag, is_quoted))
        if not is_quoted:
            self.said.extend(value for name, value in attrs if name in {"aria-label", "title"} and value)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if not any(quoted for _, quoted in self._open):
            self.said.append(" ".join(data.split()))


def strange(text: str) -> Iterator[str]:
    """Every number in a text that `words` would not write like this."""
    for found in NUMBER.finditer(ALLOWED.sub("#", text)):
        written, after = found[0].removesuffix(found["after"]), found["after"]
        whole, _, fraction = written.lstrip("-").partition(".")
        grouped = re.fullmatch(r"\d{1,3}(,\d{3})*,?", whole) is not None
        is_short = len((whole + fraction).lstrip("0")) <= 2 or after.startswith(" %")
        glued = (after and after[0] != " " and re.sub(r"\W+$", "", after) in UNITS) or after.startswith("%")
        if "e" in written.lower() or not grouped or (fraction and not is_short) or glued:
            yield found[0]


@pytest.fixture(scope="module")
def reported(world: World) -> tuple[str, ...]:
    """What the checker says in sentences of its own."""
    queries: StatusQueries = world.view.archive.queries
    return tuple(record.explanation for record in queries.findings(limit=500).items)


@pytest.mark.parametrize("path", [path for path in PAGES.values() if not path.startswith(PROSE)])
def test_no_page_writes_a_number_in_a_format_of_its_own(world: World, reported: tuple[str, ...], path: str) -> None:
    explanations = frozenset(" ".join(text.split()) for text in reported)
    said = [text for text in Text(get(world, path).text).said if text not in explanations]
    assert said
    assert {text: found for text in said if (found := list(strange(text)))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "0.30000000000000004",
        "1e-05 burns",
        "1.2e+03 times",
        "12345 runs",
        "1234.5",
        "12%",
        "350ms",
        "3.14159 s",
        "12,34",
        "4KB 9kB",
    ],
)
def test_a_second_format_is_noticed(text: str) -> None:
    assert list(strange(text)) != []


@pytest.mark.parametrize(
    "text",
    ["99.995 %", "1,814,220 good", "2.6 s", "8 h 59 min", "0.099", "2026-03-01 11:59:10 UTC", "10.20.0.5:8085", "850 kB/s", "-0.5"],
)
def test_the_one_format_is_not(text: str) -> None:
    assert list(strange(text)) == []


def test_only_one_module_rounds() -> None:
    """Templates write what they are given; coordinates of drawings are not read by anybody."""
    others = {"words.py", "charts.py", "drawing.py", "layout.py", "middleware.py"}  # the last one answers programs
    modules = [path for path in Path(formatting.__file__).parent.rglob("*.py") if path.name not in others]
    rounding = re.compile(r"\{[^{}]*:[,+]?\.?\d*[,.\d]*[efgEFG%]\}|\{[^{}]*:,\}")
    assert [path.name for path in modules if rounding.search(path.read_text())] == []
    of_templates = re.compile(r"\|\s*(?:round|format|float|int\b)|%\.?\d")
    templates = {path.name: of_templates.findall(path.read_text()) for path in TEMPLATES.glob("*.html")}
    assert {name: found for name, found in templates.items() if found} == {}


ORDER = Objective("order", Indicator.ORDER, 0.99, 30 * DAY_S)


@pytest.mark.parametrize(
    ("counts", "measured", "text"),
    [
        (SliCounts(100), 1.0, "nothing spent"),
        (SliCounts(9_999_999, 1), 1.0, "0.001 % of the budget spent"),
        (SliCounts(99, 1), 1.0, "100 % of the budget spent"),
        (SliCounts(9_899, 101), 1.0, "101 % of the budget spent"),
        (SliCounts(0, 9), 1.0, "100 times the budget spent"),
        (SliCounts(0, 9), 1 / 720, "14 % of the budget spent"),
        (SliCounts(undecided=9), 0.0, "nothing counted"),
    ],
)
def test_the_spent_budget_in_words(counts: SliCounts, measured: float, text: str) -> None:
    assert formatting.budget(slo_of("europe", ORDER, counts, NOON, measured)) == text


def test_a_large_burn_rate_is_no_power_of_ten() -> None:
    assert [formatting.burn_rate_text(rate) for rate in (99.6, 1e-5, 12_345.6)] == ["100", "0.00001", "12,346"]
