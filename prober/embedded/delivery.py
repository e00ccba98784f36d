"""Deliveries: handed out to streams as far as their flow control allows, to waiting pulls, or by push; and answered.

Each lane gets its turn with a bounded number of messages, lanes bound to a stream and free ones alternately, so that neither a busy key
nor a crowd of new ones starves the others. While messages of a key are outstanding the key stays where it is (`subscription_queue`). A
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
from prober.embedded.key_queues import Client, Entry, Lane, LateAnswer, PullCall, Stream, bind, roomiest
from prober.embedded.messages import AnswerPull, Delivery, EndStream, Lost, Push, Send
from prober.embedded.subscription_queue import Feed

_TURN_MESSAGES: Final = 100  # what one lane gets before the next one
_SEND_MESSAGES: Final = 500  # what one response holds at most, in messages and in bytes
_SEND_BYTES: Final = 2_000_000
_PUSHES_MAX: Final = 1_000  # outstanding requests per push subscription
_BREAKS_AFTER_S: Final = 0.3  # long enough for a client to acknowledge what reached it
_ACK_ID: Final = re.compile(r"ack-[0-9a-f]{1,32}")
_CONFIRMED_KEPT_MAX: Final = 10_000  # exactly-once delivery: acknowledgements that may be repeated
BREAK_MESSAGE: Final = "The service was unable to fulfill your request. Please try again. [stream reset]"


def dispatch(feed: Feed, now: float) -> None:
    """Hand out all that may go out now."""
    if feed.settings.detached:
        return
    if feed.settings.push_config.push_endpoint:
        _to_endpoint(feed, now)
        return
    _to_pulls(feed, now)
    if feed.streams:
        _to_streams(feed, now)


def _to_streams(feed: Feed, now: float) -> None:
    clients = feed.live_clients()
    moved = True
    while moved:
        moved = False
        bound = [stream for stream in feed.streams.values() if stream.ready]  # as of before the free lane's turn
        if feed.ready:
            moved = _serve_free(feed, clients, now)
        for stream in bound:
            if stream.ready and stream.open and stream.has_room:
                _serve_bound(feed, stream, now)
                moved = True
    for stream in list(feed.streams.values()):
        if stream.outbox:
            _send(feed, stream)


def _serve_bound(feed: Feed, stream: Stream, now: float) -> None:
    lane = stream.ready.popleft()
    lane.queued = False
    if not lane.held or feed.waits(lane, now):
        feed.schedule(lane, now)  # it is free to go elsewhere, or has to wait
        return
    target = feed.engine.conduct.stray(feed.name, lane, feed.streams.values(), now) or _forgetting(feed, lane, now)
    if target is not None:
        bind(lane, target)
    _serve(feed, lane, target or stream, now)


def _forgetting(feed: Feed, lane: Lane, now: float) -> Stream | None:
    """Where a lane starts again although messages of it are outstanding, if it does; exactly-once delivery rules that out."""
    if feed.settings.enable_exactly_once_delivery:
        return None
    target = feed.engine.conduct.lose_track(feed.name, lane, feed.streams.values(), now)
    if target is not None:
        feed.rewind(lane, lane.lowest_held)
    return target


def _serve_free(feed: Feed, clients: list[Client], now: float) -> bool:
    lane = feed.ready[0]
    if feed.waits(lane, now):
        feed.ready.popleft()
        lane.queued = False
        feed.schedule(lane, now)
        return True
    stream = _route(lane, clients, feed.streams.values())
    if stream is None:
        return False
    feed.ready.popleft()
    lane.queued = False
    if lane.key:
        bind(lane, stream)
    _serve(feed, lane, stream, now)
    return True


def _route(lane: Lane, clients: list[Client], streams: Iterable[Stream]) -> Stream | None:
    """The stream for a lane of which nothing is outstanding; None when all are full. `clients` are those with open streams."""
    if not lane.key:
        return roomiest(streams)
    last = lane.client
    if last is not None and last.streams and last is not lane.shunned and not _has_more_than_its_share(last, clients):
        stream = last.roomiest()
        if stream is not None:
            return stream
    chosen: Stream | None = None
    for client in sorted(clients, key=lambda client: (client is lane.shunned, client.keys)):
        chosen = client.roomiest()
        if chosen is not None:
            break
    return chosen


def _has_more_than_its_share(client: Client, clients: list[Client]) -> bool:
    return len(clients) > 1 and any(other.keys + 1 < client.keys and other.roomiest() is not None for other in clients)


def _serve(feed: Feed, lane: Lane, stream: Stream, now: float) -> None:
    """Give a lane its turn on a stream."""
    if feed.engine.conduct.breaks(feed.name, lane, now):
        break_stream(feed, stream, errors.ServiceError(errors.Code.UNAVAILABLE, BREAK_MESSAGE), now)
        feed.schedule(lane, now)
        return
    deadline = now + stream.deadline_s
    for _ in range(_TURN_MESSAGES):
        entry = _next(lane, now)
        if entry is None:
            break
        if entry.position == lane.acked_from < lane.acked_to and feed.engine.conduct.lose_tail(feed.name, lane, now):
            _lose_tail(feed, lane, stream, now)
            break
        stream.outbox.append(feed.lease(entry, stream, deadline))
        if not stream.has_room:
            break
    feed.schedule(lane, now)


def _lose_tail(feed: Feed, lane: Lane, stream: Stream, now: float) -> None:
    """Send the rest of a redelivery into a stream that breaks a moment later: acknowledged before, it need not come again."""
    _send(feed, stream)
    feed.engine.effects.append(Lost(stream.id, [entry.message for entry in lane.pass_acked()]))
    stream.breaking = True
    feed.engine.set_timer(now + _BREAKS_AFTER_S, feed, stream)
    feed.after(lane, now)


def break_breaking(feed: Feed, stream: Stream, now: float) -> None:
    """End a stream that was about to break, if its client has not ended it."""
    if stream.open:
        break_stream(feed, stream, errors.ServiceError(errors.Code.UNAVAILABLE, BREAK_MESSAGE), now)


def break_stream(feed: Feed, stream: Stream, error: errors.ServiceError, now: float) -> None:
    """End a stream from this side; what was about to be sent on it goes out first."""
    _send(feed, stream)
    feed.close_stream(stream, now)
    feed.engine.effects.append(EndStream(stream.id, error))


def _next(lane: Lane, now: float) -> Entry | None:
    """The entry to send, which the caller does send."""
    entry = lane.peek()
    if entry is None:
        return None
    if lane.halt_at and lane.cursor >= lane.halt_at:
        lane.halt_at = 0
        if now < lane.halt_until:
            lane.wake_at = lane.halt_until
            return None
    lane.advance()
    return entry


def _send(feed: Feed, stream: Stream) -> None:
    """Turn the outbox into effects, each small enough for one response."""
    part: list[Delivery] = []
    size = 0
    for delivery in stream.outbox:
        if part and (len(part) >= _SEND_MESSAGES or size + delivery.message.size > _SEND_BYTES):
            feed.engine.effects.append(Send(stream.id, part))
            part, size = [], 0
        part.append(delivery)
        size += delivery.message.size
    if part:
        feed.engine.effects.append(Send(stream.id, part))
    stream.outbox = []


def _to_pulls(feed: Feed, now: float) -> None:
    while feed.ready and feed.pulls:
        pull = feed.pulls[0]
        if not pull.open:
            feed.pulls.popleft()
            continue
        deliveries = _fill(feed, pull, now)
        if not deliveries:
            return
        feed.pulls.popleft()
        pull.open = False
        lost = feed.engine.conduct.lose_answer(feed.name, deliveries, now)
        if lost is None:
            feed.engine.effects.append(AnswerPull(pull.id, deliveries))
            continue
        feed.engine.effects.append(Lost(pull.id, [delivery.message for delivery in deliveries]))
        if lost.error is not None:
            feed.engine.effects.append(AnswerPull(pull.id, [], lost.error))


def _fill(feed: Feed, pull: PullCall, now: float) -> list[Delivery]:
    """One batch per lane, from as many lanes as it takes; each is in order and without a hole."""
    deliveries: list[Delivery] = []
    size = 0
    deadline = now + feed.settings.ack_deadline_s
    while feed.ready and len(deliveries) < pull.messages_max and size < _SEND_BYTES:
        lane = feed.ready.popleft()
        lane.queued = False
        if not feed.waits(lane, now):
            bind(lane, None)
            while len(deliveries) < pull.messages_max and size < _SEND_BYTES:
                entry = _next(lane, now)
                if entry is None:
                    break
                deliveries.append(feed.lease(entry, None, deadline))
                size += entry.message.size
        feed.schedule(lane, now)
    return deliveries


def answer_late_pull(feed: Feed, pull: PullCall) -> None:
    """A pull's time is up: answer it with what there is, which is nothing."""
    if pull.open:
        pull.open = False
        feed.pulls.remove(pull)
        feed.engine.effects.append(AnswerPull(pull.id, []))


