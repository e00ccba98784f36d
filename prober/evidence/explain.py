"""Findings in plain English, for the engineer on call.

Each text states the observed events, the violated guarantee, and the certainty of the finding.

One template per kind uses the finding's facts. A sentence repeats the facts; this module decides nothing. `naming` names messages, holders
and times.
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
"""Pattern of alternatives that the rules of the run exclude, or that took no time: they reveal least about the history."""
_TIME: Final = re.compile(r"t=(-?\d+\.\d{3}) s")
PUBSUB: Final = "Pub/Sub"
"""The name of the service in the sentences."""


def explain(finding: Finding, wall: float | None = None, service: str = PUBSUB) -> str:
    """Return the finding as a few sentences of plain English, on one line.

    wall     the offset of its times to seconds since 1970 (`t + wall`), if known: then the text also contains times of day.
    service  the name of the service under test.
    """
    sentences = [_WORDS[finding.kind](Wording(finding, wall)), KINDS[finding.kind].broken]
    if finding.status is Status.INDETERMINATE:
        sentences = [sentences[0], f"This is not certain: {finding.doubt}."]
    if wall is not None and not KINDS[finding.kind].is_wait:
        sentences.append(f"Seen at {moment(finding.t, wall)}.")
    if finding.assumptions and finding.status is not Status.INFO:
        sentences.append(f"Assumed: {_bounds(finding.assumptions)}.")
    return " ".join(sentence for sentence in sentences if sentence).replace(PUBSUB, service)


def reasons(finding: Finding, wall: float | None = None) -> tuple[str, ...]:
    """Return the reasons of a finding, with times of day as in `explain`: facts of the history first, rules of the run last."""
    ordered = sorted(finding.reasons, key=lambda one: _BY_RULES.search(one) is not None)
    return tuple(_TIME.sub(lambda found: moment(float(found[1]), wall, exactly=True), one) for one in ordered)


def further_reasons(finding: Finding, wall: float | None = None) -> tuple[str, ...]:
    """Return the reasons of a finding without the doubt, which `explain` states."""
    return reasons(finding, wall)[1:] if finding.doubt else reasons(finding, wall)


def reasons_heading(finding: Finding) -> str:
    """Return the heading of the reasons of a finding."""
    return "Assumed by the best explanation" if finding.doubt else "Excluded explanations"


class Wording:
    """The names of messages, holders and times of one finding, for the templates."""

    def __init__(self, finding: Finding, wall: float | None) -> None:
        self.facts, self.has_key = finding.facts, bool(finding.key)
        self.mode = mode_of(finding.kind, finding.facts)
        names = Names(finding.facts)
        self.one = names.one
        self.several = names.several
        self._wall = wall

    def at(self, name: str) -> str:
        """Return a time, to the millisecond."""
        return moment(self._number(name), self._wall, exactly=True)

    def stored(self, name: str) -> str:
        """Return a publish time as a time of day by the service's clock, to the millisecond."""
        return time_of_day(self._number(name))

    def wait(self, began: str = "") -> str:
        """Return the duration and start of a wait: `for 120 s, since t=1.000 s`; `began` describes the start, before that time."""
        lasted = f"for {lasting(self._number('seconds'))}, " if "seconds" in self.facts else ""
        return f"{lasted}since {began}{moment(self._number('since_t'), self._wall)}"

    def holder(self, name: str) -> str:
        """Return the holder of messages: `A`, `pull response b1`, `push request r7`."""
        who = str(self.facts[name])
        return who if self.mode is Mode.STREAMING else f"{HOLDERS[self.mode]} {who}"

    def sent(self, what: str) -> str:
        """State that Pub/Sub delivered a message to the subscriber of the facts."""
        holder = self.holder("subscriber")
        if self.mode is Mode.PUSH:
            return f"Pub/Sub sent {what} in {holder}"
        return f"Pub/Sub delivered {what} {'in' if self.mode is Mode.PULL else 'to'} {holder}"

    def _number(self, name: str) -> float:
        value = self.facts[name]
        return value if isinstance(value, int | float) else 0.0


def _realtime_inversion(text: Wording) -> str:
    seq, after = text.one(), text.one("after")
    return (
        f"Pub/Sub delivered {seq} for the first time after {after}, although it confirmed {seq} at {text.at('confirmed_t')}, "
        f"before the publish of {after} began at {text.at('invoked_t')}."
    )


def _divergence(text: Wording) -> str:
    here = f"Two subscriptions saw different orders: this one received {text.one()}"
    if "other_seq" not in text.facts:
        return f"{here} at another place than subscription {text.facts['other']} did."
    return f"{here} where subscription {text.facts['other']} received {text.one('other_seq')}."


