"""Deliveries: sent to streams within their flow control, to waiting pulls, or by push.

Key queues take turns of a bounded number of messages, queues bound to a stream and free queues alternately, so that neither a busy key nor
many new keys starve the others. While messages of a key are outstanding, the key stays with its subscriber (`subscription_queue`). A key
without outstanding messages goes to its last subscriber, as best effort, unless that subscriber has more keys than its share, or is full,
or let the last deadline pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from prober.embedded import errors
from prober.embedded.key_queues import Client, KeyQueue, PullCall, QueueEntry, Stream, bind, roomiest
from prober.embedded.messages import AnswerPull, Delivery, EndStream, HalfOpen, LostDeliveries, Push, Send
from prober.embedded.subscription_queue import SubscriptionQueue

_TURN_MESSAGES: Final = 100  # messages of one key queue before the next one
_SEND_MESSAGES: Final = 500  # maximum size of one response, in messages and in bytes
_SEND_BYTES: Final = 2_000_000
_PUSHES_MAX: Final = 1_000  # outstanding requests per push subscription
_BREAKS_AFTER_S: Final = 0.3  # long enough for a client to acknowledge received messages
BREAK_MESSAGE: Final = "The service was unable to fulfill your request. Please try again. [stream reset]"


def dispatch(queue: SubscriptionQueue, now: float) -> None:
    """Deliver all messages that may be delivered now."""
    if queue.settings.detached:
        return
    if queue.settings.push_config.push_endpoint:
        _to_endpoint(queue, now)
        return
    _to_pulls(queue, now)
    if queue.streams:
        _to_streams(queue, now)


def _to_streams(queue: SubscriptionQueue, now: float) -> None:
    clients = queue.live_clients()
    moved = True
    while moved:
        moved = False
        bound = [stream for stream in queue.streams.values() if stream.ready]  # as of before the free key queue's turn
        if queue.ready:
            moved = _serve_free(queue, clients, now)
        for stream in bound:
            if stream.ready and stream.open and stream.has_room:
                _serve_bound(queue, stream, now)
                moved = True
    for stream in list(queue.streams.values()):
        if stream.outbox:
            _send(queue, stream)


def _serve_bound(queue: SubscriptionQueue, stream: Stream, now: float) -> None:
    key_queue = stream.ready.popleft()
    key_queue.queued = False
    if not key_queue.held or queue.waits(key_queue, now):
        queue.schedule(key_queue, now)  # it is free to go elsewhere, or has to wait
        return
    target = queue.engine.behaviour.stray(queue.name, key_queue, queue.streams.values(), now) or _forgetting(queue, key_queue, now)
    if target is not None:
        bind(key_queue, target)
    _serve(queue, key_queue, target or stream, now)


def _forgetting(queue: SubscriptionQueue, key_queue: KeyQueue, now: float) -> Stream | None:
    """Restart a key queue despite its outstanding messages, by a fault; return its new stream, else None.

    Never with exactly-once delivery.
    """
    if queue.settings.enable_exactly_once_delivery:
        return None
    target = queue.engine.behaviour.lose_track(queue.name, key_queue, queue.streams.values(), now)
    if target is not None:
        queue.rewind(key_queue, key_queue.lowest_held)
    return target


def _serve_free(queue: SubscriptionQueue, clients: list[Client], now: float) -> bool:
    key_queue = queue.ready[0]
    if queue.waits(key_queue, now):
        queue.ready.popleft()
        key_queue.queued = False
        queue.schedule(key_queue, now)
        return True
    stream = _route(key_queue, clients, queue.streams.values())
    if stream is None:
        return False
    queue.ready.popleft()
    key_queue.queued = False
    if key_queue.key:
        bind(key_queue, stream)
    _serve(queue, key_queue, stream, now)
    return True


def _route(key_queue: KeyQueue, clients: list[Client], streams: Iterable[Stream]) -> Stream | None:
    """Return the stream for a key queue without outstanding messages, or None if all are full. `clients`: clients with open streams."""
    if not key_queue.key:
        return roomiest(streams)
    last = key_queue.client
    if last is not None and last.streams and last is not key_queue.shunned and not _has_more_than_its_share(last, clients):
        stream = last.roomiest()
        if stream is not None:
            return stream
    chosen: Stream | None = None
    for client in sorted(clients, key=lambda client: (client is key_queue.shunned, client.keys)):
        chosen = client.roomiest()
        if chosen is not None:
            break
    return chosen


def _has_more_than_its_share(client: Client, clients: list[Client]) -> bool:
    return len(clients) > 1 and any(other.keys + 1 < client.keys and other.roomiest() is not None for other in clients)


def _serve(queue: SubscriptionQueue, key_queue: KeyQueue, stream: Stream, now: float) -> None:
    reported_after_s = queue.engine.behaviour.breaks(queue.name, key_queue, now)
    if reported_after_s is not None:
        break_stream(queue, stream, errors.ServiceError(errors.Code.UNAVAILABLE, BREAK_MESSAGE), now, reported_after_s)
        queue.schedule(key_queue, now)
        return
    for _ in range(_TURN_MESSAGES):
        entry = _next(queue, key_queue, now)
        if entry is None:
            break
        if entry.position == key_queue.acked_from < key_queue.acked_to and queue.engine.behaviour.lose_tail(
            queue.name, key_queue, now
        ):
            _lose_tail(queue, key_queue, stream, now)
            break
        stream.outbox.append(queue.lease(entry, stream, now))
        if not stream.has_room:
            break
    queue.schedule(key_queue, now)


def _lose_tail(queue: SubscriptionQueue, key_queue: KeyQueue, stream: Stream, now: float) -> None:
    """Send the rest of a redelivery into a stream that breaks a moment later.

    All its messages were acknowledged before, so the service need not redeliver them.
    """
    _send(queue, stream)
    queue.engine.effects.append(LostDeliveries(stream.id, [entry.message for entry in key_queue.pass_acked()]))
    stream.breaking = True
    queue.engine.set_timer(now + _BREAKS_AFTER_S, partial(_break_breaking, queue, stream))
    queue.after(key_queue, now)


def _break_breaking(queue: SubscriptionQueue, stream: Stream, now: float) -> None:
    """End a stream that was about to break, if its client has not ended it."""
    if stream.open:
        break_stream(queue, stream, errors.ServiceError(errors.Code.UNAVAILABLE, BREAK_MESSAGE), now)


def break_stream(
    queue: SubscriptionQueue, stream: Stream, error: errors.ServiceError, now: float, reported_after_s: float = 0.0
) -> None:
    """End a stream from the side of the server, after sending its outbox. A fault may report the end to the client later."""
    _send(queue, stream)
    queue.close_stream(stream, now)
    end = EndStream(stream.id, error)
    if reported_after_s:
        queue.engine.effects.append(HalfOpen(stream.id))
        queue.engine.set_timer(now + reported_after_s, lambda _now: queue.engine.effects.append(end))
    else:
        queue.engine.effects.append(end)


def _next(queue: SubscriptionQueue, key_queue: KeyQueue, now: float) -> QueueEntry | None:
    """Return the next entry of a key queue and advance the queue past it; the caller must send it."""
    detour = queue.engine.behaviour.detour(queue.name, key_queue, now)
    if detour is not None:
        key_queue.follow(detour)
    entry = key_queue.peek()
    if entry is None:
        return None
    if key_queue.halt_at and key_queue.cursor >= key_queue.halt_at:
        key_queue.halt_at = 0
        if now < key_queue.halt_until:
            key_queue.wake_at = key_queue.halt_until
            return None
    key_queue.advance()
    return entry


def _send(queue: SubscriptionQueue, stream: Stream) -> None:
    """Turn the outbox into effects, each small enough for one response."""
    part: list[Delivery] = []
    size = 0
    for delivery in stream.outbox:
        if part and (len(part) >= _SEND_MESSAGES or size + delivery.message.size > _SEND_BYTES):
            queue.engine.effects.append(Send(stream.id, part))
            part, size = [], 0
        part.append(delivery)
        size += delivery.message.size
    if part:
        queue.engine.effects.append(Send(stream.id, part))
    stream.outbox = []


def _has_ready(queue: SubscriptionQueue, now: float) -> bool:
    """Return whether a key queue has messages for a pull or a push; a fault may add a queue with outstanding messages."""
    if queue.ready:
        return True
    key_queue = queue.engine.behaviour.overlap(queue.settings, queue.key_queues.values(), now)
    if key_queue is not None:
        key_queue.queued = True
        queue.ready.append(key_queue)
    return key_queue is not None


def _to_pulls(queue: SubscriptionQueue, now: float) -> None:
    while queue.pulls:
        pull = queue.pulls[0]
        if not pull.open:
            queue.pulls.popleft()
            continue
        if not _has_ready(queue, now):
            return
        deliveries = _fill(queue, pull, now)
        if not deliveries:
            return
        queue.pulls.popleft()
        pull.open = False
        lost = queue.engine.behaviour.lose_answer(queue.name, deliveries, now)
        if lost is None:
            queue.engine.effects.append(AnswerPull(pull.id, deliveries))
            continue
        queue.engine.effects.append(LostDeliveries(pull.id, [delivery.message for delivery in deliveries]))
        if lost.error is not None:
            queue.engine.effects.append(AnswerPull(pull.id, [], lost.error))


def _fill(queue: SubscriptionQueue, pull: PullCall, now: float) -> list[Delivery]:
    """Return one batch per key queue, from as many key queues as necessary; each batch is in order without a gap."""
    deliveries: list[Delivery] = []
    size = 0
    while queue.ready and len(deliveries) < pull.messages_max and size < _SEND_BYTES:
        key_queue = queue.ready.popleft()
        key_queue.queued = False
        if not queue.waits(key_queue, now):
            bind(key_queue, None)
            while len(deliveries) < pull.messages_max and size < _SEND_BYTES:
                entry = _next(queue, key_queue, now)
                if entry is None:
                    break
                deliveries.append(queue.lease(entry, None, now))
                size += entry.message.size
        queue.schedule(key_queue, now)
    return deliveries


def answer_late_pull(queue: SubscriptionQueue, pull: PullCall) -> None:
    """Answer a pull whose wait is over with an empty response."""
    if pull.open:
        pull.open = False
        queue.pulls.remove(pull)
        queue.engine.effects.append(AnswerPull(pull.id, []))


def _to_endpoint(queue: SubscriptionQueue, now: float) -> None:
    """Push messages: one outstanding message per key queue (documentation, "Order messages": push)."""
    config = queue.settings.push_config
    while len(queue.pushes) < _PUSHES_MAX and _has_ready(queue, now):
        key_queue = queue.ready.popleft()
        key_queue.queued = False
        if not queue.waits(key_queue, now):
            key_queue.wake_at = queue.engine.behaviour.before_push(queue.name, key_queue, now)
        entry = None if key_queue.wake_at > now else _next(queue, key_queue, now)
        if entry is not None:
            bind(key_queue, None)
            delivery = queue.lease(entry, None, now)
            queue.pushes.add(delivery.ack_id)
            queue.engine.effects.append(Push(delivery.ack_id, queue.name, config, delivery))
        queue.schedule(key_queue, now)


def end_all(queue: SubscriptionQueue, error: errors.ServiceError, now: float) -> None:
    """End all streams and waiting pulls with an error: the subscription is deleted or changes between push and pull."""
    for stream in list(queue.streams.values()):
        break_stream(queue, stream, error, now)
    for pull in queue.pulls:
        if pull.open:
            pull.open = False
            queue.engine.effects.append(AnswerPull(pull.id, [], error))
    queue.pulls.clear()
