"""The assumptions about a subscription, and the meaning of a detected fact under its settings.

`Rules` contains the bounds that the checker may rely on (docs/model.md, section 3, names the false findings without each). They are
deliberately generous: a generous bound hides little, an
optimistic one raises false alarms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from prober.core.findings import Kind
from prober.core.kinds import KINDS, WITHIN_A_REGION


class Mode(StrEnum):
    """The consumption mode of a subscription; it defines its sessions and holders."""

    __hash__ = str.__hash__

    STREAMING = "streaming"
    PULL = "pull"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Rules:
    """Bounds and settings of one subscription, all times in seconds; `inf` means "no bound". Raises ValueError for a window below 1.

    delivery_delay_max_s    Delta: from the service's send to the recorder. A few seconds at the wire, `inf` in client callbacks.
    clock_error_s           eps: clock error between recorders; 0 in one process.
    ack_deadline_s          D0: the initial lease of a delivery.
    ack_lag_max_s           how long the service may take to apply a sent acknowledgement.
    close_detection_max_s   Delta_close: how long a dead stream may look open to the client.
    exactly_once            the subscription has exactly-once delivery.
    dead_letter_max_attempts    the dead-letter policy's limit, 0 without a policy.
    window                  learned positions kept per key; records that leave it can no longer be verified.
    delivery_deadline_s     how long an accepted message may stay undelivered while its key has no delivery.
    stall_deadline_s        the same for a redelivery run that stopped.
    unacked_deadline_s      the same for a message whose lease is over or that was nacked.
    subscription_predates_first_publish     a strict baseline: the first message of an epoch must be delivered first. False adopts the
                            first delivered message as the baseline.
    filtered                the subscription has a filter, so it need not receive the same messages as others.
    filter_every            the filter passes only the messages whose sequence number is a multiple of this; 0: no such filter.
    attempts_observed       every attempt to publish is a separate event (no hidden retries), so that more records than
                            attempts are a violation and not a client's retry.
    idle_after_s            how long a settled key without events keeps its window.
    message_retention_s     the age from which a message may be gone from the subscription.
    retry_backoff_max_s     the longest backoff of the retry policy after a nack or an expired lease.
    publishes_recorded      False: other publishers, whose publishes are not on record, use the topic too; see `unrecorded`.
    publish_time_error_s    how far the publish times of such messages may differ from the order in which the service stored them; `inf`
                            also if they may have been published in several regions.
    one_publish_region      False: the endpoint does not prove that all messages of a key are published in one region.
    republish_max_s         how long after a message its publisher may publish it again, if its publishes are not on record.
    redelivery_promised     False: single messages may be redelivered, to any subscriber, as other brokers than Pub/Sub do; the checker
                            verifies only the order of first deliveries.
    keys_max                remembered keys, 0 for all: beyond it, the least recent ones are forgotten, and may return as new ones.
    """

    mode: Mode = Mode.STREAMING
    delivery_delay_max_s: float = 5.0
    clock_error_s: float = 0.0
    ack_deadline_s: float = 60.0
    ack_lag_max_s: float = 10.0
    close_detection_max_s: float = 30.0
    exactly_once: bool = False
    dead_letter_max_attempts: int = 0
    window: int = 1024
    delivery_deadline_s: float = 120.0
    stall_deadline_s: float = 120.0
    unacked_deadline_s: float = 120.0
    subscription_predates_first_publish: bool = True
    filtered: bool = False
    filter_every: int = 0
    attempts_observed: bool = False
    idle_after_s: float = 900.0
    message_retention_s: float = inf
    retry_backoff_max_s: float = 0.0
    publishes_recorded: bool = True
    publish_time_error_s: float = inf
    one_publish_region: bool = True
    republish_max_s: float = 60.0
    redelivery_promised: bool = True
    keys_max: int = 0

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError("window must be at least 1 position")

    @property
    def ack_settled_s(self) -> float:
        """Seconds after which a sent acknowledgement or nack has provably been applied."""
        return self.ack_lag_max_s + self.delivery_delay_max_s

    @property
    def has_filter(self) -> bool:
        """Whether the subscription need not receive the same messages as others."""
        return self.filtered or self.filter_every > 1

    def excludes(self, seq: int) -> bool:
        """Return whether the filter provably excludes a sequence number."""
        return self.filter_every > 1 and seq % self.filter_every != 0

    @property
    def several_regions(self) -> bool:
        """Whether messages may have been published in several regions without a record of the region."""
        return not self.one_publish_region or (not self.publishes_recorded and self.publish_time_error_s == inf)

    def depends_on_region(self, kind: Kind) -> bool:
        """Return whether a finding of a kind has a legal explanation: its messages were published in several regions."""
        return self.several_regions and KINDS[kind].guarantee in WITHIN_A_REGION


_RESPONSE = ("ack_deadline_s", "ack_lag_max_s", "delivery_delay_max_s")
"""The bounds of how long a pull response or a push request may hold the key: no deadline runs meanwhile."""

ONE_RECORD_PER_ID = "one_record_per_message_id"
"""The assumption, with the value 1, that a message id identifies one record, if publish times were not recorded."""

ONE_REGION_PER_KEY = "one_region_per_key"
"""The assumption, with the value 1, that all messages of a key were published in one region, if the region is not known."""

ASSUMED_IN_WORDS: Final[Mapping[str, str]] = {
    ONE_RECORD_PER_ID: "one record per message id (no publish times were recorded)",
    ONE_REGION_PER_KEY: "one publishing region per key (the endpoint proves none)",
}
"""Texts for assumptions that are no bounds of `Rules`, whose names and values mean nothing to a reader."""


def assumptions_of(rules: Rules, kind: Kind, *, ids_alone: bool) -> Mapping[str, float]:
    """Return the bounds that findings of a kind rely on, by name: the first facts to check when a finding is doubted.

    `ids_alone`: no publish times were recorded, so a comparison of positions assumes one record per message id.
    """
    meaning = KINDS[kind]
    bounds = meaning.assumptions
    if meaning.is_wait:  # the bounds that delayed the start of a deadline
        bounds += () if rules.mode is Mode.STREAMING else _RESPONSE
        bounds += ("retry_backoff_max_s",) if rules.retry_backoff_max_s else ()
    assumed = {name: float(getattr(rules, name)) for name in bounds}
    if ids_alone and meaning.by_position:
        assumed[ONE_RECORD_PER_ID] = 1.0
    if rules.depends_on_region(kind):
        assumed[ONE_REGION_PER_KEY] = 1.0
    return assumed
