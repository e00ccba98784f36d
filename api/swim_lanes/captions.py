"""Caption of a diagram, in one sentence: expected and actual behaviour. One template per kind of finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from api.swim_lanes.lettering import clean
from api.words import number
from prober.core.findings import Fact, Facts, Kind, Status
from prober.core.rules import Mode
from prober.evidence.diagram.rows import Absent, absent
from prober.evidence.explain import Wording
from prober.evidence.naming import capital
from prober.sinks.status.records import FindingRecord

NAME_LENGTH_MAX: Final = 40
NOT_DELIVERED: Final = "not delivered"


class Caption(NamedTuple):
    """The sentence above a diagram, and a few words at the deciding event."""

    sentence: str
    mark: str


def caption(record: FindingRecord) -> Caption:
    """Return the sentence of a finding, or its explanation if its facts are not those that this program knows."""
    finding = record.finding
    try:
        said = CAPTIONS[finding.kind](Wording(replace(finding, facts=_cleaned(finding.facts)), None))
    except (LookupError, TypeError, ValueError):
        return Caption(record.explanation, "decides")
    if finding.status is Status.INDETERMINATE:
        doubt = f" Not certain: {finding.doubt}." if finding.doubt else ""
        return Caption(said.sentence + doubt, f"perhaps {said.mark}")
    return said


def _cleaned(facts: Facts) -> Facts:
    """Return the facts with external names in drawable form; of the other subscription only the last part of its name."""
    short = {"other": str(facts["other"]).rpartition("/")[2]} if "other" in facts else {}
    return {name: _cleaned_one(fact) for name, fact in {**facts, **short}.items()}


def _cleaned_one(fact: Fact) -> Fact:
    if isinstance(fact, str):
        return clean(fact, NAME_LENGTH_MAX)
    if isinstance(fact, tuple) and any(isinstance(one, str) for one in fact):
        return tuple(clean(str(one), NAME_LENGTH_MAX) for one in fact)
    return fact


def _absent(kind: Kind, text: Wording) -> Absent:
    if (missing := absent(kind, text.facts)) is None:
        raise ValueError(kind)
    return missing


def _few(missing: Absent) -> str:
    return str(missing.first) if missing.total == 1 else f"{missing.first} and {number(missing.total - 1)} more"


def _were(missing: Absent) -> str:
    return "they were" if missing.total > 1 else "it was"


def _order_gap(text: Wording) -> Caption:
    few = _few(_absent(Kind.ORDER_GAP, text))
    missing = capital(text.several("missing", "missing_count"))
    return Caption(f"{missing} should have been delivered before {text.one()}, which arrived first.", f"comes before {few}")


def _inversion(text: Wording) -> Caption:
    return Caption(f"{capital(text.one())} should have been delivered before {text.one('after')}; it arrived later.", "too late")


def _divergence(text: Wording) -> Caption:
    facts = text.facts
    other = facts["other"]
    same = "Both subscriptions should see the same order; "
    if "other_seq" not in facts:
        return Caption(f"{same}this one received {text.one()} at another place than {other} did.", "at another place there")
    sentence = f"{same}where this one received {text.one()}, {other} received {text.one('other_seq')}."
    return Caption(sentence, f"there it was {facts['other_seq']}")


def _skip(text: Wording) -> Caption:
    missing = _absent(Kind.REDELIVERY_SKIP, text)
    after = text.one("after") if text.facts["after"] else ""
    skipped, seq = capital(text.several("skipped", "skipped_count")), text.one()
    between = f"between {after} and {seq}" if after else f"before {seq}"
    return Caption(f"{skipped} should have been redelivered {between}; {_were(missing)} not.", f"skips {_few(missing)}")


def _batch(text: Wording) -> Caption:
    after = text.one("after") if text.facts["after"] else "an earlier message"
    sentence = f"Messages of a key should be consecutive in one response; after {after} came {text.one()}."
    missing = absent(Kind.PULL_BATCH_ORDER, text.facts)
    return Caption(sentence, f"skips {_few(missing)}" if missing else "not the next one")


def _past_nack(text: Wording) -> Caption:
    sentence = f"{capital(text.one('nacked'))} had failed and should have been redelivered next; {text.one()} was sent instead."
    return Caption(sentence, f"past {text.facts['nacked']}")


def _split(text: Wording) -> Caption:
    held = text.several("held")
    holding = f"held {held}" if held else "may have held the key"
    subscriber = text.holder("subscriber")
    who = subscriber if text.mode is Mode.STREAMING else capital(subscriber)
    sentence = f"{who} should have got nothing of the key while {text.holder('holder')} {holding}; it got {text.one()}."
    return Caption(sentence, "second holder")


def _stuck(text: Wording) -> Caption:
    _absent(Kind.STUCK, text)
    return Caption(f"{capital(text.several('seqs', 'count'))} should have been delivered; nothing came.", NOT_DELIVERED)


def _unacked(text: Wording) -> Caption:
    were, seqs = _were(_absent(Kind.UNACKED_STALL, text)), capital(text.several("seqs", "count"))
    return Caption(f"{seqs} had never been acknowledged and should have been redelivered; {were} not.", NOT_DELIVERED)


def _id_conflict(text: Wording) -> Caption:
    facts = text.facts
    if "defect" in facts:
        sentence = f"{capital(text.one())} should have arrived as it was published; its {facts['defect']} is wrong."
        return Caption(sentence, f"wrong {facts['defect']}")
    if "confirmed_seq" in facts:
        sentence = (
            f"One id should stand for one message; the publish of {text.one('confirmed_seq')} got it, and {text.one()} has it."
        )
        return Caption(sentence, f"published as {facts['confirmed_seq']}")
    sentence = f"One id should stand for one message; it came as {text.one('first_seq')}, and now as {text.one()}."
    return Caption(sentence, f"was message {facts['first_seq']}")


def _duplicate(text: Wording) -> Caption:
    return Caption(f"{capital(text.one())} should be in the log once; it came under a further id.", "further record")


CAPTIONS: Final[Mapping[Kind, Callable[[Wording], Caption]]] = {
    Kind.ORDER_GAP: _order_gap,
    Kind.ORDER_INVERSION: _inversion,
    Kind.REALTIME_INVERSION: _inversion,
    Kind.ORDER_DIVERGENCE: _divergence,
    Kind.DELIVERED_OUT_OF_ORDER: lambda text: Caption(
        f"{capital(text.one())} should have been delivered before {text.one('after')}; it arrived later.", "too late"
    ),
    Kind.PUBLISHED_OUT_OF_ORDER: lambda text: Caption(
        f"{capital(text.one('after'))} reached the service before {text.one()}, and was delivered so.", "sent later"
    ),
    Kind.REDELIVERY_SKIP: _skip,
    Kind.PULL_BATCH_ORDER: _batch,
    Kind.PUSH_ADVANCE_PAST_NACK: _past_nack,
    Kind.AFFINITY_SPLIT: _split,
    Kind.PULL_OVERLAP: _split,
    Kind.PUSH_OVERLAP: _split,
    Kind.AFFINITY_MOVE: lambda text: Caption(
        f"The key moved to {text.holder('subscriber')} with {text.one()}; nothing was outstanding.", "moves here"
    ),
    Kind.STUCK: _stuck,
    Kind.LOST_OVERTAKEN: lambda text: Caption(
        f"{capital(text.one())} should have been delivered before {text.one('by')}, which overtook it; it never arrived.",
        NOT_DELIVERED,
    ),
    Kind.REDELIVERY_STALL: lambda text: Caption(
        f"The redelivery should have gone on up to {text.one('target')}; it stopped before.", NOT_DELIVERED
    ),
    Kind.UNACKED_STALL: _unacked,
    Kind.PHANTOM: lambda text: Caption(f"Only what was published should come; {text.one()} came and never was.", "never published"),
    Kind.GHOST: lambda text: Caption(
        f"Every publish of {text.one()} failed, so it should not exist; it came.", "publish had failed"
    ),
    Kind.ID_CONFLICT: _id_conflict,
    Kind.FILTER_LEAK: lambda text: Caption(f"The filter should have kept {text.one()} back; it came.", "excluded by filter"),
    Kind.EOD_REDELIVERY_AFTER_ACK: lambda text: Caption(
        f"After its acknowledgement was confirmed, {text.one()} should not have been redelivered; it was.", "already acked"
    ),
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: lambda text: Caption(
        f"While {text.holder('holder')} held {text.one()}, nobody should have got it again; it was delivered again.",
        "still outstanding",
    ),
    Kind.PUBLISHER_DUP: _duplicate,
    Kind.LATE_DUP: _duplicate,
    Kind.SERVICE_DUP: lambda text: Caption(
        f"{capital(text.one())} should be in the log once; it came with another publish time.", "stored again"
    ),
}
"""Functions that return the caption of a finding from its facts, by kind."""
