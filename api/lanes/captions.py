"""What a diagram shows, in one sentence: what should have happened, and what did. One template per kind of finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from api.lanes.lettering import clean
from prober.core.findings import Fact, Facts, Kind, Status
from prober.status.records import FindingRecord

LISTED_MAX: Final = 3


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
        said = _WORDS[finding.kind](finding.facts)
    except (LookupError, TypeError, ValueError):
        return Caption(record.explanation, "decides")
    if finding.status is Status.INDETERMINATE:
        doubt = f" Not certain: {finding.doubt}." if finding.doubt else ""
        return Caption(said.sentence + doubt, f"perhaps {said.mark}", said.missing, said.missing_count)
    return said


def _absent(facts: Facts, names: str, count: str) -> tuple[tuple[int, ...], int]:
    seqs = _seqs(facts[names])
    if not seqs:
        raise ValueError(names)
    return seqs[:LISTED_MAX], max(len(seqs), _whole(facts.get(count, 0)))


def _seqs(fact: Fact | None) -> tuple[int, ...]:
    return tuple(seq for seq in fact if isinstance(seq, int)) if isinstance(fact, tuple) else ()


def _whole(fact: Fact) -> int:
    return int(fact) if isinstance(fact, int | float) else 0


def _messages(seqs: tuple[int, ...], count: int) -> str:
    """`message 3`, `messages 3 and 4`, `messages 3, 4, 5 and 17 more`."""
    if count == 1:
        return f"message {seqs[0]}"
    rest = count - len(seqs)
    last = f"{rest:,} more" if rest else str(seqs[-1])
    listed = seqs if rest else seqs[:-1]
    return f"messages {', '.join(map(str, listed))} and {last}"


def _short(seqs: tuple[int, ...], count: int) -> str:
    return str(seqs[0]) if count == 1 else f"{seqs[0]} and {count - 1:,} more"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _order_gap(facts: Facts) -> Caption:
    absent = _absent(facts, "missing", "missing_count")
    sentence = f"{_capital(_messages(*absent))} should have come before message {facts['seq']}, which came first."
    return Caption(sentence, f"comes before {_short(*absent)}", *absent)


def _inversion(facts: Facts) -> Caption:
    return Caption(f"Message {facts['seq']} should have come before message {facts['after']}; it came after it.", "too late")


def _divergence(facts: Facts) -> Caption:
    other = clean(str(facts["other"]).rpartition("/")[2], 60)
    sentence = (
        f"Both subscriptions should see the same order; where this one received message {facts['seq']}, "
        f"{other} received message {facts['other_seq']}."
    )
    return Caption(sentence, f"there it was {facts['other_seq']}")


def _skip(facts: Facts) -> Caption:
    absent = _absent(facts, "skipped", "skipped_count")
    between = f"between {facts['after']} and {facts['seq']}" if facts["after"] else f"before message {facts['seq']}"
    sentence = f"{_capital(_messages(*absent))} should have come again {between}; message {facts['seq']} came without."
    return Caption(sentence, f"skips {_short(*absent)}", *absent)


def _batch(facts: Facts) -> Caption:
    sentence = (
        f"Messages of a key should be consecutive in one response; after message {facts['after']} came message {facts['seq']}."
    )
    if not facts.get("skipped_count"):
        return Caption(sentence, "not the next one")
    absent = _absent(facts, "skipped", "skipped_count")
    return Caption(sentence, f"skips {_short(*absent)}", *absent)


def _past_nack(facts: Facts) -> Caption:
    nacked = _whole(facts["nacked"])
    sentence = f"Message {nacked} had failed and should have come again next; message {facts['seq']} came instead."
    return Caption(sentence, f"past {nacked}", (nacked,), 1)


def _split(facts: Facts) -> Caption:
    held = _seqs(facts.get("held"))
    holding = f"held {_messages(held[:LISTED_MAX], len(held))}" if held else "may have held the key"
    subscriber, holder = (clean(str(facts[name]), 40) for name in ("subscriber", "holder"))
    sentence = f"{subscriber} should have got nothing of the key while {holder} {holding}; it got message {facts['seq']}."
    return Caption(sentence, "second holder")


def _move(facts: Facts) -> Caption:
    subscriber = clean(str(facts["subscriber"]), 40)
    return Caption(f"The key moved to {subscriber} with message {facts['seq']}; nothing was outstanding.", "moves here")


def _stuck(facts: Facts) -> Caption:
    absent = _absent(facts, "seqs", "count")
    return Caption(f"{_capital(_messages(*absent))} should have been delivered; nothing came.", "waited in vain", *absent)


def _lost(facts: Facts) -> Caption:
    seq = _whole(facts["seq"])
    sentence = f"Message {seq} should have come before message {facts['by']}, which overtook it; it never came."
    return Caption(sentence, "waited in vain", (seq,), 1)


def _run_stalled(facts: Facts) -> Caption:
    target = _whole(facts["target"])
    return Caption(f"The redelivery should have gone on up to message {target}; it stopped before.", "waited in vain", (target,), 1)


def _unacked(facts: Facts) -> Caption:
    absent = _absent(facts, "seqs", "count")
    sentence = f"{_capital(_messages(*absent))} had never been acknowledged and should have come again; nothing came."
    return Caption(sentence, "waited in vain", *absent)


def _phantom(facts: Facts) -> Caption:
    return Caption(f"Only what was published should come; message {facts['seq']} came and never was.", "never published")


def _ghost(facts: Facts) -> Caption:
    return Caption(f"Every publish of message {facts['seq']} failed, so it should not exist; it came.", "publish had failed")


def _id_conflict(facts: Facts) -> Caption:
    if "defect" in facts:
        defect = clean(str(facts["defect"]), 30)
        return Caption(f"Message {facts['seq']} should have come as it was published; its {defect} is wrong.", f"wrong {defect}")
    if "confirmed_seq" in facts:
        confirmed = facts["confirmed_seq"]
        sentence = (
            f"One id should stand for one message; the publish of message {confirmed} got it, and message {facts['seq']} has it."
        )
        return Caption(sentence, f"published as message {confirmed}")
    sentence = f"One id should stand for one message; it came as message {facts['first_seq']}, and now as message {facts['seq']}."
    return Caption(sentence, f"was message {facts['first_seq']}")


def _filter_leak(facts: Facts) -> Caption:
    return Caption(f"The filter should have kept message {facts['seq']} back; it came.", "excluded by filter")


def _eod(facts: Facts) -> Caption:
    sentence = f"After its acknowledgement was confirmed, message {facts['seq']} should not have come again; it did."
    return Caption(sentence, "already acked")


def _eod_while_held(facts: Facts) -> Caption:
    holder = clean(str(facts["holder"]), 40)
    sentence = f"While {holder} held message {facts['seq']}, nobody should have got it again; it was delivered again."
    return Caption(sentence, "still outstanding")


def _stored_twice(facts: Facts) -> Caption:
    return Caption(f"Message {facts['seq']} should be in the log once; it came with another publish time.", "stored again")


def _duplicate(facts: Facts) -> Caption:
    return Caption(f"Message {facts['seq']} should be in the log once; it came under a further id.", "further record")


_WORDS: Final[Mapping[Kind, Callable[[Facts], Caption]]] = {
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
