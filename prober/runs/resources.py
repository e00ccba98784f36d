"""Topics and subscriptions of the runs of a probe instance: this process made them, and nobody else uses them.

Two probers can never take each other's messages, and a prober that was killed leaves nothing behind that could hold up its successor.
What is left behind lies around instead. So they are made anew every few hours, once nothing is owed on the old ones;
what carries our label and was made much longer ago belongs to nobody who is still alive, and is swept away.

Whoever cleans up a project asks `reason_to_keep`. Ours is what carries our label and has a name as probers give it. The name says which
prober made it and when. Whether a prober still uses it is known only where a status store says which probers live. Silence proves nothing:
a prober whose store is down goes on probing. So what is younger than a day counts as used unless a store was asked, and what a living
prober made counts as used at any age.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from prober.brokers.base import Admin, AdminOperation, PushReceiver, SubscriptionSettings, TopicSettings
from prober.brokers.push.nowhere import NOWHERE
from prober.clock import chance_name, monotonic_s, wall_s
from prober.core.rules import Mode, Rules
from prober.errors import AdminUnavailable, BrokerError, BrokerUnavailable, NotOurs, NotThere
from prober.probes.experiment import SubscriptionPlan
from prober.probes.payload import EVEN, EVEN_ONLY
from prober.probes.resources import OURS, Administered, Creation, Resources, nobody_times, timed
from prober.runs.backlog import Backlog, BacklogTracker, joined
from prober.runs.probe_instance import CHANGING, Target
from prober.slo.objectives import DAY_S

RENEWED_AFTER_S: Final = 6 * 3600.0
RENEWED_AT_LATEST_S: Final = 18 * 3600.0
RENEWED_AGAIN_S: Final = 3600.0
"""How long a renewal waits that administration did not allow."""
ABANDONED_AFTER_S: Final = 24 * 3600.0
"""What is so old nobody uses any more, however its runs ended: it was renewed long before."""
LASTING: Final = "lasting"
"""What the names of topics and subscriptions end with, before the part that changes, that stay for days."""


class Lifetime(NamedTuple):
    """When topics and subscriptions are renewed if nothing is pending there, when in any case, and when nobody can use them any more.

    Times in seconds since they were made. `stays`: they are not deleted when the process ends, nor made again while it goes on.
    """

    renewed_after_s: float
    renewed_at_latest_s: float
    abandoned_after_s: float
    stays: bool = False


USUAL: Final = Lifetime(RENEWED_AFTER_S, RENEWED_AT_LATEST_S, ABANDONED_AFTER_S)
LONG: Final = Lifetime(7 * DAY_S, 8 * DAY_S, 10 * DAY_S, stays=True)
"""A subscription keeps messages for seven days, so nothing waits for longer."""

DEAD_LETTERS: Final = "dead-letters"
"""What the dead-letter topic of a probe instance is called."""

_NAME: Final = re.compile(rf"projects/[^/]+/(?:topics|subscriptions)/okp-.*{CHANGING}")
_LASTING_NAME: Final = re.compile(rf"{_NAME.pattern.removesuffix(CHANGING)}-{LASTING}{CHANGING}")
_SHORT_NAME: Final = re.compile(rf"(okp-.*){CHANGING}")


class Provisioner:
    """Creates, renews and deletes the topics and subscriptions of a probe instance; knows what is outstanding there. One run at a time."""

    def __init__(
        self,
        target: Target,
        name: str,
        subscriptions: Sequence[SubscriptionPlan] = (SubscriptionPlan(),),
        *,
        lasting: bool,
        topic: str = "",
        lifetime: Lifetime = USUAL,
        administered: Administered = nobody_times,
        now: Callable[[], float] = wall_s,
    ) -> None:
        """`name`: what the names of topics and subscriptions begin with, after `okp-`. What does not last is deleted after a run, and the
        next run has new ones. `subscriptions`: what the experiment needs; the first one has no name. `topic`: the full name of one that is
        somebody else's, instead of one of our own.
        """
        self.names = names_in_metrics(name, subscriptions)
        """What its judged subscriptions are called in metrics; the first is that of its topic."""
        self.name = self.names[0]
        self.administered = administered
        self.creation: Creation | None = None
        """Of the first subscription, the last time that it was created; None before."""
        self._trackers = tuple(_tracker(target.rules, plan) for plan in subscriptions if plan.is_judged)
        self._target, self._lasting, self._lifetime, self._now = target, lasting, lifetime, now
        self._plans = subscriptions
        self._pushed = any(plan.mode is Mode.PUSH for plan in subscriptions)
        self._topic = topic
        self._left: list[Resources] = []
        self._before: Resources | None = None
        self.resources: Resources
        self._made: bool
        self._move()

    @property
    def rules(self) -> dict[str, Rules]:
        """The bounds and settings of each subscription that is judged, by full name, the first one first."""
        return {name: _rules(self._target.rules, plan) for name, plan in self._by_name.items() if plan.is_judged}

    @property
    def backlog_trackers(self) -> dict[str, BacklogTracker]:
        """What knows what is outstanding on each subscription that is judged, by full name, the first one first."""
        return dict(zip(self.rules, self._trackers, strict=True))

    @property
    def backlogs(self) -> dict[str, Backlog]:
        """What is owed on each subscription that is judged right now, by its name in metrics."""
        now = monotonic_s()
        return {name: tracker.backlog(now) for name, tracker in zip(self.names, self._trackers, strict=True)}

    @asynccontextmanager
    async def prepared(self, admin: Admin, pushes: PushReceiver = NOWHERE) -> AsyncIterator[None]:
        """They exist, and belong to us, from here on; what is pushed goes to `pushes`. Raises BrokerError."""
        try:
            if not self._there:
                await self._look(admin, pushes)
            if self._left:
                await self._delete(admin, self._left)
                self._clear()
            yield
        except (NotThere, NotOurs):
            self._move()
            self._clear()
            raise
        except AdminUnavailable:
            self._return()
            raise
        finally:
            if not self._lasting:
                await self.leave(admin)

    def run_ended(self, *, passed: bool, written_off: int = 0) -> None:
        """After a run that did not pass they are looked at again. Old ones are left for new ones as soon as no message is pending there,
        very old ones in any case: others would take them for abandoned. `written_off`: messages that the run left there.

        So are push subscriptions with messages. Until the next run no endpoint takes them, so the service waits longer from try to try,
        up to a minute, and may not try at all during that run. Messages that the service is late with stay pending until the
        subscription is deleted, at the beginning of the next run.
        """
        if not self._lasting:
            self._move()
            self._clear()
        self._there &= passed or self._lifetime.stays
        age_s = self._now() - self._made_at
        owed = bool(written_off or joined(self.backlogs.values()).undelivered)
        settled = passed and not owed
        if (owed and self._pushed) or age_s > self._lifetime.renewed_at_latest_s or (settled and self._now() > self._renewed_at):
            self._left.append(self.resources)
            before = self.resources if settled else None
            self._move()
            self._before = before

    async def leave(self, admin: Admin) -> None:
        """Deletes everything that was made here, but what stays. Raises nothing: what cannot be deleted now is swept later."""
        await self._delete(admin, self._left if self._lifetime.stays else [*self._left, self.resources])

    async def adopt(self, topic: str, subscription: str, admin: Admin) -> bool:
        """Goes on with the topic and the only subscription that an earlier process made here, instead of new ones.

        False, and nothing changes, if they are too old, not there any more or have other settings. Raises BrokerError if that cannot be
        found out; then they are in use, and found out later.
        """
        made = made_at(subscription)
        if made is None or self._now() - made > self._lifetime.renewed_after_s:
            return False
        if subscription != self.resources.subscription:
            self._left += [self.resources] if self._made else []
            self.resources = replace(self.resources, topic=topic, subscription=subscription)
            self._made_at, self._renewed_at, self._before = made, made + self._lifetime.renewed_after_s, None
            self._there = self._made = False
        if not self._there:
            try:
                await admin.look(subscription)
                await self._create(admin, NOWHERE)
            except (NotThere, NotOurs):
                self._move()
                return False
        return True

    def _move(self) -> None:
        self._made_at = self._now()
        self._renewed_at = self._made_at + self._lifetime.renewed_after_s
        self._before = None
        changing = f"{int(self._made_at):08x}-{chance_name(6)}"
        project, first = f"projects/{self._target.project}", self._plans[0]
        subscriptions = {plan.name: f"{project}/subscriptions/{self._named(plan.name)}-{changing}" for plan in self._plans}
        dead_letters = f"{project}/topics/{self._named(DEAD_LETTERS)}-{changing}"
        self.resources = Resources(
            self._topic or f"{project}/topics/{self.name}-{changing}",
            subscriptions.pop(first.name),
            int(self._target.rules.ack_deadline_s),
            self._target.publish_timeout_s,
            self._target.publish_region,
            subscriptions,
            dead_letters if any(plan.dead_letter_max_attempts for plan in self._plans) else "",
            self._target.rules,
            self._target.seek_settles_s,
            self._target.peer_region,
            bool(self._topic),
        )
        self._there = self._made = False

    def _clear(self) -> None:
        """The subscriptions with all their messages are gone."""
        for tracker in self._trackers:
            tracker.clear()

    def _return(self) -> None:
        """Goes back to the last resources if administration did not make new ones."""
        if self._before is None or self._made:
            return
        self._left.remove(self._before)
        self._left.append(self.resources)
        self.resources, self._before = self._before, None
        self._made_at = made_at(self.resources.subscription) or self._made_at
        self._made = True
        self._renewed_at = self._now() + RENEWED_AGAIN_S

    async def _look(self, admin: Admin, pushes: PushReceiver) -> None:
        """Makes them unless they are there. If the administration alone is down, those that were there once may still serve."""
        try:
            await self._create(admin, pushes)
        except BrokerUnavailable:
            if not self._made:
                raise

    @property
    def _by_name(self) -> dict[str, SubscriptionPlan]:
        return {self.resources.named(plan.name): plan for plan in self._plans}

    def _named(self, name: str) -> str:
        return f"{self.name}-{name}" if name else self.name

    async def _create(self, admin: Admin, pushes: PushReceiver) -> None:
        settings = {name: self._settings(name, plan, pushes) for name, plan in self._by_name.items()}
        for topic in self.resources.topics:
            with timed(AdminOperation.CREATE_TOPIC, self.administered):
                await admin.create_topic(topic, TopicSettings(labels=OURS))
        for subscription, wanted in reversed(settings.items()):  # what is published next comes right after the first one
            asked_t = monotonic_s()
            with timed(AdminOperation.CREATE_SUBSCRIPTION, self.administered):
                await admin.create_subscription(subscription, wanted)
            self.creation = Creation(asked_t, monotonic_s() - asked_t)
        self._there = self._made = True

    def _settings(self, name: str, plan: SubscriptionPlan, pushes: PushReceiver) -> SubscriptionSettings:
        resources, attempts, (minimum_s, maximum_s) = self.resources, plan.dead_letter_max_attempts, plan.backoff_s
        return SubscriptionSettings(
            resources.dead_letter_topic if plan.of_dead_letters else resources.topic,
            ordering=plan.ordering,
            ack_deadline_s=resources.ack_deadline_s,
            exactly_once=plan.exactly_once,
            filter=EVEN_ONLY if plan.filtered else "",
            retain_acked=plan.retain_acked,
            dead_letter_topic=resources.dead_letter_topic if attempts else "",
            dead_letter_max_attempts=attempts,
            retry_minimum_backoff_s=minimum_s or None,
            retry_maximum_backoff_s=maximum_s or None,
            message_retention_s=self._target.rules.message_retention_s,
            push=pushes.config_of(name) if plan.mode is Mode.PUSH else None,
            labels=OURS,
        )

    async def _delete(self, admin: Admin, abandoned: list[Resources]) -> None:
        try:
            for name in [name for resources in abandoned for name in (*resources.subscriptions, *resources.topics)]:
                with timed(AdminOperation.DELETE, self.administered):
                    await admin.delete(name, OURS)
        except BrokerError:
            pass  # it carries our label, and its name says how old it is
        self._left = []


def _rules(rules: Rules, plan: SubscriptionPlan) -> Rules:
    """The rules of a target as they hold for one subscription."""
    return replace(
        rules,
        mode=plan.mode,
        exactly_once=plan.exactly_once,
        dead_letter_max_attempts=plan.dead_letter_max_attempts,
        filter_every=EVEN if plan.filtered else 0,
    )


def _tracker(rules: Rules, plan: SubscriptionPlan) -> BacklogTracker:
    """What follows the pending messages of one subscription."""
    return BacklogTracker(
        rules.delivery_deadline_s,
        retention_s=rules.message_retention_s,
        attempts_max=plan.dead_letter_max_attempts,
        retains_acked=plan.retain_acked,
        excludes=_rules(rules, plan).excludes,
    )


def names_in_metrics(name: str, subscriptions: Iterable[SubscriptionPlan]) -> tuple[str, ...]:
    """What judged subscriptions are called in metrics: their names without the part that changes. `name`: what follows `okp-` in all."""
    return tuple("-".join(filter(None, ("okp", name, plan.name))) for plan in subscriptions if plan.is_judged)


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
    return began is not None and now - began > _lifetime_of(name).abandoned_after_s


def _lifetime_of(name: str) -> Lifetime:
    return LONG if _LASTING_NAME.fullmatch(name) else USUAL


class Kept(StrEnum):
    """Why something that carries our label is left."""

    NOT_NAMED = "not named as probers name theirs"
    YOUNG = "too young: see --older-than"
    USED = "a living prober uses it: stop the prober, or see --in-use"
    MAY_BE_USED = "younger than a day (ten if it lasts), and no status store says which probers live: see --in-use"


@dataclass(frozen=True, slots=True)
class CleanupBounds:
    """How far a clean-up goes.

    older_than_s  what is younger stays.
    living        the probers that live, by name; None: nobody could be asked.
    in_use        delete what probers use, or may use, too.
    """

    older_than_s: float
    living: Collection[str] | None
    in_use: bool = False


def reason_to_keep(name: str, now: float, bounds: CleanupBounds) -> Kept | None:
    """Why a topic or subscription with our label stays, by its full name; None if it goes. `now` is in seconds since 1970."""
    began = made_at(name)
    if began is None:
        return Kept.NOT_NAMED
    if now - began < bounds.older_than_s:
        return Kept.YOUNG
    if bounds.in_use:
        return None
    if bounds.living is None:
        return None if _is_abandoned(name, now) else Kept.MAY_BE_USED
    return Kept.USED if _made_by(name, bounds.living) else None


def in_order_of_deletion(names: Iterable[str]) -> list[str]:
    """Subscriptions before topics, each by name."""
    return sorted(names, key=lambda name: (subscriptions_first(name), name))


def _made_by(name: str, probers: Iterable[str]) -> bool:
    """Whether one of these may have made it. A prober `a` may also seem to have made what `a-b` made: rather too much is kept."""
    short = name.rpartition("/")[2]
    return any(short.startswith(f"okp-{prober}-") for prober in probers)