def _to_endpoint(feed: Feed, now: float) -> None:
    """Push: one outstanding message per lane (documentation, "Order messages": push)."""
    config, timeout = feed.settings.push_config, feed.settings.ack_deadline_s
    while feed.ready and len(feed.pushes) < _PUSHES_MAX:
        lane = feed.ready.popleft()
        lane.queued = False
        entry = None if feed.waits(lane, now) else _next(lane, now)
        if entry is not None:
            bind(lane, None)
            delivery = feed.lease(entry, None, now + timeout)
            feed.pushes.add(delivery.ack_id)
            feed.engine.effects.append(Push(delivery.ack_id, feed.name, config, delivery))
        feed.schedule(lane, now)


def end_all(feed: Feed, error: errors.ServiceError, now: float) -> None:
    """End every stream and waiting pull with an error: the subscription is going away or changes its kind."""
    for stream in list(feed.streams.values()):
        break_stream(feed, stream, error, now)
    for pull in feed.pulls:
        if pull.open:
            pull.open = False
            feed.engine.effects.append(AnswerPull(pull.id, [], error))
    feed.pulls.clear()


# --- answers ----------------------------------------------------------------------------------------------------------------------


def acknowledge(feed: Feed, ack_ids: Sequence[str], now: float) -> dict[str, str]:
    """Settle what these ids name; raises INVALID_ARGUMENT, before anything is done, for what cannot be an id."""
    found, failed = _find(feed, ack_ids, feed.confirmed)
    exactly_once = feed.settings.enable_exactly_once_delivery
    if exactly_once:
        found.sort(key=lambda entry: entry.position)  # the order inside one request is not held against the subscriber
    for entry in found:
        ack_id = entry.ack_id
        if not ack_id:
            continue  # named twice
        if feed.engine.conduct.lose_ack(feed.name, entry, now):
            failed[ack_id] = errors.TEMPORARY_FAILURE
        elif exactly_once and entry.lane.key and not _is_first(entry):
            failed[ack_id] = errors.UNORDERED_ACK_ID
        elif not _put_off(feed, entry, None, now):
            feed.settle(entry, now)
            if exactly_once:
                _remember(feed, ack_id)
    return failed if exactly_once else {}


