"""What a simulated run may contain: sizes, true bounds, and the rate of everything that may happen.

Rates are probabilities per occasion unless they end in `_every_s`. Grouped by who does it: the publishers and their topic, the clients,
the sessions between clients and service, the service, the recorders. `swarm` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from prober.core.rules import Mode

NEVER = 1e12


class PublishTime(StrEnum):
    """How a recorder writes when the service stored a message, if it does."""

    NONE = "none"
    NANOSECONDS = "nanoseconds"
    SECONDS = "seconds"
    TEXT = "text"


class PullRecord(StrEnum):
    """What is recorded of a pull: its invocation and its end, its invocation only, or only that it was answered (older recorders)."""

    COMPLETE = "complete"
    INVOKED = "invoked"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is true of a run. `rules_for` tells the checker this or something more generous."""

    delay_max_s: float
    lease_s: float
    ack_lag_s: float
    close_detection_s: float
    retention_s: float
    backoff_s: float


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """What publishers and the topic do."""

    bursts: int
    burst_max: int
    burst_gap_s: float
    pause_s: float
    attempts: int
    request_loss: float
    reply_loss: float
    partial: float
    zombie: float
    slow_reply: float
    republish: float
    pipelined: bool
    restart: bool
    epoch_per_burst: bool
    failover: float
    store_twice: float
    publish_time: PublishTime


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What subscribers do with what they get, and when they are there."""

    clients: int
    streams: int
    nack: float
    ignore: float
    ack_loss: float
    late_ack: float
    shorten: float
    extend: float
    hold: float
    hold_max_s: float
    ack_after_close: float
    away_s: float


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How streams break, what gets lost, what a pull response holds, what is recorded of it."""

    break_every_s: float
    half_open: float
    half_open_loses: float
    client_first: float
    handover: float
    other_client: float
    loss: float
    batch_max: int
    pulls: PullRecord
    pull_timeout_s: float


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How the service uses its freedom."""

    pace: int
    limit_messages: int
    limit_bytes: int
    spontaneous_every_s: float
    forget_every_s: float
    idle_move: float
    turn: float
    race: float
    lazy_rewind: float
    deeper_rewind: float
    old_ack_counts: float
    stays_lost: float
    neighbour_delay: float
    dead_letter: int
    dead_letter_observed: float
    leaves_out: float
    poison: float
    exactly_once: bool
    seek: bool


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What becomes of the record: how many recorders with which clock error, an excerpt of it, a hole in it."""

    recorders: int
    clock_error_s: float
    clock_steps: bool
    excerpt: bool
    hole: bool


@dataclass(frozen=True, slots=True)
class Options:
    """One subscription of a run with its topic.

    `second` is another subscription of the same topic, `late_s` when it is created. `short_memory`: the checker keeps few positions, and
    those of an idle key not for long.
    """

    mode: Mode
    keys: int
    bounds: Bounds
    topic: TopicOptions
    client: ClientOptions
    session: SessionOptions
    service: ServiceOptions
    record: RecordOptions
    short_memory: bool = False
    late_s: float = 0.0
    second: Options | None = None
