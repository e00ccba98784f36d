"""The control plane, for both vantages: topics and subscriptions that are ours, and nothing that is not.

What probes create carries labels; what exists is looked at before it is used or deleted. Between looking and deleting, somebody could
delete a topic and create another one of that name; the service has no conditional delete, so names must be ours alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import grpc
import grpc.aio

from prober.brokers import admin_messages as messages
from prober.brokers.base import SubscriptionSettings, TopicSettings
from prober.brokers.routing import routing
from prober.brokers.wire_errors import let_go, translated, was_cancelled_by_caller
from prober.errors import NotOurs, NotThere

TIMEOUT_S: Final = 30.0
"""Creating and deleting take seconds at times (documentation: up to five)."""

PAGE_SIZE: Final = 100


class ServiceAdmin:
    """The administration of one target over a channel that belongs to somebody else."""

    def __init__(self, channel: grpc.aio.Channel, timeout_s: float = TIMEOUT_S, page_size: int = PAGE_SIZE) -> None:
        self._channel = channel
        self._timeout_s = timeout_s
        self._page_size = page_size

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        """Creates a topic, or finds it there with these labels."""
        try:
            await self._ask(messages.CREATE_TOPIC, messages.topic_message(topic, settings), f"creating {topic}")
        except NotOurs:
            differences = messages.topic_differences(await self._topic(topic), settings)
            if differences:
                raise NotOurs(_differs(topic, differences)) from None

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        """Creates a subscription, or finds it there with these settings."""
        message = messages.subscription_message(subscription, settings)
        try:
            await self._ask(messages.CREATE_SUBSCRIPTION, message, f"creating {subscription}")
        except NotOurs:
            differences = messages.subscription_differences(await self._subscription(subscription), settings)
            if differences:
                raise NotOurs(_differs(subscription, differences)) from None

    async def delete(self, name: str, labels: Mapping[str, str]) -> bool:
        """Deletes what carries these labels; see the port."""
        _check_labels(labels)
        is_topic = messages.is_topic(name)
        try:
            found = await (self._topic(name) if is_topic else self._subscription(name))
            if not messages.carries(found, labels):
                return False
            deletion = messages.DELETE_TOPIC if is_topic else messages.DELETE_SUBSCRIPTION
            await self._ask(deletion, messages.named(deletion, name), f"deleting {name}")
        except NotThere:
            return False
        return True

    async def owned(self, project: str, labels: Mapping[str, str]) -> Sequence[str]:
        """What carries these labels, topics first; see the port."""
        _check_labels(labels)
        names: list[str] = []
        for method in (messages.LIST_TOPICS, messages.LIST_SUBSCRIPTIONS):
            token = ""
            while True:
                request = messages.list_request(method, project, self._page_size, token)
                page = await self._ask(method, request, f"listing what is in {project}")
                found, token = messages.listed(method, page)
                names += [one.name for one in found if messages.carries(one, labels)]
                if not token:
                    break
        return names

    async def reach(self, subscription: str) -> None:
        """Looks at a subscription; see the port."""
        await self._subscription(subscription)

    async def seek(self, subscription: str, to_time: float) -> None:
        """Seeks to a wall-clock time."""
        await self._ask(messages.SEEK, messages.seek_request(subscription, to_time), f"seeking {subscription}")

    async def _topic(self, topic: str) -> Any:
        return await self._ask(messages.GET_TOPIC, messages.named(messages.GET_TOPIC, topic), f"looking at {topic}")

    async def _subscription(self, subscription: str) -> Any:
        request = messages.named(messages.GET_SUBSCRIPTION, subscription)
        return await self._ask(messages.GET_SUBSCRIPTION, request, f"looking at {subscription}")

    async def _ask(self, method: messages.Method, request: Any, doing: str) -> Any:
        """One attempt at one call."""
        call = self._channel.unary_unary(method.path, messages.encode, method.response.FromString)
        metadata = routing(method.field, getattr(request, method.field))
        try:
            return await call(request, timeout=self._timeout_s, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise translated(error, doing) from error
        except grpc.aio.UsageError:  # the channel was closed before
            raise let_go(doing) from None
        except asyncio.CancelledError:
            if was_cancelled_by_caller():
                raise
            raise let_go(doing) from None


def _check_labels(labels: Mapping[str, str]) -> None:
    if not labels:
        raise ValueError("without a label everything would be ours")


def _differs(name: str, differences: Sequence[str]) -> str:
    return f"{name} exists, but not as asked for: {', '.join(differences)}; delete it or choose another name"
