"""The first checks for each kind of finding: shown with every finding, and the source of the tables in docs/findings.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from prober.core.findings import Kind, Status

SURENESS: Final[Mapping[Status, str]] = MappingProxyType(
    {
        Status.VIOLATION: "no legal behaviour of the service explains what was observed",
        Status.LIVENESS: "a deadline passed while the key stalled",
        Status.INDETERMINATE: "a legal explanation exists; it is counted and never fails a run",
        Status.INFO: "worth counting, forbidden by nothing",
    }
)

SURENESS_OF_USUAL: Final = "provably observed; Google documents the opposite as usual, and does not guarantee it"
"""The meaning of `violation` for `core.kinds.USUAL`."""

_NOTHING: Final = ""
_RETRIED: Final = (
    "Retries of a client library make such records, so it is information; a violation only if the trace says that it records every "
    "attempt (`attempts_observed`)."
)
ADVICE: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.ORDER_GAP: (
            "Does the missing message come later (`ORDER_INVERSION`) or never (`LOST_OVERTAKEN`)? Do publishers in several regions use "
            "the key? The service guarantees order within one region."
        ),
        Kind.ORDER_INVERSION: (
            "Do publishers in several regions use the key? The service guarantees order within one region. With a client library, compare "
            "with what arrives at the wire."
        ),
        Kind.REALTIME_INVERSION: "If there are several recorders, look at the clock error between them (`clock_error_s`).",
        Kind.ORDER_DIVERGENCE: "Were both subscriptions created before the first publish? Has neither a filter?",
        Kind.DELIVERED_OUT_OF_ORDER: (
            "Do publishers in several regions use the key? How long may a publish hang (`publish_time_error_s`)? The publisher's own "
            "record decides it (docs/probes/observe.md)."
        ),
        Kind.PUBLISHED_OUT_OF_ORDER: (
            "Pub/Sub kept its guarantee: look at the publisher. Do two writers share the numbering? Does it publish the next message "
            "before the last one is confirmed, without a client that keeps the order, or go on after a publish that failed?"
        ),
        Kind.REDELIVERY_SKIP: (
            "Does the subscription have a dead-letter policy? Is `delivery_delay_max_s` long enough where you record?"
        ),
        Kind.PULL_BATCH_ORDER: _NOTHING,
        Kind.PUSH_ADVANCE_PAST_NACK: _NOTHING,
        Kind.REDELIVERY_STALL: "Is the subscriber still taking messages?",
        Kind.AFFINITY_SPLIT: "Google calls affinity usual, not guaranteed; decide what it costs you.",
        Kind.PULL_OVERLAP: _NOTHING,
        Kind.PUSH_OVERLAP: _NOTHING,
        Kind.AFFINITY_MOVE: "Nothing needs to be done.",
        Kind.STUCK: "Are subscribers connected and taking messages?",
        Kind.LOST_OVERTAKEN: "The service probably lost the message: give its id to the service's owners, and keep the trace as proof.",
        Kind.UNACKED_STALL: "Has the subscription a retry policy with a long back-off?",
        Kind.PHANTOM: "Does another publisher use the same epoch?",
        Kind.GHOST: "Does the record call a failure certain that is not, such as a timeout?",
        Kind.ID_CONFLICT: _NOTHING,
        Kind.FILTER_LEAK: "Was the filter changed just before?",
        Kind.EOD_REDELIVERY_AFTER_ACK: _NOTHING,
        Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: (
            "Two subscribers may have processed it: tell the users of the subscription. Are the clocks of several recorders comparable "
            "(`clock_error_s`)?"
        ),
        Kind.PUBLISHER_DUP: _RETRIED,
        Kind.LATE_DUP: _RETRIED,
        Kind.SERVICE_DUP: (
            "Nothing: the service may do this when it retries a publish internally, also with exactly-once delivery."
        ),
    }
)
"""Advice in sentences; empty for kinds without special advice. Names of settings and of other kinds are in backquotes."""
