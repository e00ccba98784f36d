"""Findings in plain English, for the person on call: what happened, which promise that breaks, and how sure it is.

One template per kind, filled from the finding's facts. The words only say what the facts say; nothing is decided here. How messages,
holders and moments are named says `naming`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from prober.core.findings import Finding, Kind, Status
from prober.core.kinds import KINDS
from prober.core.rules import ASSUMED_IN_WORDS, Mode
from prober.evidence.naming import HOLDERS, Names, capital, lasting, mode_of, moment, time_of_day

_BY_RULES: Final = re.compile(r": (the subscription has no |the rules |none was in the way )")
"""Marks an alternative that the rules of the run exclude, or that took no time: it says least about the history."""
_TIME: Final = re.compile(r"t=(-?\d+\.\d{3}) s")


def explain(finding: Finding, wall: float | None = None) -> str:
    """The finding as a few sentences of plain English, on one line.

    `wall` is what turns its times into seconds since 1970 (these are `t + wall`), where that is known: then it also names times of day.
    """
    sentences = [_WORDS[finding.kind](Told(finding, wall)), KINDS[finding.kind].broken]
    if finding.status is Status.INDETERMINATE:
        sentences = [sentences[0], f"This is not certain: {finding.doubt}."]
    if wall is not None and not KINDS[finding.kind].is_wait:
        sentences.append(f"Seen at {moment(finding.t, wall)}.")
    if finding.assumptions and finding.status is not Status.INFO:
        sentences.append(f"Assumed: {_bounds(finding.assumptions)}.")
    return " ".join(sentence for sentence in sentences if sentence)


def reasons(finding: Finding, wall: float | None = None) -> tuple[str, ...]:
    """Its reasons, with the times of day as in `explain`: the facts of the history decide and come first, the rules of the run last."""
    ordered = sorted(finding.reasons, key=lambda one: _BY_RULES.search(one) is not None)
    return tuple(_TIME.sub(lambda found: moment(float(found[1]), wall, exactly=True), one) for one in ordered)


def further_reasons(finding: Finding, wall: float | None = None) -> tuple[str, ...]:
    """Its reasons without the doubt, which `explain` states."""
    return reasons(finding, wall)[1:] if finding.doubt else reasons(finding, wall)


def reasons_heading(finding: Finding) -> str:
    """What its reasons are."""
    return "Assumed by the best explanation" if finding.doubt else "Alternatives that were tried, and what rules each out"


class Told:
    """What the template of a kind says things with: the names of messages, holders and times of one finding."""

    def __init__(self, finding: Finding, wall: float | None) -> None:
        self.facts = finding.facts
        self.mode = mode_of(finding.kind, finding.facts)
        names = Names(finding.facts)
        self.one = names.one
        self.several = names.several
        self._wall = wall

    def at(self, name: str) -> str:
        """A time, to the millisecond."""
        return moment(self._number(name), self._wall, exactly=True)

    def stored(self, name: str) -> str:
        """A publish time, which is a time of day by the service's clock, to the millisecond."""
        return time_of_day(self._number(name))

    def wait(self, began: str = "") -> str:
        """How long a wait took, and since when: `for 120 s, since t=1.000 s`; `began` says what it began with, before that time."""
        lasted = f"for {lasting(self._number('seconds'))}, " if "seconds" in self.facts else ""
        return f"{lasted}since {began}{moment(self._number('since_t'), self._wall)}"

    def holder(self, name: str) -> str:
        """Who holds messages: `A`, `pull response b1`, `push request r7`."""
        who = str(self.facts[name])
        return who if self.mode is Mode.STREAMING else f"{HOLDERS[self.mode]} {who}"

    def sent(self, what: str) -> str:
        """That Pub/Sub delivered something to who is the subscriber of the facts."""
        holder = self.holder("subscriber")
        if self.mode is Mode.PUSH:
            return f"Pub/Sub sent {what} in {holder}"
        return f"Pub/Sub delivered {what} {'in' if self.mode is Mode.PULL else 'to'} {holder}"

    def _number(self, name: str) -> float:
        value = self.facts[name]
        return value if isinstance(value, int | float) else 0.0


def _order_gap(told: Told) -> str:
    seq, missing = told.one(), told.several("missing", "missing_count")
    return f"Pub/Sub delivered {seq} but had not delivered {missing}, published before it and confirmed."


def _order_inversion(told: Told) -> str:
    return f"Pub/Sub delivered {told.one()} for the first time after {told.one('after')}, which was published later."


def _realtime_inversion(told: Told) -> str:
    seq, after = told.one(), told.one("after")
    return (
        f"Pub/Sub delivered {seq} for the first time after {after}, although it confirmed {seq} at {told.at('confirmed_t')}, "
        f"before the publish of {after} began at {told.at('invoked_t')}."
    )


