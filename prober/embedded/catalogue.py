"""The catalogue of faults: names, effects, and the findings that must report each.

The names of findings are plain text, as in the checker's reports: the embedded server and the checker share no code. A fault is detected
when at least one of its findings is reported. A benign fault, and a fault that only costs availability or time, must never be reported as a
violation; `shows` lists where else it is visible. `storage_faults` and `delivery_faults` contain the effects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Description:
    """One kind of fault.

    benign        the guarantees of order, redelivery and affinity still hold.
    findings      at least one of these must be reported, the first alone if nothing else is wrong; empty for faults that violate no
                  guarantee of order.
    exactly_once  the same on a subscription with exactly-once delivery, where it differs: Pub/Sub guarantees more there.
    shows         where else it is visible.
    """

    name: str
    sentence: str
    benign: bool = False
    findings: tuple[str, ...] = ()
    exactly_once: tuple[str, ...] = ()
    shows: str = ""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Possible verdicts of a run in which it was injected."""
        return ("FAIL",) if self.findings else ("PASS", "UNKNOWN")


_DESCRIPTIONS: Final = (
    Description(
        "drop",
        "A stored message never reaches a subscription; later ones of its key do.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK", "ORDER_DIVERGENCE"),
    ),
    Description(
        "filter_leaks",
        "A message that the filter of a subscription excludes is delivered there.",
        findings=("FILTER_LEAK",),
    ),
    Description(
        "filter_drops",
        "A message that passes the filter of a subscription never reaches it; later ones of its key do.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK"),
    ),
    Description(
        "lose_write",
        "A publish is confirmed with an id, but the message is not stored.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK"),
    ),
    Description(
        "swap_in_batch",
        "Two neighbouring messages of one publish request and key are stored in the wrong order.",
        findings=("ORDER_GAP", "ORDER_INVERSION", "PUSH_OVERLAP"),
    ),
    Description(
        "swap_across_batches",
        "The last message of a publish request is stored behind the first message of the next request of its key, if that comes "
        "within 2 s.",
        findings=("ORDER_GAP", "ORDER_INVERSION", "REALTIME_INVERSION", "PUSH_OVERLAP"),
    ),
    Description(
        "hole",
        "A message is skipped, and the next messages of its key are sent; it is sent only if the key restarts below it.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "PULL_BATCH_ORDER"),
    ),
    Description(
        "skip_waiting",
        "A message that has waited for 5 s is skipped, and the next messages of its key are sent; it is sent only if the key restarts "
        "below it.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK", "REDELIVERY_SKIP", "REDELIVERY_STALL"),
    ),
    Description(
        "late_fill",
        "A message is skipped, and sent after all waiting messages behind it.",
        findings=("ORDER_GAP", "ORDER_INVERSION", "PULL_BATCH_ORDER", "PUSH_OVERLAP"),
    ),
    Description(
        "diverge_subscriptions",
        "One of several subscriptions of a topic sees two neighbouring messages of a publish request in the wrong order.",
        findings=("ORDER_DIVERGENCE", "ORDER_GAP", "ORDER_INVERSION"),
    ),
    Description(
        "phantom",
        "A message that no publisher sent follows another: it has an id of its own, and each number in it is a million higher.",
        findings=("PHANTOM", "ID_CONFLICT"),
    ),
    Description("wrong_key", "A message is stored under the ordering key of another.", findings=("ID_CONFLICT",)),
    Description("corrupt_payload", "A bit of a message's data is wrong.", findings=("ID_CONFLICT",)),
    Description("duplicate_id", "A message gets the id of the message of its key before it.", findings=("ID_CONFLICT",)),
    Description(
        "redeliver_single",
        "A message is redelivered, the later ones of its key that were already delivered are not.",
        findings=("REDELIVERY_SKIP", "REDELIVERY_STALL", "PULL_BATCH_ORDER"),
    ),
    Description(
        "redeliver_unacked_only",
        "A redelivery skips later messages of the key that were acknowledged.",
        findings=("REDELIVERY_SKIP", "REDELIVERY_STALL", "PULL_BATCH_ORDER"),
    ),
    Description(
        "reorder_run",
        "A message is redelivered, and two later messages of its key follow in the wrong order.",
        findings=("REDELIVERY_SKIP", "REDELIVERY_STALL", "PULL_BATCH_ORDER", "ORDER_GAP"),
    ),
    Description(
        "lone_duplicate",
        "An outstanding message is redelivered alone; then the next message of its key follows.",
        findings=("REDELIVERY_SKIP", "PULL_BATCH_ORDER", "REDELIVERY_STALL"),
        exactly_once=("EOD_REDELIVERY_WHILE_OUTSTANDING", "REDELIVERY_SKIP", "AFFINITY_SPLIT"),
    ),
    Description(
        "resume_past_unacked",
        "After the end of a stream its keys continue behind the messages that were outstanding on it; those are never redelivered.",
        findings=("UNACKED_STALL", "REDELIVERY_SKIP", "ORDER_GAP", "LOST_OVERTAKEN"),
    ),
    Description(
        "redeliver_after_confirmed_ack",
        "With exactly-once delivery: 6 s after an acknowledgement was confirmed, the message and those behind it are redelivered.",
        findings=("EOD_REDELIVERY_AFTER_ACK",),
    ),
    Description(
        "stall_run",
        "A redelivery stops after its first message; the key is silent from then on.",
        findings=("REDELIVERY_STALL", "UNACKED_STALL", "STUCK"),
    ),
    Description(
        "never_redeliver",
        "A message that was nacked, or whose deadline passed, is never redelivered.",
        findings=("UNACKED_STALL", "REDELIVERY_SKIP", "ORDER_GAP", "PULL_BATCH_ORDER", "PUSH_ADVANCE_PAST_NACK"),
    ),
    Description(
        "split_holder",
        "While messages of a key are outstanding at one streaming subscriber, the next ones go to another.",
        findings=("AFFINITY_SPLIT", "ORDER_INVERSION", "REDELIVERY_SKIP"),
    ),
    Description(
        "overlap_pull",
        "A batch of a key goes to a pull while another batch of it is outstanding.",
        findings=("PULL_OVERLAP", "ORDER_INVERSION", "ORDER_GAP", "REDELIVERY_SKIP"),
    ),
    Description(
        "overlap_push",
        "A message of a key is pushed while another push of it is open.",
        findings=("PUSH_OVERLAP", "ORDER_INVERSION", "ORDER_GAP", "REDELIVERY_SKIP"),
    ),
    Description(
        "push_past_failure",
        "After a failed push the next message of the key is pushed, and the failed one after it.",
        findings=("PUSH_ADVANCE_PAST_NACK",),
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
        "throttle_key",
        "On a key with more than 500 kB/s of publishes, further publish requests are refused with RESOURCE_EXHAUSTED.",
        benign=True,
        shows="refusals_begin_bytes_per_second (hot_key), errors of publishes",
    ),
    Description(
        "publish_slow",
        "A publish request is stored at once, and its publisher gets the ids 2 s later.",
        shows="publish_latency_seconds",
    ),
    Description(
        "zombie_publish",
        "A publish fails with UNAVAILABLE, and 1 s later its messages are nevertheless stored, behind messages published meanwhile.",
        benign=True,
        shows='publishes_total{outcome="unknown"}, publisher duplicates',
    ),
    Description(
        "admin_slow",
        "An administrative call takes effect at once and is answered 6 s later.",
        shows="control_plane_latency_seconds",
    ),
    Description(
        "admin_error",
        "An administrative call fails with UNAVAILABLE and has no effect.",
        shows="control_plane_failures_total, runs that could not prepare what they need",
    ),
    Description(
        "slow_creation",
        "A new subscription delivers nothing for 15 s from its first message on; then all messages follow in order.",
        shows="creation_to_receipt_latency_seconds",
    ),
    Description(
        "partial_batch",
        "Only the first messages of a publish request are stored, and the publisher gets UNAVAILABLE.",
        benign=True,
        shows='publishes_total{outcome="unknown"}, publisher duplicates',
    ),
    Description(
        "stream_break",
        "A stream ends with UNAVAILABLE at a delivery.",
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
        "dead_letter_stalls_keys",
        "After a message went to the dead-letter topic, its subscription delivers no more messages of known keys.",
        findings=("STUCK", "UNACKED_STALL"),
        shows="stalled_keys",
    ),
    Description(
        "dead_letter_late",
        "A message reaches its dead-letter topic 1 s late, behind messages of its key that are forwarded meanwhile.",
        benign=True,
        shows="dead_letters_reordered_ratio (dead_letter)",
    ),
    Description(
        "break_stalls_keys",
        "With exactly-once delivery: after the end of a stream, keys with outstanding messages on it deliver nothing.",
        findings=("STUCK", "UNACKED_STALL"),
        shows="stalled_keys",
    ),
    Description(
        "head_of_line",
        "While a message of another key has been outstanding for 1 s, a key waits for 2 s before new messages of it are delivered.",
        shows="head_of_line_delay_seconds",
    ),
    Description(
        "sibling_delays",
        "While a message has been outstanding for 1 s on another subscription of the topic, a key waits for 2 s before new messages of it "
        "are delivered.",
        shows="head_of_line_delay_seconds",
    ),
    Description(
        "few_keys_at_once",
        "While messages of another key are outstanding, a key waits for 2 s before new messages of it are delivered.",
        shows="scale_parallelism_ratio, end_to_end_latency_seconds",
    ),
    Description(
        "slow_delivery",
        "A key waits for 2 s before new messages of it are delivered; messages published meanwhile follow in order.",
        shows="end_to_end_latency_seconds",
    ),
    Description(
        "throttle_push",
        "Two messages of a key are pushed at least 0.1 s apart.",
        shows="push_kept_up_messages_per_second, push_fell_behind_messages_per_second (push)",
    ),
    Description(
        "jitter",
        "A key waits for a random time up to 0.5 s before new messages of it are delivered; messages published meanwhile follow in order.",
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
        "A publish request is stored twice under the same ids with other publish times, at once or after the next request of its key.",
        benign=True,
        shows="service-side duplicates (SERVICE_DUP, info)",
    ),
    Description(
        "early_redelivery",
        "A key with outstanding messages restarts at another streaming subscriber, from the lowest of them on.",
        benign=True,
        shows="redeliveries, affinity moves",
    ),
    Description(
        "forget_holds",
        "A key with outstanding messages and a new message restarts from the lowest outstanding one, at another subscriber if there "
        "is one.",
        benign=True,
        exactly_once=("EOD_REDELIVERY_WHILE_OUTSTANDING",),
        shows="early_redeliveries_total, redeliveries",
    ),
    Description(
        "backoff_ignored",
        "A message that was nacked, or whose deadline passed, is redelivered without the wait of the retry policy.",
        benign=True,
        shows="backoff_early_ratio (redelivery)",
    ),
    Description(
        "lease_short",
        "A message that is outstanding is redelivered after a tenth of its acknowledgement deadline.",
        benign=True,
        exactly_once=("EOD_REDELIVERY_WHILE_OUTSTANDING",),
        shows="early_redeliveries_total, redeliveries",
    ),
    Description(
        "half_open_stream",
        "A stream breaks at a delivery: its keys go to other streams, its acknowledgements are lost, and its client notices the "
        "end 3 s later.",
        benign=True,
        shows="redeliveries, affinity moves, early_redeliveries_total",
    ),
    Description(
        "lost_pull_answer",
        "The answer to a pull is lost with its messages: the client gets UNAVAILABLE, or nothing until its own deadline.",
        benign=True,
        shows="redeliveries",
    ),
    Description(
        "lost_tail",
        "A broken stream ends a redelivery; the messages acknowledged before are lost, and are not redelivered.",
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

LISTED: Final = "`ordering-prober faults` lists them"
CATALOGUE: Final = {description.name: description for description in _DESCRIPTIONS}


def describe_faults(names: Iterable[str] = CATALOGUE) -> str:
    """Return the catalogue as text, by default of all faults: effect and required findings of each."""
    return "\n".join(line for name in names for line in _described(CATALOGUE[name])) + "\n"


def _described(description: Description) -> list[str]:
    lines = [description.name, f"    {description.sentence}"]
    if description.findings:
        lines.append(f"    found as: {', '.join(description.findings)} (at least one)")
    elif description.benign:
        lines.append("    benign: it violates no guarantee and must not be found")
    else:
        lines.append("    violates no guarantee of order, costs availability or time")
    if description.exactly_once:
        lines.append(f"    with exactly-once delivery found as: {', '.join(description.exactly_once)} (at least one)")
    if description.shows:
        lines.append(f"    shows in: {description.shows}")
    lines.append(f"    a run ends as: {' or '.join(description.verdicts)}")
    return lines
