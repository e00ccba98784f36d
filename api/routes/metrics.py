"""What Prometheus scrapes."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from api.view import View


def router(view: View) -> APIRouter:
    """`GET /metrics`."""
    routes = APIRouter(tags=["metrics"])

    @routes.get("/metrics", response_class=PlainTextResponse, response_description="The metrics.")
    async def metrics(request: Request) -> Response:
        """All metrics, as OpenMetrics or in the older text format, as the Accept header asks."""
        content_type, body = await view.metrics(request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type, "Vary": "Accept"})

    return routes
