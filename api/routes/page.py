"""The pages for people: the status page, and what the API can be asked.

They are written in a thread, so that the event loop, on which probes measure time, does not stand still meanwhile.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from api.archive import Archive
from api.standing import Standing
from api.templates import page


def router(standing: Standing, archive: Archive) -> APIRouter:
    """`GET /` and `GET /docs`."""
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @routes.head("/")
    @routes.get("/")
    async def status_page() -> HTMLResponse:
        """How everything stands."""
        return await asyncio.to_thread(page, "status.html", {"snapshot": await standing.snapshot()})

    @routes.head("/docs")
    @routes.get("/docs")
    async def reference_page(request: Request) -> HTMLResponse:
        """The operations and answers of the API."""
        return await asyncio.to_thread(page, "docs.html", {"document": request.app.openapi()})

    return routes
