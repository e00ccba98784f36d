"""Observability of a fault: whether the record of a client can prove it.

Otherwise the record does not differ from that of a correct service.

The ledger of the service contains its actions, not their meaning for a client. The record cannot prove a fault in these cases:

* A message was acknowledged, and the service had not received the acknowledgement yet: redelivery is not required.
* A subscriber has answered a message, or the lease may be over, and the service still counted it as outstanding: no subscriber holds it.
* A stream ended soon after the fault: it may have been dead before.
* Acknowledged messages were to be redelivered: they may be lost with a stream that broke, or have arrived just before on another session.
* A subscriber had received all messages: a silence of the service is not visible.
* A message remains from an earlier run: it belongs to no record.

Faults outside `SEEN` are visible whenever they are injected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from prober.core.events import Acked, Closed, Delivered, Event, LeaseModified, Nacked, Opened, Published, Sought
from prober.core.rules import Mode, Rules
from prober.embedded.faults import Injection


class _Receipt(NamedTuple):
    """Receipt of a message on a session."""

    t: float
    session: str
    seq: int
    message_id: str


class Witnesses:
    """Observer of one run that decides which injections are visible in its record.

    rules   rules of its subscriptions.
    epoch   epoch of its own messages.
    """

    def __init__(self, rules: Mapping[str, Rules], epoch: str) -> None:
        self._rules, self._epoch = rules, epoch
        self._foreign: set[str] = set()
        self._receipts: defaultdict[tuple[str, str], list[_Receipt]] = defaultdict(list)
        self._answered: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._acked: dict[tuple[str, str], float] = {}
        self._published: defaultdict[str, set[str]] = defaultdict(set)
        self._subscribers: dict[str, str] = {}
        self._opened_t: dict[str, float] = {}
        self._closed: dict[str, float] = {}
        self._breaks: defaultdict[str, list[float]] = defaultdict(list)
        self._sought = False
        self._handlers: Mapping[type[Any], Callable[[Any], None]] = {
            Delivered: self._delivered,
            Acked: self._acknowledged,
            Nacked: self._answers,
            LeaseModified: self._answers,
            Published: self._stored,
            Opened: self._opened,
            Closed: self._ended,
            Sought: self._seeks,
        }

    def event(self, event: Event) -> None:
        """Process the next event."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def _delivered(self, event: Delivered) -> None:
        if event.epoch != self._epoch:
            self._foreign.add(event.message_id)
        else:
            receipt = _Receipt(event.t, event.session, event.seq, event.message_id)
            self._receipts[event.subscription, event.key].append(receipt)

    def _acknowledged(self, event: Acked) -> None:
        self._answers(event)
        self._acked.setdefault((event.subscription, event.message_id), event.t)

    def _answers(self, event: Acked | Nacked | LeaseModified) -> None:
        self._answered[event.subscription, event.message_id].append(event.t)

    def _stored(self, event: Published) -> None:
        self._published[event.key].add(event.message_id)

    def _opened(self, event: Opened) -> None:
        self._subscribers[event.session] = event.subscriber
        self._opened_t[event.session] = event.t if event.invoked_t is None else event.invoked_t

    def _ended(self, event: Closed) -> None:
        self._closed[event.session] = event.t
        if event.lost or self._is_streaming(event.subscription):
            self._breaks[event.subscription].append(event.t)

    def _seeks(self, _event: Sought) -> None:
        self._sought = True

    def saw(self, injection: Injection, t: float) -> bool:
        """Return whether the record distinguishes an injection from legal behaviour; `t` by the client's clock."""
        if injection.message_id in self._foreign or self._is_unrecorded(injection):
            return False
        seen = SEEN.get(injection.fault)
        return injection.where not in {"", *self._rules} or seen is None or seen(self, injection, t)

    def _is_unrecorded(self, injection: Injection) -> bool:
        """Return whether the injection affected a message without a key in a run that does not publish any.

        Such a run records no message without a key.
        """
        return bool(injection.message_id) and not injection.key and not self._published[""]

    def was_never_acked(self, injection: Injection, _t: float) -> bool:
        """Return whether the message must be redelivered."""
        return (injection.where, injection.message_id) not in self._acked

    def met_what_is_held(self, injection: Injection, t: float) -> bool:
        """Return whether a subscriber received the message while another one held an earlier message of its key."""
        receipts = self._receipts[injection.where, injection.key]
        came = next((one for one in receipts if one.t >= t and one.message_id == injection.message_id), None)
        return came is not None and any(
            self._holder(one) != self._holder(came)
            and self._is_held(injection.where, one, came.t)
            and self._stayed(injection.where, came.t, one.session, came.session)
            for one in receipts
            if one.t < came.t and one.seq < came.seq
        )

    def came_while_held(self, injection: Injection, t: float) -> bool:
        """Return whether the message was redelivered while it was held."""
        receipts = [one for one in self._receipts[injection.where, injection.key] if one.message_id == injection.message_id]
        again = next((one for one in receipts if one.t >= t), None)
        return again is not None and any(
            self._is_held(injection.where, one, again.t) and self._stayed(injection.where, again.t, one.session, again.session)
            for one in receipts
            if one.t < t
        )

    def did_not_go_on(self, injection: Injection, t: float) -> bool:
        """Return whether the redelivery left out or reordered later messages of the key.

        A held message is redelivered when its lease is over: then the redelivery was slow, no more. Messages in transit when it started
        arrived before. Acknowledged messages may have been sent on a stream that broke meanwhile. Messages of another session may have been
        sent after that message already.
        """
        receipts = self._receipts[injection.where, injection.key]
        injected = next((one.seq for one in receipts if one.message_id == injection.message_id), 0)
        later = [number for number, one in enumerate(receipts) if one.t >= t]
        began = next((number for number in later if receipts[number].seq == injected), None)
        start = next(iter(later), len(receipts)) if began is None else began
        before = {one.seq: one for one in receipts[:start] if one.seq > injected}
        again: dict[int, _Receipt] = {}
        for one in receipts[start:]:
            if one.seq > injected:
                again.setdefault(one.seq, one)
        came, wanted = list(again.values()), sorted(before)
        turn = next((turn for turn, seq in enumerate(wanted) if turn >= len(came) or came[turn].seq != seq), None)
        if turn is None:
            return False
        until_t = came[turn].t if turn < len(came) else receipts[-1].t
        left_out = [before[seq] for seq in wanted[turn:] if turn >= len(came) or seq < came[turn].seq]
        if (
            began is not None
            and left_out
            and all(self._may_have_followed(injection.where, one, receipts[began]) for one in left_out)
        ):
            return False
        return not self._may_have_gone_with_a_stream(injection.where, left_out, t, until_t)

    def fell_silent(self, injection: Injection, t: float) -> bool:
        """Return whether the key has pending messages: received before, or published but never received, or unacknowledged."""
        return self._is_pending(injection.where, injection.key) or self.did_not_go_on(injection, t)

    def missed_anything(self, _injection: Injection, _t: float) -> bool:
        """Return whether any message is missing; after a seek there always is one.

        If no message was ever pushed, it is unknown whether the service could reach the endpoint.
        """
        reached = [name for name, rules in self._rules.items() if rules.mode is not Mode.PUSH or self._was_reached(name)]
        return bool(reached) and (self._sought or any(self._is_pending(name, key) for name in reached for key in self._published))

    def _was_reached(self, subscription: str) -> bool:
        return any(receipts for (where, _), receipts in self._receipts.items() if where == subscription)

    def _is_pending(self, subscription: str, key: str) -> bool:
        """Return whether a published message of a key was never received, or not acknowledged."""
        receipts = self._receipts[subscription, key]
        unacked = any((subscription, one.message_id) not in self._acked for one in receipts)
        return unacked or bool(self._published[key] - {one.message_id for one in receipts})

    def _may_have_followed(self, subscription: str, one: _Receipt, began: _Receipt) -> bool:
        """Return whether a message received earlier may have been sent later than another, which was slow on its session."""
        sent_t = max(self._opened_t.get(began.session, -inf), began.t - self._rules[subscription].delivery_delay_max_s)
        return one.session != began.session and one.t >= sent_t

    def _may_have_gone_with_a_stream(self, subscription: str, left_out: list[_Receipt], t: float, until_t: float) -> bool:
        """Return whether messages missing at `until_t` may have been sent since `t`, and lost."""
        acked = all(self._acked.get((subscription, one.message_id), inf) < until_t for one in left_out)
        return acked and any(t < broke_t <= until_t for broke_t in self._breaks[subscription])

    def _holder(self, receipt: _Receipt) -> str:
        return self._subscribers.get(receipt.session, receipt.session)

    def _is_held(self, subscription: str, receipt: _Receipt, t: float) -> bool:
        """Return whether a receipt is unanswered at a time, and its lease runs for any possible transfer time."""
        rules = self._rules[subscription]
        sent_t = receipt.t - rules.delivery_delay_max_s
        answers = self._answered.get((subscription, receipt.message_id), ())
        return t < sent_t + rules.ack_deadline_s and not any(answer_t <= t for answer_t in answers)

    def _stayed(self, subscription: str, t: float, *sessions: str) -> bool:
        """Return whether streams stayed open long enough after a time to prove that they were alive then.

        The end of a pull response proves nothing.
        """
        if not self._is_streaming(subscription):
            return True
        alive_t = t + self._rules[subscription].close_detection_max_s
        return all(self._closed.get(session, inf) > alive_t for session in sessions)

    def _is_streaming(self, subscription: str) -> bool:
        return subscription in self._rules and self._rules[subscription].mode is Mode.STREAMING


SEEN: Final[Mapping[str, Callable[[Witnesses, Injection, float], bool]]] = MappingProxyType(
    {
        "never_redeliver": Witnesses.was_never_acked,
        "resume_past_unacked": Witnesses.was_never_acked,
        "redeliver_single": Witnesses.did_not_go_on,
        "redeliver_unacked_only": Witnesses.did_not_go_on,
        "stall_run": Witnesses.fell_silent,
        "break_stalls_keys": Witnesses.fell_silent,
        "stall_all": Witnesses.missed_anything,
        "split_holder": Witnesses.met_what_is_held,
        "overlap_pull": Witnesses.met_what_is_held,
        "overlap_push": Witnesses.met_what_is_held,
        "forget_holds": Witnesses.came_while_held,
        "lease_short": Witnesses.came_while_held,
    }
)
"""Check by fault: whether its record differs from that of legal behaviour."""
