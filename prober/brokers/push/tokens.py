"""Whether a push request comes from Pub/Sub: the token that Google signs for the push configuration of a subscription (OpenID Connect).

What Google says to verify (documentation, "Authentication for push subscriptions"): the signature by a key of Google's, the audience,
the issuer, the time, and that it is of the service account that the subscription was made with. Signature and time are verified by
google-auth. Only RS256 is taken, which is what Google signs with; an unsigned token is one of another algorithm.
"""

from __future__ import annotations

from typing import Any, Final

from google.auth import exceptions, jwt

from prober.brokers.base import PushOutcome
from prober.brokers.push.keys import Keys
from prober.clock import wall_s

ALGORITHM: Final = "RS256"
ISSUERS: Final = ("https://accounts.google.com", "accounts.google.com")
CLOCKS_APART_S: Final = 10
"""By so much the clock of Google may differ from ours."""

_jwt: Final[Any] = jwt  # typed in part


class TokenVerifier:
    """Knows the tokens of one service account for one audience."""

    def __init__(self, keys: Keys, audience: str, service_account: str) -> None:
        self._keys, self._audience, self._service_account = keys, audience, service_account

    async def refusal(self, authorization: str) -> PushOutcome | None:
        """Why a request with this Authorization header is refused; None if it is from Pub/Sub. Raises NoKeys."""
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