def _divergence(told: Told) -> str:
    here = f"Two subscriptions saw different orders: this one received {told.one()}"
    if "other_seq" not in told.facts:
        return f"{here} at another place than subscription {told.facts['other']} did."
    return f"{here} where subscription {told.facts['other']} received {told.one('other_seq')}."


def _delivered_out_of_order(told: Told) -> str:
    sentence = f"Pub/Sub delivered {_with_id(told)} for the first time after {_ahead(told)}"
    if "stored_at" not in told.facts:
        return f"{sentence}."
    return f"{sentence}, and had stored the first of the two at {told.stored('stored_at')}, the second at {told.stored('after_stored_at')}."


def _published_out_of_order(told: Told) -> str:
    return (
        f"{capital(_ahead(told))} reached Pub/Sub before {_with_id(told)}: it stored them at {told.stored('after_stored_at')} and "
        f"{told.stored('stored_at')}, and delivered them so. Pub/Sub kept the order; the publishers did not send the two in the "
        "order of their numbers, or sent the lower one once more after an attempt that had failed."
    )


def _ahead(told: Told) -> str:
    return f"{told.one('after')} (id {told.facts['after_message_id']})"


def _redelivery_skip(told: Told) -> str:
    sent = told.sent(told.one())
    if "sought_t" in told.facts:
        skipped = told.several("skipped", "skipped_count")
        return f"{sent} and skipped {skipped}, which the seek back at {told.at('sought_t')} restored and which should have come before it."
    if not told.facts["after"]:
        return f"{sent} and skipped {told.several('skipped', 'skipped_count')}, which should have come again before it."
    after = told.one("after")
    skipped = told.several("skipped", "skipped_count")
    return f"{sent} right after {after} and skipped {skipped}, which should have come again in between."


def _pull_batch(told: Told) -> str:
    seq, after = told.one(), told.one("after") if told.facts["after"] else "an earlier message"
    inside = f"Inside {told.holder('subscriber')} Pub/Sub"
    if not told.facts.get("skipped_count"):
        return f"{inside} went back from {after} to {seq}."
    return f"{inside} went from {after} straight to {seq} and skipped {told.several('skipped', 'skipped_count')}."


def _push_past_nack(told: Told) -> str:
    nacked = told.one("nacked")
    return f"The push request for {nacked} failed, but Pub/Sub sent {told.one()} next."


def _split(told: Told) -> str:
    if "held_t" in told.facts:
        return _overtook(told)
    return f"{told.sent(told.one())} while {_holding(told)}."


def _overtook(told: Told) -> str:
    """Two deliveries by different ways, in the wrong order: nobody recorded which of them was sent first."""
    one, held, holder = told.one(), told.several("held"), told.holder("holder")
    came = f"{told.sent(one)} before {held} {'to' if told.mode is Mode.STREAMING else 'in'} {holder}, which came at {told.at('held_t')}"
    together = {
        Mode.STREAMING: f"while {held} {_were(held)} on the way to {holder}",
        Mode.PULL: f"while {holder} was outstanding",
        Mode.PUSH: f"while {holder} was open",
    }
    return f"{came}. It was sent first, or {together[told.mode]}."


def _holding(told: Told) -> str:
    holder, held = told.holder("holder"), told.several("held")
    match told.mode:
        case Mode.STREAMING:
            return f"{holder} was still holding {held}" if held else f"{holder} may still have been holding messages of the key"
        case Mode.PULL:
            if held:
                return f"{held} in {holder} {_were(held)} still outstanding"
            return f"messages in {holder} may still have been outstanding"
        case Mode.PUSH:
            return f"{holder} for {held} was still open" if held else f"{holder} may still have been open"


def _move(told: Told) -> str:
    return f"The key moved from {told.facts['holder']} to {told.facts['subscriber']} with {told.one()}; nothing was outstanding."


def _stuck(told: Told) -> str:
    seqs = told.several("seqs", "count")
    return f"{capital(seqs)} {_were(seqs)} published and confirmed but not delivered, and the key stood still {told.wait()}."


def _lost(told: Told) -> str:
    seq, by = told.one(), told.one("by")
    return f"{capital(seq)} was published and confirmed but not delivered {told.wait(f'{by} overtook it at ')}."


def _run_stalled(told: Told) -> str:
    if "sought_t" in told.facts:
        restored = f"A seek back at {told.at('sought_t')} restored {told.one('target')}, which had been delivered before"
        return f"{restored}, but it did not come again, and the key stood still {told.wait()}."
    return (
        f"A redelivery began but did not reach {told.one('target')}, which had been delivered before, "
        f"and the key stood still {told.wait()}."
    )


