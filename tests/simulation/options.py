"""What a simulated run may contain: bounds, dice and bugs.

`swarm` draws the options of a run from its seed: every feature is on in about half of the runs and its rate is drawn anew, because
runs in which everything happens hide what only a rare combination shows. The bounds given to the checker are never tighter than the
true ones (S3, S5, S7 of section 2.3), and in about half of the runs they are exactly the true ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from prober.core.rules import Mode, Rules


class Fault(StrEnum):
    """The bugs that a service can be given (section 9.2)."""

    SKIP_FIRST = "skip_first"
    SWAP_FIRST = "swap_first"
    BATCH_SWAP = "batch_swap"
    LOST_WRITE = "lost_write"
    REDELIVER_UNACKED_ONLY = "redeliver_unacked_only"
    REDELIVER_SINGLE = "redeliver_single"
    REORDER_RUN = "reorder_run"
    DUP_ALONE = "dup_alone"
    RESUME_PAST = "resume_past"
    STALL_RUN = "stall_run"
    NO_REDELIVER = "no_redeliver"
    SPLIT = "split"
    LOST_TRACK = "lost_track"
    PHANTOM = "phantom"
    HOLE = "hole"
    BATCH_REVERSE = "batch_reverse"
    OVERLAP = "overlap"
    PAST_NACK = "past_nack"


FAULTS: dict[Mode, tuple[Fault, ...]] = {
    Mode.STREAMING: (
        Fault.SKIP_FIRST,
        Fault.SWAP_FIRST,
        Fault.BATCH_SWAP,
        Fault.LOST_WRITE,
        Fault.REDELIVER_UNACKED_ONLY,
        Fault.REDELIVER_SINGLE,
        Fault.REORDER_RUN,
        Fault.DUP_ALONE,
        Fault.RESUME_PAST,
        Fault.STALL_RUN,
        Fault.NO_REDELIVER,
        Fault.SPLIT,
        Fault.LOST_TRACK,
        Fault.PHANTOM,
    ),
    Mode.PULL: (
        Fault.HOLE,
        Fault.BATCH_REVERSE,
        Fault.OVERLAP,
        Fault.REDELIVER_UNACKED_ONLY,
        Fault.BATCH_SWAP,
        Fault.LOST_WRITE,
        Fault.NO_REDELIVER,
        Fault.STALL_RUN,
    ),
    Mode.PUSH: (Fault.OVERLAP, Fault.PAST_NACK, Fault.BATCH_SWAP, Fault.LOST_WRITE, Fault.NO_REDELIVER),
}


@dataclass(frozen=True, slots=True)
class Options:
    """Sizes, true bounds and rates of one run. Rates are probabilities per occasion unless they end in `_every_s`."""

    mode: Mode
    # size
    keys: int
    bursts: int
    burst_max: int
    burst_gap_s: float
    # true bounds
    delay_max_s: float
    lease_s: float
    ack_lag_s: float
    close_detection_s: float
    # publisher
    attempts: int
    request_loss: float
    reply_loss: float
    partial: float
    zombie: float
    slow_reply: float
    republish: float
    pipelined: bool
    restart: bool
    # clients
    clients: int
    streams: int
    nack: float
    ignore: float
    ack_loss: float
    late_ack: float
    old_ack_counts: float
    shorten: float
    extend: float
    ack_after_close: float
    # streams and responses
    break_every_s: float
    half_open: float
    client_first: float
    other_client: float
    loss: float
    batch_max: int
    opened_at_arrival: bool
    # service
    flow: int
    spontaneous_every_s: float
    idle_move: float
    lazy_rewind: float
    deeper_rewind: float
    turn: float
    dead_letter: int
    dead_letter_observed: float
    exactly_once: bool
    seek: bool


NEVER = 1e12


class Dice:
    """Throws for one run: a feature is off in a part of the runs, and as strong as it comes in the others."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def rate(self, high: float, share: float = 0.5) -> float:
        """A probability up to `high`, 0 in all but a share of the runs."""
        return self._random.uniform(0, high) if self._random.random() < share else 0.0

    def every(self, low: float, high: float, share: float = 0.5) -> float:
        """A time between two occurrences, `NEVER` in all but a share of the runs."""
        return self._random.uniform(low, high) if self._random.random() < share else NEVER

    def flag(self, share: float) -> bool:
        """True in a share of the runs."""
        return self._random.random() < share


