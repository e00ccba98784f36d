"""Faults of deliveries: their content, receiver and time, and the handling of answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from prober.embedded.errors import ServiceError, unavailable
from prober.embedded.faults import Armed, Faults
from prober.embedded.key_queues import Detour, KeyQueue, QueueEntry, Stream
from prober.embedded.messages import Delivery
from prober.embedded.resources import Subscription

_DETOURS: Final = ("lone_duplicate", "hole", "skip_waiting", "late_fill")
_WAITED_S: Final = 5.0
_SLOW_S: Final = 2.0
_JITTER_MAX_S: Final = 0.5
_LATE_MAX_S: Final = 2.0
_LATE_MIN_S: Final = 0.1
_LETTER_LATE_S: Final = 1.0  # time for which `storage_faults` keeps a message back
_NEW_S: Final = 15.0  # above the expected maximum of 10 s
_SUBSCRIPTIONS_MAX: Final = 10_000  # subscriptions remembered as not new
_LATE_AFTER_S: Final = 1.0
_HELD_UP_AFTER_S: Final = {"head_of_line": _LATE_AFTER_S, "few_keys_at_once": 0.0}
_PLACES_MAX: Final = 100_000  # subscriptions with a key of which something is remembered
_LEASE_SHARE: Final = 0.1
_PUSHES_APART_S: Final = 0.1
_PUSHED_KEYS_MAX: Final = 10_000  # keys with a remembered time of the next push
_HALF_OPEN_S: Final = 3.0
_AFTER_CONFIRMATION_S: Final = 6.0  # later than a copy that was sent before may arrive


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Way of redelivery of a message.

    again       positions to send while the cursor stays in place; None: the correct rewind.
    detour      positions to send first after the correct rewind.
    halt_until  end of a silence of the key queue after the first redelivered message; 0: no silence.
    """

    again: tuple[int, ...] | None = None
    detour: Detour | None = None
    halt_until: float = 0.0


HONEST_REDELIVERY: Final = Redelivery()


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """A pull response that never arrives.

    error: error that the client gets instead; None: no response.
    """

    error: ServiceError | None = None


