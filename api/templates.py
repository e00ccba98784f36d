"""HTML pages from templates. All values are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api import charts, formatting, headline, operations, timeline, words
from api.runbooks import runbook_address
from prober.comparison import comparison as comparing

PAGES: Final = Path(__file__).parent / "pages"
STATIC: Final = PAGES / "static"

NO_PAGE: Final = "No page"
_TITLES: Final = {404: "Not here", 400: "This cannot be asked", 503: "No answer"}

_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_ENVIRONMENT.globals.update(
    charts=charts, formatting=formatting, headlines=headline, operations=operations, timelines=timeline, words=words
)
_ENVIRONMENT.globals["comparing"] = comparing
_ENVIRONMENT.tests["observed"] = formatting.is_observed
_ENVIRONMENT.globals["runbook_address"] = runbook_address


def rendered_page(template: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Return a page from a template and its values.

    root     path to the start page: empty, or repeated `../`.
    address  address of the start page from the reader's view; only for pages that show it.
    linked   whether the named runs, findings and incidents are in the store; else none is linked.
    """
    return HTMLResponse(_ENVIRONMENT.get_template(template).render({"root": "", "linked": True, **values}), status)


def rendered_macro(template: str, macro: str, *values: object) -> str:
    """Return a part of a page: the result of a template's macro for these values."""
    return str(getattr(_ENVIRONMENT.get_template(template).module, macro)(*values))


def root_of(request: Request) -> str:
    """Return the path from a request's address to the start page, as browsers count: an escaped slash is none."""
    path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return "../" * (path.partition(b"?")[0].count(b"/") - 1)


def absent_page(request: Request, status: int, reason: str, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """Return the page in place of one that cannot be shown. `reason` is a sentence."""
    answer = rendered_page(
        "absent.html", {"root": root_of(request), "title": _TITLES.get(status, NO_PAGE), "reason": reason}, status
    )
    answer.headers.update(headers or {})
    return answer