_BEGAN: Final = {
    "lease": "the lease was over at ",
    "stream": "the stream ended at ",
    "redelivery": "an earlier message came again at ",
}


def _unacked(told: Told) -> str:
    seqs, began = told.several("seqs", "count"), _BEGAN.get(str(told.facts.get("since")), "")
    return f"{capital(seqs)} {_were(seqs)} never acknowledged and had to come again, but did not {told.wait(began)}."


def _were(messages: str) -> str:
    return "were" if messages.startswith("messages") or " and " in messages else "was"


def _phantom(told: Told) -> str:
    facts = told.facts
    return (
        f"Pub/Sub delivered message {facts['seq']} (id {facts['message_id']}), which was never published in epoch {facts['epoch']}."
    )


def _ghost(told: Told) -> str:
    what = _with_id(told) if "message_id" in told.facts else told.one()
    return f"Pub/Sub delivered {what}, although every attempt to publish it had definitely failed."


def _id_conflict(told: Told) -> str:
    facts = told.facts
    if "defect" in facts:
        return f"Pub/Sub delivered {_with_id(told)}, but not as it was published: its {facts['defect']} is wrong."
    if "confirmed_seq" in facts:
        under = f"id {facts['message_id']}, with which" if "message_id" in facts else "the id with which"
        return f"Pub/Sub delivered {told.one()} under {under} it confirmed the publish of {told.one('confirmed_seq')}."
    return f"Pub/Sub delivered id {facts['message_id']} first as {told.one('first_seq')} and then as {told.one()}."


def _filter_leak(told: Told) -> str:
    return f"Pub/Sub delivered {_with_id(told)}, which the subscription's filter excludes."


def _eod(told: Told) -> str:
    confirmed = f"Pub/Sub confirmed the acknowledgement of {_with_id(told)} at {told.at('confirmed_t')}"
    return f"{confirmed} and delivered the message again after that."


def _eod_while_held(told: Told) -> str:
    sent, holder = told.sent(_with_id(told)), told.holder("holder")
    match told.mode:
        case Mode.STREAMING:
            return f"{sent} again while {holder} was still holding it."
        case Mode.PULL:
            return f"{sent} again while it was still outstanding in {holder}."
        case Mode.PUSH:
            return f"{sent} again while {holder} for it was still open."


def _stored_twice(told: Told) -> str:
    return f"Pub/Sub stored {told.one()} twice under one id ({told.facts['message_id']}), with different publish times."


def _duplicate(told: Told) -> str:
    return f"Pub/Sub stored {told.one()} once more, under another id ({told.facts['message_id']})."


def _late_duplicate(told: Told) -> str:
    return f"Pub/Sub stored {told.one()} once more, after later messages, under another id ({told.facts['message_id']})."


def _with_id(told: Told) -> str:
    return f"{told.one()} (id {told.facts['message_id']})"


_WORDS: Final[Mapping[Kind, Callable[[Told], str]]] = {
    Kind.ORDER_GAP: _order_gap,
    Kind.ORDER_INVERSION: _order_inversion,
    Kind.REALTIME_INVERSION: _realtime_inversion,
    Kind.ORDER_DIVERGENCE: _divergence,
    Kind.DELIVERED_OUT_OF_ORDER: _delivered_out_of_order,
    Kind.PUBLISHED_OUT_OF_ORDER: _published_out_of_order,
    Kind.REDELIVERY_SKIP: _redelivery_skip,
    Kind.PULL_BATCH_ORDER: _pull_batch,
    Kind.PUSH_ADVANCE_PAST_NACK: _push_past_nack,
    Kind.AFFINITY_SPLIT: _split,
    Kind.PULL_OVERLAP: _split,
    Kind.PUSH_OVERLAP: _split,
    Kind.AFFINITY_MOVE: _move,
    Kind.STUCK: _stuck,
    Kind.LOST_OVERTAKEN: _lost,
    Kind.REDELIVERY_STALL: _run_stalled,
    Kind.UNACKED_STALL: _unacked,
    Kind.PHANTOM: _phantom,
    Kind.GHOST: _ghost,
    Kind.ID_CONFLICT: _id_conflict,
    Kind.FILTER_LEAK: _filter_leak,
    Kind.EOD_REDELIVERY_AFTER_ACK: _eod,
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: _eod_while_held,
    Kind.PUBLISHER_DUP: _duplicate,
    Kind.LATE_DUP: _late_duplicate,
    Kind.SERVICE_DUP: _stored_twice,
}


def _bounds(assumptions: Mapping[str, float]) -> str:
    return ", ".join(_bound(name, value) for name, value in assumptions.items())


def _bound(name: str, value: float) -> str:
    return ASSUMED_IN_WORDS.get(name) or f"{name} {'unbounded' if value == inf else f'{value:g}'}"
