"""The endpoint that messages are pushed to: who is let in, what is reported of each request, and how each is answered."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine

import httpx
import pytest

from prober.brokers.base import BrokerSession, PushConfig, PushOutcome, Received
from prober.brokers.endpoint import Endpoint
from prober.brokers.push import endpoint as endpoint_module
from prober.brokers.push.endpoint import PushEndpoint, TargetPushes
from prober.brokers.push.tokens import KeySet, NoKeys, SigningKeys, TokenVerifier
from prober.cli.check_runs import CheckRequest, run_checks
from prober.clock import wall_s
from prober.config import sections as push_config
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.embedded import pump
from prober.embedded.messages import Push
from prober.embedded.server import EmbeddedServer
from prober.embedded.signing import Signer
from prober.errors import ConfigError, NotSupported
from prober.probes.push import NO_KEYS
from prober.runs.result import RunResult
from prober.schedule.connections import PushReceivers
from tests.unit.brokers.push.test_endpoint import SUBSCRIPTION, wrapped
from tests.virtual_time import in_virtual_time

ACCOUNT = "push@project.iam.gserviceaccount.com"
WAIT_S = 10.0


class Heard:
    """A tap that keeps what it is reported, and says when there is more."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        self.sessions: list[tuple[BrokerSession, Received]] = []
        self._more = asyncio.Event()

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        self._tell("opened")

    def received(self, session: BrokerSession, received: Received) -> None:
        self.sessions.append((session, received))
        self._tell("received")

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        self._tell("unanswered")

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        raise AssertionError

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        self._tell("closed")

    def _tell(self, what: str) -> None:
        self.reported.append(what)
        self._more.set()

    async def until(self, last: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while last not in self.reported:
                self._more.clear()
                await self._more.wait()


class Room:
    """The endpoint with one target, a signer that it trusts, and a client."""

    def __init__(
        self, endpoint: PushEndpoint, counts: Counter[PushOutcome], verifier: TokenVerifier | None, signer: Signer
    ) -> None:
        self.counts, self.heard, self.signer = counts, Heard(), signer
        self.pushes: TargetPushes = endpoint.target("eu", endpoint.url, verifier, ACCOUNT, endpoint.url)
        self.config: PushConfig = self.pushes.config_of(SUBSCRIPTION)
        self.client = httpx.AsyncClient(timeout=WAIT_S)
        self.stop: Callable[[], None] = lambda: None

    def listen(self) -> None:
        self.stop = self.pushes.receive(SUBSCRIPTION, self.heard)

    async def post(self, body: bytes = b"", audience: str = "", authorization: str | None = None) -> httpx.Response:
        """With a right token unless something else is given."""
        token = await self.signer.token(ACCOUNT, audience or self.config.audience, wall_s())
        headers = {"Authorization": f"Bearer {token}" if authorization is None else authorization}
        return await self.client.post(self.config.endpoint, content=body or wrapped(), headers=headers)


def run(scenario: Callable[[Room], Coroutine[None, None, None]], keys: Callable[[], KeySet] | None = None) -> Counter[PushOutcome]:
    async def whole() -> Counter[PushOutcome]:
        counts, signer = Counter[PushOutcome](), Signer()
        known = KeySet(await signer.keys())
        async with PushEndpoint("127.0.0.1", 0, "okp-0", lambda outcome: counts.update([outcome])) as endpoint:
            verifier = TokenVerifier(SigningKeys(keys or (lambda: known)), endpoint.url, ACCOUNT)
            room = Room(endpoint, counts, verifier, signer)
            async with room.client:
                await scenario(room)
            return counts

    return asyncio.run(whole())


@pytest.mark.parametrize(("answer", "status"), [("ack", 204), ("nack", 500)])
def test_a_message_is_reported_and_answered_as_is_decided(answer: str, status: int) -> None:
    async def scenario(room: Room) -> None:
        room.listen()
        posting = asyncio.create_task(room.post())
        await room.heard.until("received")
        assert not posting.done()
        ((session, received),) = room.heard.sessions
        assert (received.message_id, received.data, session.subscriber) == ("17", b"hello", session.name)
        getattr(session, answer)(received)
        assert (await posting).status_code == status
        assert room.heard.reported == ["opened", "received", "closed"]
        assert room.config == PushConfig(f"{room.config.audience}/okp-0/eu/s", ACCOUNT, room.config.audience)

    assert run(scenario) == {PushOutcome.TAKEN: 1}


def test_a_request_that_is_given_up_was_refused() -> None:
    async def scenario(room: Room) -> None:
        room.listen()
        posting = asyncio.create_task(room.post())
        await room.heard.until("received")
        posting.cancel()
        await room.heard.until("closed")
        assert room.heard.reported == ["opened", "received", "unanswered", "closed"]

    run(scenario)


def test_a_request_that_nobody_ever_answers_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "HELD_MAX_S", 0.1)

    async def scenario(room: Room) -> None:
        room.listen()
        assert (await room.post()).status_code == 503
        assert room.heard.reported == ["opened", "received", "unanswered", "closed"]

    run(scenario)


def test_what_is_open_when_a_run_ends_is_refused_unreported() -> None:
    async def scenario(room: Room) -> None:
        room.listen()
        posting = asyncio.create_task(room.post())
        await room.heard.until("received")
        room.stop()
        assert (await posting).status_code == 503
        assert room.heard.reported == ["opened", "received"]

    assert run(scenario) == {PushOutcome.TAKEN: 1}