def _delivered_out_of_order(text: Wording) -> str:
    sentence = f"Pub/Sub delivered {_with_id(text)} for the first time after {_ahead(text)}"
    if "stored_at" not in text.facts:
        return f"{sentence}."
    return f"{sentence}, and had stored the first of the two at {text.stored('stored_at')}, the second at {text.stored('after_stored_at')}."


def _ahead(text: Wording) -> str:
    return f"{text.one('after')} (id {text.facts['after_message_id']})"


def _redelivery_skip(text: Wording) -> str:
    sent = text.sent(text.one())
    if "sought_t" in text.facts:
        skipped = text.several("skipped", "skipped_count")
        restored = f"which the seek back at {text.at('sought_t')} restored"
        return f"{sent} and skipped {skipped}, {restored} and which should have been delivered before it."
    if not text.facts["after"]:
        return f"{sent} and skipped {text.several('skipped', 'skipped_count')}, which should have been redelivered before it."
    after = text.one("after")
    skipped = text.several("skipped", "skipped_count")
    return f"{sent} right after {after} and skipped {skipped}, which should have been redelivered in between."


def _pull_batch(text: Wording) -> str:
    seq, after = text.one(), text.one("after") if text.facts["after"] else "an earlier message"
    inside = f"Inside {text.holder('subscriber')} Pub/Sub"
    if not text.facts.get("skipped_count"):
        return f"{inside} went back from {after} to {seq}."
    return f"{inside} went from {after} straight to {seq} and skipped {text.several('skipped', 'skipped_count')}."


def _split(text: Wording) -> str:
    if "held_t" in text.facts:
        return _overtook(text)
    return f"{text.sent(text.one())} while {_holding(text)}."


def _overtook(text: Wording) -> str:
    """State that two deliveries on different sessions were received in the wrong order.

    The order of their sends is not on record.
    """
    one, held, holder = text.one(), text.several("held"), text.holder("holder")
    came = f"{text.sent(one)} before {held} {'to' if text.mode is Mode.STREAMING else 'in'} {holder}, which came at {text.at('held_t')}"
    together = {
        Mode.STREAMING: f"while {held} {_were(held)} on the way to {holder}",
        Mode.PULL: f"while {holder} was outstanding",
        Mode.PUSH: f"while {holder} was open",
    }
    return f"{came}. It was sent first, or {together[text.mode]}."


def _holding(text: Wording) -> str:
    holder, held = text.holder("holder"), text.several("held")
    match text.mode:
        case Mode.STREAMING:
            return f"{holder} was still holding {held}" if held else f"{holder} may still have been holding messages of the key"
        case Mode.PULL:
            if held:
                return f"{held} in {holder} {_were(held)} still outstanding"
            return f"messages in {holder} may still have been outstanding"
        case Mode.PUSH:
            return f"{holder} for {held} was still open" if held else f"{holder} may still have been open"


def _stuck(text: Wording) -> str:
    seqs = text.several("seqs", "count")
    also = ", and the key stalled" if text.has_key else ""
    return f"{capital(seqs)} {_were(seqs)} published and confirmed but not delivered{also} {text.wait()}."


def _lost(text: Wording) -> str:
    seq, by = text.one(), text.one("by")
    return f"{capital(seq)} was published and confirmed but not delivered {text.wait(f'{by} overtook it at ')}."


def _run_stalled(text: Wording) -> str:
    if "sought_t" in text.facts:
        restored = f"A seek back at {text.at('sought_t')} restored {text.one('target')}, which had been delivered before"
        return f"{restored}, but it was not redelivered, and the key stalled {text.wait()}."
    return (
        f"A redelivery began but did not reach {text.one('target')}, which had been delivered before, "
        f"and the key stalled {text.wait()}."
    )


_BEGAN: Final = {
    "lease": "the lease was over at ",
    "stream": "the stream ended at ",
    "redelivery": "an earlier message was redelivered at ",
}


def _unacked(text: Wording) -> str:
    seqs, began = text.several("seqs", "count"), _BEGAN.get(str(text.facts.get("since")), "")
    return f"{capital(seqs)} {_were(seqs)} never acknowledged and had to be redelivered, but {_were(seqs)} not {text.wait(began)}."


def _were(messages: str) -> str:
    return "were" if messages.startswith("messages") or " and " in messages else "was"


def _ghost(text: Wording) -> str:
    what = _with_id(text) if "message_id" in text.facts else text.one()
    return f"Pub/Sub delivered {what}, although every attempt to publish it had definitely failed."


