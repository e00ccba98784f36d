"""Findings in plain English, for the person on call: what happened, which promise that breaks, and how sure it is.

One template per kind, filled from the finding's facts. The words only say what the facts say; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from prober.core.findings import Fact, Facts, Finding, Kind, Status
from prober.core.rules import ONE_RECORD_PER_ID


def explain(finding: Finding) -> str:
    """The finding as a few sentences of plain English, on one line."""
    sentences = [_WORDS[finding.kind](finding.facts), _PROMISES.get(finding.kind, "")]
    if finding.status is Status.INDETERMINATE:
        sentences = [sentences[0], f"This is not certain: {finding.doubt}."]
    if finding.assumptions and finding.status is not Status.INFO:
        sentences.append(f"Assumed: {_bounds(finding.assumptions)}.")
    return " ".join(sentence for sentence in sentences if sentence)


def _order_gap(facts: Facts) -> str:
    missing = _listed(facts, "missing", "missing_count")
    return f"Message {facts['seq']} was delivered although {missing}, published before it and confirmed, had not been delivered."


def _order_inversion(facts: Facts) -> str:
    return f"Message {facts['seq']} was first delivered after message {facts['after']}, which was published later."


def _realtime_inversion(facts: Facts) -> str:
    return (
        f"Message {facts['seq']} was first delivered after message {facts['after']}, although its publish had been confirmed "
        f"(at {_time(facts['confirmed_t'])}) before the publish of {facts['after']} began (at {_time(facts['invoked_t'])})."
    )


def _divergence(facts: Facts) -> str:
    return (
        f"Two subscriptions saw different orders: where this one received message {facts['seq']}, "
        f"subscription {facts['other']} received message {facts['other_seq']}."
    )


def _redelivery_skip(facts: Facts) -> str:
    skipped = _listed(facts, "skipped", "skipped_count")
    after = f"message {facts['after']}" if facts["after"] else "what was sent before"
    return (
        f"Message {facts['seq']} was delivered to {facts['subscriber']} right after {after}; "
        f"{skipped} should have come again in between."
    )


def _pull_batch(facts: Facts) -> str:
    skipped = facts.get("skipped_count", 0)
    what = f", leaving out {_listed(facts, 'skipped', 'skipped_count')}" if skipped else ", which is not the next one"
    return f"Inside one pull response message {facts['seq']} follows message {facts['after']}{what}."


def _push_past_nack(facts: Facts) -> str:
    return f"Push delivered message {facts['seq']} although the request for message {facts['nacked']} before it had failed."


def _split(facts: Facts) -> str:
    held = facts.get("held")
    holding = f" was still holding {_messages(held)}" if held else " may still have been holding messages of the key"
    return f"Message {facts['seq']} was delivered to {facts['subscriber']} while {facts['holder']}{holding}."


def _move(facts: Facts) -> str:
    return f"The key moved from {facts['holder']} to {facts['subscriber']} with message {facts['seq']}; nothing was outstanding."


def _stuck(facts: Facts) -> str:
    return f"{_capital(_listed(facts, 'seqs', 'count'))}, published and confirmed, had not been delivered since {_since(facts)}."


def _lost(facts: Facts) -> str:
    return (
        f"Message {facts['seq']}, published and confirmed, was overtaken by message {facts['by']} at {_since(facts)} "
        "and has not been delivered since."
    )


def _run_stalled(facts: Facts) -> str:
    return (
        f"A redelivery began but never reached message {facts['target']}, which had been delivered before; "
        f"the key has stood still since {_since(facts)}."
    )


def _unacked(facts: Facts) -> str:
    listed = _capital(_listed(facts, "seqs", "count"))
    return f"{listed} had never been acknowledged and had to come again from {_since(facts)} on, but did not."


def _phantom(facts: Facts) -> str:
    return f"Message {facts['seq']} (id {facts['message_id']}) was delivered but never published in epoch {facts['epoch']}."


def _ghost(facts: Facts) -> str:
    return f"Message {facts['seq']} was delivered although every attempt to publish it had definitely failed."


def _id_conflict(facts: Facts) -> str:
    if "defect" in facts:
        return f"Message {facts['seq']} (id {facts['message_id']}) is not what was published: wrong {facts['defect']}."
    if "confirmed_seq" in facts:
        return f"Message {facts['seq']} came under the id with which the publish of message {facts['confirmed_seq']} was confirmed."
    return f"Message id {facts['message_id']} came first as message {facts['first_seq']} and now as message {facts['seq']}."


def _filter_leak(facts: Facts) -> str:
    return f"Message {facts['seq']} (id {facts['message_id']}) was delivered although the subscription's filter excludes it."


def _eod(facts: Facts) -> str:
    return (
        f"Message {facts['seq']} (id {facts['message_id']}) was delivered again after the service had confirmed its "
        f"acknowledgement at {_time(facts['confirmed_t'])}."
    )


def _eod_while_held(facts: Facts) -> str:
    return (
        f"Message {facts['seq']} (id {facts['message_id']}) was delivered to {facts['subscriber']} again "
        f"while {facts['holder']} was still holding it."
    )


def _stored_twice(facts: Facts) -> str:
    return f"The service stored message {facts['seq']} twice under one id ({facts['message_id']}), with different publish times."


def _duplicate(facts: Facts) -> str:
    return f"Message {facts['seq']} is in the log once more, under a further id ({facts['message_id']})."


_WORDS: dict[Kind, Callable[[Facts], str]] = {
    Kind.ORDER_GAP: _order_gap,
    Kind.ORDER_INVERSION: _order_inversion,
    Kind.REALTIME_INVERSION: _realtime_inversion,
    Kind.ORDER_DIVERGENCE: _divergence,
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
    Kind.LATE_DUP: _duplicate,
    Kind.SERVICE_DUP: _stored_twice,
}

_IN_ORDER = "Messages of a key must be received in the order in which the service received them."
_ALL_AGAIN = "When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."
_ONE_HOLDER = "While messages of a key are outstanding, the key must stay where they are."
_ARRIVES = "An accepted message must be delivered."
_PROMISES: dict[Kind, str] = {
    Kind.ORDER_GAP: _IN_ORDER,
    Kind.ORDER_INVERSION: _IN_ORDER,
    Kind.REALTIME_INVERSION: _IN_ORDER,
    Kind.ORDER_DIVERGENCE: "All ordered subscriptions of a topic must see the same order.",
    Kind.REDELIVERY_SKIP: _ALL_AGAIN,
    Kind.PULL_BATCH_ORDER: "The messages of a key inside one response must be consecutive.",
    Kind.PUSH_ADVANCE_PAST_NACK: "After a failed push the next request must be for the same message or an earlier one.",
    Kind.AFFINITY_SPLIT: _ONE_HOLDER,
    Kind.PULL_OVERLAP: "Only one batch of messages of a key may be outstanding at a time.",
    Kind.PUSH_OVERLAP: "Only one message of a key may be outstanding at a time.",
    Kind.STUCK: _ARRIVES,
    Kind.LOST_OVERTAKEN: _ARRIVES,
    Kind.REDELIVERY_STALL: _ALL_AGAIN,
    Kind.UNACKED_STALL: "A message that is not acknowledged must be delivered again.",
    Kind.EOD_REDELIVERY_AFTER_ACK: "With exactly-once delivery a confirmed acknowledgement is final.",
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: "With exactly-once delivery a message must not come again while it is outstanding.",
}


def _listed(facts: Facts, names: str, count: str) -> str:
    return _messages(facts[names], int(_number(facts[count])))


def _messages(seqs: Fact | None, count: int = 0) -> str:
    """Sequence numbers as words: `message 3`, `messages 3, 4 and 6`, `messages 3, 4, 5 and 17 more`."""
    numbers = seqs if isinstance(seqs, tuple) else ()
    total = max(count, len(numbers))
    if total == 1:
        return f"message {numbers[0]}"
    shown = [str(seq) for seq in numbers[:3]] if total > 4 else [str(seq) for seq in numbers]
    last = f"{total - len(shown):,} more" if total > len(shown) else shown.pop()
    return f"messages {', '.join(shown)} and {last}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _since(facts: Facts) -> str:
    return _time(facts["since_t"])


def _time(value: Fact) -> str:
    return f"t={_number(value):.3f} s"


def _number(value: Fact) -> float:
    return value if isinstance(value, int | float) else 0.0


def _bounds(assumptions: Mapping[str, float]) -> str:
    return ", ".join(_bound(name, value) for name, value in assumptions.items())


def _bound(name: str, value: float) -> str:
    if name == ONE_RECORD_PER_ID:
        return "message ids taken for one record each, since no publish times were recorded"
    return f"{name} {'unbounded' if value == inf else f'{value:g}'}"
