"""The service as a state machine: requests and the time go in, results and effects come out.

This module uses no clock, socket, thread or random number. Every request takes the time as an argument, in seconds since the epoch and
never earlier than before; it returns its result or raises `ServiceError`. Actions for other modules are collected as effects:

    state = State(first_serial=...)            # one per server
    state.registry.create_topic(...)           # resources: see `registry`
    ids = state.publish(topic, drafts, now)    # requests ...
    for effect in state.advance(now): ...      # ... then this: deadlines pass, messages are handed out
    state.next_wakeup()                        # and call `advance` again by then at the latest

The guarantees and their sources are documented in the modules that keep them: order and consistent redelivery in `key_queues`, key affinity
in `subscription_queue`, the choice of a subscriber in `delivery`, acknowledgements in `answers`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from prober.embedded import answers, delivery, errors, resources
from prober.embedded.behaviour import Behaviour
from prober.embedded.engine import Engine
from prober.embedded.key_queues import Client, PullCall, QueueEntry, Stream
from prober.embedded.messages import Confirm, Effect, ForwardedToDeadLetter, Message, PublishDraft, check_drafts, rfc3339
from prober.embedded.registry import DETACHED_MESSAGE, UNSUPPORTED_MESSAGE, Registry, TopicState
from prober.embedded.subscription_queue import SubscriptionQueue

PULL_WAIT_S: Final = 20.0  # maximum wait of a pull; clients pull again
_HOUSEKEEPING_S: Final = 60.0
_DEAD_LETTER_PREFIX: Final = "CloudPubSubDeadLetterSource"
_REPEATED_AFTER_S: Final = 0.001  # between two records of one message, at least


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """First request of a stream (proto, StreamingPullRequest). Without a client id the stream is a subscriber of its own."""

    subscription: str
    ack_deadline_s: int
    client_id: str = ""
    messages_max: int = 0
    bytes_max: int = 0


@dataclass(frozen=True, slots=True)
class StreamAnswers:
    """Later request on a stream: acknowledgements, moved deadlines (0 nacks), and a new lease for later messages."""

    ack_ids: Sequence[str] = ()
    modify_ack_ids: Sequence[str] = ()
    modify_seconds: Sequence[int] = ()
    ack_deadline_s: int = 0


class State:
    """One Pub/Sub service.

    first_serial  serial numbers, and with them message and acknowledgement ids, start after it. A restarted server must pass a higher one
                  than its predecessor can have reached, or ids repeat.
    behaviour     decisions that a fault may change; correct by default.
    """

    def __init__(self, first_serial: int = 0, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self._engine: Engine[SubscriptionQueue] = Engine(self.behaviour, first_serial, self._forward, self._elsewhere)
        self.registry = Registry(self._engine)
        self._streams: dict[str, tuple[SubscriptionQueue, Stream]] = {}
        self._pulls: dict[str, tuple[SubscriptionQueue, PullCall]] = {}
        self._housekeeping_at = -math.inf
        self._silent_until = -math.inf

    # --- publish ----------------------------------------------------------------------------------------------------------------

    def publish(self, topic: str, drafts: Sequence[PublishDraft], now: float) -> list[str]:
        """Store messages; return their ids, in the order of the drafts.

        Messages of one request and one key stay together and in order. Raises NOT_FOUND, INVALID_ARGUMENT, or FAILED_PRECONDITION if keys
        are mixed; then nothing is stored.
        """
        self.registry.topic(topic)
        check_drafts(drafts)
        admission = self.behaviour.admit(topic, drafts, now)
        ids = self._store(topic, drafts[: admission.stored], now, late=admission.late) if admission.stored else []
        if admission.error is not None:
            raise admission.error
        return ids

    def _store(self, name: str, drafts: Sequence[PublishDraft], now: float, *, late: bool = False) -> list[str]:
        topic = self.registry.topics[name]
        messages = [self._message(draft, now) for draft in drafts]
        ids = [message.id for message in messages]
        stored = self.behaviour.store(name, messages, now, late=late)
        repeated = [self._repeated(message, now) for message in self.behaviour.repeat(name, stored, now)]
        invented = [self._message(draft, now) for draft in self.behaviour.invent(name, stored, now)]
        self._append(topic, [*stored, *repeated, *invented], now)
        return ids

    def _append(self, topic: TopicState, stored: list[Message], now: float) -> None:
        topic.remember(stored, now)
        queues = topic.subscriptions.values()
        names = [queue.name for queue in queues if queue.settings.enable_message_ordering]
        otherwise = self.behaviour.arrange(topic.settings.name, names, stored, now)
        for queue in queues:
            for message in otherwise.get(queue.name, stored):
                queue.enqueue(message, now)

    def _message(self, draft: PublishDraft, now: float) -> Message:
        serial = self._engine.next_serial()
        return Message(serial, str(serial), now, draft.ordering_key, draft.data, draft.attributes, draft.size)

    def _repeated(self, message: Message, now: float) -> Message:
        """Return a second record of a message under its id, with a later publish time (documentation, "Exactly-once delivery")."""
        later = max(now, message.publish_time + _REPEATED_AFTER_S)
        return replace(message, sequence=self._engine.next_serial(), publish_time=later)

    def _forward(self, queue: SubscriptionQueue, entry: QueueEntry, now: float) -> bool:
        """Send a message to its dead-letter topic; return False if the topic does not exist: the message is then redelivered."""
        policy = queue.settings.dead_letter_policy
        if policy is None or policy.dead_letter_topic not in self.registry.topics:
            return False
        late = self.behaviour.forwards_late(queue.name, entry, now)
        self._store(policy.dead_letter_topic, [_dead_letter(queue, entry)], now, late=late)
        self._engine.effects.append(ForwardedToDeadLetter(queue.name, entry.message))
        return True

    def _elsewhere(self, queue: SubscriptionQueue) -> Iterator[QueueEntry]:
        """Yield outstanding entries on the other subscriptions of a subscription's topic."""
        topic = self.registry.topics.get(queue.settings.topic)
        for other in topic.subscriptions.values() if topic is not None else ():
            if other is not queue:
                yield from other.leases.values()

    # --- streaming pull ---------------------------------------------------------------------------------------------------------

    def open_stream(self, stream: str, request: StreamRequest, now: float) -> None:
        """Start a stream under a new id; its messages follow as `Send`. NOT_FOUND, INVALID_ARGUMENT, FAILED_PRECONDITION."""
        queue = self._pulled(request.subscription)
        resources.check_ack_deadline(request.ack_deadline_s, resources.ACK_DEADLINE_MIN_S)
        client_id = request.client_id or f"stream {stream}"
        client = queue.clients.get(client_id) or Client(client_id)
        opened = Stream(stream, client, float(request.ack_deadline_s), request.messages_max, request.bytes_max)
        self._streams[stream] = (queue, opened)
        queue.open_stream(opened, now)
        queue.active_at = now

    def answer_stream(self, stream: str, said: StreamAnswers, now: float) -> None:
        """Apply a request on an open stream; ignore it after the end. On INVALID_ARGUMENT the caller must close the stream."""
        if stream not in self._streams:
            return
        queue, opened = self._streams[stream]
        if not opened.open:
            return
        if len(said.modify_ack_ids) != len(said.modify_seconds):
            raise errors.invalid("modify_deadline_seconds")
        if said.ack_deadline_s:
            resources.check_ack_deadline(said.ack_deadline_s, resources.ACK_DEADLINE_MIN_S)
            opened.deadline_s = float(said.ack_deadline_s)
        failed = answers.acknowledge(queue, said.ack_ids, now) if said.ack_ids else {}
        modify_failed: dict[str, str] = {}
        for seconds in dict.fromkeys(said.modify_seconds):
            ids = [ack_id for ack_id, own in zip(said.modify_ack_ids, said.modify_seconds, strict=True) if own == seconds]
            modify_failed.update(answers.modify(queue, ids, seconds, now))
        queue.active_at = now
        if queue.settings.enable_exactly_once_delivery and (said.ack_ids or said.modify_ack_ids):
            self._confirm(stream, said, failed, modify_failed)

    def _confirm(self, stream: str, said: StreamAnswers, failed: dict[str, str], modify_failed: dict[str, str]) -> None:
        acked = tuple(ack_id for ack_id in said.ack_ids if ack_id not in failed)
        modified = tuple(ack_id for ack_id in said.modify_ack_ids if ack_id not in modify_failed)
        self._engine.effects.append(Confirm(stream, acked, failed, modified, modify_failed))

    def close_stream(self, stream: str, now: float) -> None:
        """End a stream that was closed or broke, and redeliver its outstanding messages.

        Idempotent.
        """
        queue, opened = self._streams.pop(stream, (None, None))
        if queue is not None and opened is not None and opened.open:
            queue.close_stream(opened, now)

    # --- unary pull, acknowledge, modify, push ----------------------------------------------------------------------------------

    def pull(self, pull: str, subscription: str, messages_max: int, now: float, *, wait_s: float = PULL_WAIT_S) -> None:
        """Request messages under a new id; the answer follows as `AnswerPull`, after `wait_s` at the latest, even if it is empty."""
        queue = self._pulled(subscription)
        if messages_max <= 0:
            raise errors.invalid("max_messages")
        call = PullCall(pull, min(messages_max, resources.PULL_MESSAGES_MAX), now + wait_s)
        self._pulls[pull] = (queue, call)
        queue.pulls.append(call)
        queue.active_at = now
        self._engine.set_timer(call.deadline, partial(self._end_pull, queue, call), last=True)
        self._engine.dirty[queue] = None

    def cancel_pull(self, pull: str) -> None:
        """End the wait of a client for a pull; messages of its answer stay outstanding."""
        queue, call = self._pulls.pop(pull, (None, None))
        if queue is not None and call is not None and call.open:
            call.open = False
            queue.pulls.remove(call)

    def acknowledge(self, subscription: str, ack_ids: Sequence[str], now: float) -> None:
        """Apply a unary acknowledgement. With exactly-once delivery it raises an error with the reasons of failed ids."""
        queue = self.registry.subscription(subscription)
        failed = answers.acknowledge(queue, ack_ids, now)
        queue.active_at = now
        if failed:
            raise errors.failed_ack_ids(failed)

    def modify_ack_deadline(self, subscription: str, ack_ids: Sequence[str], seconds: int, now: float) -> None:
        """Apply a unary change of deadlines; 0 nacks the messages. Errors as for `acknowledge`."""
        queue = self.registry.subscription(subscription)
        failed = answers.modify(queue, ack_ids, seconds, now)
        queue.active_at = now
        if failed:
            raise errors.failed_ack_ids(failed)

    def push_answered(self, subscription: str, push: str, now: float, *, accepted: bool) -> None:
        """Report the response of an endpoint to a `Push`, or its absence (not accepted). Late responses have no effect."""
        queue = self.registry.subscriptions.get(subscription)
        if queue is not None:
            answers.push_answered(queue, push, accepted=accepted, now=now)
            queue.active_at = now

    def _pulled(self, subscription: str) -> SubscriptionQueue:
        """Return the subscription, if clients pull from it."""
        queue = self.registry.subscription(subscription)
        if queue.settings.detached:
            raise errors.precondition(DETACHED_MESSAGE)
        if queue.settings.push_config.push_endpoint:
            raise errors.precondition(UNSUPPORTED_MESSAGE)
        return queue

    # --- time -------------------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> list[Effect]:
        """Advance to `now`, deliver all messages that may be delivered, and return all effects since the last call, in order."""
        self._expire(now)
        for name, messages in self.behaviour.overdue(now):
            if name in self.registry.topics:
                for message in messages:
                    message.sequence, message.publish_time = self._engine.next_serial(), now
                self._append(self.registry.topics[name], messages, now)
        engine = self._engine
        engine.run_timers(now)
        self._silent_until = self.behaviour.silent_until(now) if engine.dirty else now
        if self._silent_until <= now:
            while engine.dirty:
                dirty, engine.dirty = engine.dirty, {}
                for queue in dirty:
                    delivery.dispatch(queue, now)
        effects, engine.effects = engine.effects, []
        return effects

    def next_wakeup(self, now: float) -> float:
        """Return the time of the next action of `advance` without a request; infinity: never. It may be early.

        Actions after minutes to days (retention, expiration) do not count: any later `advance` executes them.
        """
        times = [self._engine.leases.next_time(), self._engine.next_timer(), self.behaviour.next_overdue()]
        if self._engine.dirty:
            times.append(max(self._silent_until, now))
        return min(times)

    def reconsider(self, now: float) -> None:
        """Reschedule key queues that a fault had silenced, after faults have changed."""
        for queue in self.registry.subscriptions.values():
            for key_queue in (*queue.key_queues.values(), *queue.loose):
                key_queue.halt_at = 0
                if key_queue.wake_at == math.inf:
                    key_queue.wake_at = now
                queue.schedule(key_queue, now)
            self._engine.dirty[queue] = None

    def _expire(self, now: float) -> None:
        for queue, entries in self._engine.leases.due(now).items():
            queue.fail(entries, now, expired=True)
        if now >= self._housekeeping_at:
            self._keep_house(now)

    def _end_pull(self, queue: SubscriptionQueue, call: PullCall, now: float) -> None:
        self._pulls.pop(call.id, None)
        if self._silent_until <= now:
            delivery.dispatch(queue, now)  # a pull without a wait gets available messages
        delivery.answer_late_pull(queue, call)

    def _keep_house(self, now: float) -> None:
        """Apply retention and expiration to messages, snapshots and unused subscriptions."""
        self._housekeeping_at = now + _HOUSEKEEPING_S
        for topic in self.registry.topics.values():
            topic.forget(now)
        for name, snapshot in list(self.registry.snapshots.items()):
            if snapshot.description.expire_time <= now:
                self.registry.delete_snapshot(name)
        for name, queue in list(self.registry.subscriptions.items()):
            queue.expire(now)
            ttl = queue.settings.expiration_s
            if queue.streams or queue.pulls:
                queue.active_at = now
            elif ttl is not None and queue.active_at + ttl <= now:
                self.registry.delete_subscription(name, now)


def _dead_letter(queue: SubscriptionQueue, entry: QueueEntry) -> PublishDraft:
    """Return the copy to publish on the dead-letter topic, with attributes of its origin.

    Data, attributes and ordering key stay (documentation, "Handle message failures").
    """
    _, project, _, subscription = queue.name.split("/")
    attributes = {
        **entry.message.attributes,
        f"{_DEAD_LETTER_PREFIX}DeliveryCount": str(entry.failures),
        f"{_DEAD_LETTER_PREFIX}Subscription": subscription,
        f"{_DEAD_LETTER_PREFIX}SubscriptionProject": project,
        f"{_DEAD_LETTER_PREFIX}TopicPublishTime": rfc3339(entry.message.publish_time),
    }
    return PublishDraft(entry.message.data, attributes, entry.message.ordering_key)
