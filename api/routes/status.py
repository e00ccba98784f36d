"""How everything stands, for programs."""

from __future__ import annotations

from fastapi import APIRouter

from api.models import StatusAnswer
from api.view import View


def router(view: View) -> APIRouter:
    """`GET /api/v1/status`."""
    routes = APIRouter(prefix="/api/v1", tags=["status"])

    @routes.head("/status", include_in_schema=False)
    @routes.get("/status", response_description="How everything stands.")
    async def status() -> StatusAnswer:
        """How everything stands: overall, per probe on each target, per objective.

        The overall verdict has three values. UNKNOWN means that nothing can be said, and is never shown as good.
        """
        return StatusAnswer.model_validate(view.snapshot())

    return routes
