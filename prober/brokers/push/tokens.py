"""Verification of push requests by the token that Google signs for the push configuration of a subscription (OpenID Connect).

Google requires these checks (documentation, "Authentication for push subscriptions"): the signature by a key of Google's, the audience, the
issuer, the time, and the service account of the subscription. google-auth verifies signature and time. Only RS256 is accepted, with which
Google signs; a token with another algorithm counts as unsigned.

The keys are read from a file or fetched, kept for an hour, and read again when a token names a new key. Three forms are supported: a JSON
object of key ids and X.509 certificates or public keys, as Google publishes it; a JSON Web Key Set (RFC 7517), as Google publishes it, too;
and PEM, whose keys have no ids.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final

import google.auth.exceptions
import google.auth.transport.requests
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from google.auth import exceptions, jwt

from prober.brokers.base import PushOutcome
from prober.clock import monotonic_s, wall_s
from prober.errors import ConfigError

KEPT_S: Final = 3600.0
AGAIN_AFTER_S: Final = 60.0
"""Shortest time between two lookups caused by tokens with unknown keys, in seconds."""
FETCH_TIMEOUT_S: Final = 10.0
BYTES_MAX: Final = 1 << 20

_PEM: Final = re.compile(r"-----BEGIN (PUBLIC KEY|CERTIFICATE)-----.*?-----END \1-----\n?", re.DOTALL)

_log = logging.getLogger(__name__)
ALGORITHM: Final = "RS256"
ISSUERS: Final = ("https://accounts.google.com", "accounts.google.com")
CLOCKS_APART_S: Final = 10
"""Largest difference between Google's clock and the prober's, in seconds."""
_jwt: Final[Any] = jwt  # typed in part


class NoKeys(Exception):
    """No keys are available, so no token can be verified; the text is the reason."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Public keys or certificates in PEM: by their ids, and without ids."""

    by_id: Mapping[str, str] = field(default_factory=dict)
    unnamed: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.by_id or self.unnamed)

    def candidates(self, key_id: object) -> Sequence[str]:
        """Return the keys that may have signed a token which names a key."""
        return [self.by_id[key_id]] if isinstance(key_id, str) and key_id in self.by_id else self.unnamed


class SigningKeys:
    """Keys read by `load` in a thread; `load` raises NoKeys."""

    def __init__(self, load: Callable[[], KeySet]) -> None:
        self._load = load
        self._known = KeySet()
        self._look_again_t = self._old_t = -inf
        self._looking: asyncio.Task[None] | None = None

    async def candidates(self, key_id: object) -> Sequence[str]:
        """Return the keys that may have signed a token which names a key. Raises NoKeys if none have been read.

        A cancelled caller leaves the download to the other waiters.
        """
        found, now = self._known.candidates(key_id), monotonic_s()
        if now > (self._old_t if found else self._look_again_t):
            self._look_again_t, self._old_t = now + AGAIN_AFTER_S, now + KEPT_S
            self._looking = asyncio.create_task(self._look(), name="keys of push tokens")
        if not found and self._looking is not None:
            await asyncio.shield(self._looking)
            found = self._known.candidates(key_id)
        if not self._known:
            raise NoKeys("no keys to verify tokens with could be read")
        return found

    async def _look(self) -> None:
        """Read the keys; keep the known ones if that fails."""
        try:
            self._known = await asyncio.to_thread(self._load)
        except NoKeys as error:
            _log.warning("%s", error)


def read_keys(place: str) -> KeySet:
    """Return the keys in a file, or at an address that starts with https://. Raises NoKeys."""
    try:
        text = _fetched(place) if place.startswith("https://") else Path(place).read_text(encoding="utf-8")
        return parse_keys(text)
    except (OSError, ValueError, google.auth.exceptions.TransportError) as error:
        raise NoKeys(f"no keys to verify tokens with: {place}: {' '.join(str(error).split())}") from error


