"""The meaning of each kind of finding.

This table is the only description; texts elsewhere are derived from it. The modules that find them state their rules; `evidence.explain`
contains the sentences about single findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from prober.core.findings import FAILING, Kind, Status


class Guarantee(StrEnum):
    """The guarantees of Pub/Sub about ordering keys."""

    ORDER = "order"
    REDELIVERY = "redelivery"
    ONE_HOLDER = "one holder"
    ONE_OUTSTANDING = "one outstanding"
    LIVENESS = "liveness"
    INTEGRITY = "integrity"

    @property
    def sentence(self) -> str:
        """The guarantee in words, without a full stop."""
        return _GUARANTEES[self]


_GUARANTEES: Final = {
    Guarantee.ORDER: "messages are received in the order in which the service received them",
    Guarantee.REDELIVERY: "a redelivered message brings all later ones with it, acknowledged or not",
    Guarantee.ONE_HOLDER: "outstanding messages keep their key at one subscriber",
    Guarantee.ONE_OUTSTANDING: "by pull one batch of a key is outstanding at a time, by push one message",
    Guarantee.LIVENESS: "every message arrives",
    Guarantee.INTEGRITY: "what is delivered was published, unchanged, once",
}


@dataclass(frozen=True, slots=True)
class KindMeaning:
    """The meaning of a kind of finding.

    guarantee      the guarantee that it is about.
    happened     the observed event, without its circumstances.
    broken       the violated guarantee, as the sentence that ends its explanation; empty if it needs no words. For kinds in `USUAL` the
                 usual behaviour, which is no guarantee.
    statuses     its possible statuses.
    assumptions  the bounds of `Rules` that it relies on, by name; none: it compares recorded facts only.
    by_position  whether it compares places in the key's order, for which a message id without a publish time counts as one record.
    indicator    the name of the `slo.indicators.Indicator` for which it makes an event bad; empty: none.
    """

    guarantee: Guarantee
    happened: str
    broken: str
    statuses: tuple[Status, ...]
    assumptions: tuple[str, ...] = ()
    by_position: bool = False
    indicator: str = ""

    @property
    def is_wait(self) -> bool:
        """Whether it is about a missing delivery: a missed deadline proves it, not an event."""
        return Status.LIVENESS in self.statuses

    def can_be(self, statuses: Set[Status]) -> bool:
        """Return whether a finding of the kind can have one of these statuses."""
        return not statuses.isdisjoint(self.statuses)


WITHIN_A_REGION: Final = frozenset({Guarantee.ORDER, Guarantee.REDELIVERY, Guarantee.ONE_HOLDER, Guarantee.ONE_OUTSTANDING})
"""The guarantees that hold only among the messages of one publishing region."""

_PROVEN: Final = (Status.VIOLATION, Status.INDETERMINATE)
_WAIT: Final = (Status.LIVENESS, Status.INDETERMINATE)
_INFO: Final = (Status.INFO,)

_DELAY: Final = ("delivery_delay_max_s", "clock_error_s")
_HOLD: Final = (*_DELAY, "ack_deadline_s", "ack_lag_max_s", "close_detection_max_s")

_IN_ORDER: Final = "Messages of a key must be received in the order in which the service received them."
_ALL_AGAIN: Final = "When a message is redelivered, all later messages of its key must be redelivered too, acknowledged or not."
_ARRIVES: Final = "An accepted message must be delivered."

KINDS: Final[Mapping[Kind, KindMeaning]] = MappingProxyType(
    {
        Kind.ORDER_GAP: KindMeaning(
            Guarantee.ORDER,
            "a message was received although an earlier, confirmed one had not been",
            _IN_ORDER,
            _PROVEN,
            indicator="order",
        ),
        Kind.ORDER_INVERSION: KindMeaning(
            Guarantee.ORDER,
            "a message was first received after one that was published later",
            _IN_ORDER,
            _PROVEN,
            indicator="order",
        ),
        Kind.REALTIME_INVERSION: KindMeaning(
            Guarantee.ORDER,
            "a message was first received after one whose publish began only after its own had been confirmed",
            _IN_ORDER,
            _PROVEN,
            ("clock_error_s",),
            indicator="order",
        ),
        Kind.ORDER_DIVERGENCE: KindMeaning(
            Guarantee.ORDER,
            "two subscriptions of one topic saw different orders",
            "All ordered subscriptions of a topic must see the same order.",
            _PROVEN,
            indicator="order",
        ),
        Kind.DELIVERED_OUT_OF_ORDER: KindMeaning(
            Guarantee.ORDER,
            "a message was first received after one with a higher number, although its publish time is earlier",
            _IN_ORDER,
            _PROVEN,
            ("publish_time_error_s", "republish_max_s"),
        ),
        Kind.PUBLISHED_OUT_OF_ORDER: KindMeaning(
            Guarantee.ORDER,
            "a publisher's messages reached the service in another order than their numbers, and were delivered as they were stored",
            "",
            _INFO,
        ),
        Kind.REDELIVERY_SKIP: KindMeaning(
            Guarantee.REDELIVERY,
            "a delivery skipped messages that should have been delivered or redelivered before it",
            _ALL_AGAIN,
            _PROVEN,
            _DELAY,
            by_position=True,
            indicator="redelivery",
        ),
        Kind.PULL_BATCH_ORDER: KindMeaning(
            Guarantee.REDELIVERY,
            "inside one pull response the messages of a key are not consecutive",
            "The messages of a key inside one response must be consecutive.",
            _PROVEN,
            by_position=True,
            indicator="redelivery",
        ),
        Kind.PUSH_ADVANCE_PAST_NACK: KindMeaning(
            Guarantee.REDELIVERY,
            "after a failed push of a message the next request was for a later one",
            "After a failed push the next request must be for the same message or an earlier one.",
            _PROVEN,
            by_position=True,
            indicator="redelivery",
        ),
        Kind.REDELIVERY_STALL: KindMeaning(
            Guarantee.REDELIVERY,
            "a redelivery started and never reached the highest delivered message",
            _ALL_AGAIN,
            _WAIT,
            ("stall_deadline_s",),
            by_position=True,
            indicator="redelivery",
        ),
        Kind.AFFINITY_SPLIT: KindMeaning(
            Guarantee.ONE_HOLDER,
            "streaming pull: a message went to one subscriber while another held an earlier one, or in the wrong order to both",
            "While messages of a key are outstanding, the key usually stays with their subscriber: Google documents that, and does "
            "not guarantee it.",
            _PROVEN,
            _HOLD,
            indicator="affinity",
        ),
        Kind.PULL_OVERLAP: KindMeaning(
            Guarantee.ONE_OUTSTANDING,
            "a pull response arrived before an earlier one of its key had been acknowledged: both were outstanding, or in the wrong order",
            "Only one batch of messages of a key may be outstanding at a time.",
            _PROVEN,
            _HOLD,
        ),
        Kind.PUSH_OVERLAP: KindMeaning(
            Guarantee.ONE_OUTSTANDING,
            "a push request arrived before an earlier message of its key had been acknowledged: both were open, or in the wrong order",
            "Only one message of a key may be outstanding at a time.",
            _PROVEN,
            _HOLD,
        ),
        Kind.AFFINITY_MOVE: KindMeaning(Guarantee.ONE_HOLDER, "the key moved while nothing was outstanding", "", _INFO),
        Kind.STUCK: KindMeaning(
            Guarantee.LIVENESS,
            "a confirmed message was not delivered, and its key stalled, for `delivery_deadline_s`",
            _ARRIVES,
            _WAIT,
            ("delivery_deadline_s",),
            indicator="completeness",
        ),
        Kind.LOST_OVERTAKEN: KindMeaning(
            Guarantee.LIVENESS,
            "a message that others overtook was not delivered for `delivery_deadline_s`",
            _ARRIVES,
            _WAIT,
            ("delivery_deadline_s",),
            indicator="completeness",
        ),
        Kind.UNACKED_STALL: KindMeaning(
            Guarantee.LIVENESS,
            "a message that was nacked, or whose lease ended, was not redelivered for `unacked_deadline_s`",
            "A message that is not acknowledged must be delivered again.",
            _WAIT,
            ("ack_deadline_s", "unacked_deadline_s"),
            indicator="redelivery",
        ),
        Kind.PHANTOM: KindMeaning(Guarantee.INTEGRITY, "a message was delivered that was never published", "", _PROVEN),
        Kind.GHOST: KindMeaning(
            Guarantee.INTEGRITY, "a message was delivered although every attempt to publish it had definitely failed", "", _PROVEN
        ),
        Kind.ID_CONFLICT: KindMeaning(
            Guarantee.INTEGRITY,
            "one message id identified two messages, or content or key differed from the publish",
            "",
            _PROVEN,
        ),
        Kind.FILTER_LEAK: KindMeaning(Guarantee.INTEGRITY, "the subscription's filter excludes the message", "", _PROVEN),
        Kind.EOD_REDELIVERY_AFTER_ACK: KindMeaning(
            Guarantee.INTEGRITY,
            "exactly-once delivery: a message was redelivered after its acknowledgement was confirmed",
            "With exactly-once delivery a confirmed acknowledgement is final.",
            _PROVEN,
            _DELAY,
        ),
        Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: KindMeaning(
            Guarantee.INTEGRITY,
            "exactly-once delivery: a message was redelivered while a subscriber provably still held it",
            "With exactly-once delivery a message must not be redelivered while it is outstanding.",
            _PROVEN,
            _HOLD,
        ),
        Kind.PUBLISHER_DUP: KindMeaning(
            Guarantee.INTEGRITY, "a further record of a message", "", (Status.INFO, Status.VIOLATION, Status.INDETERMINATE)
        ),
        Kind.LATE_DUP: KindMeaning(
            Guarantee.INTEGRITY,
            "a further record of a message, after later messages",
            "",
            (Status.INFO, Status.VIOLATION, Status.INDETERMINATE),
        ),
        Kind.SERVICE_DUP: KindMeaning(
            Guarantee.INTEGRITY,
            "a message id arrived with another publish time, so the service stored the message twice",
            "",
            _INFO,
        ),
    }
)


class Symptom(StrEnum):
    """The visible effect of a fault. An incident has one symptom, for all probes and kinds of findings that show it."""

    ORDER = "order"
    REDELIVERY = "redelivery"
    AFFINITY = "affinity"
    OVERLAP = "overlap"
    LOSS = "loss"
    INTEGRITY = "integrity"
    OUTAGE = "outage"

    @property
    def sentence(self) -> str:
        """The effect in words, without a full stop."""
        return _SYMPTOMS[self]


_SYMPTOMS: Final = {
    Symptom.ORDER: "Messages arrive out of order",
    Symptom.REDELIVERY: "Redeliveries skip messages",
    Symptom.AFFINITY: "Keys have outstanding messages at two subscribers",
    Symptom.OVERLAP: "Messages are pulled or pushed before an earlier one of their key was acknowledged",
    Symptom.LOSS: "Confirmed messages are not delivered",
    Symptom.INTEGRITY: "Messages arrive changed, duplicated or never published",
    Symptom.OUTAGE: "The target cannot be reached",
}
_SYMPTOM_OF: Final = {
    Guarantee.ORDER: Symptom.ORDER,
    Guarantee.REDELIVERY: Symptom.REDELIVERY,
    Guarantee.ONE_HOLDER: Symptom.AFFINITY,
    Guarantee.ONE_OUTSTANDING: Symptom.OVERLAP,
    Guarantee.LIVENESS: Symptom.LOSS,
    Guarantee.INTEGRITY: Symptom.INTEGRITY,
}


def symptom_of(kind: Kind) -> Symptom:
    """Return the symptom that groups findings of a kind."""
    return _SYMPTOM_OF[KINDS[kind].guarantee]


USUAL: Final = frozenset({Kind.AFFINITY_SPLIT})
"""Kinds about behaviour that Google documents as usual and does not guarantee. Runs and incidents with only these are WARN."""

OF_PUBLISHERS: Final = frozenset({Kind.PUBLISHED_OUT_OF_ORDER})
"""Actions of publishers that the service preserved.

They are information about the service, but an engineer has to look at them. All other information is only counted.
"""


def is_reported(kind: Kind, status: Status) -> bool:
    """Return whether a finding is shown to readers, and not only counted."""
    return status is not Status.INFO or kind in OF_PUBLISHERS


def kinds_about(indicator: str) -> frozenset[Kind]:
    """Return the kinds that make an event bad for an indicator."""
    return frozenset(kind for kind, meaning in KINDS.items() if meaning.indicator == indicator)


def breaking(guarantee: Guarantee, statuses: Set[Status] = FAILING) -> tuple[Kind, ...]:
    """Return the kinds about a guarantee that can have one of these statuses.

    By default those that can fail a run.
    """
    return tuple(kind for kind, one in KINDS.items() if one.guarantee is guarantee and one.can_be(statuses))


CAN_FAIL: Final = tuple(kind for kind, one in KINDS.items() if one.can_be(FAILING))
"""The kinds that can fail a run."""