class DeliveryFaults:
    """Decisions about deliveries; correct while no fault is armed."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._stall: Armed | None = None
        self._new_until: dict[str, float] = {}
        self._overtaken_until: dict[tuple[str, str], float] = {}
        self._push_from: dict[tuple[str, str], float] = {}

    def detour(self, subscription: str, key_queue: KeyQueue, now: float) -> Detour | None:
        """Return positions that a key queue sends before its next message, or None.

        Injects lone_duplicate before a new message, or hole, skip_waiting, late_fill if another message follows.
        """
        if not self.faults.any_armed or key_queue.again or not any(map(self.faults.has, _DETOURS)):
            return None
        entry = key_queue.peek()
        if entry is None or entry.position < key_queue.sent or entry.position == key_queue.resumed:
            return None
        earlier = key_queue.held_before(entry.position - 1) if self.faults.has("lone_duplicate") else ()
        if earlier and (armed := self.faults.choose("lone_duplicate", key_queue.key, now)):
            duplicate = armed.dice.choice(earlier)
            self.faults.record(armed, subscription, key_queue.key, now, duplicate.message.id)
            return Detour((duplicate.position,), key_queue.cursor)
        if next(key_queue.behind(entry.position), None) is None:
            return None
        waited = now - entry.message.publish_time >= _WAITED_S
        for fault in ("hole", "skip_waiting") if waited else ("hole",):
            if self.faults.strike(fault, subscription, key_queue.key, now, entry.message.id):
                return Detour((), entry.position + 1)
        if self.faults.strike("late_fill", subscription, key_queue.key, now, entry.message.id):
            return Detour((*(other.position for other in key_queue.behind(entry.position)), entry.position), key_queue.end)
        return None

    def redeliver(self, subscription: Subscription, entry: QueueEntry, now: float, *, expired: bool) -> Redelivery:
        """Return the way of redelivery of a message that was nacked or whose deadline passed.

        Injects never_redeliver or push_past_failure. If messages were sent after the entry: stall_run, redeliver_single,
        redeliver_unacked_only, reorder_run.
        """
        key_queue, message = entry.key_queue, entry.message
        if self.faults.strike("never_redeliver", subscription.name, key_queue.key, now, message.id):
            return Redelivery(again=())
        if subscription.push_config.push_endpoint and not expired and self.faults.has("push_past_failure"):
            return self._past_failure(subscription.name, entry, now)
        later = key_queue.sent_after(entry.position)
        if not later:
            return HONEST_REDELIVERY
        if armed := self.faults.strike("stall_run", subscription.name, key_queue.key, now, message.id):
            return Redelivery(halt_until=armed.ends)
        if self.faults.strike("redeliver_single", subscription.name, key_queue.key, now, message.id):
            return Redelivery(again=(entry.position,))
        if len(later) > 1 and (armed := self.faults.strike("reorder_run", subscription.name, key_queue.key, now, message.id)):
            order = [other.position for other in later]
            at = armed.dice.randrange(len(order) - 1)
            order[at], order[at + 1] = order[at + 1], order[at]
            return Redelivery(detour=Detour((entry.position, *order), key_queue.cursor))
        acknowledged = any(other.settled for other in later)
        if acknowledged and self.faults.strike("redeliver_unacked_only", subscription.name, key_queue.key, now, message.id):
            return Redelivery(again=(entry.position, *(other.position for other in later if not other.settled)))
        return HONEST_REDELIVERY

    def _past_failure(self, subscription: str, entry: QueueEntry, now: float) -> Redelivery:
        """Inject push_past_failure on a nacked push. No later message was pushed yet, so only the next push can be wrong."""
        after = next(entry.key_queue.behind(entry.position), None)
        if after is None or not self.faults.strike("push_past_failure", subscription, entry.key_queue.key, now, entry.message.id):
            return HONEST_REDELIVERY
        return Redelivery(detour=Detour((after.position, entry.position), after.position + 1))

    def skips_backoff(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether a nacked or expired message is redelivered without the back-off of its retry policy. Injects backoff_ignored."""
        return bool(self.faults.strike("backoff_ignored", subscription, entry.key_queue.key, now, entry.message.id))

    def postpone(
        self,
        subscription: str,
        key_queue: KeyQueue,
        outstanding: Iterable[QueueEntry],
        elsewhere: Iterable[QueueEntry],
        now: float,
    ) -> float:
        """Return the time before which a key queue with messages to send stays silent (infinity: for good), or 0.

        outstanding: entries of all keys of the subscription, in the order in which they were sent. elsewhere: those of the topic's other
        subscriptions. Injects one of the faults that delay a key queue, with one opportunity per new message. These are slow_creation,
        stall_key, slow_delivery, head_of_line, few_keys_at_once, sibling_delays and jitter.
        """
        if key_queue.decided >= key_queue.end:
            return 0.0
        key_queue.decided = key_queue.end
        if (silent_until := self._silent_while_new(subscription, key_queue.key, now)) > now:
            return silent_until
        if key_queue.key and (armed := self.faults.strike("stall_key", subscription, key_queue.key, now)):
            return armed.ends
        if self.faults.strike("slow_delivery", subscription, key_queue.key, now):
            return now + _SLOW_S
        for fault, after_s in _HELD_UP_AFTER_S.items():
            held_up = self._is_held_up(fault, after_s, key_queue, outstanding, now)
            if held_up and self.faults.strike(fault, subscription, key_queue.key, now):
                return now + _SLOW_S
        if self._is_late(elsewhere, now) and self.faults.strike("sibling_delays", subscription, key_queue.key, now):
            return now + _SLOW_S
        if armed := self.faults.strike("jitter", subscription, key_queue.key, now):
            return now + armed.dice.uniform(0.0, _JITTER_MAX_S)
        return 0.0

    def _is_held_up(self, fault: str, after_s: float, key_queue: KeyQueue, outstanding: Iterable[QueueEntry], now: float) -> bool:
        """Return whether a message of another key is outstanding for `after_s` seconds (head_of_line, few_keys_at_once)."""
        if not self.faults.has(fault):
            return False
        other = next((entry for entry in outstanding if entry.key_queue.key not in ("", key_queue.key)), None)
        return other is not None and now - other.sent_at >= after_s

    def _is_late(self, elsewhere: Iterable[QueueEntry], now: float) -> bool:
        """Return whether a message is outstanding for long on another subscription (sibling_delays)."""
        return self.faults.has("sibling_delays") and any(now - entry.sent_at >= _LATE_AFTER_S for entry in elsewhere)

    def _silent_while_new(self, subscription: str, key: str, now: float) -> float:
        """Inject slow_creation at the first message of a subscription; return the end of the silence for all its keys."""
        if subscription not in self._new_until:
            if len(self._new_until) >= _SUBSCRIPTIONS_MAX:
                del self._new_until[next(iter(self._new_until))]
            self._new_until[subscription] = now + _NEW_S if self.faults.strike("slow_creation", subscription, key, now) else now
        return self._new_until[subscription]

    def dead_lettered(self, subscription: str, entry: QueueEntry, now: float) -> float:
        """Return the time before which all keys of a subscription stay silent after it dead-lettered a message, or 0.

        Injects dead_letter_stalls_keys.
        """
        armed = self.faults.strike("dead_letter_stalls_keys", subscription, entry.key_queue.key, now, entry.message.id)
        return armed.ends if armed else 0.0

    def forwards_late(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether `store` keeps back a message on its way to the dead-letter topic.

        Injects dead_letter_late: while a message of a key is kept back, the next ones pass it.
        """
        if not self.faults.has("dead_letter_late"):
            return False
        place = subscription, entry.key_queue.key
        if now < self._overtaken_until.get(place, -math.inf):
            return False
        if len(self._overtaken_until) >= _PLACES_MAX:
            self._overtaken_until.clear()
        injected = self.faults.strike("dead_letter_late", *place, now, entry.message.id)
        self._overtaken_until[place] = now + _LETTER_LATE_S if injected else now
        return injected is not None

    def overlap(self, subscription: Subscription, key_queues: Iterable[KeyQueue], now: float) -> KeyQueue | None:
        """Return a key queue to serve by pull or push despite its outstanding messages, or None.

        Injects overlap_pull or overlap_push, with one opportunity per waiting message.
        """
        name = "overlap_push" if subscription.push_config.push_endpoint else "overlap_pull"
        for key_queue in key_queues if self.faults.has(name) else ():
            waits = key_queue.held and key_queue.stream is None and not key_queue.queued and key_queue.wake_at <= now
            entry = key_queue.peek() if waits and key_queue.key else None
            if entry is None or entry.position == key_queue.asked:
                continue
            key_queue.asked = entry.position
            if self.faults.strike(name, subscription.name, key_queue.key, now, entry.message.id):
                return key_queue
        return None

    def before_push(self, subscription: str, key_queue: KeyQueue, now: float) -> float:
        """Return the time before which the next message of a key queue is not pushed, or 0.

        Injects throttle_push; called again at the returned time.
        """
        if not self.faults.has("throttle_push"):
            return 0.0
        key = subscription, key_queue.key
        free_at = self._push_from.pop(key, 0.0)
        if free_at > now:
            self._push_from[key] = free_at
            return free_at
        if len(self._push_from) >= _PUSHED_KEYS_MAX:
            del self._push_from[next(iter(self._push_from))]
        if key_queue.key and self.faults.strike("throttle_push", subscription, key_queue.key, now):
            self._push_from[key] = now + _PUSHES_APART_S
        return 0.0

    def stray(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """Return another stream for the next messages of a key queue than the one with its outstanding messages, or None.

        Injects split_holder, if another subscriber has free flow control.
        """
        if not self.faults.has("split_holder"):
            return None
        others = [stream for stream in streams if stream.open and stream.client is not key_queue.client and stream.has_room]
        entry = key_queue.peek() if others else None
        armed = self.faults.strike("split_holder", subscription, key_queue.key, now, entry.message.id) if entry else None
        return armed.dice.choice(others) if armed else None

    def lose_track(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """Return another stream on which a key queue restarts from its lowest outstanding message, or None.

        Injects early_redelivery, if another subscriber has free flow control. Not while messages to the holder are in the outbox.
        """
        if not self.faults.has("early_redelivery") or key_queue.stream is None or key_queue.stream.outbox:
            return None
        others = [stream for stream in streams if stream.open and stream.client is not key_queue.client and stream.has_room]
        lowest = key_queue.at(key_queue.lowest_held).message
        armed = self.faults.strike("early_redelivery", subscription, key_queue.key, now, lowest.id) if others else None
        return armed.dice.choice(others) if armed else None

    def forget_holds(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """Return whether a key queue with outstanding messages restarts from the lowest of them when it gets a new message.

        Injects forget_holds.
        """
        if not self.faults.has("forget_holds"):
            return False
        lowest = key_queue.at(key_queue.lowest_held).message
        return bool(self.faults.strike("forget_holds", subscription, key_queue.key, now, lowest.id))

    def looks_early(self, lease_s: float) -> float:
        """Return the time after which `ends_early` is called for a lease of `lease_s` seconds, in seconds; 0: never."""
        return lease_s * _LEASE_SHARE if self.faults.has("lease_short") else 0.0

    def ends_early(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether the lease of an outstanding message ends before its time. Injects lease_short."""
        return bool(self.faults.strike("lease_short", subscription, entry.key_queue.key, now, entry.message.id))

    def breaks(self, subscription: str, key_queue: KeyQueue, now: float) -> float | None:
        """Return the delay, in seconds, until a client learns that its stream breaks at messages of this key queue.

        None: it does not break. Injects stream_break or half_open_stream.
        """
        if self.faults.strike("stream_break", subscription, key_queue.key, now):
            return 0.0
        if self.faults.strike("half_open_stream", subscription, key_queue.key, now):
            return _HALF_OPEN_S
        return None

    def stream_gone(self, subscription: Subscription, entry: QueueEntry, now: float) -> float:
        """Return the time before which the key of an outstanding message stays silent after its stream ended, or 0.

        Injects break_stalls_keys.
        """
        if not subscription.enable_exactly_once_delivery:
            return 0.0
        armed = self.faults.strike("break_stalls_keys", subscription.name, entry.key_queue.key, now, entry.message.id)
        return armed.ends if armed else 0.0

    def resumes_past(self, subscription: str, held: Sequence[QueueEntry], now: float) -> bool:
        """Return whether to lose the outstanding messages of a key whose stream ended.

        Injects resume_past_unacked; the ledger records each message that is lost for good.
        """
        key = held[0].key_queue.key
        armed = self.faults.choose("resume_past_unacked", key, now) if key else None
        if armed is None:
            return False
        for entry in held:
            self.faults.record(armed, subscription, key, now, entry.message.id)
        return True

    def lose_tail(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """Return whether the rest of a redelivery, all acknowledged before, is sent into a stream that is about to break.

        Injects lost_tail.
        """
        return bool(
            self.faults.strike("lost_tail", subscription, key_queue.key, now, key_queue.at(key_queue.acked_from).message.id)
        )

    def lose_answer(self, subscription: str, deliveries: Sequence[Delivery], now: float) -> LostAnswer | None:
        """Return the loss of a pull response with these messages, now outstanding, or None.

        Injects lost_pull_answer: in half of the cases the client gets an error.
        """
        first = deliveries[0].message
        armed = self.faults.strike("lost_pull_answer", subscription, first.ordering_key, now, first.id)
        if armed is None:
            return None
        return LostAnswer(unavailable() if armed.dice.random() < 0.5 else None)

    def delay_answer(self, subscription: str, entry: QueueEntry, now: float) -> float:
        """Return the delay of an acknowledgement or of a later deadline, in seconds. Injects slow_ack_extension."""
        armed = self.faults.strike("slow_ack_extension", subscription, entry.key_queue.key, now, entry.message.id)
        return armed.dice.uniform(_LATE_MIN_S, _LATE_MAX_S) if armed else 0.0

    def looks_again(self) -> float:
        """Return the time after which `forgets_ack` is called for a confirmed acknowledgement, in seconds; 0: never.

        Only with exactly-once delivery.
        """
        return _AFTER_CONFIRMATION_S if self.faults.has("redeliver_after_confirmed_ack") else 0.0

    def forgets_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether to redeliver from a message whose acknowledgement was confirmed `looks_again` seconds ago.

        Injects redeliver_after_confirmed_ack.
        """
        key = entry.key_queue.key
        return bool(self.faults.strike("redeliver_after_confirmed_ack", subscription, key, now, entry.message.id))

    def lose_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether a valid acknowledgement is lost. Injects ack_lost."""
        return bool(self.faults.strike("ack_lost", subscription, entry.key_queue.key, now, entry.message.id))

    def silent_until(self, now: float) -> float:
        """Return the time before which no message is delivered; a past time has no effect.

        Called when a message could be delivered. Injects stall_all.
        """
        if self._stall is not None and (self._stall.ends <= now or self._stall not in self.faults.all()):
            self._stall = None
        if self._stall is None:
            self._stall = self.faults.strike("stall_all", "", "", now)
        return self._stall.ends if self._stall is not None else -math.inf
