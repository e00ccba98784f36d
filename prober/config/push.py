"""The section `push`: the endpoint that messages are pushed to, and which targets reach it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from prober.brokers.endpoint import GOOGLE_CERTIFICATES, parse_endpoint
from prober.config.values import EMBEDDED, Email, Host, HttpUrl, Port, Section, Written
from prober.errors import ConfigError


class Push(Section):
    """The endpoint that the probe `push` has messages pushed to."""

    host: Host = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] = 0
    """0 takes any free port."""
    address: HttpUrl | None = None
    """The URL by which targets that are not on this machine reach the endpoint. Without it the probe does not run there."""
    service_account: Email | None = None
    """The service account whose tokens Google signs for pushes. Requests without such a token are refused."""
    audience: str = ""
    """Whom the tokens are meant for. By default `address`."""
    keys: Annotated[str, Written("path or URL")] = GOOGLE_CERTIFICATES
    """The keys that tokens are signed with: an https address, or a file in PEM, as JSON Web Key Set, or as Google publishes them."""


def is_here(endpoint: Any) -> bool:
    """Whether what a target has as its endpoint is on this machine, and so reaches what listens on loopback. One that is wrong is told
    elsewhere.
    """
    try:
        return endpoint == EMBEDDED or (isinstance(endpoint, str) and parse_endpoint(endpoint).is_here)
    except ConfigError:
        return True
