"""Errors as problem details (RFC 9457): what the client did wrong, in words; of what we did wrong only that it happened.

`type` is always `about:blank`, so `title` is the phrase of the status code (RFC 9457, section 4.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.view import View

MEDIA_TYPE: Final = "application/problem+json"


class Problem(BaseModel):
    """Why a request was not answered."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(default="about:blank", description="Always `about:blank`: the status code says it all.")
    title: str = Field(description="The phrase of the status code.", examples=["Not Found"])
    status: int = Field(description="The status code.", examples=[404])
    detail: str = Field(
        default="", description="What was wrong with this request.", examples=["there is nothing at /api/v1/nonsense"]
    )
    instance: str = Field(default="", description="The path of the request.", examples=["/api/v1/nonsense"])


DOCUMENTED: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "An error, as problem details (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    }
}
"""The entry of every operation in the OpenAPI document."""


def problem(status: int, detail: str, path: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response for a status code."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, instance=path)
    return JSONResponse(body.model_dump(), status, headers, MEDIA_TYPE)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    path = request.url.path
    details = {404: f"there is nothing at {path}", 405: f"{request.method} is not possible at {path}"}
    return problem(error.status_code, details.get(error.status_code, error.detail), path, error.headers)


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    wrong = [f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}" for found in error.errors()]
    return problem(422, "; ".join(wrong), request.url.path)


class Failures:
    """Middleware: an exception becomes a 500 that says nothing about the inside, and is told to the view."""

    def __init__(self, app: ASGIApp, view: View) -> None:
        self._app, self._view = app, view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on. What fails after the answer began can only be broken off."""
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
    """Makes an app answer every error like this."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_middleware(Failures, view=view)
