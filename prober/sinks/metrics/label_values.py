"""Values of metric labels: closed sets, so that every combination exists from the start."""

from __future__ import annotations

from enum import StrEnum


class PublishOutcome(StrEnum):
    """Outcome of a publish."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class CheckResult(StrEnum):
    """Result of a check."""

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


class GuaranteeObservation(StrEnum):
    """A guarantee or documented behaviour that a probe observed, or its opposite: names of counters of runs.

    idle_keys_stayed            a key without outstanding messages stayed with its subscriber (likely, not guaranteed).
    ordering_changes_refused    the service rejected a change of enable_message_ordering, as documented.
    ordering_changes_accepted   the service accepted it.
    dead_letters_missing        a message did not arrive at the dead-letter topic in time.
    sought_past_came            an acknowledged message was redelivered after a seek to before it.
    publishes_stopped           a client library rejected publishes behind a failed one, as documented.
    keys_resumed                publishing on a key worked again after a failure.
    """

    IDLE_KEYS_STAYED = "idle_keys_stayed"
    ORDERING_CHANGES_REFUSED = "ordering_changes_refused"
    ORDERING_CHANGES_ACCEPTED = "ordering_changes_accepted"
    DEAD_LETTERS_MISSING = "dead_letters_missing"
    SOUGHT_PAST_CAME = "sought_past_came"
    PUBLISHES_STOPPED = "publishes_stopped"
    KEYS_RESUMED = "keys_resumed"


class SkipReason(StrEnum):
    """Reason why a scheduled run did not start."""

    MISFIRE = "misfire"
    OVERLAP = "overlap"
    MAINTENANCE = "maintenance"


class Component(StrEnum):
    """Components of the prober that can fail or drop data."""

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
    """Parts of a measured difference: its estimate, the ends of its interval, and the permitted margin."""

    ESTIMATE = "estimate"
    LOW = "low"
    HIGH = "high"
    MARGIN = "margin"


class DiscoveryState(StrEnum):
    """Whether a discovered own subscription is read."""

    WATCHED = "watched"
    LEFT_OUT = "left_out"


class Signal(StrEnum):
    """The signals of OpenTelemetry that the prober exports."""

    TRACES = "traces"
    METRICS = "metrics"
