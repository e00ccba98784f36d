"""Whose pushes are let in: a token of Google's, for us, of our account, signed, in time; everything else is refused by its reason."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID
from google.auth import crypt, jwt

from prober.brokers.base import PushOutcome
from prober.brokers.push import tokens as keys_module
from prober.brokers.push.tokens import (
    AGAIN_AFTER_S,
    CLOCKS_APART_S,
    KEPT_S,
    KeySet,
    NoKeys,
    SigningKeys,
    TokenVerifier,
    read_keys,
    require_keys,
)
from prober.clock import wall_s
from prober.embedded.signing import Signer
from prober.errors import ConfigError

AUDIENCE, ACCOUNT = "https://push.example.com", "push@project.iam.gserviceaccount.com"
_crypt: Any = crypt
_jwt: Any = jwt


@cache
def key(_name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def public_pem(name: str) -> str:
    return key(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def token(by: str = "google", key_id: str | None = "k1", **different: object) -> str:
    """A right token, but for what is said; what is None is left out."""
    now = int(wall_s())
    claims = {"iss": "https://accounts.google.com", "aud": AUDIENCE, "email": ACCOUNT, "email_verified": True}
    claims |= {"iat": now, "exp": now + 3600} | different
    private = key(by).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    kept = {name: value for name, value in claims.items() if value is not None}
    return str(_jwt.encode(_crypt.RSASigner.from_string(private, key_id), kept), "ascii")


def with_header(text: str, **header: object) -> str:
    """The same token with another header, its signature as it was."""
    written = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    return ".".join((written, *text.split(".")[1:]))


def refusal(authorization: str, known: KeySet | None = None) -> PushOutcome | None:
    known = known or KeySet({"k1": public_pem("google")})

    async def asked() -> PushOutcome | None:
        return await TokenVerifier(SigningKeys(lambda: known), AUDIENCE, ACCOUNT).refusal(authorization)

    return asyncio.run(asked())


HOUR_AGO = int(wall_s()) - 3600


TOKENS: dict[str, tuple[Callable[[], str], PushOutcome | None]] = {
    "right": (lambda: f"Bearer {token()}", None),
    "small letters": (lambda: f"bearer {token()}", None),
    "the old issuer": (lambda: f"Bearer {token(iss='accounts.google.com')}", None),
    "expired within the error of clocks": (lambda: f"Bearer {token(exp=int(wall_s()) - CLOCKS_APART_S // 2)}", None),
    "none": (lambda: "", PushOutcome.TOKEN_MISSING),
    "no token": (lambda: "Bearer", PushOutcome.TOKEN_MISSING),
    "another scheme": (lambda: f"Basic {token()}", PushOutcome.TOKEN_MISSING),
    "two parts": (lambda: "Bearer a.b", PushOutcome.TOKEN_MALFORMED),
    "no JSON": (lambda: "Bearer a.b.c", PushOutcome.TOKEN_MALFORMED),
    "lists": (lambda: "Bearer W10.W10.W10", PushOutcome.TOKEN_MALFORMED),
    "deep": (lambda: f"Bearer {base64.urlsafe_b64encode(b'[' * 30000).decode()}.e30.e30", PushOutcome.TOKEN_MALFORMED),
    "no end": (lambda: f"Bearer {token(exp=None)}", PushOutcome.TOKEN_MALFORMED),
    "no time": (lambda: f"Bearer {token(exp='never')}", PushOutcome.TOKEN_MALFORMED),
    "unsigned": (lambda: f"Bearer {with_header(token(), alg='none')}", PushOutcome.TOKEN_UNSIGNED),
    "a shared secret": (lambda: f"Bearer {with_header(token(), alg='HS256', kid='k1')}", PushOutcome.TOKEN_UNSIGNED),
    "no algorithm": (lambda: f"Bearer {with_header(token(), kid='k1')}", PushOutcome.TOKEN_UNSIGNED),
    "another key": (lambda: f"Bearer {token(key_id='k2')}", PushOutcome.TOKEN_OF_UNKNOWN_KEY),
    "no key": (lambda: f"Bearer {token(key_id=None)}", PushOutcome.TOKEN_OF_UNKNOWN_KEY),
    "a list of keys": (lambda: f"Bearer {with_header(token(), alg='RS256', kid=['k1'])}", PushOutcome.TOKEN_OF_UNKNOWN_KEY),
    "signed by another": (lambda: f"Bearer {token(by='somebody')}", PushOutcome.TOKEN_FORGED),
    "another signature": (lambda: f"Bearer {token()[:-8]}AAAAAAAA", PushOutcome.TOKEN_FORGED),
    "expired": (lambda: f"Bearer {token(iat=HOUR_AGO - 60, exp=HOUR_AGO)}", PushOutcome.TOKEN_EXPIRED),
    "of tomorrow": (lambda: f"Bearer {token(iat=HOUR_AGO + 7200, exp=HOUR_AGO + 9000)}", PushOutcome.TOKEN_EARLY),
    "another issuer": (lambda: f"Bearer {token(iss='https://example.com')}", PushOutcome.WRONG_ISSUER),
    "another audience": (lambda: f"Bearer {token(aud='https://other.example.com')}", PushOutcome.WRONG_AUDIENCE),
    "several audiences": (lambda: f"Bearer {token(aud=[AUDIENCE])}", PushOutcome.WRONG_AUDIENCE),
    "another account": (lambda: f"Bearer {token(email='other@project.iam.gserviceaccount.com')}", PushOutcome.WRONG_ACCOUNT),
    "not verified": (lambda: f"Bearer {token(email_verified=False)}", PushOutcome.WRONG_ACCOUNT),
    "verified in words": (lambda: f"Bearer {token(email_verified='true')}", PushOutcome.WRONG_ACCOUNT),
}


@pytest.mark.parametrize(("authorization", "outcome"), TOKENS.values(), ids=TOKENS)
def test_a_token(authorization: Callable[[], str], outcome: PushOutcome | None) -> None:
    assert refusal(authorization()) is outcome


def test_the_embedded_server_signs_as_google_does() -> None:
    async def asked() -> PushOutcome | None:
        signer = Signer()
        known = KeySet(await signer.keys())
        signed = await signer.token(ACCOUNT, AUDIENCE, wall_s())
        assert await signer.token(ACCOUNT, AUDIENCE, wall_s()) == signed
        return await TokenVerifier(SigningKeys(lambda: known), AUDIENCE, ACCOUNT).refusal(f"Bearer {signed}")

    assert asyncio.run(asked()) is None


# --- keys --------------------------------------------------------------------------------------------------------------------


def certificate() -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "federated-signon.example.com")])
    now = datetime.fromtimestamp(wall_s(), UTC)
    builder = x509.CertificateBuilder(name, name, key("google").public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(key("google"), SHA256()).public_bytes(Encoding.PEM).decode()


def web_keys() -> str:
    numbers = key("google").public_key().public_numbers()

    def text(number: int) -> str:
        return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8)).decode().rstrip("=")

    right = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k1", "n": text(numbers.n), "e": text(numbers.e)}
    return json.dumps({"keys": [right, {"kty": "EC", "kid": "k2"}, right | {"kid": "k3", "use": "enc"}]})


@pytest.mark.parametrize(
    "written",
    [
        lambda: json.dumps({"k0": public_pem("somebody"), "k1": certificate()}),
        web_keys,
        lambda: public_pem("somebody") + certificate(),
    ],
    ids=["as Google publishes them", "JSON Web Key Set", "PEM"],
)
def test_keys_are_read_in_every_form(tmp_path: Path, written: Any) -> None:
    place = tmp_path / "keys"
    place.write_text(written(), encoding="utf-8")
    require_keys(str(place))
    assert refusal(f"Bearer {token()}", read_keys(str(place))) is None
    assert refusal(f"Bearer {token(by='forger')}", read_keys(str(place))) is PushOutcome.TOKEN_FORGED


@pytest.mark.parametrize(
    "written",
    ["", "{", "{}", '{"keys": []}', '{"k1": "no key"}', '{"k1": 1}', "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----"],
)
def test_what_holds_no_keys_is_refused(tmp_path: Path, written: str) -> None:
    place = tmp_path / "keys"
    place.write_text(written, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"name a file of public keys, or an https address, with push\.keys"):
        require_keys(str(place))


def test_a_file_that_is_not_there_is_reported_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing-here"):
        require_keys(str(tmp_path / "nothing-here"))


class Place:
    """Where keys are, at a time that a test decides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.read = 0.0, 0
        self.keys: KeySet | None = KeySet({"k1": "pem"})
        monkeypatch.setattr(keys_module, "monotonic_s", lambda: self.now)

    def load(self) -> KeySet:
        self.read += 1
        if self.keys is None:
            raise NoKeys("nobody answers")
        return self.keys


def test_keys_are_kept_and_looked_for_again_when_a_token_names_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(monkeypatch)

    async def scenario() -> None:
        keys = SigningKeys(place.load)
        assert await keys.candidates("k1") == ["pem"]
        assert await keys.candidates("k1") == ["pem"]
        assert await keys.candidates("k2") == ()
        assert place.read == 1, "whoever names keys that there are not has them looked for no more often than that"
        place.now, place.keys = AGAIN_AFTER_S + 1, KeySet({"k2": "new"})
        assert await keys.candidates("k2") == ["new"]
        assert place.read == 2
        place.now, place.keys = place.now + KEPT_S + 1, None
        assert await keys.candidates("k2") == ["new"], "what is known stays known if it cannot be read now"

    asyncio.run(scenario())


def test_without_any_key_nothing_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(monkeypatch)
    place.keys = None

    async def scenario() -> None:
        keys = SigningKeys(place.load)
        for _ in range(2):
            with pytest.raises(NoKeys):
                await keys.candidates("k1")
        assert place.read == 1

    asyncio.run(scenario())
