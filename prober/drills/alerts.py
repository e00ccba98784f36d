"""What Prometheus and Alertmanager say about the alert of a drill."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, Self, TypeVar

import aiohttp

from prober.errors import ProberError

ALERT: Final = "PubsubProberDrillFinding"
"""The alert that a finding in a drill raises; it is in alerts/, and goes to the receiver of drills only."""
DRILL: Final = "drill"
FIRING: Final = "firing"
SUPPRESSED: Final = "suppressed"
ANSWER_MAX: Final = 16 << 20
"""Bytes of an answer: some ten thousand alerts."""
ANSWER_TIMEOUT_S: Final = 5.0

_T = TypeVar("_T")


class NoAnswer(ProberError):
    """Whom we asked did not answer, or said what nobody understands: what it knows is not known."""


class Sighting(Protocol):
    """Somebody who may know the alert of a drill."""

    async def sees(self, drill: str) -> str | None:
        """What is to be said about the alert if it is there, mostly nothing; None if it is not. Raises NoAnswer."""


def drill_of(alert: Mapping[str, Any]) -> str:
    """The drill that an alert is about, empty if it is about something else."""
    labels = alert["labels"]
    return str(labels.get(DRILL, "")) if labels.get("alertname") == ALERT else ""


class Conversation:
    """Asks over HTTP, one connection pool for all; to be closed."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_S))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ask(self, base: str, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """The JSON of an answer. Raises NoAnswer."""
        url = f"{base.rstrip('/')}{path}"
        try:
            async with self._session.get(url, params=parameters, allow_redirects=False) as response:
                if response.status != 200:
                    raise NoAnswer(f"{url} answered {response.status}")
                body = await response.content.read(ANSWER_MAX + 1)
                while not response.content.at_eof() and len(body) <= ANSWER_MAX:
                    body += await response.content.read(ANSWER_MAX + 1 - len(body))
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise NoAnswer(f"{base} does not answer: {str(error) or 'too slow'}") from error
        if len(body) > ANSWER_MAX:
            raise NoAnswer(f"{url} says more than anybody reads")
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"{url} did not answer in JSON") from error


class Prometheus:
    """Whether the alert of a drill fires there."""

    def __init__(self, conversation: Conversation, url: str) -> None:
        self._conversation, self._url = conversation, url

    async def sees(self, drill: str) -> str | None:
        """An empty note if it fires. Raises NoAnswer."""
        answer = await self._conversation.ask(self._url, "/api/v1/alerts")
        alerts = _understood(lambda: answer["data"]["alerts"], self._url)
        firing = _understood(lambda: [drill_of(alert) for alert in alerts if alert["state"] == FIRING], self._url)
        return "" if drill in firing else None

    async def missing_rule(self) -> str:
        """Why the alert cannot fire there, empty if it can. Raises NoAnswer."""
        answer = await self._conversation.ask(self._url, "/api/v1/rules", {"type": "alert"})
        groups = _understood(lambda: answer["data"]["groups"], self._url)
        named = _understood(lambda: {rule["name"] for group in groups for rule in group["rules"]}, self._url)
        return "" if ALERT in named else f"Prometheus has no rule {ALERT}; load those of alerts/"


class Alertmanager:
    """Whether the alert of a drill has arrived there."""

    def __init__(self, conversation: Conversation, url: str) -> None:
        self._conversation, self._url = conversation, url

    async def sees(self, drill: str) -> str | None:
        """A note if it is there: that it is held back, if it is. Raises NoAnswer."""
        answer = await self._conversation.ask(self._url, "/api/v2/alerts", {"filter": f'alertname="{ALERT}"'})
        states = _understood(lambda: [alert["status"]["state"] for alert in answer if drill_of(alert) == drill], self._url)
        if not states:
            return None
        return "held back there by a silence or an inhibition" if set(states) == {SUPPRESSED} else ""


def _understood(read: Callable[[], _T], url: str) -> _T:
    """What an answer says, read by somebody who expects a certain form. Raises NoAnswer for any other."""
    try:
        return read()
    except (AttributeError, KeyError, TypeError) as error:
        raise NoAnswer(f"{url} answered something else than expected") from error
