"""What a diagram shows, in one sentence: what should have happened, and what did. One template per kind of finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from api.lanes.lettering import clean
from prober.core.findings import Fact, Facts, Kind, Status
from prober.core.rules import Mode
from prober.evidence.explain import Told
from prober.evidence.naming import capital, seqs_of, whole
from prober.sinks.status.records import FindingRecord

LISTED_MAX: Final = 3
NAME_LENGTH_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Caption:
    """The sentence over a diagram.

    mark      a few words at the event that decides.
    missing   the messages that should have come and did not, to be drawn where they should have; `missing_count` says how many they are.
    """

    sentence: str
    mark: str
    missing: tuple[int, ...] = ()
    missing_count: int = 0


def caption(record: FindingRecord) -> Caption:
    """The sentence of a finding; its explanation, if its facts are not those that this program knows."""
    finding = record.finding
    try:
        said = _WORDS[finding.kind](Told(replace(finding, facts=_cleaned(finding.facts)), None))
    except (LookupError, TypeError, ValueError):
        return Caption(record.explanation, "decides")
    if finding.status is Status.INDETERMINATE:
        doubt = f" Not certain: {finding.doubt}." if finding.doubt else ""
        return Caption(said.sentence + doubt, f"perhaps {said.mark}", said.missing, said.missing_count)
    return said


def _cleaned(facts: Facts) -> Facts:
    """The facts with names that come from outside fit to be drawn; of the other subscription the last part of its name is enough."""
    short = {"other": str(facts["other"]).rpartition("/")[2]} if "other" in facts else {}
    return {name: _cleaned_one(fact) for name, fact in {**facts, **short}.items()}


def _cleaned_one(fact: Fact) -> Fact:
    if isinstance(fact, str):
        return clean(fact, NAME_LENGTH_MAX)
    if isinstance(fact, tuple) and any(isinstance(one, str) for one in fact):
        return tuple(clean(str(one), NAME_LENGTH_MAX) for one in fact)
    return fact


def _absent(facts: Facts, names: str, count: str) -> tuple[tuple[int, ...], int]:
    seqs = seqs_of(facts[names])
    if not seqs:
        raise ValueError(names)
    return seqs[:LISTED_MAX], max(len(seqs), whole(facts.get(count)))


def _short(seqs: tuple[int, ...], count: int) -> str:
    return str(seqs[0]) if count == 1 else f"{seqs[0]} and {count - 1:,} more"


def _order_gap(told: Told) -> Caption:
    absent = _absent(told.facts, "missing", "missing_count")
    missing = capital(told.several("missing", "missing_count"))
    return Caption(f"{missing} should have come before {told.one()}, which came first.", f"comes before {_short(*absent)}", *absent)


def _inversion(told: Told) -> Caption:
    return Caption(f"{capital(told.one())} should have come before {told.one('after')}; it came after it.", "too late")


def _divergence(told: Told) -> Caption:
    facts = told.facts
    other = facts["other"]
    same = "Both subscriptions should see the same order; "
    if "other_seq" not in facts:
        return Caption(f"{same}this one received {told.one()} at another place than {other} did.", "at another place there")
    sentence = f"{same}where this one received {told.one()}, {other} received {told.one('other_seq')}."
    return Caption(sentence, f"there it was {facts['other_seq']}")


def _skip(told: Told) -> Caption:
    absent = _absent(told.facts, "skipped", "skipped_count")
    after = told.one("after") if told.facts["after"] else ""
    skipped, seq = capital(told.several("skipped", "skipped_count")), told.one()
    between = f"between {after} and {seq}" if after else f"before {seq}"
    did = "they did" if absent[1] > 1 else "it did"
    return Caption(f"{skipped} should have come again {between}; {did} not.", f"skips {_short(*absent)}", *absent)


def _batch(told: Told) -> Caption:
    after = told.one("after") if told.facts["after"] else "an earlier message"
    sentence = f"Messages of a key should be consecutive in one response; after {after} came {told.one()}."
    if not told.facts.get("skipped_count"):
        return Caption(sentence, "not the next one")
    absent = _absent(told.facts, "skipped", "skipped_count")
    return Caption(sentence, f"skips {_short(*absent)}", *absent)


def _past_nack(told: Told) -> Caption:
    nacked = whole(told.facts["nacked"])
    sentence = f"{capital(told.one('nacked'))} had failed and should have come again next; {told.one()} came instead."
    return Caption(sentence, f"past {nacked}", (nacked,), 1)


def _split(told: Told) -> Caption:
    held = told.several("held")
    holding = f"held {held}" if held else "may have held the key"
    subscriber = told.holder("subscriber")
    who = subscriber if told.mode is Mode.STREAMING else capital(subscriber)
    sentence = f"{who} should have got nothing of the key while {told.holder('holder')} {holding}; it got {told.one()}."
    return Caption(sentence, "second holder")


def _move(told: Told) -> Caption:
    return Caption(f"The key moved to {told.holder('subscriber')} with {told.one()}; nothing was outstanding.", "moves here")


def _stuck(told: Told) -> Caption:
    absent = _absent(told.facts, "seqs", "count")
    return Caption(f"{capital(told.several('seqs', 'count'))} should have been delivered; nothing came.", "waited in vain", *absent)


def _lost(told: Told) -> Caption:
    seq = whole(told.facts["seq"])
    sentence = f"{capital(told.one())} should have come before {told.one('by')}, which overtook it; it never came."
    return Caption(sentence, "waited in vain", (seq,), 1)


def _run_stalled(told: Told) -> Caption:
    target = whole(told.facts["target"])
    sentence = f"The redelivery should have gone on up to {told.one('target')}; it stopped before."
    return Caption(sentence, "waited in vain", (target,), 1)


def _unacked(told: Told) -> Caption:
    absent = _absent(told.facts, "seqs", "count")
    came = "they did" if absent[1] > 1 else "it did"
    seqs = capital(told.several("seqs", "count"))
    return Caption(f"{seqs} had never been acknowledged and should have come again; {came} not.", "waited in vain", *absent)


def _phantom(told: Told) -> Caption:
    return Caption(f"Only what was published should come; {told.one()} came and never was.", "never published")


def _ghost(told: Told) -> Caption:
    return Caption(f"Every publish of {told.one()} failed, so it should not exist; it came.", "publish had failed")


def _id_conflict(told: Told) -> Caption:
    facts = told.facts
    if "defect" in facts:
        sentence = f"{capital(told.one())} should have come as it was published; its {facts['defect']} is wrong."
        return Caption(sentence, f"wrong {facts['defect']}")
    if "confirmed_seq" in facts:
        sentence = (
            f"One id should stand for one message; the publish of {told.one('confirmed_seq')} got it, and {told.one()} has it."
        )
        return Caption(sentence, f"published as {facts['confirmed_seq']}")
    sentence = f"One id should stand for one message; it came as {told.one('first_seq')}, and now as {told.one()}."
    return Caption(sentence, f"was message {facts['first_seq']}")


def _filter_leak(told: Told) -> Caption:
    return Caption(f"The filter should have kept {told.one()} back; it came.", "excluded by filter")


def _eod(told: Told) -> Caption:
    sentence = f"After its acknowledgement was confirmed, {told.one()} should not have come again; it did."
    return Caption(sentence, "already acked")


def _eod_while_held(told: Told) -> Caption:
    sentence = f"While {told.holder('holder')} held {told.one()}, nobody should have got it again; it was delivered again."
    return Caption(sentence, "still outstanding")


def _stored_twice(told: Told) -> Caption:
    return Caption(f"{capital(told.one())} should be in the log once; it came with another publish time.", "stored again")


def _duplicate(told: Told) -> Caption:
    return Caption(f"{capital(told.one())} should be in the log once; it came under a further id.", "further record")


_WORDS: Final[Mapping[Kind, Callable[[Told], Caption]]] = {
    Kind.ORDER_GAP: _order_gap,
    Kind.ORDER_INVERSION: _inversion,
    Kind.REALTIME_INVERSION: _inversion,
    Kind.ORDER_DIVERGENCE: _divergence,
    Kind.REDELIVERY_SKIP: _skip,
    Kind.PULL_BATCH_ORDER: _batch,
    Kind.PUSH_ADVANCE_PAST_NACK: _past_nack,
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
