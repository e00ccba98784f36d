"""Address of a target: an immutable value, parsed once from the user's input.

Three kinds of address exist. The global address and those of regions are Google's, encrypted, and need credentials. All others (Google's
emulator, the embedded server) use a plain connection without credentials, so that an attacker cannot obtain a token by impersonating an
emulator. Outside Google Cloud the global address has no ordering guarantee, because publishes may go to different regions (documentation,
"Service APIs overview"): use the address of a region.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from prober.errors import ConfigError

EMULATOR_VARIABLE: Final = "PUBSUB_EMULATOR_HOST"
GLOBAL_ADDRESS: Final = "pubsub.googleapis.com:443"
GOOGLE_CERTIFICATES: Final = "https://www.googleapis.com/oauth2/v1/certs"
"""Keys with which Google signs tokens."""

_GOOGLE_PORT: Final = 443
_PORT_MAX: Final = 65535
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_REGION = re.compile(r"[a-z]+(?:-[a-z]+)+[0-9]+")
_ZONE = re.compile(rf"({_REGION.pattern})-[a-f]")
_REGIONAL_HOST = re.compile(rf"(?:({_REGION.pattern})-pubsub|pubsub\.({_REGION.pattern})\.rep)\.googleapis\.com")
_GOOGLE_HOST = re.compile(r"([a-z0-9-]+\.)+googleapis\.com")
_HOST_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address, `HOST:PORT`, and whether the connection to it is encrypted and authenticated.

    `peer` is another endpoint of the same service, in another region, or None.
    """

    address: str
    secure: bool
    peer: Endpoint | None = None

    def __str__(self) -> str:
        return self.address

    @property
    def is_here(self) -> bool:
        """Whether the server at this address runs on this machine, so that it can reach a listener on loopback."""
        return self.address.rpartition(":")[0].strip("[]") in _LOOPBACK

    @property
    def region(self) -> str:
        """Region that receives publishes to this address; empty if the address does not name it.

        The global address goes to "a nearby available region", which may change (documentation, "Service APIs overview"), and the region of
        an address that is not Google's is unknown.
        """
        found = _REGIONAL_HOST.fullmatch(self.address.partition(":")[0]) if self.secure else None
        return found[1] or found[2] if found is not None else ""

    @property
    def is_one_region(self) -> bool:
        """Whether one region receives all publishes to this address; Google may reroute those to its global address.

        No field of a publish response names the region, so only the address proves it.
        """
        return bool(self.region) or not self.secure


def parse_endpoint(text: str) -> Endpoint:
    """Parse `global`, a region such as `europe-west1`, a Google host name, or `HOST:PORT`.

    Raises ConfigError for anything else.
    """
    text = text.strip()
    if text == "global":
        return Endpoint(GLOBAL_ADDRESS, secure=True)
    if _REGION.fullmatch(text):
        return Endpoint(f"{text}-{GLOBAL_ADDRESS}", secure=True)
    if zone := _ZONE.fullmatch(text):
        raise ConfigError(f"endpoint {text!r} is a zone: write its region, {zone[1]}")
    found = _HOST_PORT.fullmatch(text)
    if found is None and "://" in text:
        raise ConfigError(f"endpoint {text!r} is a URL: write HOST:PORT without {text.partition('//')[0]}//, global, or a region")
    if found is None:
        raise ConfigError(f"endpoint {text!r} is not an address: write global, a region such as europe-west1, or HOST:PORT")
    if _REGION.fullmatch(found["host"]):
        raise ConfigError(f"endpoint {text!r} is a region with a port: write {found['host']} alone")
    google = _GOOGLE_HOST.fullmatch(found["host"]) is not None
    if found["port"] is None and not google:
        raise ConfigError(f"endpoint {text!r} has no port: write HOST:PORT, global, or a region such as europe-west1")
    port = int(found["port"] or _GOOGLE_PORT)
    if not 0 < port <= _PORT_MAX:
        raise ConfigError(f"endpoint {text!r} has port {port}: it must be between 1 and {_PORT_MAX}")
    return Endpoint(f"{found['host']}:{port}", secure=google)


def local_endpoint(address: str, *, paired: bool = False) -> Endpoint:
    """Return a plain endpoint of a server on this machine; with `paired`, it is its own peer: a second connection."""
    endpoint = Endpoint(address, secure=False)
    return replace(endpoint, peer=endpoint) if paired else endpoint


def named_by(environment: Mapping[str, str], override: str = "") -> str:
    """Return the source that overrides the configured endpoint; empty if none does."""
    return "--endpoint" if override else EMULATOR_VARIABLE if environment.get(EMULATOR_VARIABLE) else ""


def resolve_endpoint(configured: str, environment: Mapping[str, str], override: str = "", peer: str = "") -> Endpoint:
    """Return the endpoint of the command line, else of PUBSUB_EMULATOR_HOST, else of the configuration.

    The variable always names an emulator: like in every Google client, the connection has no encryption and no credentials. `peer` is the
    configured peer, empty for none; an endpoint that overrides the configuration is its own peer. Raises ConfigError, which names the wrong
    source.
    """
    if override:
        named = parse_endpoint(override)
        return replace(named, peer=named) if peer else named
    if emulator := environment.get(EMULATOR_VARIABLE, ""):
        try:
            return local_endpoint(parse_endpoint(emulator).address, paired=bool(peer))
        except ConfigError as error:
            raise ConfigError(f"{EMULATOR_VARIABLE}: {error}") from error
    return replace(parse_endpoint(configured), peer=parse_endpoint(peer) if peer else None)
