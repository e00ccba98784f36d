"""The HTTP interface of the service: status page, REST API, metrics and health, based on a `View` of it."""

from __future__ import annotations

from typing import Final

from fastapi import Depends, FastAPI
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.staticfiles import StaticFiles

from api import problems
from api.dependencies import RunArrivals, provide
from api.middleware import Access, ETags, Headers, Heads, Methods, RequestLimits
from api.models.base import API
from api.query_parameters import said_once
from api.routes import comparisons, findings, health, incidents, keys, live, page, probes, reports, runs, series, slos, status
from api.templates import STATIC
from api.view import Archive, View
from prober.config.models import Api

DESCRIPTION: Final = (
    "How Pub/Sub keeps its guarantees about ordering keys: verdicts, findings and objectives. Times are RFC 3339 in UTC, "
    "lists come page by page, errors are problem details (RFC 9457)."
)

COMPRESSED_BYTES_MIN: Final = 1024
"""Minimum size of a compressed response: shorter ones fit into one packet."""
COMPRESSION_LEVEL: Final = 5
"""Level from 1 to 9: higher levels take more time and save little."""


def create_app(view: View, archive: Archive, settings: Api) -> FastAPI:
    """Return the application. It has no state of its own; every response is made from view and archive at that moment."""
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
    provide(app, view, archive, settings)
    arrivals = RunArrivals(view, archive)
    for routes in (status, probes, runs, incidents, findings, keys, slos, series, comparisons, reports):
        # not by a router around all of them, for which FastAPI would build every route a second time
        app.include_router(routes.router, prefix=API, dependencies=[Depends(said_once), Depends(arrivals)])
    app.include_router(health.router)
    app.include_router(page.router, dependencies=[Depends(page.as_page), Depends(arrivals)])
    app.include_router(live.router, dependencies=[Depends(page.as_page)])
    app.mount("/static", StaticFiles(directory=STATIC))
    app.add_middleware(ETags)
    app.add_middleware(Access, settings=settings)
    app.add_middleware(Methods)
    app.add_middleware(RequestLimits)
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_BYTES_MIN, compresslevel=COMPRESSION_LEVEL)
    app.add_middleware(Heads)
    problems.install(app, view)
    app.add_exception_handler(404, arrivals.absent)
    app.add_middleware(Headers)
    return app