def require_keys(path: str) -> None:
    """Raise ConfigError if a file contains no keys. Addresses are read when they are needed."""
    if not path.startswith("https://"):
        try:
            read_keys(path)
        except NoKeys as error:
            raise ConfigError(f"{error}; name a file of public keys, or an https address, with push.keys") from error


def parse_keys(text: str) -> KeySet:
    """Parse any of the three forms. Raises ValueError for anything else."""
    if text.lstrip().startswith("{"):
        document = json.loads(text)
        web_keys = document.get("keys")
        found = KeySet(_of_web_keys(web_keys) if isinstance(web_keys, list) else document)
    else:
        found = KeySet(unnamed=[each.group() for each in _PEM.finditer(text)])
    if not found or not all(map(_is_key, (*found.by_id.values(), *found.unnamed))):
        raise ValueError("holds no public keys or certificates, or something else beside them")
    return found


def _is_key(pem: object) -> bool:
    return isinstance(pem, str) and _PEM.search(pem) is not None


def _of_web_keys(keys: Sequence[Any]) -> Mapping[str, str]:
    return {key["kid"]: _pem(key) for key in keys if isinstance(key, dict) and _signs(key)}


def _signs(key: Mapping[str, Any]) -> bool:
    parts = all(isinstance(key.get(name), str) for name in ("kid", "n", "e"))
    return parts and key.get("kty") == "RSA" and key.get("use", "sig") == "sig"


def _pem(key: Mapping[str, Any]) -> str:
    public = RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _fetched(address: str) -> str:
    # google-auth is typed in part; this is not.
    request: Any = google.auth.transport.requests.Request()
    response = request(address, method="GET", timeout=FETCH_TIMEOUT_S)
    if response.status != 200:
        raise ValueError(f"answers {response.status}")
    if len(response.data) > BYTES_MAX:
        raise ValueError(f"is longer than {BYTES_MAX} bytes")
    return str(response.data, "utf-8")


class TokenVerifier:
    """Verifies the tokens of one service account for one audience."""

    def __init__(self, keys: SigningKeys, audience: str, service_account: str) -> None:
        self._keys, self._audience, self._service_account = keys, audience, service_account

    async def refusal(self, authorization: str) -> PushOutcome | None:
        """Return the reason to refuse a request with this Authorization header; None if Pub/Sub sent it. Raises NoKeys."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return PushOutcome.TOKEN_MISSING
        token = token.strip()
        try:
            header, unproven = _jwt.decode_header(token), _jwt.decode(token, verify=False)
        except (ValueError, RecursionError):
            return PushOutcome.TOKEN_MALFORMED
        if not all(isinstance(unproven.get(name), int | float) for name in ("iat", "exp")):
            return PushOutcome.TOKEN_MALFORMED
        if header.get("alg") != ALGORITHM:
            return PushOutcome.TOKEN_UNSIGNED
        certificates = await self._keys.candidates(header.get("kid"))
        return self._refusal_of(token, certificates) if certificates else PushOutcome.TOKEN_OF_UNKNOWN_KEY

    def _refusal_of(self, token: str, certificates: object) -> PushOutcome | None:
        try:
            claims = _jwt.decode(token, certs=certificates, clock_skew_in_seconds=CLOCKS_APART_S)
        except exceptions.InvalidValue:
            early = _jwt.decode(token, verify=False)["iat"] > wall_s()
            return PushOutcome.TOKEN_EARLY if early else PushOutcome.TOKEN_EXPIRED
        except ValueError:
            return PushOutcome.TOKEN_FORGED
        if claims.get("iss") not in ISSUERS:
            return PushOutcome.WRONG_ISSUER
        if claims.get("aud") != self._audience:
            return PushOutcome.WRONG_AUDIENCE
        if claims.get("email") != self._service_account or claims.get("email_verified") is not True:
            return PushOutcome.WRONG_ACCOUNT
        return None
