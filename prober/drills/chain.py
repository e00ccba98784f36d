"""The path of a drill's alert: Prometheus, Alertmanager, and the receiver of the prober, which Alertmanager pages.

Each station is a step: the alert was seen there or not. `concluded` derives the verdict of the drill from its steps.

The receiver is a small HTTP server. Prometheus may scrape it too, if no other server exposes the metrics:

    POST /pages    Alertmanager's webhook, version 4 (prometheus.io/docs/alerting/latest/configuration, "webhook_config")
    GET  /metrics  the metrics, if `expose` is given

It is separate from the API on purpose. Alertmanager has no token of the prober and needs none here, since a page can only end the wait of a
drill. The command `drill` has no API and uses the same receiver.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, Self, TypeAlias

import aiohttp
from aiohttp import web

from prober.clock import monotonic_s
from prober.config.sections import Drills
from prober.core.verdict import Verdict, worst
from prober.errors import ConfigError, ProberError
from prober.sinks.metrics import DrillMetrics

ALERT: Final = "PubsubProberDrillFinding"
"""Alert for findings in drills; alerts/ defines it, and only the receiver of drills gets it."""
DRILL: Final = "drill"
FIRING: Final = "firing"
SUPPRESSED: Final = "suppressed"
ANSWER_TIMEOUT_S: Final = 5.0

PAGES: Final = "/pages"
BODY_MAX: Final = 1 << 20
"""Maximum size of a page in bytes: some hundred alerts."""

Expose: TypeAlias = Callable[[str], Awaitable[tuple[str, bytes]]]
"""Function that returns the content type and body of a scrape, for its Accept header."""
LOOK_S: Final = 1.0
"""Time between two checks of the same station."""


class StepName(StrEnum):
    """Steps from a fault to its page, in this order."""

    FINDING = "finding"
    COUNTER = "counter"
    RULE = "rule"
    ALERTMANAGER = "alertmanager"
    RECEIVER = "receiver"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a drill.

    verdict   PASS: the signal was seen, or was absent as required. FAIL: the contrary. UNKNOWN: it could not be observed.
    took_s    seconds from the first injection of the fault to the signal; None if there was none.
    note      a remark in one line; empty for most passed steps.
    followed  False if the configuration names no address for the station. The step is then UNKNOWN, and does not count.
    """

    name: StepName
    verdict: Verdict
    took_s: float | None = None
    note: str = ""
    followed: bool = True


def concluded(steps: Sequence[Step]) -> tuple[Verdict, str]:
    """Return the verdict of the steps, and the reason if it is no PASS: the first step with this verdict, which caused the others."""
    followed = [step for step in steps if step.followed]
    verdict = worst(step.verdict for step in followed)
    if verdict is Verdict.PASS:
        return verdict, ""
    return verdict, next((f"{step.name}: {step.note}" for step in followed if step.verdict is verdict), "nothing was followed")


class NoAnswer(ProberError):
    """A station did not answer, or answered in an unknown form.

    Its state is unknown.
    """


class Sighting(Protocol):
    """A station that may show the alert of a drill."""

    async def sees(self, drill: str) -> str | None:
        """Return a remark if the station shows the alert, mostly an empty one; None if it does not.

        Raises NoAnswer.
        """


def drill_of(alert: Mapping[str, Any]) -> str:
    """Return the drill that an alert is about; empty for other alerts."""
    labels = alert["labels"]
    return str(labels.get(DRILL, "")) if labels.get("alertname") == ALERT else ""


