"""What a diagram shows, in one sentence: what should have happened, and what did. One template per kind of finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from api.swim_lanes.lettering import clean
from api.words import number
from prober.core.findings import Fact, Facts, Kind, Status
from prober.core.rules import Mode
from prober.evidence.diagram.rows import Absent, absent
from prober.evidence.explain import Told
from prober.evidence.naming import capital
from prober.sinks.status.records import FindingRecord

NAME_LENGTH_MAX: Final = 40
IN_VAIN: Final = "waited in vain"


class Caption(NamedTuple):
    """The sentence over a diagram, and a few words at the event that decides."""

    sentence: str
    mark: str


def caption(record: FindingRecord) -> Caption:
    """The sentence of a finding; its explanation, if its facts are not those that this program knows."""
    finding = record.finding
    try:
        said = CAPTIONS[finding.kind](Told(replace(finding, facts=_cleaned(finding.facts)), None))
    except (LookupError, TypeError, ValueError):
        return Caption(record.explanation, "decides")
    if finding.status is Status.INDETERMINATE:
        doubt = f" Not certain: {finding.doubt}." if finding.doubt else ""
        return Caption(said.sentence + doubt, f"perhaps {said.mark}")
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


def _absent(kind: Kind, told: Told) -> Absent:
    if (missing := absent(kind, told.facts)) is None:
        raise ValueError(kind)
    return missing


def _few(missing: Absent) -> str:
    return str(missing.first) if missing.total == 1 else f"{missing.first} and {number(missing.total - 1)} more"


def _did(missing: Absent) -> str:
    return "they did" if missing.total > 1 else "it did"


def _order_gap(told: Told) -> Caption:
    few = _few(_absent(Kind.ORDER_GAP, told))
    missing = capital(told.several("missing", "missing_count"))
    return Caption(f"{missing} should have come before {told.one()}, which came first.", f"comes before {few}")


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
    missing = _absent(Kind.REDELIVERY_SKIP, told)
    after = told.one("after") if told.facts["after"] else ""
    skipped, seq = capital(told.several("skipped", "skipped_count")), told.one()
    between = f"between {after} and {seq}" if after else f"before {seq}"
    return Caption(f"{skipped} should have come again {between}; {_did(missing)} not.", f"skips {_few(missing)}")


def _batch(told: Told) -> Caption:
    after = told.one("after") if told.facts["after"] else "an earlier message"
    sentence = f"Messages of a key should be consecutive in one response; after {after} came {told.one()}."
    missing = absent(Kind.PULL_BATCH_ORDER, told.facts)
    return Caption(sentence, f"skips {_few(missing)}" if missing else "not the next one")


def _past_nack(told: Told) -> Caption:
    sentence = f"{capital(told.one('nacked'))} had failed and should have come again next; {told.one()} came instead."
    return Caption(sentence, f"past {told.facts['nacked']}")


def _split(told: Told) -> Caption:
    held = told.several("held")
    holding = f"held {held}" if held else "may have held the key"
    subscriber = told.holder("subscriber")
    who = subscriber if told.mode is Mode.STREAMING else capital(subscriber)
    sentence = f"{who} should have got nothing of the key while {told.holder('holder')} {holding}; it got {told.one()}."
    return Caption(sentence, "second holder")


def _stuck(told: Told) -> Caption:
    _absent(Kind.STUCK, told)
    return Caption(f"{capital(told.several('seqs', 'count'))} should have been delivered; nothing came.", IN_VAIN)


def _unacked(told: Told) -> Caption:
    did, seqs = _did(_absent(Kind.UNACKED_STALL, told)), capital(told.several("seqs", "count"))
    return Caption(f"{seqs} had never been acknowledged and should have come again; {did} not.", IN_VAIN)


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


def _duplicate(told: Told) -> Caption:
    return Caption(f"{capital(told.one())} should be in the log once; it came under a further id.", "further record")


CAPTIONS: Final[Mapping[Kind, Callable[[Told], Caption]]] = {
    Kind.ORDER_GAP: _order_gap,
    Kind.ORDER_INVERSION: _inversion,
    Kind.REALTIME_INVERSION: _inversion,
    Kind.ORDER_DIVERGENCE: _divergence,
    Kind.DELIVERED_OUT_OF_ORDER: lambda told: Caption(
        f"{capital(told.one())} should have come before {told.one('after')}; it came after it.", "too late"
    ),
    Kind.PUBLISHED_OUT_OF_ORDER: lambda told: Caption(
        f"{capital(told.one('after'))} reached the service before {told.one()}, and was delivered so.", "sent later"
    ),
    Kind.REDELIVERY_SKIP: _skip,
    Kind.PULL_BATCH_ORDER: _batch,
    Kind.PUSH_ADVANCE_PAST_NACK: _past_nack,
    Kind.AFFINITY_SPLIT: _split,
    Kind.PULL_OVERLAP: _split,
    Kind.PUSH_OVERLAP: _split,
    Kind.AFFINITY_MOVE: lambda told: Caption(
        f"The key moved to {told.holder('subscriber')} with {told.one()}; nothing was outstanding.", "moves here"
    ),
    Kind.STUCK: _stuck,
    Kind.LOST_OVERTAKEN: lambda told: Caption(
        f"{capital(told.one())} should have come before {told.one('by')}, which overtook it; it never came.", IN_VAIN
    ),
    Kind.REDELIVERY_STALL: lambda told: Caption(
        f"The redelivery should have gone on up to {told.one('target')}; it stopped before.", IN_VAIN
    ),
    Kind.UNACKED_STALL: _unacked,
    Kind.PHANTOM: lambda told: Caption(f"Only what was published should come; {told.one()} came and never was.", "never published"),
    Kind.GHOST: lambda told: Caption(
        f"Every publish of {told.one()} failed, so it should not exist; it came.", "publish had failed"
    ),
    Kind.ID_CONFLICT: _id_conflict,
    Kind.FILTER_LEAK: lambda told: Caption(f"The filter should have kept {told.one()} back; it came.", "excluded by filter"),
    Kind.EOD_REDELIVERY_AFTER_ACK: lambda told: Caption(
        f"After its acknowledgement was confirmed, {told.one()} should not have come again; it did.", "already acked"
    ),
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: lambda told: Caption(
        f"While {told.holder('holder')} held {told.one()}, nobody should have got it again; it was delivered again.",
        "still outstanding",
    ),
    Kind.PUBLISHER_DUP: _duplicate,
    Kind.LATE_DUP: _duplicate,
    Kind.SERVICE_DUP: lambda told: Caption(
        f"{capital(told.one())} should be in the log once; it came with another publish time.", "stored again"
    ),
}
"""What is said of a finding of each kind, from its facts."""
