"""Hot ordering keys: their classes, and the limits shared by the nightly job, `observe`, the pages and the alerts."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

LIMIT_BYTES_PER_S: Final = 1_000_000.0
"""The publish throughput per ordering key that Pub/Sub documents as its maximum."""
NEAR_LIMIT: Final = 0.8
"""The part of the limit from which a key is throughput-bound."""
SHARE_MIN: Final = 0.15
FAIR_SHARES_MIN: Final = 3.0


class HotKeyClass(StrEnum):
    """The reason why a key is hot, the most urgent first."""

    STALLED = "stalled"
    THROUGHPUT_BOUND = "throughput-bound"
    CONSUMER_BOUND = "consumer-bound"
    SKEWED = "skewed"


def is_large(share: float, keys: int) -> bool:
    """Return whether a key with this share (0 to 1) of all messages carries far more than the others of `keys`."""
    return share >= SHARE_MIN and share * keys >= FAIR_SHARES_MIN


def class_of_load(bytes_per_s: float, share: float, keys: int) -> HotKeyClass | None:
    """Return the class that follows from load alone; None: the load does not make the key hot.

    bytes_per_s  data of the key. share: its part of the messages of a stream that has at least `keys` keys.
    """
    if bytes_per_s >= NEAR_LIMIT * LIMIT_BYTES_PER_S:
        return HotKeyClass.THROUGHPUT_BOUND
    return HotKeyClass.SKEWED if is_large(share, keys) else None


def score_of_load(bytes_per_s: float, share: float) -> float:
    """Return how hot a load is, about 0 to 1: the share of the limit or of the messages, whichever is more."""
    return max(bytes_per_s / LIMIT_BYTES_PER_S, share)
