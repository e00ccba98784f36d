"""The values that the labels of metrics may have: closed sets, so that every combination exists from the start."""

from __future__ import annotations

from enum import StrEnum


class PublishOutcome(StrEnum):
    """What became of a publish."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class CheckResult(StrEnum):
    """How a check ended."""

    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"


class Outstanding(StrEnum):
    """Whether messages of a key were outstanding when it moved."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class LibraryAnomaly(StrEnum):
    """Behaviour of the client library that its documentation rules out, on one ordering key."""

    CALLBACK_OVERLAP = "callback_overlap"
    UNEXPLAINED_STOP = "unexplained_stop"
    PUBLISH_PAST_FAILURE = "publish_past_failure"


class SkipReason(StrEnum):
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
    RETENTION = "retention"
    NIGHTLY = "nightly"


class Bound(StrEnum):
    """What is known of a difference: its estimate, the ends of its interval, and the margin that is allowed."""

    ESTIMATE = "estimate"
    LOW = "low"
    HIGH = "high"
    MARGIN = "margin"
