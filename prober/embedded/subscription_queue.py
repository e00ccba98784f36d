"""A subscription in operation: its key queues, outstanding deliveries, and the handling of answers and missed deadlines.

The number of outstanding messages of a key queue, `held`, decides its receivers:
  0           the key queue waits in `ready` for any subscriber (`delivery` chooses it).
  positive    only the stream of these messages gets more (documentation, "Order messages": affinity); by pull and push no subscriber gets
              more until all are answered ("only one batch of messages can be outstanding for an ordering key at a time").
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from prober.embedded import resources
from prober.embedded.engine import Engine
from prober.embedded.filters import Predicate
from prober.embedded.key_queues import Client, KeyQueue, PullCall, QueueEntry, Stream, bind
from prober.embedded.messages import CancelPush, Delivery, Message

_KEY_QUEUES_KEPT_MAX: Final = 200_000  # idle keys whose last subscriber is remembered
_UNANSWERED_KEPT_MAX: Final = 100_000  # deliveries that ended with their stream and may still be acknowledged
_CLIENTS_KEPT_MAX: Final = 1_000  # clients without a stream that may reconnect to their keys
_PUSH_BACKOFF_MIN_S: Final = 0.1  # documentation, "Push subscriptions": back-off from 100 ms to 60 s
_PUSH_BACKOFF_MAX_S: Final = 60.0


class SubscriptionQueue:
    """Messages and subscribers of one subscription.

    key_queues by ordering key; `loose` are queues of single messages, oldest first.
    ready      key queues with messages to send and without outstanding ones.
    leases     outstanding entries by acknowledgement id; `pushes` are those being pushed.
    born       sequence number of the last message before the subscription existed.
    """

    def __init__(
        self, settings: resources.Subscription, accepts: Predicate | None, engine: Engine[SubscriptionQueue], born: int, now: float
    ) -> None:
        self.settings = settings
        self.accepts = accepts
        self.engine = engine
        self.born = born
        self.key_queues: dict[str, KeyQueue] = {}
        self.loose: dict[KeyQueue, None] = {}
        self.ready: deque[KeyQueue] = deque()
        self.leases: dict[str, QueueEntry] = {}
        self.clients: dict[str, Client] = {}
        self.streams: dict[str, Stream] = {}
        self.pulls: deque[PullCall] = deque()
        self.pushes: set[str] = set()
        self.number = engine.next_serial()
        self.unanswered: dict[str, QueueEntry] = {}  # deliveries that ended with their stream, lately, by acknowledgement id
        self.confirmed: dict[str, None] = {}  # exactly-once: ids acknowledged lately, which may be acknowledged again
        self.active_at = now
        self.oldest = math.inf  # no message here was published before this
        self._prune_at = _KEY_QUEUES_KEPT_MAX

    @property
    def name(self) -> str:
        """The subscription's full name."""
        return self.settings.name

    # --- new messages ------------------------------------------------------------------------------------------------------------

    def enqueue(self, message: Message, now: float) -> None:
        """Add a message that was stored in the topic, if it passes the filter."""
        if self.accepts is not None:
            passes = self.accepts(message.attributes)
            if not self.engine.behaviour.filter(self.name, message, now, passes=passes):
                return
        key_queue = self.key_queues.get(message.ordering_key)
        if key_queue is not None and key_queue.held and self.engine.behaviour.forget_holds(self.name, key_queue, now):
            self.rewind(key_queue, key_queue.lowest_held)
            key_queue.shunned = key_queue.client
        kept = self.engine.behaviour.enqueue(self.name, message, now)
        self.add(message, now, kept=kept)

    def add(self, message: Message, now: float, *, kept: bool = True) -> None:
        """Append a message to its key queue; a message that is not `kept` is skipped silently."""
        key = message.ordering_key if self.settings.enable_message_ordering else ""
        if key:
            key_queue = self.key_queues.get(key)
            if key_queue is None:
                key_queue = self.key_queues[key] = KeyQueue(key)
        else:
            key_queue = KeyQueue("")
            self.loose[key_queue] = None
        entry = key_queue.append(message)
        self.oldest = min(self.oldest, message.publish_time)
        if kept:
            self.schedule(key_queue, now)
            self.engine.dirty[self] = None
        else:
            self._take_out(entry)
            key_queue.peek()  # moves past entries taken out
            self.after(key_queue, now)

    # --- waiting key queues ------------------------------------------------------------------------------------------------------

    def schedule(self, key_queue: KeyQueue, now: float) -> None:
        """Queue a key queue with messages to send, or set the timer that does so later."""
        if key_queue.queued or not key_queue.pending:
            return
        if self.waits(key_queue, now):
            if key_queue.wake_at != math.inf and key_queue.timer_at != key_queue.wake_at:
                key_queue.timer_at = key_queue.wake_at
                self.engine.set_timer(key_queue.wake_at, partial(self._wake, key_queue))
            return
        if not key_queue.held:
            self.ready.append(key_queue)
        elif key_queue.stream is not None and key_queue.stream.open:
            key_queue.stream.ready.append(key_queue)
        else:
            return  # a pull, a push, or a stream that is gone (exactly-once) has them: wait until all are answered
        key_queue.queued = True
        self.engine.dirty[self] = None

    def _wake(self, key_queue: KeyQueue, now: float) -> None:
        if key_queue.timer_at <= now:
            key_queue.timer_at = 0.0
        self.schedule(key_queue, now)

    def waits(self, key_queue: KeyQueue, now: float) -> bool:
        """Return whether a key queue may not send yet, by back-off or a fault."""
        if key_queue.wake_at <= now:
            if key_queue.postponed:
                key_queue.postponed, key_queue.decided = False, key_queue.end  # later messages are sent with it
            else:
                elsewhere = self.engine.elsewhere(self)
                key_queue.wake_at = self.engine.behaviour.postpone(self.name, key_queue, self.leases.values(), elsewhere, now)
                key_queue.postponed = key_queue.wake_at > now
        return key_queue.wake_at > now

    def lease(self, entry: QueueEntry, stream: Stream | None, now: float) -> Delivery:
        """Start the delivery of an entry: it is outstanding from now on."""
        lease_s = stream.deadline_s if stream is not None else self.settings.ack_deadline_s
        if entry.ack_id:
            self.release(entry)
        ack_id = f"ack-{self.number:x}-{self.engine.next_serial():x}"
        entry.ack_id = ack_id
        entry.stream = stream
        entry.sent_at, entry.deadline = now, now + lease_s
        entry.key_queue.held += 1
        self.leases[ack_id] = entry
        self.engine.leases.watch(self, entry)
        if early_s := self.engine.behaviour.looks_early(lease_s):
            self.engine.set_timer(now + early_s, partial(self._look_early, ack_id))
        if stream is not None:
            stream.messages += 1
            stream.bytes += entry.message.size
        attempt = entry.failures + 1 if self.settings.dead_letter_policy is not None else 0
        return Delivery(entry.message, ack_id, attempt)

    def _look_early(self, ack_id: str, now: float) -> None:
        entry = self.leases.get(ack_id)
        if entry is not None and self.engine.behaviour.ends_early(self.name, entry, now):
            self.fail([entry], now, expired=True)

    def release(self, entry: QueueEntry) -> None:
        """End the outstanding delivery of an entry, by any outcome."""
        del self.leases[entry.ack_id]
        if entry.ack_id in self.pushes:
            self.pushes.discard(entry.ack_id)
            self.engine.effects.append(CancelPush(entry.ack_id))
        entry.ack_id = ""
        entry.key_queue.held -= 1
        stream = entry.stream
        if stream is not None:
            stream.messages -= 1
            stream.bytes -= entry.message.size
            entry.stream = None
        if self.ready or (stream is not None and stream.ready):
            self.engine.dirty[self] = None

    # --- answers to deliveries --------------------------------------------------------------------------------------------------

    def settle(self, entry: QueueEntry, now: float) -> None:
        """Settle an acknowledged outstanding message."""
        self.release(entry)
        entry.settled = True
        self.after(entry.key_queue, now)

    def fail(self, entries: Iterable[QueueEntry], now: float, *, expired: bool) -> None:
        """Redeliver nacked or expired messages, or forward them to the dead-letter topic."""
        ordered = sorted(entries, key=lambda entry: entry.position)
        for entry in ordered:
            entry.failures += 1
        for entry in ordered:
            if entry.ack_id:  # otherwise a rewind to an earlier one has freed it
                self._fail_one(entry, now, expired=expired)
        for key_queue in dict.fromkeys(entry.key_queue for entry in ordered):
            self.after(key_queue, now)

    def _fail_one(self, entry: QueueEntry, now: float, *, expired: bool) -> None:
        key_queue, client = entry.key_queue, entry.stream.client if entry.stream is not None else None
        policy = self.settings.dead_letter_policy
        if policy is not None and entry.failures >= policy.max_delivery_attempts and self.engine.forward(self, entry, now):
            self._take_out(entry)
            silent_until = self.engine.behaviour.dead_lettered(self.name, entry, now)
            for other in self.key_queues.values() if silent_until else ():
                other.wake_at = max(other.wake_at, silent_until)
            return
        self._send_again(entry, now, expired=expired)
        key_queue.wake_at = max(key_queue.wake_at, now + self._backoff_s(entry, now))
        if expired:
            key_queue.shunned = client

    def _send_again(self, entry: QueueEntry, now: float, *, expired: bool) -> None:
        key_queue = entry.key_queue
        redelivery = self.engine.behaviour.redeliver(self.settings, entry, now, expired=expired)
        if redelivery.again is None:
            self.rewind(key_queue, entry.position)
            if redelivery.detour is not None:
                key_queue.follow(redelivery.detour)
            if redelivery.halt_until:
                key_queue.halt_at, key_queue.halt_until = entry.position + 1, redelivery.halt_until
            return
        if not redelivery.again:
            self._take_out(entry)
            return
        self.release(entry)
        key_queue.again = deque(sorted({*(key_queue.again or ()), *redelivery.again}))

    def _backoff_s(self, entry: QueueEntry, now: float) -> float:
        policy = self.settings.retry_policy
        if policy is not None:
            return 0.0 if self.engine.behaviour.skips_backoff(self.name, entry, now) else policy.backoff_s(entry.failures)
        if self.settings.push_config.push_endpoint:
            return resources.RetryPolicy(_PUSH_BACKOFF_MIN_S, _PUSH_BACKOFF_MAX_S).backoff_s(entry.failures)
        return 0.0

    def rewind(self, key_queue: KeyQueue, position: int) -> None:
        """Rewind a key queue to a position and end the deliveries from there on."""
        for entry in key_queue.rewind(position):
            self.release(entry)

    def _take_out(self, entry: QueueEntry) -> None:
        if entry.ack_id:
            self.release(entry)
        entry.settled = entry.removed = True

    def after(self, key_queue: KeyQueue, now: float) -> None:
        """Trim a key queue after a change, and schedule or retire it."""
        key_queue.trim()
        if key_queue.pending:
            self.schedule(key_queue, now)
        elif key_queue.idle:
            self._retire(key_queue)

    def _retire(self, key_queue: KeyQueue) -> None:
        if not key_queue.key:
            self.loose.pop(key_queue, None)
        elif key_queue.client is None:
            self.key_queues.pop(key_queue.key, None)
        elif len(self.key_queues) > self._prune_at:
            for key in [key for key, other in self.key_queues.items() if other.idle]:
                bind(self.key_queues.pop(key), None)
            self._prune_at = max(_KEY_QUEUES_KEPT_MAX, 2 * len(self.key_queues))

    # --- streams ----------------------------------------------------------------------------------------------------------------

    def open_stream(self, stream: Stream, now: float) -> None:
        """Add an opened stream; messages that its client still holds from an earlier stream keep their keys there."""
        self.streams[stream.id] = stream
        stream.client.streams.append(stream)
        self.clients[stream.client.id] = stream.client
        for key_queue in self.key_queues.values() if self.settings.enable_exactly_once_delivery else ():
            if key_queue.held and key_queue.client is stream.client and key_queue.stream is not None and not key_queue.stream.open:
                key_queue.stream = stream
                self.schedule(key_queue, now)
        self.engine.dirty[self] = None

    def close_stream(self, stream: Stream, now: float) -> None:
        """Remove a closed stream and redeliver its outstanding messages.

        With exactly-once delivery each is redelivered only after its deadline.

        "The message sent to a subscriber is guaranteed not to be resent before the message's acknowledgment deadline expires" (proto,
        Subscription.enable_exactly_once_delivery).
        """
        del self.streams[stream.id]
        stream.open = False
        stream.client.streams.remove(stream)
        waiting = list(stream.ready)
        stream.ready.clear()
        for key_queue in waiting:
            key_queue.queued = False
        outstanding = {entry.key_queue: entry for entry in self.leases.values() if entry.stream is stream}
        for key_queue, entry in outstanding.items():
            key_queue.wake_at = max(key_queue.wake_at, self.engine.behaviour.stream_gone(self.settings, entry, now))
        held: dict[KeyQueue, list[QueueEntry]] = {}
        if not self.settings.enable_exactly_once_delivery:
            for entry in self.leases.values():
                if entry.stream is stream:
                    held.setdefault(entry.key_queue, []).append(entry)
        for key_queue, entries in held.items():
            if self.engine.behaviour.resumes_past(self.name, entries, now):
                for entry in entries:
                    self._take_out(entry)
            else:
                self._end_with_stream(key_queue, entries)
        for key_queue in dict.fromkeys((*held, *waiting)):
            self.after(key_queue, now)
        self._forget_clients()

    def _end_with_stream(self, key_queue: KeyQueue, entries: list[QueueEntry]) -> None:
        """Redeliver outstanding messages of a key, unless they are acknowledged first.

        A client that shuts down may send acknowledgements after it has closed its stream.
        """
        self.unanswered.update((entry.ack_id, entry) for entry in entries)
        while len(self.unanswered) > _UNANSWERED_KEPT_MAX:
            del self.unanswered[next(iter(self.unanswered))]
        lowest = min(entry.position for entry in entries)
        acked = {entry.position for entry in key_queue.sent_after(lowest) if entry.settled}
        self.rewind(key_queue, lowest)
        key_queue.acked_late = acked

    def _forget_clients(self) -> None:
        if len(self.clients) > _CLIENTS_KEPT_MAX:
            self.clients = {client.id: client for client in self.clients.values() if client.streams}

    def live_clients(self) -> list[Client]:
        """Return the clients with an open stream."""
        return [client for client in self.clients.values() if client.streams]

    # --- the backlog as a whole -------------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[QueueEntry]:
        """Yield all unsettled entries, key queue by key queue."""
        for key_queue in (*self.key_queues.values(), *self.loose):
            for entry in key_queue.entries:
                if not entry.settled:
                    yield entry

    def reset(self, messages: Iterable[Message], now: float) -> None:
        """Drop all deliveries and acknowledgements; set the backlog to exactly these messages, in this order."""
        for entry in list(self.leases.values()):
            self.release(entry)
        for key_queue in self.key_queues.values():
            bind(key_queue, None)
            key_queue.entries = []  # a timer that still refers to the key queue has no effect
            key_queue.again = None
        self.key_queues, self.loose, self.unanswered = {}, {}, {}
        self.ready.clear()
        for stream in self.streams.values():
            stream.ready.clear()
        self.oldest = math.inf
        for message in messages:
            self.add(message, now)

    def expire(self, now: float) -> None:
        """Drop messages older than the retention (documentation, "Replay and purge messages": message retention)."""
        horizon = now - self.settings.message_retention_s
        if self.oldest >= horizon:
            return
        self.oldest = math.inf
        key_queues = set()
        for entry in list(self.entries()):
            if entry.message.publish_time < horizon:
                self._take_out(entry)
                key_queues.add(entry.key_queue)
            else:
                self.oldest = min(self.oldest, entry.message.publish_time)
        for key_queue in key_queues:
            self.after(key_queue, now)