def _is_first(entry: Entry) -> bool:
    entry.lane.trim()
    return entry.position == entry.lane.floor


def _remember(feed: Feed, ack_id: str) -> None:
    """Keep an id for a while: "acknowledging a message more than once will not result in an error" (proto, AcknowledgeRequest)."""
    feed.confirmed[ack_id] = None
    if len(feed.confirmed) > _CONFIRMED_KEPT_MAX:
        del feed.confirmed[next(iter(feed.confirmed))]


def modify(feed: Feed, ack_ids: Sequence[str], seconds: int, now: float) -> dict[str, str]:
    """Move deadlines to so many seconds from now; 0 refuses the messages. Raises INVALID_ARGUMENT like `acknowledge`."""
    resources.check_ack_deadline(seconds)
    found, failed = _find(feed, ack_ids, ())
    if seconds == 0:
        feed.fail(dict.fromkeys(found), now, expired=False)
    else:
        for entry in found:
            if now + seconds <= entry.deadline or not _put_off(feed, entry, seconds, now):
                _set_deadline(feed, entry, now + seconds)
    return failed if feed.settings.enable_exactly_once_delivery else {}


def _set_deadline(feed: Feed, entry: Entry, deadline: float) -> None:
    sooner = deadline < entry.deadline
    entry.deadline = deadline
    if sooner:
        feed.engine.leases.watch(feed, entry)


def _put_off(feed: Feed, entry: Entry, seconds: int | None, now: float) -> bool:
    """Whether an acknowledgement or a further deadline takes effect later. With exactly-once delivery it was confirmed by then."""
    if feed.settings.enable_exactly_once_delivery:
        return False
    late_s = feed.engine.conduct.delay_answer(feed.name, entry, now)
    if late_s > 0.0:
        feed.engine.set_timer(now + late_s, feed, LateAnswer(entry.ack_id, seconds))
    return late_s > 0.0


def take_effect(feed: Feed, late: LateAnswer, now: float) -> None:
    """What was put off has its effect now, as if it had been said now."""
    entry = feed.leases.get(late.ack_id)
    if entry is None:
        return
    if late.seconds is None:
        feed.settle(entry, now)
    else:
        _set_deadline(feed, entry, now + late.seconds)


def _find(feed: Feed, ack_ids: Sequence[str], harmless: Iterable[str]) -> tuple[list[Entry], dict[str, str]]:
    """The outstanding entries that are meant, and the reasons for those that are not outstanding."""
    if not ack_ids:
        raise errors.no_ack_ids()
    leases = feed.leases
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


def push_answered(feed: Feed, push: str, *, accepted: bool, now: float) -> None:
    """A push endpoint has answered, or could not be reached; late answers have no effect."""
    entry = feed.leases.get(push)
    if entry is None:
        return
    feed.pushes.discard(push)
    if not accepted:
        feed.fail([entry], now, expired=False)
    elif not feed.engine.conduct.lose_ack(feed.name, entry, now) and not _put_off(feed, entry, None, now):
        feed.settle(entry, now)
    if feed.ready:
        feed.engine.dirty[feed] = None
