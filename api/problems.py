"""Errors as problem details (RFC 9457): client errors with an explanation, internal errors without details.

`type` is always `about:blank`, so `title` is the phrase of the status code (RFC 9457, section 4.2.1).

Browsers, which accept `text/html`, get a page with the same text and links back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.templates import absent_page
from api.view import View
from prober.sinks.history.store import HistoryError
from prober.sinks.status.database import NotStorable, StatusError, StoreIncompatible, StoreReadOnly
from prober.sinks.status.listings import BadCursor

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 5
WRONG_SHOWN_MAX: Final = 10
_IN_PATHS: Final = "/:@!$&'()*+,;="  # characters that RFC 3986 allows in a path beside letters, digits and -._~
NAME_SHOWN_MAX: Final = 100
_PAGES: Final = ("text/html", "application/xhtml+xml")
_DATA: Final = ("application/json", MEDIA_TYPE)


class ProblemDetails(BaseModel):
    """Error response: the reason why a request failed."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(default="about:blank", description="Always `about:blank`: the status code says it all.")
    title: str = Field(description="The phrase of the status code.", examples=["Not Found"])
    status: int = Field(description="The status code.", examples=[404])
    detail: str = Field(
        default="", description="What was wrong with this request.", examples=["there is nothing at /api/v1/nonsense"]
    )
    instance: str = Field(default="", description="The path of the request, percent-encoded.", examples=["/api/v1/nonsense"])


def documented(description: str) -> dict[str, Any]:
    """Return the entry of an error in the OpenAPI document."""
    return {"description": description, "content": {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}}}


DOCUMENTED: Final[dict[int | str, dict[str, Any]]] = {"default": documented("An error, as problem details (RFC 9457).")}
"""Error entry of every operation in the OpenAPI document."""


def problem(status: int, detail: str, path: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response for a status code. `path`: path as decoded; it may contain any text, while an instance is a URI reference."""
    body = ProblemDetails(title=HTTPStatus(status).phrase, status=status, detail=detail, instance=quote(path, _IN_PATHS))
    return JSONResponse(body.model_dump(), status, headers, MEDIA_TYPE)


def is_for_people(request: Request) -> bool:
    """Return whether a request prefers a page to data (RFC 9110, section 12.5.1).

    Without a preference the path decides: pages have other paths than data.
    """
    weights = {name: _weight(rest) for name, _, rest in (one.strip().partition(";") for one in _accepted(request).split(","))}
    page, data = (max(weights.get(name, 0.0) for name in names) for names in (_PAGES, _DATA))
    return getattr(request.state, "is_page", False) if page == data else page > data


def error_answer(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page for browsers, problem details for programs."""
    varying = {**(headers or {}), "Vary": "Accept"}
    if is_for_people(request):
        begin = detail[:1] if status == 400 else detail[:1].upper()  # a 400 may start with the name of a parameter
        return absent_page(request, status, f"{begin}{detail[1:].removesuffix('.')}.", varying)
    return problem(status, detail, request.scope["path"], varying)


def _accepted(request: Request) -> str:
    return ",".join(request.headers.getlist("accept")).lower()


def _weight(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            with suppress(ValueError):
                return float(value)
    return 1.0


async def refused(request: Request, error: Exception) -> Response:
    """Return the response for an `HTTPException`."""
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    detail = error.detail
    if detail == HTTPStatus(error.status_code).phrase:  # the error has no detail
        said = {404: f"there is nothing at {path}", 405: f"{request.method} is not possible at {path}"}
        detail = said.get(error.status_code, detail)
    return error_answer(request, error.status_code, detail, error.headers)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_answer(request, 400, "; ".join(map(wrong, error.errors()[:WRONG_SHOWN_MAX])))


def wrong(found: Mapping[str, Any]) -> str:
    """Return the error in a parameter, or in a field of the body."""
    place, *names = (str(part) for part in found["loc"])
    name = ".".join(names)[:NAME_SHOWN_MAX] or f"the {place}"
    if found["type"] == "extra_forbidden":
        return f"{name}: there is no such {'field' if place == 'body' else 'parameter'}; /docs lists them"
    return f"{name}: {found['msg'].removeprefix('Value error, ')}"


async def _unanswerable(request: Request, error: Exception) -> Response:
    """Return 503 for an error of the store, or of the location of the reports.

    Their error texts may contain hosts and folders, which must not be exposed.
    """
    if isinstance(error, BadCursor):
        return error_answer(request, 400, str(error))
    if isinstance(error, NotStorable):
        return error_answer(request, 400, "this contains something that cannot be stored, so there is nothing like it")
    what = "the place of the reports" if isinstance(error, HistoryError) else "the status store"
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    if isinstance(error, StoreIncompatible):
        return error_answer(request, 503, str(error), headers)
    why = "is read-only" if isinstance(error, StoreReadOnly) else "cannot be reached at the moment"
    return error_answer(request, 503, f"{what} {why}", headers)


class Failures:
    """Middleware: turns an exception into a 500, and reports it to the view.

    The response contains no internal details.
    """

    def __init__(self, app: ASGIApp, view: View) -> None:
        self._app, self._view = app, view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. A response that fails after its start can only be cut off."""
        began = False

        async def watch(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            self._view.failed(error)
            if began:
                raise
            answer = problem(500, "a mistake of the prober, which was counted and logged", scope["path"])
            await answer(scope, receive, send)


def install(app: FastAPI, view: View) -> None:
    """Install the error responses in an application."""
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    for expected in (StatusError, HistoryError):
        app.add_exception_handler(expected, _unanswerable)
    app.add_middleware(Failures, view=view)
