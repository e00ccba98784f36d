"""The HTTP face of the service: status page, REST API, metrics and health, around a `View` of it."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from api import problems
from api.headers import Headers
from api.routes import health, metrics, page, status
from api.templates import STATIC
from api.view import View

DESCRIPTION: Final = (
    "How the promises about ordering keys are kept: verdicts, findings and objectives. Times are RFC 3339 in UTC, "
    "errors are problem details (RFC 9457)."
)


def create_app(view: View) -> FastAPI:
    """The application. It keeps nothing itself; every answer is made of what the view says at that moment."""
    app = FastAPI(
        title="ordering-keys-prober",
        description=DESCRIPTION,
        version=view.snapshot().version,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=problems.DOCUMENTED,
        generate_unique_id_function=lambda route: route.name,
    )
    for routes in (status, health, metrics, page):
        app.include_router(routes.router(view))
    app.mount("/static", StaticFiles(directory=STATIC))
    problems.install(app, view)
    app.add_middleware(Headers)
    return app
