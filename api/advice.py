"""What to look at first when something of a kind is found. docs/findings.md says the same at greater length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prober.core.findings import Kind, Status

SURENESS: Final[Mapping[Status, str]] = {
    Status.VIOLATION: "no legal behaviour of the service explains what was observed",
    Status.LIVENESS: "a deadline passed although the key stood still",
    Status.INDETERMINATE: "a legal explanation exists; it is counted and never fails a run",
    Status.INFO: "worth counting, forbidden by nothing",
}

ADVICE: Final[Mapping[Kind, str]] = {
    Kind.ORDER_GAP: (
        "See whether the missing message comes later (ORDER_INVERSION) or never (LOST_OVERTAKEN). "
        "Do several regions publish? Order is promised within one."
    ),
    Kind.ORDER_INVERSION: (
        "Do several regions publish? Order is promised within one. With a client library, compare with what arrives at the wire."
    ),
    Kind.REALTIME_INVERSION: "If there are several recorders, look at the clock error between them (clock_error_s).",
    Kind.ORDER_DIVERGENCE: "Were both subscriptions created before the first publish? Has neither a filter?",
    Kind.REDELIVERY_SKIP: "Is a dead-letter policy in play? Is delivery_delay_max_s long enough for where you record?",
    Kind.REDELIVERY_STALL: "Is the subscriber still taking messages?",
    Kind.AFFINITY_SPLIT: "The documentation calls affinity usual rather than promised; decide what it costs you.",
    Kind.AFFINITY_MOVE: "Nothing needs to be done.",
    Kind.STUCK: "Are subscribers connected and taking messages?",
    Kind.LOST_OVERTAKEN: "The message may be lost; keep the trace as proof.",
    Kind.UNACKED_STALL: "Has the subscription a retry policy with a long back-off?",
    Kind.PHANTOM: "Does somebody else publish with the same epoch?",
    Kind.GHOST: "Is a failure recorded as certain that is not, such as a timeout?",
    Kind.FILTER_LEAK: "Was the filter changed just before?",
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: (
        "Tell users of exactly-once subscriptions in that region: the message may be processed twice at the same time. "
        "Are the times of several recorders comparable (clock_error_s)?"
    ),
    Kind.PUBLISHER_DUP: "A retry of the client library makes such records.",
    Kind.LATE_DUP: "A retry of the client library makes such records.",
    Kind.SERVICE_DUP: "Nothing needs to be done: the service may store a message twice when it retries a publish itself.",
}
"""Kinds without an entry need nothing that is special to them."""
