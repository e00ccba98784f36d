"""Where a target is: a value, made once from what the user wrote, and never changed.

Three kinds of address exist. The global one and those of regions are Google's, encrypted, and need credentials. Everything else (Google's
emulator, the embedded server) is on a plain connection and gets no credentials, so that an attacker cannot obtain a token by taking the
place of an emulator. Outside Google Cloud the global address has no ordering guarantee, because publishes may go to different regions
(documentation, "Service APIs overview"): use a region's.
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
"""The keys that Google signs tokens with."""

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

    `peer` is another endpoint of the same service, in another region, if one is named.
    """

    address: str
    secure: bool
    peer: Endpoint | None = None

    def __str__(self) -> str:
        return self.address

    @property
    def is_here(self) -> bool:
        """Whether what answers there is on this machine, so that it can reach what listens on loopback."""
        return self.address.rpartition(":")[0].strip("[]") in _LOOPBACK

    @property
    def region(self) -> str:
        """The region that publishes to this address are received in, empty where the address does not say.

        The global address goes to "a nearby available region", which may change (documentation, "Service APIs overview"), and the region
        behind an address that is not Google's is unknown.
        """
        found = _REGIONAL_HOST.fullmatch(self.address.partition(":")[0]) if self.secure else None
        return found[1] or found[2] if found is not None else ""

    @property
    def is_one_region(self) -> bool:
        """Whether all publishes to this address are received in one region: those to Google's global address may be rerouted.

        No field of a publish response names the region, so only the address proves it.
        """
        return bool(self.region) or not self.secure


def parse_endpoint(text: str) -> Endpoint:
    """Reads `global`, a region such as `europe-west1`, one of Google's host names, or `HOST:PORT`; anything else is a ConfigError."""
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
    """A plain one that was started here; if it is to have a peer, it is its own: a second connection to the same server."""
    endpoint = Endpoint(address, secure=False)
    return replace(endpoint, peer=endpoint) if paired else endpoint


def named_by(environment: Mapping[str, str], override: str = "") -> str:
    """Which place wins over the configuration as the name of an endpoint; empty if none does."""
    return "--endpoint" if override else EMULATOR_VARIABLE if environment.get(EMULATOR_VARIABLE) else ""


def resolve_endpoint(configured: str, environment: Mapping[str, str], override: str = "", peer: str = "") -> Endpoint:
    """Which of the places that may name an endpoint wins: the command line, then PUBSUB_EMULATOR_HOST, then the configuration.

    What the variable names is an emulator whatever it is called: like every Google client, it is reached without encryption and
    without credentials. `peer` is the configured one, empty if there is none; what wins over the configuration is its own peer.
    Raises ConfigError with the place that is wrong.
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
