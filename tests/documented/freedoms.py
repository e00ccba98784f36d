"""Freedoms that Google's documents leave to the service, and the switches that turn some of them off."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Freedom(StrEnum):
    """Legal behaviour that a naive checker could report. The function that takes a freedom cites its document."""

    __hash__ = str.__hash__

    ACK_LOST = "ack_lost"
    ACK_LATE = "ack_late"
    ACK_OF_EXPIRED_LEASE = "ack_of_expired_lease"
    ACK_OUT_OF_ORDER_REFUSED = "ack_out_of_order_refused"
    ACK_DURING_REDELIVERY_ONCE = "ack_during_redelivery_once"
    ACK_CONFIRMATION_LOST = "ack_confirmation_lost"
    ACK_AFTER_CLOSE = "ack_after_close"
    NACK = "nack"
    NACK_LOST = "nack_lost"
    BUFFERED_AFTER_NACK = "buffered_after_nack"
    LEASE_EXPIRED = "lease_expired"
    LEASE_EXTENDED = "lease_extended"
    LEASE_HELD_LONG = "lease_held_long"
    LEASE_SHORTENED = "lease_shortened"
    LEASE_CHANGE_LOST = "lease_change_lost"
    REDELIVERY_OF_ACKED = "redelivery_of_acked"
    REDELIVERY_WHILE_LEASED = "redelivery_while_leased"
    REDELIVERY_ELSEWHERE = "redelivery_elsewhere"
    REDELIVERY_ELSEWHERE_WHILE_HELD = "redelivery_elsewhere_while_held"
    MOVE_WITHOUT_OUTSTANDING = "move_without_outstanding"
    SUCCESSORS_HELD = "successors_held"
    SUCCESSORS_HELD_LONG = "successors_held_long"
    OTHER_KEYS_DELAYED = "other_keys_delayed"
    FLOW_CONTROL = "flow_control"
    STREAM_BROKEN_CLIENT_FIRST = "stream_broken_client_first"
    STREAM_BROKEN_SERVICE_FIRST = "stream_broken_service_first"
    LOST_IN_BROKEN_STREAM = "lost_in_broken_stream"
    PULL_CONCURRENT = "pull_concurrent"
    PULL_RESPONSE_LOST = "pull_response_lost"
    PULL_GIVEN_UP = "pull_given_up"
    PULL_NACK_ENDS_BATCH = "pull_nack_ends_batch"
    PULL_REDELIVERY_WHILE_OUTSTANDING = "pull_redelivery_while_outstanding"
    PUSH_REDELIVERY_WHILE_OUTSTANDING = "push_redelivery_while_outstanding"
    PUSH_REFUSED = "push_refused"
    PUSH_TIMEOUT = "push_timeout"
    PUSH_REQUEST_LOST = "push_request_lost"
    PUSH_ANSWER_LOST = "push_answer_lost"
    SAME_ID_DUPLICATE = "same_id_duplicate"
    SAME_ID_WITHOUT_PUBLISH_TIME = "same_id_without_publish_time"
    CLIENT_RETRY = "client_retry"
    CLIENT_RETRY_PARTIAL = "client_retry_partial"
    CLIENT_RETRY_LATE = "client_retry_late"
    PUBLISH_UNKNOWN = "publish_unknown"
    PUBLISH_UNKNOWN_STORED = "publish_unknown_stored"
    PUBLISH_UNKNOWN_LATE = "publish_unknown_late"
    PUBLISH_FAILED = "publish_failed"
    PUBLISH_ABANDONED = "publish_abandoned"
    REGIONS = "regions"
    UNORDERED = "unordered"
    EPOCHS = "epochs"
    DEAD_LETTERED = "dead_lettered"
    DEAD_LETTER_EXCEEDED = "dead_letter_exceeded"
    DEAD_LETTERED_TWICE = "dead_lettered_twice"
    DELIVERY_ATTEMPT_APPROXIMATE = "delivery_attempt_approximate"
    DEAD_LETTER_SKIPS = "dead_letter_skips"
    BACKOFF = "backoff"
    RETENTION = "retention"
    SEEK_BACK = "seek_back"
    SEEK_FORWARD = "seek_forward"
    SEEK_SNAPSHOT = "seek_snapshot"
    FILTER = "filter"
    CLOCK_SKEW = "clock_skew"
    CUT_START = "cut_start"
    CUT_START_IN_PUBLISH = "cut_start_in_publish"
    CUT_END = "cut_end"
    CUT_END_BEFORE_PUBLISH = "cut_end_before_publish"
    HOLE = "hole"
    NOT_DRAINED = "not_drained"


SWITCHED_OFF: Final[Mapping[Freedom, str]] = {
    Freedom.REDELIVERY_ELSEWHERE_WHILE_HELD: "the checker reports AFFINITY_SPLIT, the ordering page calls affinity not guaranteed",
    Freedom.ACK_DURING_REDELIVERY_ONCE: "the checker reports REDELIVERY_SKIP of a message whose acknowledgement is confirmed",
    Freedom.SUCCESSORS_HELD_LONG: "the checker reports STUCK while a streaming client holds the message before",
    Freedom.SAME_ID_WITHOUT_PUBLISH_TIME: "the checker takes a message id for one record where no publish times are recorded",
}
"""Freedoms that histories do not take by default, with the reason; `disputed.md` has the traces."""
