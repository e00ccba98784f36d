"""The values that labels may have. Each is a closed set, so that every combination exists from the start."""

from __future__ import annotations

from enum import StrEnum


class PublishOutcome(StrEnum):
    """What became of a publish."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class Result(StrEnum):
    """How a check ended."""

    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"


class Outstanding(StrEnum):
    """Whether messages of a key were outstanding when it moved."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Skip(StrEnum):
    """Why a scheduled run did not start."""

    MISFIRE = "misfire"
    OVERLAP = "overlap"
    MAINTENANCE = "maintenance"


class Component(StrEnum):
    """The parts of the prober that can fail or give up something."""

    API = "api"
    HISTORY = "history"
    METRICS = "metrics"
    PROBE = "probe"
    RECORDER = "recorder"
    SCHEDULER = "scheduler"
    STATUS = "status"


class Job(StrEnum):
    """The nightly jobs."""

    HOT_KEYS = "hot-keys"
    SLO_BURN = "slo-burn"
    REVERIFY = "reverify"
    COMPACT = "compact"
    NIGHTLY = "nightly"


class Heat(StrEnum):
    """Why the nightly job `hot-keys` calls a key hot."""

    STALLED = "stalled"
    THROUGHPUT_BOUND = "throughput-bound"
    CONSUMER_BOUND = "consumer-bound"
    SKEWED = "skewed"


class Duration(StrEnum):
    """The durations that are measured about a service."""

    PUBLISH = "publish_latency"
    END_TO_END = "end_to_end_latency"
    REDELIVERY = "redelivery_latency"
    CONTROL_PLANE = "control_plane_latency"
    OLDEST_UNACKED_AGE = "oldest_unacked_message_age"
