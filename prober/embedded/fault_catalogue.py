"""What each fault is: one sentence, whether it may ever break a promise, and which findings of the checker must catch it.

The names of findings are plain text here, as the checker's reports show them: the two sides share no code. A fault is caught when at
least one of its findings is reported. A benign fault, and one that only costs availability or time, must never be reported as a
violation; where it shows instead is said in `shows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Description:
    """One kind of fault.

    benign    the promises of order, redelivery and affinity hold all the same.
    findings  at least one of these must be reported; empty for those that break no promise of order.
    shows     where else it can be seen.
    """

    name: str
    sentence: str
    benign: bool = False
    findings: tuple[str, ...] = ()
    shows: str = ""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """How a run in which it was injected may end."""
        return ("FAIL",) if self.findings else ("PASS", "UNKNOWN")


_DESCRIPTIONS: Final = (
    Description(
        "drop",
        "A stored message never reaches a subscription; later ones of its key do.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK", "ORDER_DIVERGENCE"),
    ),
    Description(
        "lose_write",
        "A publish is confirmed with an id, but the message is not stored.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK"),
    ),
    Description(
        "swap_in_batch",
        "Two neighbouring messages of one publish request and key are stored in the wrong order.",
        findings=("ORDER_GAP", "ORDER_INVERSION"),
    ),
    Description("duplicate_id", "A message gets the id of the message of its key before it.", findings=("ID_CONFLICT",)),
    Description(
        "redeliver_single",
        "A message is redelivered, the later ones of its key that were already delivered are not.",
        findings=("REDELIVERY_SKIP", "REDELIVERY_STALL", "PULL_BATCH_ORDER"),
    ),
    Description(
        "redeliver_unacked_only",
        "A redelivery leaves out later messages of the key that were acknowledged.",
        findings=("REDELIVERY_SKIP", "REDELIVERY_STALL", "PULL_BATCH_ORDER"),
    ),
    Description(
        "stall_run",
        "A redelivery stops after its first message; the key is silent from then on.",
        findings=("REDELIVERY_STALL", "UNACKED_STALL", "STUCK"),
    ),
    Description(
        "never_redeliver",
        "A message that was refused, or whose deadline passed, never comes again.",
        findings=("UNACKED_STALL", "REDELIVERY_SKIP", "ORDER_GAP", "PUSH_ADVANCE_PAST_NACK"),
    ),
    Description(
        "split_holder",
        "While messages of a key are outstanding at one streaming subscriber, the next ones go to another.",
        findings=("AFFINITY_SPLIT", "ORDER_INVERSION", "REDELIVERY_SKIP"),
    ),
    Description(
        "publish_unavailable",
        "Publish fails with UNAVAILABLE; nothing is stored.",
        shows='publishes_total{outcome="unknown"} and the publish availability objective',
    ),
    Description(
        "reply_lost",
        "A publish request is stored, but the publisher gets UNAVAILABLE instead of the ids.",
        benign=True,
        shows='publishes_total{outcome="unknown"}, publisher duplicates',
    ),
    Description(
        "partial_batch",
        "Only the first messages of a publish request are stored, and the publisher gets UNAVAILABLE.",
        benign=True,
        shows='publishes_total{outcome="unknown"}, publisher duplicates',
    ),
    Description(
        "stream_break",
        "A stream that is about to get a message ends with UNAVAILABLE.",
        benign=True,
        shows="redeliveries, affinity moves",
    ),
    Description(
        "stall_key",
        "A key is silent: its messages are neither delivered nor redelivered.",
        findings=("STUCK", "UNACKED_STALL", "REDELIVERY_STALL"),
        shows="stalled_keys",
    ),
    Description(
        "stall_all",
        "Nothing is delivered on any subscription; publishing works.",
        findings=("STUCK", "UNACKED_STALL", "REDELIVERY_STALL"),
        shows="oldest_unacked_message_age_seconds",
    ),
    Description(
        "slow_delivery",
        "A key waits for 2 s before new messages of it are delivered; what comes meanwhile goes along, in order.",
        shows="end_to_end_latency_seconds",
    ),
    Description(
        "jitter",
        "A key waits for up to 0.5 s, at random, before new messages of it are delivered; what comes meanwhile goes along, in order.",
        benign=True,
        shows="end_to_end_latency_seconds",
    ),
    Description(
        "ack_lost",
        "An acknowledgement has no effect; with exactly-once delivery it fails with a temporary error.",
        benign=True,
        shows="redeliveries",
    ),
    Description(
        "duplicate_publish_same_id",
        "A publish request is stored twice under the same ids with other publish times, at once or after the next one of its key.",
        benign=True,
        shows="service-side duplicates (SERVICE_DUP, info)",
    ),
    Description(
        "early_redelivery",
        "A key of which messages are outstanding starts again at another streaming subscriber, from the lowest of them on.",
        benign=True,
        shows="redeliveries, affinity moves",
    ),
    Description(
        "lost_pull_answer",
        "The answer to a pull is lost with its messages: the client gets UNAVAILABLE, or nothing until its own deadline.",
        benign=True,
        shows="redeliveries",
    ),
    Description(
        "lost_tail",
        "A redelivery is cut off by a break of its stream; what had been acknowledged before is lost, and does not come again.",
        benign=True,
        shows="redeliveries, streams that break",
    ),
    Description(
        "slow_ack_extension",
        "An acknowledgement, or a longer lease, takes effect up to 2 s late; batches are held for longer.",
        benign=True,
        shows="redeliveries",
    ),
)

CATALOGUE: Final = {description.name: description for description in _DESCRIPTIONS}