def _id_conflict(text: Wording) -> str:
    facts = text.facts
    if "defect" in facts:
        return f"Pub/Sub delivered {_with_id(text)}, but not as it was published: its {facts['defect']} is wrong."
    if "confirmed_seq" in facts:
        under = f"id {facts['message_id']}, with which" if "message_id" in facts else "the id with which"
        return f"Pub/Sub delivered {text.one()} under {under} it confirmed the publish of {text.one('confirmed_seq')}."
    return f"Pub/Sub delivered id {facts['message_id']} first as {text.one('first_seq')} and then as {text.one()}."


def _eod(text: Wording) -> str:
    confirmed = f"Pub/Sub confirmed the acknowledgement of {_with_id(text)} at {text.at('confirmed_t')}"
    return f"{confirmed} and delivered the message again after that."


def _eod_while_held(text: Wording) -> str:
    sent, holder = text.sent(_with_id(text)), text.holder("holder")
    match text.mode:
        case Mode.STREAMING:
            return f"{sent} again while {holder} was still holding it."
        case Mode.PULL:
            return f"{sent} again while it was still outstanding in {holder}."
        case Mode.PUSH:
            return f"{sent} again while {holder} for it was still open."


def _with_id(text: Wording) -> str:
    return f"{text.one()} (id {text.facts['message_id']})"


_WORDS: Final[Mapping[Kind, Callable[[Wording], str]]] = {
    Kind.ORDER_GAP: lambda text: (
        f"Pub/Sub delivered {text.one()} but had not delivered {text.several('missing', 'missing_count')}, published before it and "
        "confirmed."
    ),
    Kind.ORDER_INVERSION: lambda text: (
        f"Pub/Sub delivered {text.one()} for the first time after {text.one('after')}, which was published later."
    ),
    Kind.REALTIME_INVERSION: _realtime_inversion,
    Kind.ORDER_DIVERGENCE: _divergence,
    Kind.DELIVERED_OUT_OF_ORDER: _delivered_out_of_order,
    Kind.PUBLISHED_OUT_OF_ORDER: lambda text: (
        f"{capital(_ahead(text))} reached Pub/Sub before {_with_id(text)}: it stored them at {text.stored('after_stored_at')} and "
        f"{text.stored('stored_at')}, and delivered them so. Pub/Sub kept the order; the publishers did not send the two in the "
        "order of their numbers, or sent the lower one once more after an attempt that had failed."
    ),
    Kind.REDELIVERY_SKIP: _redelivery_skip,
    Kind.PULL_BATCH_ORDER: _pull_batch,
    Kind.PUSH_ADVANCE_PAST_NACK: lambda text: (
        f"The push request for {text.one('nacked')} failed, but Pub/Sub sent {text.one()} next."
    ),
    Kind.AFFINITY_SPLIT: _split,
    Kind.PULL_OVERLAP: _split,
    Kind.PUSH_OVERLAP: _split,
    Kind.AFFINITY_MOVE: lambda text: (
        f"The key moved from {text.facts['holder']} to {text.facts['subscriber']} with {text.one()}; nothing was outstanding."
    ),
    Kind.STUCK: _stuck,
    Kind.LOST_OVERTAKEN: _lost,
    Kind.REDELIVERY_STALL: _run_stalled,
    Kind.UNACKED_STALL: _unacked,
    Kind.PHANTOM: lambda text: (
        f"Pub/Sub delivered message {text.facts['seq']} (id {text.facts['message_id']}), which was never published in epoch "
        f"{text.facts['epoch']}."
    ),
    Kind.GHOST: _ghost,
    Kind.ID_CONFLICT: _id_conflict,
    Kind.FILTER_LEAK: lambda text: f"Pub/Sub delivered {_with_id(text)}, which the subscription's filter excludes.",
    Kind.EOD_REDELIVERY_AFTER_ACK: _eod,
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: _eod_while_held,
    Kind.PUBLISHER_DUP: lambda text: f"Pub/Sub stored {text.one()} once more, under another id ({text.facts['message_id']}).",
    Kind.LATE_DUP: lambda text: (
        f"Pub/Sub stored {text.one()} once more, after later messages, under another id ({text.facts['message_id']})."
    ),
    Kind.SERVICE_DUP: lambda text: (
        f"Pub/Sub stored {text.one()} twice under one id ({text.facts['message_id']}), with different publish times."
    ),
}


def _bounds(assumptions: Mapping[str, float]) -> str:
    return ", ".join(_bound(name, value) for name, value in assumptions.items())


def _bound(name: str, value: float) -> str:
    return ASSUMED_IN_WORDS.get(name) or f"{name} {'unbounded' if value == inf else f'{value:g}'}"