def swarm(seed: int, mode: Mode) -> Options:
    """The options of the run with this seed."""
    random = Random(f"options {mode} {seed}")
    dice = Dice(random)
    lease = random.choice((10.0, 20.0, 60.0))
    exactly_once = mode is not Mode.PUSH and dice.flag(0.2)
    dead_letter = random.choice((5, 6)) if dice.flag(0.2) else 0
    return Options(
        mode=mode,
        keys=random.choice((1, 1, 1, 2, 3)),
        bursts=random.randint(2, 10),
        burst_max=random.randint(1, 7),
        burst_gap_s=random.choice((0.3, 2.0, 8.0, 30.0)),
        delay_max_s=random.choice((0.02, 0.3, 1.0, 3.0)),
        lease_s=lease,
        ack_lag_s=random.choice((0.05, 0.5, 5.0)),
        close_detection_s=random.choice((0.0, 0.5, 3.0)),
        attempts=random.randint(1, 4),
        request_loss=dice.rate(0.4),
        reply_loss=dice.rate(0.5),
        partial=dice.rate(0.5),
        zombie=dice.rate(0.5),
        slow_reply=dice.rate(0.7),
        republish=random.choice((0.0, 0.5, 1.0)),
        pipelined=dice.flag(0.5),
        restart=dice.flag(0.25),
        clients=random.randint(1, 4),
        streams=random.choice((1, 1, 2)),
        nack=random.uniform(0.2, 0.7) if dead_letter else dice.rate(0.25),
        ignore=dice.rate(0.15),
        ack_loss=dice.rate(0.2),
        late_ack=dice.rate(0.4),
        old_ack_counts=dice.rate(1.0),
        shorten=dice.rate(0.4, 0.3),
        extend=dice.rate(0.4, 0.3),
        ack_after_close=dice.rate(0.5, 0.3),
        break_every_s=dice.every(5.0, 60.0),
        half_open=dice.rate(1.0),
        client_first=dice.rate(1.0),
        other_client=dice.rate(1.0),
        loss=dice.rate(0.2),
        batch_max=random.choice((1, 3, 10)),
        opened_at_arrival=dice.flag(0.5),
        flow=random.choice((1, 3, 10, 1000)),
        spontaneous_every_s=dice.every(10.0, 100.0),
        idle_move=dice.rate(1.0),
        lazy_rewind=dice.rate(1.0, 0.4),
        deeper_rewind=dice.rate(0.5, 0.4),
        turn=dice.rate(1.0),
        dead_letter=dead_letter,
        dead_letter_observed=random.choice((0.0, 0.5, 1.0)),
        exactly_once=exactly_once,
        seek=dice.flag(0.1),
    )


def rules_for(seed: int, options: Options) -> Rules:
    """What the checker is told: the true bounds or, in other runs, more generous ones."""
    random = Random(f"rules {options.mode} {seed}")
    patience = 30 * options.lease_s
    return Rules(
        mode=options.mode,
        delivery_delay_max_s=random.choice((options.delay_max_s, options.delay_max_s, 2 * options.delay_max_s, 5.0)),
        ack_deadline_s=options.lease_s,
        ack_lag_max_s=random.choice((options.ack_lag_s, 10.0)),
        close_detection_max_s=random.choice((options.close_detection_s, options.close_detection_s, 10.0)),
        exactly_once=options.exactly_once,
        dead_letter_max_attempts=options.dead_letter,
        delivery_deadline_s=patience,
        stall_deadline_s=patience,
        unacked_deadline_s=patience,
    )
