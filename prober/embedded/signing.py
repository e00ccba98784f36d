"""Signing of push tokens, as Google signs them, with a key of the server that is created at first use."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from google.auth import crypt, jwt

_KEY_ID: Final = "embedded"
_ISSUER: Final = "https://accounts.google.com"
_VALID_S: Final = 3600
_SIGNED_AGAIN_AFTER_S: Final = 600.0
_BITS: Final = 2048
# google-auth is typed in part.
_crypt: Final[Any] = crypt
_jwt: Final[Any] = jwt


class Signer:
    """One key, and recently signed tokens."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, str], tuple[float, str]] = {}

    async def keys(self) -> dict[str, str]:
        """Return the public key in PEM, by its id."""
        key = await asyncio.to_thread(lambda: self._private.public_key())
        return {_KEY_ID: key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()}

    async def token(self, account: str, audience: str, now: float) -> str:
        """Return a signed token of a service account for an audience; `now` in seconds since the epoch."""
        signed_at, token = self._tokens.get((account, audience), (-_SIGNED_AGAIN_AFTER_S, ""))
        if now - signed_at < _SIGNED_AGAIN_AFTER_S:
            return token
        token = await asyncio.to_thread(self._sign, account, audience, int(now))
        self._tokens = {known: one for known, one in self._tokens.items() if now - one[0] < _SIGNED_AGAIN_AFTER_S}
        self._tokens[account, audience] = (now, token)
        return token

    @cached_property
    def _private(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(65537, _BITS)

    def _sign(self, account: str, audience: str, now: int) -> str:
        key = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        claims = {
            "iss": _ISSUER,
            "aud": audience,
            "sub": account,
            "email": account,
            "email_verified": True,
            "iat": now,
            "exp": now + _VALID_S,
        }
        signer = _crypt.RSASigner.from_string(key.decode(), _KEY_ID)
        return bytes(_jwt.encode(signer, claims)).decode()
