"""What the runs of a site use: a topic and a subscription that this process made and nobody else uses.

Two probers can never take each other's messages, and a prober that was killed leaves nothing behind that could hold up its successor.
What is left behind lies around instead. So they are made anew every few hours, once nothing is owed on the old ones;
what carries our label and was made much longer ago belongs to nobody who is still alive, and is swept away.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from secrets import token_hex
from typing import Final, NamedTuple

from prober.brokers.base import Admin, AdminOperation, SubscriptionSettings, TopicSettings
from prober.clock import monotonic_s, wall_s
from prober.errors import BrokerError, BrokerUnavailable, NotOurs, NotThere
from prober.probes.context import Resources
from prober.runs.backlog import BacklogTracker
from prober.runs.site import Target

OURS: Final = {"managed-by": "ordering-keys-prober"}
"""The label of everything that we create; nothing without it is ever deleted."""

RENEWED_AFTER_S: Final = 6 * 3600.0
RENEWED_AT_LATEST_S: Final = 18 * 3600.0
ABANDONED_AFTER_S: Final = 24 * 3600.0
"""What is so old nobody uses any more, however its runs ended: it was renewed long before."""

Administered = Callable[[AdminOperation, float], None]
"""Told how long each administration call took that succeeded, in seconds."""

_CHANGING: Final = "-([0-9a-f]{8})-[0-9a-f]{6}"
_NAME: Final = re.compile(rf"projects/[^/]+/(?:topics|subscriptions)/okp-.*{_CHANGING}")
_SHORT_NAME: Final = re.compile(rf"(okp-.*){_CHANGING}")


class Provisioner:
    """Makes, renews and deletes the topics and subscriptions of a site; knows what is outstanding there. Used by one run at a time."""

    def __init__(
        self,
        target: Target,
        name: str,
        *,
        lasting: bool,
        administered: Administered = lambda _operation, _latency_s: None,
        now: Callable[[], float] = wall_s,
    ) -> None:
        """`name`: what the names of topics and subscriptions begin with, after `okp-`. One that does not last is deleted after a run."""
        self.name = f"okp-{name}"
        self.backlog_tracker = BacklogTracker(target.rules.delivery_deadline_s)
        self._target, self._lasting, self._administered, self._now = target, lasting, administered, now
        self._left: list[Resources] = []
        self._move()

    @asynccontextmanager
    async def prepared(self, admin: Admin) -> AsyncIterator[None]:
        """They exist, and belong to us, from here on. Raises BrokerError."""
        try:
            if not self._there:
                await self._look(admin)
            await self._delete(admin, self._left)
            yield
        except (NotThere, NotOurs):
            self._move()
            raise
        finally:
            if not self._lasting:
                await self.leave(admin)

    def run_ended(self, *, passed: bool) -> None:
        """After a run that did not pass they are looked at again. Old ones are left for new ones as soon as nothing is owed there,
        very old ones in any case: others would take them for abandoned.
        """
        self._there &= passed
        age_s = self._now() - self._made_at
        settled = passed and not self.backlog_tracker.backlog(monotonic_s()).undelivered
        if age_s > RENEWED_AT_LATEST_S or (settled and age_s > RENEWED_AFTER_S):
            self._left.append(self.resources)
            self._move()

    async def leave(self, admin: Admin) -> None:
        """Deletes everything that was made here. Raises nothing: what cannot be deleted now is swept later."""
        await self._delete(admin, [*self._left, self.resources])

    def _move(self) -> None:
        self._made_at = self._now()
        name = f"{self.name}-{int(self._made_at):08x}-{token_hex(3)}"
        project = f"projects/{self._target.project}"
        self.resources = Resources(
            f"{project}/topics/{name}",
            f"{project}/subscriptions/{name}",
            int(self._target.rules.ack_deadline_s),
            self._target.publish_timeout_s,
            self._target.publish_region,
        )
        self._there = self._made = False
        self.backlog_tracker.clear()

    async def _look(self, admin: Admin) -> None:
        """Makes them unless they are there. If the administration alone is down, those that were there once may still serve."""
        try:
            await self._create(admin)
        except BrokerUnavailable:
            if not self._made:
                raise

    async def _create(self, admin: Admin) -> None:
        resources = self.resources
        settings = SubscriptionSettings(
            resources.topic,
            ordering=True,
            ack_deadline_s=resources.ack_deadline_s,
            message_retention_s=self._target.rules.message_retention_s,
            labels=OURS,
        )
        with self._timed(AdminOperation.CREATE_TOPIC):
            await admin.create_topic(resources.topic, TopicSettings(labels=OURS))
        with self._timed(AdminOperation.CREATE_SUBSCRIPTION):
            await admin.create_subscription(resources.subscription, settings)
        self._there = self._made = True

    async def _delete(self, admin: Admin, abandoned: list[Resources]) -> None:
        try:
            for name in [name for resources in abandoned for name in (resources.subscription, resources.topic)]:
                with self._timed(AdminOperation.DELETE):
                    await admin.delete(name, OURS)
        except BrokerError:
            pass  # it carries our label, and its name says how old it is
        self._left = []

    @contextmanager
    def _timed(self, operation: AdminOperation) -> Iterator[None]:
        began_t = monotonic_s()
        yield
        self._administered(operation, monotonic_s() - began_t)


def steady_name(name: str) -> str | None:
    """A short name of a topic or subscription of ours without the part that changes, as metrics have it; None for any other name."""
    found = _SHORT_NAME.fullmatch(name)
    return None if found is None else found[1]


def made_at(name: str) -> float | None:
    """When a topic or subscription of ours was made, by its full name, in seconds since 1970; None for a name that is not ours."""
    found = _NAME.fullmatch(name)
    return None if found is None else float(int(found[1], 16))


def subscriptions_first(name: str) -> bool:
    """The order of deletion: a topic without subscriptions is of no use to anybody, the other way round it still looks like a probe's."""
    return "/topics/" in name


class Swept(NamedTuple):
    """How much was deleted, and how much is still there because it could not be."""

    deleted: int
    left: int


async def sweep(admin: Admin, project: str, now: float) -> Swept:
    """Deletes what probers that are long gone have left in a project, `projects/p`. Raises BrokerError if it cannot be listed."""
    names = [name for name in await admin.owned(project, OURS) if _is_abandoned(name, now)]
    names.sort(key=subscriptions_first)
    deleted = left = 0
    for name in names:
        try:
            deleted += await admin.delete(name, OURS)
        except BrokerError:
            left += 1
    return Swept(deleted, left)


def _is_abandoned(name: str, now: float) -> bool:
    began = made_at(name)
    return began is not None and now - began > ABANDONED_AFTER_S
