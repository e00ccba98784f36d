"""Topics and subscriptions of the runs of a probe instance, created and used by this process only.

Two probers can never receive each other's messages, and the resources of a killed prober cannot block its successor. Its old resources
remain, though. So resources are replaced every few hours, once no message is pending on the old ones. Labelled resources that are much
older belong to no live prober, and are deleted (`sweeping`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from prober.brokers.base import Admin, AdminOperation, PushReceiver, SubscriptionSettings, TopicSettings
from prober.brokers.push.nowhere import NOWHERE
from prober.clock import monotonic_s, random_name, wall_s
from prober.core.rules import Mode, Rules
from prober.errors import AdminUnavailable, BrokerError, BrokerUnavailable, NotOurs, NotThere
from prober.probes.experiment import SubscriptionPlan
from prober.probes.payload import EVEN, EVEN_ONLY
from prober.probes.resources import OURS, Administered, Creation, Resources, nobody_times, timed
from prober.runs.backlog import Backlog, BacklogTracker, joined
from prober.runs.lifetimes import USUAL, Lifetime, made_at, names_in_metrics
from prober.runs.probe_instance import Target

RENEWED_AGAIN_S: Final = 3600.0
"""Wait before the retry of a renewal that the administration prevented, in seconds."""
DEAD_LETTERS: Final = "dead-letters"
"""Name of the dead-letter topic of a probe instance."""


class Provisioner:
    """Creates, renews and deletes the resources of a probe instance, and tracks their pending messages. One run at a time."""

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
        """Create the provisioner, without any resources.

        `name`: start of the names of topics and subscriptions, after `okp-`. Without `lasting` they are deleted after a run, and the next
        run creates new ones. `subscriptions`: the experiment's subscriptions; the first has no name. `topic`: full name of another owner's
        topic, instead of a new one.
        """
        self.names = names_in_metrics(name, subscriptions)
        """Names of its verified subscriptions in metrics; the first is also the name of its topic."""
        self.name = self.names[0]
        self.administered = administered
        self.creation: Creation | None = None
        """Latest creation of the first subscription; None before."""
        self._trackers = tuple(_tracker(target.rules, plan) for plan in subscriptions if plan.is_verified)
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
        """Bounds and settings of each verified subscription, by full name, the first one first."""
        return {name: _rules(self._target.rules, plan) for name, plan in self._by_name.items() if plan.is_verified}

    @property
    def backlog_trackers(self) -> dict[str, BacklogTracker]:
        """Tracker of the pending messages of each verified subscription, by full name, the first one first."""
        return dict(zip(self.rules, self._trackers, strict=True))

    @property
    def backlogs(self) -> dict[str, Backlog]:
        """Pending messages of each verified subscription, by name in metrics."""
        now = monotonic_s()
        return {name: tracker.backlog(now) for name, tracker in zip(self.names, self._trackers, strict=True)}

    @asynccontextmanager
    async def prepared(self, admin: Admin, pushes: PushReceiver = NOWHERE) -> AsyncIterator[None]:
        """Ensure that the resources exist and are the prober's own, for the duration of the context.

        Pushed messages go to `pushes`. Raises BrokerError.
        """
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
        """Check the resources again after a run that did not pass, and renew old ones.

        Old resources are renewed as soon as no message is pending, very old ones in any case: other probers would take them for abandoned.
        `written_off`: messages that the run left there.

        Push subscriptions with pending messages are renewed, too. Until the next run no endpoint receives their messages, so the service
        backs off for up to a minute, and may not push during that run. Messages that the service is late with stay pending until the
        subscription is deleted, at the start of the next run.
        """
        if not self._lasting:
            self._move()
            self._clear()
        self._there &= passed
        age_s = self._now() - self._made_at
        pending = bool(written_off or joined(self.backlogs.values()).undelivered)
        settled = passed and not pending
        if (pending and self._pushed) or age_s > self._lifetime.renewed_at_latest_s or (settled and self._now() > self._renewed_at):
            self._left.append(self.resources)
            before = self.resources if settled else None
            self._move()
            self._before = before

    async def leave(self, admin: Admin) -> None:
        """Delete all resources created here except lasting ones. Raises nothing: remaining resources are swept later."""
        await self._delete(admin, self._left if self._lifetime.stays else [*self._left, self.resources])

    async def adopt(self, topic: str, subscription: str, admin: Admin) -> bool:
        """Continue with the topic and the only subscription of an earlier process, instead of new ones.

        Return False, without a change, if they are too old, do not exist any more or have other settings. Raises BrokerError if that is
        unknown; then they are in use, and checked later.
        """
        made = made_at(subscription)
        if made is None or self._now() - made > self._lifetime.renewed_after_s:
            return False
        if subscription != self.resources.subscription:
            self._left += [self.resources] if self._made else []
            self.resources = replace(self.resources, topic=topic, subscription=subscription)
            self._made_at, self._renewed_at, self._before = made, made + self._lifetime.renewed_after_s, None
            self._there, self._made = False, True
        if not self._there:
            try:
                await self._look(admin, NOWHERE)
            except (NotThere, NotOurs):
                self._move()
                return False
        return True

    def _move(self) -> None:
        self._made_at = self._now()
        self._renewed_at = self._made_at + self._lifetime.renewed_after_s
        self._before = None
        changing = f"{int(self._made_at):08x}-{random_name(6)}"
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
        """Clear the trackers: the subscriptions with all their messages are gone."""
        for tracker in self._trackers:
            tracker.clear()

    def _return(self) -> None:
        """Return to the previous resources if the new ones could not be created."""
        if self._before is None or self._made:
            return
        self._left.remove(self._before)
        self._left.append(self.resources)
        self.resources, self._before = self._before, None
        self._made_at = made_at(self.resources.subscription) or self._made_at
        self._made = True
        self._renewed_at = self._now() + RENEWED_AGAIN_S

    async def _look(self, admin: Admin, pushes: PushReceiver) -> None:
        """Create the resources unless they exist. If only the administration is down, existing ones may still serve."""
        try:
            if self._lifetime.stays and self._made:  # a deleted one is not created again: its waiting messages are gone
                await admin.look(self.resources.subscription)
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
        for subscription, wanted in reversed(settings.items()):  # the first is created last, right before messages are published
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
            pass  # its label and the age in its name allow a later sweep
        self._left = []


def _rules(rules: Rules, plan: SubscriptionPlan) -> Rules:
    return replace(
        rules,
        mode=plan.mode,
        exactly_once=plan.exactly_once,
        dead_letter_max_attempts=plan.dead_letter_max_attempts,
        filter_every=EVEN if plan.filtered else 0,
    )


def _tracker(rules: Rules, plan: SubscriptionPlan) -> BacklogTracker:
    return BacklogTracker(
        rules.delivery_deadline_s,
        retention_s=rules.message_retention_s,
        attempts_max=plan.dead_letter_max_attempts,
        retains_acked=plan.retain_acked,
        excludes=_rules(rules, plan).excludes,
    )
