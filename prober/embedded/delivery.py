"""Deliveries: handed out to streams as far as their flow control allows, to waiting pulls, or by push; and answered.

Each key queue gets its turn with a bounded number of messages, those bound to a stream and free ones alternately, so that neither a busy
key nor a crowd of new ones starves the others. While messages of a key are outstanding the key stays where it is (`subscription_queue`). A
key of which nothing is outstanding goes to its last subscriber, as best effort, unless that one has more keys than its share, or is
full, or let the last deadline pass.

An answer is an acknowledgement, a refusal (a deadline of 0) or a moved deadline. Without exactly-once delivery an answer to a delivery
that is over is accepted and has no effect ("If the ack ID has expired, the message may be redelivered later", proto,
AcknowledgeRequest). With it such an answer fails, and acknowledgements of one key are only accepted in order (documentation,
"Exactly-once delivery"). What failed, and why, is returned by acknowledgement id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from prober.embedded import errors, resources
from prober.embedded.key_queues import Client, KeyQueue, LateAnswer, PullCall, QueueEntry, Stream, bind, roomiest
from prober.embedded.messages import AnswerPull, Delivery, EndStream, LostDeliveries, Push, Send
from prober.embedded.subscription_queue import SubscriptionQueue

_TURN_MESSAGES: Final = 100  # what one key queue gets before the next one
_SEND_MESSAGES: Final = 500  # what one response holds at most, in messages and in bytes
_SEND_BYTES: Final = 2_000_000
_PUSHES_MAX: Final = 1_000  # outstanding requests per push subscription
_BREAKS_AFTER_S: Final = 0.3  # long enough for a client to acknowledge what reached it
_ACK_ID: Final = re.compile(r"ack-[0-9a-f]{1,32}")
_CONFIRMED_KEPT_MAX: Final = 10_000  # exactly-once delivery: acknowledgements that may be repeated
BREAK_MESSAGE: Final = "The service was unable to fulfill your request. Please try again. [stream reset]"


def dispatch(queue: SubscriptionQueue, now: float) -> None:
    """Hand out all that may go out now."""
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
    """Where a key queue starts again although messages of it are outstanding, if it does; exactly-once delivery rules that out."""
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
    """The stream for a key queue of which nothing is outstanding; None when all are full. `clients` are those with open streams."""
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
    """Give a key queue its turn on a stream."""
    if queue.engine.behaviour.breaks(queue.name, key_queue, now):
        break_stream(queue, stream, errors.ServiceError(errors.Code.UNAVAILABLE, BREAK_MESSAGE), now)
        queue.schedule(key_queue, now)
        return
    deadline = now + stream.deadline_s
    for _ in range(_TURN_MESSAGES):
        entry = _next(key_queue, now)
        if entry is None:
            break
        if entry.position == key_queue.acked_from < key_queue.acked_to and queue.engine.behaviour.lose_tail(
            queue.name, key_queue, now
        ):
            _lose_tail(queue, key_queue, stream, now)
            break
        stream.outbox.append(queue.lease(entry, stream, deadline))
        if not stream.has_room:
            break
    queue.schedule(key_queue, now)


def _lose_tail(queue: SubscriptionQueue, key_queue: KeyQueue, stream: Stream, now: float) -> None:
    """Send the rest of a redelivery into a stream that breaks a moment later: acknowledged before, it need not come again."""
    _send(queue, stream)
    queue.engine.effects.append(LostDeliveries(stream.id, [entry.message for entry in key_queue.pass_acked()]))
    stream.breaking = True
    queue.engine.set_timer(now + _BREAKS_AFTER_S, queue, stream)
    queue.after(key_queue, now)


def break_breaking(queue: SubscriptionQueue, stream: Stream, now: float) -> None:
    """End a stream that was about to break, if its client has not ended it."""
    if stream.open:
        break_stream(queue, stream, errors.ServiceError(errors.Code.UNAVAILABLE, BREAK_MESSAGE), now)


def break_stream(queue: SubscriptionQueue, stream: Stream, error: errors.ServiceError, now: float) -> None:
    """End a stream from this side; what was about to be sent on it goes out first."""
    _send(queue, stream)
    queue.close_stream(stream, now)
    queue.engine.effects.append(EndStream(stream.id, error))


def _next(key_queue: KeyQueue, now: float) -> QueueEntry | None:
    """The entry to send, which the caller does send."""
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


def _to_pulls(queue: SubscriptionQueue, now: float) -> None:
    while queue.ready and queue.pulls:
        pull = queue.pulls[0]
        if not pull.open:
            queue.pulls.popleft()
            continue
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
    """One batch per key queue, from as many key queues as it takes; each is in order and without a hole."""
    deliveries: list[Delivery] = []
    size = 0
    deadline = now + queue.settings.ack_deadline_s
    while queue.ready and len(deliveries) < pull.messages_max and size < _SEND_BYTES:
        key_queue = queue.ready.popleft()
        key_queue.queued = False
        if not queue.waits(key_queue, now):
            bind(key_queue, None)
            while len(deliveries) < pull.messages_max and size < _SEND_BYTES:
                entry = _next(key_queue, now)
                if entry is None:
                    break
                deliveries.append(queue.lease(entry, None, deadline))
                size += entry.message.size
        queue.schedule(key_queue, now)
    return deliveries


def answer_late_pull(queue: SubscriptionQueue, pull: PullCall) -> None:
    """A pull's time is up: answer it with what there is, which is nothing."""
    if pull.open:
        pull.open = False
        queue.pulls.remove(pull)
        queue.engine.effects.append(AnswerPull(pull.id, []))