class Conversation:
    """HTTP client for all stations, with one connection pool; to be closed."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_S))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ask(self, base: str, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """Return the JSON of an answer. Raises NoAnswer."""
        url = f"{base.rstrip('/')}{path}"
        try:
            async with self._session.get(url, params=parameters, allow_redirects=False) as response:
                if response.status != 200:
                    raise NoAnswer(f"{url} answered {response.status}")
                return json.loads(await response.read())
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise NoAnswer(f"{base} does not answer: {str(error) or 'too slow'}") from error
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"{url} did not answer in JSON") from error


class Prometheus:
    """Station that shows whether the alert of a drill fires in Prometheus."""

    def __init__(self, conversation: Conversation, url: str) -> None:
        self._conversation, self._url = conversation, url

    async def sees(self, drill: str) -> str | None:
        """Return an empty remark if the alert fires, None if not. Raises NoAnswer."""
        answer = await self._conversation.ask(self._url, "/api/v1/alerts")
        with _understood(self._url):
            firing = [drill_of(alert) for alert in answer["data"]["alerts"] if alert["state"] == FIRING]
        return "" if drill in firing else None

    async def missing_rule(self) -> str:
        """Return the reason why the alert cannot fire; empty if it can. Raises NoAnswer."""
        answer = await self._conversation.ask(self._url, "/api/v1/rules", {"type": "alert"})
        with _understood(self._url):
            named = {rule["name"] for group in answer["data"]["groups"] for rule in group["rules"]}
        return "" if ALERT in named else f"Prometheus has no rule {ALERT}; load those of alerts/"


class Alertmanager:
    """Station that shows whether the alert of a drill has reached Alertmanager."""

    def __init__(self, conversation: Conversation, url: str) -> None:
        self._conversation, self._url = conversation, url

    async def sees(self, drill: str) -> str | None:
        """Return a remark if the alert is present, which states a suppression; None if it is not. Raises NoAnswer."""
        answer = await self._conversation.ask(self._url, "/api/v2/alerts", {"filter": f'alertname="{ALERT}"'})
        with _understood(self._url):
            states = [alert["status"]["state"] for alert in answer if drill_of(alert) == drill]
        if not states:
            return None
        return "held back there by a silence or an inhibition" if set(states) == {SUPPRESSED} else ""


@contextmanager
def _understood(url: str) -> Iterator[None]:
    """Raise NoAnswer if an answer has another form than the code inside expects."""
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        raise NoAnswer(f"{url} answered in a form that the prober does not know") from error


class Receiver:
    """HTTP server for pages. It records for each expected drill only whether a page has arrived."""

    def __init__(self, host: str, port: int, metrics: Expose | None = None) -> None:
        self.address = ""
        self._host, self._port, self._metrics = host, port, metrics
        self._paged: dict[str, bool] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Start to listen; raise ConfigError if the address cannot be used."""
        application = web.Application(client_max_size=BODY_MAX)
        application.add_routes([web.post(PAGES, self._page)])
        if self._metrics is not None:
            application.add_routes([web.get("/metrics", self._scraped)])
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self.stop()
            why = os.strerror(error.errno) if error.errno else str(error)
            raise ConfigError(f"cannot listen on {self._host}:{self._port}: {why}; name another with drills.port") from error
        host, port = self._runner.addresses[0][:2]
        self.address = f"{host}:{port}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    def expect(self, drill: str) -> None:
        """Expect pages about a drill from now on. Earlier pages are discarded, and pages about other drills are ignored."""
        self._paged[drill] = False

    async def sees(self, drill: str) -> str | None:
        """Return an empty remark if a page about the drill has arrived since `expect`, None if not."""
        return "" if self._paged.get(drill) else None

    async def _page(self, request: web.Request) -> web.Response:
        try:
            document = await request.json()
            alerts = [alert for alert in document["alerts"] if alert["status"] == FIRING]
            drills = [drill_of(alert) for alert in alerts]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return _problem(400, "this is no page of Alertmanager's webhook, version 4")
        for drill in self._paged.keys() & set(drills):
            self._paged[drill] = True
        return web.json_response({"alerts": len(alerts)})

    async def _scraped(self, request: web.Request) -> web.Response:
        assert self._metrics is not None  # otherwise the route does not exist
        content_type, body = await self._metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _problem(status: int, detail: str) -> web.Response:
    document: dict[str, Any] = {"type": "about:blank", "status": status, "detail": detail}
    return web.json_response(document, status=status, content_type="application/problem+json")


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits of a step.

    `deadline_s` is for required signals, `silence_s` for forbidden ones.
    """

    deadline_s: float
    silence_s: float
    look_s: float = LOOK_S
    clock: Callable[[], float] = monotonic_s


@dataclass(frozen=True, slots=True)
class Chain:
    """Stations that drills check; None: not configured."""

    metrics: DrillMetrics
    patience: Patience
    prometheus: Prometheus | None = None
    alertmanager: Alertmanager | None = None
    receiver: Receiver | None = None


@asynccontextmanager
async def open_chain(settings: Drills, metrics: DrillMetrics, expose: Expose | None = None) -> AsyncIterator[Chain]:
    """Yield the chain of a configuration. With `expose`, the receiver also serves the metrics. Raises ConfigError if its port is taken."""
    async with AsyncExitStack() as resources:
        conversation = await resources.enter_async_context(Conversation())
        receiver = None if settings.port is None else Receiver(settings.host, settings.port, expose)
        if receiver is not None:
            resources.push_async_callback(receiver.stop)
            await receiver.start()
        yield Chain(
            metrics,
            Patience(settings.deadline.total_seconds(), settings.silence.total_seconds()),
            None if settings.prometheus is None else Prometheus(conversation, settings.prometheus),
            None if settings.alertmanager is None else Alertmanager(conversation, settings.alertmanager),
            receiver,
        )