def test_what_is_left_over_from_a_run_is_taken_so_that_its_key_is_not_held_back() -> None:
    async def scenario(room: Room) -> None:
        room.listen()
        room.stop()
        assert (await room.post()).status_code == 204
        assert (await room.post(authorization="")).status_code == 401
        assert room.heard.reported == []

    assert run(scenario) == {PushOutcome.LEFT_OVER: 1, PushOutcome.TOKEN_MISSING: 1}


def test_who_is_not_pubsub_hears_401_and_nothing_else() -> None:
    async def scenario(room: Room) -> None:
        room.listen()
        for wrong in ("", "Bearer a.b.c", "Bearer e30.e30.e30"):
            answer = await room.post(authorization=wrong)
            assert (answer.status_code, answer.content, answer.headers["www-authenticate"]) == (401, b"", "Bearer")
        assert (await room.post(audience="https://other.example.com")).status_code == 401
        assert (await Room.post(_with(room, Signer()))).status_code == 401
        assert room.heard.reported == []

    assert run(scenario) == {
        PushOutcome.TOKEN_MISSING: 1,
        PushOutcome.TOKEN_MALFORMED: 2,
        PushOutcome.WRONG_AUDIENCE: 1,
        PushOutcome.TOKEN_FORGED: 1,
    }


def _with(room: Room, signer: Signer) -> Room:
    room.signer = signer
    return room


def test_without_keys_nobody_is_let_in_and_it_is_worth_trying_again() -> None:
    def none() -> KeySet:
        raise NoKeys("nobody answers")

    async def scenario(room: Room) -> None:
        room.listen()
        assert (await room.post()).status_code == 503

    assert run(scenario, none) == {PushOutcome.NO_KEYS: 1}


def test_bodies_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "BODY_BYTES_MAX", 1000)
    monkeypatch.setattr(endpoint_module, "ADMITTED_WITHIN_S", 0.5)

    async def scenario(room: Room) -> None:
        room.listen()
        assert (await room.post(b"x" * 1001)).status_code == 413
        assert (await room.post(b"x" * 1000)).status_code == 400
        assert await slowly(room) == b"HTTP/1.1 503 Service Unavailable\r\n"
        assert room.heard.reported == []

    assert run(scenario) == {PushOutcome.TOO_LARGE: 1, PushOutcome.UNREADABLE: 1, PushOutcome.TOO_SLOW: 1}


async def slowly(room: Room) -> bytes:
    """What a request is answered with whose body never comes."""
    url = httpx.URL(room.config.endpoint)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    token = await room.signer.token(ACCOUNT, room.config.audience, wall_s())
    head = f"POST {url.path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(WAIT_S):
        line = await reader.readline()
    writer.close()
    return line


def test_other_places_and_the_health_of_it() -> None:
    async def scenario(room: Room) -> None:
        base = room.config.audience
        assert (await room.client.get(f"{base}/healthz")).status_code == 200
        assert (await room.client.post(f"{base}/okp-0/us/s", content=wrapped())).status_code == 503
        assert (await room.client.post(f"{base}/", content=wrapped())).status_code == 404
        assert (await room.client.get(room.config.endpoint)).status_code == 405

    assert run(scenario) == {PushOutcome.NOBODY: 1}


def test_a_port_that_is_taken_is_reported_by_its_key() -> None:
    async def scenario() -> None:
        async with PushEndpoint("127.0.0.1", 0, "a") as one:
            port = int(one.url.rpartition(":")[2])
            with pytest.raises(ConfigError, match=r"name another with push\.port"):
                await PushEndpoint("127.0.0.1", port, "b").__aenter__()

    asyncio.run(scenario())


def test_a_server_without_tokens_on_this_machine_is_let_in() -> None:
    """Google's emulator signs none; here the embedded server plays an emulator."""

    async def scenario() -> RunResult:
        async with EmbeddedServer() as server:
            request = CheckRequest(probes=("push",), endpoint=server.address)
            (result,) = await run_checks(load(None, {}), request, {}, lambda _: None)
            return result

    result = in_virtual_time(scenario)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


def test_a_target_that_pushes_without_ordering_keys_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pump._wrapped

    def without_key(push: Push) -> tuple[dict[str, str], bytes]:
        headers, body = whole(push)
        document = json.loads(body)
        document["message"].pop("orderingKey", None)
        return headers, json.dumps(document).encode()

    monkeypatch.setattr(pump, "_wrapped", without_key)
    (result,) = asyncio.run(run_checks(load(None, {}), CheckRequest(probes=("push",)), {}, lambda _: None))
    assert (result.verdict, result.reason, result.unreachable) == (Verdict.UNKNOWN, NO_KEYS, False)


def test_a_target_that_cannot_reach_this_prober_is_unknown_with_the_reason() -> None:
    async def scenario() -> PushConfig:
        async with PushReceivers(push_config.PushSettings(), "a") as receivers:
            (target,) = load(None, {}).targets
            pushes = await receivers.of(target, Endpoint("emulator.test:8085", secure=False), None)
            return pushes.config_of(SUBSCRIPTION)

    with pytest.raises(NotSupported, match=r"push\.address is not set"):
        asyncio.run(scenario())