def _to_endpoint(queue: SubscriptionQueue, now: float) -> None:
    """Push: one outstanding message per key queue (documentation, "Order messages": push)."""
    config, timeout = queue.settings.push_config, queue.settings.ack_deadline_s
    while queue.ready and len(queue.pushes) < _PUSHES_MAX:
        key_queue = queue.ready.popleft()
        key_queue.queued = False
        entry = None if queue.waits(key_queue, now) else _next(key_queue, now)
        if entry is not None:
            bind(key_queue, None)
            delivery = queue.lease(entry, None, now + timeout)
            queue.pushes.add(delivery.ack_id)
            queue.engine.effects.append(Push(delivery.ack_id, queue.name, config, delivery))
        queue.schedule(key_queue, now)


def end_all(queue: SubscriptionQueue, error: errors.ServiceError, now: float) -> None:
    """End every stream and waiting pull with an error: the subscription is going away or changes its kind."""
    for stream in list(queue.streams.values()):
        break_stream(queue, stream, error, now)
    for pull in queue.pulls:
        if pull.open:
            pull.open = False
            queue.engine.effects.append(AnswerPull(pull.id, [], error))
    queue.pulls.clear()


# --- answers ----------------------------------------------------------------------------------------------------------------------


def acknowledge(queue: SubscriptionQueue, ack_ids: Sequence[str], now: float) -> dict[str, str]:
    """Settle what these ids name; raises INVALID_ARGUMENT, before anything is done, for what cannot be an id."""
    found, failed = _find(queue, ack_ids, queue.confirmed)
    exactly_once = queue.settings.enable_exactly_once_delivery
    if exactly_once:
        found.sort(key=lambda entry: entry.position)  # the order inside one request is not held against the subscriber
    for entry in found:
        ack_id = entry.ack_id
        if not ack_id:
            continue  # named twice
        if queue.engine.behaviour.lose_ack(queue.name, entry, now):
            failed[ack_id] = errors.TEMPORARY_FAILURE
        elif exactly_once and entry.key_queue.key and not _is_first(entry):
            failed[ack_id] = errors.UNORDERED_ACK_ID
        elif not _put_off(queue, entry, None, now):
            queue.settle(entry, now)
            if exactly_once:
                _remember(queue, ack_id)
    return failed if exactly_once else {}


def _is_first(entry: QueueEntry) -> bool:
    entry.key_queue.trim()
    return entry.position == entry.key_queue.floor


def _remember(queue: SubscriptionQueue, ack_id: str) -> None:
    """Keep an id for a while: "acknowledging a message more than once will not result in an error" (proto, AcknowledgeRequest)."""
    queue.confirmed[ack_id] = None
    if len(queue.confirmed) > _CONFIRMED_KEPT_MAX:
        del queue.confirmed[next(iter(queue.confirmed))]


def modify(queue: SubscriptionQueue, ack_ids: Sequence[str], seconds: int, now: float) -> dict[str, str]:
    """Move deadlines to so many seconds from now; 0 refuses the messages. Raises INVALID_ARGUMENT like `acknowledge`."""
    resources.check_ack_deadline(seconds)
    found, failed = _find(queue, ack_ids, ())
    if seconds == 0:
        queue.fail(dict.fromkeys(found), now, expired=False)
    else:
        for entry in found:
            if now + seconds <= entry.deadline or not _put_off(queue, entry, seconds, now):
                _set_deadline(queue, entry, now + seconds)
    return failed if queue.settings.enable_exactly_once_delivery else {}


def _set_deadline(queue: SubscriptionQueue, entry: QueueEntry, deadline: float) -> None:
    sooner = deadline < entry.deadline
    entry.deadline = deadline
    if sooner:
        queue.engine.leases.watch(queue, entry)


def _put_off(queue: SubscriptionQueue, entry: QueueEntry, seconds: int | None, now: float) -> bool:
    """Whether an acknowledgement or a further deadline takes effect later. With exactly-once delivery it was confirmed by then."""
    if queue.settings.enable_exactly_once_delivery:
        return False
    late_s = queue.engine.behaviour.delay_answer(queue.name, entry, now)
    if late_s > 0.0:
        queue.engine.set_timer(now + late_s, queue, LateAnswer(entry.ack_id, seconds))
    return late_s > 0.0


def take_effect(queue: SubscriptionQueue, late: LateAnswer, now: float) -> None:
    """What was put off has its effect now, as if it had been said now."""
    entry = queue.leases.get(late.ack_id)
    if entry is None:
        return
    if late.seconds is None:
        queue.settle(entry, now)
    else:
        _set_deadline(queue, entry, now + late.seconds)


def _find(queue: SubscriptionQueue, ack_ids: Sequence[str], harmless: Iterable[str]) -> tuple[list[QueueEntry], dict[str, str]]:
    """The outstanding entries that are meant, and the reasons for those that are not outstanding."""
    if not ack_ids:
        raise errors.no_ack_ids()
    leases = queue.leases
    found, failed = [], {}
    for ack_id in ack_ids:
        entry = leases.get(ack_id)
        if entry is not None:
            found.append(entry)
        elif not _ACK_ID.fullmatch(ack_id):
            raise errors.bad_ack_id(ack_id)
        elif ack_id not in harmless:
            failed[ack_id] = errors.INVALID_ACK_ID
    return found, failed


def push_answered(queue: SubscriptionQueue, push: str, *, accepted: bool, now: float) -> None:
    """A push endpoint has answered, or could not be reached; late answers have no effect."""
    entry = queue.leases.get(push)
    if entry is None:
        return
    queue.pushes.discard(push)
    if not accepted:
        queue.fail([entry], now, expired=False)
    elif not queue.engine.behaviour.lose_ack(queue.name, entry, now) and not _put_off(queue, entry, None, now):
        queue.settle(entry, now)
    if queue.ready:
        queue.engine.dirty[queue] = None
