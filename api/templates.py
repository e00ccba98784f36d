"""The pages: templates with the words that they use. Everything that is written into a page is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api import charts, formatting, headline, operations, words

PAGES: Final = Path(__file__).parent / "pages"
STATIC: Final = PAGES / "static"

_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_ENVIRONMENT.globals.update(charts=charts, formatting=formatting, headlines=headline, operations=operations, words=words)


def rendered_page(template: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """A page from a template and what it shows; `root` is how it reaches the start page: empty, or so many times `../`."""
    return HTMLResponse(_ENVIRONMENT.get_template(template).render({"root": "", **values}), status)
